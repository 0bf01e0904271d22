package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// taskAgent writes markup into a file, and more whenever its work is sent back. It keeps what it was told.
const taskAgent = `cat > told; if [ -e b.txt ]; then echo "second <b>round</b>" >> b.txt; else echo "first <img src=x onerror=alert(1)>" > b.txt; fi`

// A task on the page, from its text to the merged change: given, looked at, commented on, sent back, approved, landed.
func TestTaskPage(t *testing.T) {
	t.Parallel()
	needsBrowser(t)
	for _, v := range uitest.Views {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			dir, git := taskRepo(t, "*\n!b.txt\n!.gitignore\n")
			s := newRigIn(t, dir, map[string]string{
				"fairlead.yaml": "version: 1\ntasks: {checks: [\"echo '<i>checked</i>'\"]}\nagents:\n  coder:\n    driver: exec\n    command: [sh, -c, '" + taskAgent + "']\n    workspace: .\n",
			})
			p := uitest.Browse(t)
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			looksRight := func() {
				p.Axe()
				p.Until("nothing is wider than the window", uitest.Fits(p))
				p.Until("only the page's own parts scroll", `document.documentElement.scrollHeight <= innerHeight`)
				p.Until("all that can be used is in the window",
					`[...document.querySelectorAll('.deck button, .deck textarea, .deck select, dialog[open] button')].every(e => { const r = e.getBoundingClientRect(); return !e.checkVisibility() || r.right <= innerWidth + 0.5; })`)
			}
			p.Open(s.url + "#/tasks")
			p.WaitText(".board", "No tasks yet")
			p.Click(".board-head", "New task")
			p.WaitText("dialog", "What is to be done")
			p.Until("the text has the focus", `document.activeElement?.getAttribute('name') === 'task'`)
			p.Press("Write the file b")
			attachFiles(t, p)
			looksRight()
			p.Click("dialog", "Give the task")
			p.WaitText(".task-head", "Write the file b")
			p.WaitText(".task-head", "needs you")
			p.WaitText(".task-answer", "squashes it into one commit on main")
			p.WaitText(".changes", "1 file changed")
			p.Until("the images are shown",
				`[...document.querySelectorAll('.task-picture img')].map(e => e.naturalWidth).join() === '30,300'`) // by name
			p.Until("the change is shown as text",
				// innerText has only what is in sight
				`[...document.querySelectorAll('.dl-add')].some(e => e.textContent.includes('first <img src=x onerror=alert(1)>'))`)

			// A line is chosen by its number; the comment can be changed before it is sent.
			p.Until("the line is chosen",
				`(document.querySelector('.dl-add .dl-no')?.click(), document.querySelector('.comment-form textarea') === document.activeElement)`)
			p.Press("why <b>markup</b>?")
			p.Until("the form is in sight",
				`(() => { const f = document.querySelector('.comment-form'), r = f.getBoundingClientRect(); return f.contains(document.elementFromPoint(r.left + r.width / 2, r.bottom - 8)) && f.contains(document.elementFromPoint(r.left + r.width / 2, r.top + 8)); })()`)
			p.Click(".comment-form", "Add comment")
			p.WaitText(".df-rows .comment", "why <b>markup</b>?")
			p.WaitText(".task-answer", "1 comment, and besides")
			p.Until("to ask for changes is the next thing",
				`document.querySelector('.task-answer .order-primary')?.textContent.includes('Request changes')`)
			looksRight()
			p.Until("the text is asked for",
				`(document.querySelector('.comment-tools button')?.click(), document.querySelector('.comment-form textarea') === document.activeElement)`)
			p.Press(" Explain.")
			p.Click(".comment-form", "Save")
			p.WaitText(".df-rows .comment", "Explain.")

			p.Click(".task-answer", "Request changes")
			p.Until("the second change is shown",
				`[...document.querySelectorAll('.dl-add')].some(e => e.textContent.includes('second <b>round</b>'))`)
			p.WaitText(".task-head", "needs you")
			if told, err := os.ReadFile(filepath.Join(dir, ".agents", "worktrees", "T1", "told")); err != nil ||
				!containsAll(string(told), "b.txt:1: ", "runs/T1/attachments/image.png", "runs/T1/attachments/notes.txt",
					"why <b>markup</b>?", "Explain.", "the line: first <img") {
				t.Errorf("the agent was told %q, %v", told, err)
			}
			p.Until("what was asked is part of the conversation", `document.querySelector('.task-you')?.textContent.includes('Explain.')`)
			if v.Size.Width < 600 { // one part at a time
				p.Click(".task-sides", "Conversation")
				p.WaitText(".task-conversation", "You asked")
				p.Until("the images are in sight", `document.querySelector('.task-picture img')?.checkVisibility()`)
				looksRight()
				p.Click(".task-sides", "Changes")
			}
			p.Click(".df-head", "Viewed")
			p.WaitText(".changes-head", "1 viewed")
			p.Until("a viewed file is closed", `!document.querySelector('.dl')`)
			p.Click(".df-head", "Viewed")
			p.Until("a check is shown with its output", `document.querySelector('.checks')?.textContent.includes('<i>checked</i>')`)
			p.Until("only the new line is in it since the last review",
				`(() => { const s = document.querySelector('.scope select');
				if (s?.querySelector('option[value=since]') && s.value !== 'since') { s.value = 'since'; s.dispatchEvent(new Event('change', {bubbles: true})); }
				return [...document.querySelectorAll('.dl-add')].length === 1 && document.querySelector('.dl-add').textContent.includes('second'); })()`)
			looksRight()

			// An approval is for what was looked at.
			if seq := uitest.Eval[float64](p,
				`fetch('/api/v1/runs/T1/merge', {method: 'POST', headers: {'Content-Type': 'application/json', Authorization: 'Bearer ' + localStorage.getItem('fairlead.secret')}, body: JSON.stringify({shown: '0'.repeat(40)})}).then(r => r.status)`); seq != 409 {
				t.Errorf("an approval of another commit is answered with %v, want 409", seq)
			}
			// Where it cannot land, the page says why and lands it again.
			ignore := filepath.Join(dir, ".gitignore")
			if err := os.WriteFile(ignore, []byte("*\n!b.txt\n!.gitignore\n# mine\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			p.Click(".task-answer", "Approve and land")
			p.WaitText(".task-answer", "has changes that are not committed: .gitignore")
			looksRight()
			git("checkout", "--quiet", ".gitignore")
			p.Click(".task-answer", "Land again")
			p.WaitText(".task-head", "done")
			p.WaitText(".task-answer", "Landed on main")
			git("cat-file", "-e", "main:b.txt")
			if out := s.must("run", "show", "T1"); !regexp.MustCompile(`answer +by .*, for tree [0-9a-f]{12}\n`).MatchString(out) {
				t.Errorf("the page's approval does not name the tree: %s", out)
			}
			uitest.Eval[bool](p, `(location.hash = '#/tasks', true)`)
			p.WaitText(".column-done", "Write the file b")
			looksRight()
			p.NoConsoleErrors()
		})
	}
}

// attachFiles pastes two pictures and a text into the form, and a file that is neither.
func attachFiles(t *testing.T, p *uitest.Page) {
	t.Helper()
	attach := func(name string, data []byte) { // as a picture of the screen is pasted
		uitest.Eval[bool](p,
			fmt.Sprintf(`(() => { const d = new DataTransfer(); d.items.add(new File([Uint8Array.from(atob(%q), c => c.charCodeAt(0))], %q));
			document.activeElement.dispatchEvent(new ClipboardEvent('paste', {clipboardData: d, bubbles: true, cancelable: true})); return true; })()`, base64.StdEncoding.EncodeToString(data), name))
	}
	attach("image.png", picture(t, 300, 200))
	p.WaitText(".new-files", "image.png")
	attach("image.png", picture(t, 30, 20))
	p.WaitText(".new-files", "image-2.png")
	attach("program.bin", []byte{0xff, 0})
	p.WaitText("dialog [role=alert]", "program.bin is neither a text file nor a PNG")
	attach("notes.txt", []byte("by hand"))
	p.WaitText(".new-files", "notes.txt")
	p.WaitGone("dialog [role=alert]", "program.bin")
}

func containsAll(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
