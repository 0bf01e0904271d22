package uitest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestWorkflowsAreChosen checks that a workflow is chosen from a list with its contents, or by its
// path.
func TestWorkflowsAreChosen(t *testing.T) {
	t.Parallel()
	for _, view := range uitest.Views[:2] {
		t.Run(view.Name, func(t *testing.T) {
			t.Parallel()
			s := uitest.NewServer(t, map[string]string{
				"fairlead.yaml":       "version: 1\nagents: {}\n",
				"flows/build.yaml":    "name: Build <b>it</b>\ndescription: Compiles and tests\nsteps:\n  - {id: make, command: [\"true\"]}\n  - {id: sign, command: [\"true\"], human_in_the_loop: true, needs: [make]}\n",
				"flows/broken.yaml":   "name: broken\nsteps:\n  - {id: make, comand: [\"true\"]}\n",
				"flows/ordinary.yaml": "hello: world\n",
			})
			p := uitest.Browse(t)
			p.Resize(view.Size)
			p.Scheme(view.Scheme)
			p.Open(s.URL + "#/runs")
			p.Click(".run-tools", "Start a run")
			for _, words := range []string{
				"Build <b>it</b>", "flows/build.yaml", "Compiles and tests", "2 steps; asks a person at sign",
				"flows/broken.yaml:3:5", "name an agent, or give a command",
			} {
				p.WaitText(".workflows", words)
			}
			p.Until("nothing else is listed", `document.querySelectorAll('.workflows li').length === 2`)
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			if pictures := os.Getenv("PICTURES"); pictures != "" {
				p.Screenshot(filepath.Join(pictures, "workflows-"+view.Name+".png"))
			}
			p.Until("the path has the focus", `document.activeElement.name === 'workflow'`)
			p.Press("broken")
			p.Until("only what fits is listed", `document.querySelectorAll('.workflows li').length === 1`)
			uitest.Eval[bool](p,
				`(() => { const f = document.querySelector('input[name=workflow]'); f.value = ''; f.dispatchEvent(new InputEvent('input', {bubbles: true})); return true; })()`)
			p.Click(".workflows", "Build")
			p.Until("the workflow is selected",
				`document.querySelector('input[name=workflow]').value === 'flows/build.yaml' && document.querySelector('.workflows [aria-pressed=true]').innerText.includes('Build')`)
			p.Click("dialog .dialog-foot", "Start")
			p.WaitText("#run-title", "Build <b>it</b>")
			p.NoConsoleErrors()
		})
	}
}
