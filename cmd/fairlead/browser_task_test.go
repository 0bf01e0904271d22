package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// taskAgent writes markup into a file, and more whenever its work is sent back.
const taskAgent = `read -r text; if [ -e b.txt ]; then echo "second <b>round</b>" >> b.txt; else echo "first <img src=x onerror=alert(1)>" > b.txt; fi`

// A task on the page, from its text to the merged change: given, looked at, sent back, approved, landed.
func TestTaskPage(t *testing.T) {
	t.Parallel()
	if raced || !testsize.CI() {
		t.Skip("looks at the page through a browser; needs FAIRLEAD_LONG=ci, and no race detector, which would see neither page nor daemon")
	}
	uitest.Chromium(t)
	for _, v := range uitest.Views[:2] {
		t.Run(v.Name, func(t *testing.T) {
			dir, git := taskRepo(t, "*\n!b.txt\n!.gitignore\n")
			s := newShipIn(t, dir, map[string]string{
				"fairlead.yaml": "version: 1\nagents:\n  coder:\n    driver: exec\n    command: [sh, -c, '" + taskAgent + "']\n    workspace: .\n",
			})
			p := uitest.Browse(t)
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			p.Open(s.url + "#/runs")
			p.Click(".run-tools", "New task")
			p.WaitText("dialog", "What is to be done")
			p.Until("the text has the focus", `document.activeElement?.getAttribute('name') === 'task'`)
			p.Press("Write the file b")
			p.Click("dialog", "Give the task")
			p.WaitText(".run-head", "Write the file b")
			p.WaitText(".run-head", "task: needs you")
			uitest.Eval[bool](p, `(location.hash = '#/runs/T1/approve', true)`)
			p.WaitText(".diff", "1 file changed, compared with main")
			p.Until("the change is shown as text", `[...document.querySelectorAll('.diff-add')].some(e => e.textContent.includes('first <img src=x onerror=alert(1)>'))`) // innerText has only what is in sight
			p.Axe()
			if to := os.Getenv("PICTURES"); to != "" {
				p.Screenshot(filepath.Join(to, "task-"+v.Name+".png"))
			}
			p.Click(".answer", "Request changes")
			p.Until("the second change is shown", `[...document.querySelectorAll('.diff-add')].some(e => e.textContent.includes('second <b>round</b>'))`)
			p.Click(".answer", "Approve and land")
			p.WaitText(".run-head", "task: done")
			git("cat-file", "-e", "main:b.txt")
			p.NoConsoleErrors()
		})
	}
}
