package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// A task that changes what runs later is approved on the page only with the tick, which is for exactly what is shown: on the page of
// the task, and in its card among what needs a person. A task without such files has no tick.
func TestGoverningTickOnThePage(t *testing.T) {
	t.Parallel()
	needsBrowser(t)
	for _, v := range uitest.Views[:2] {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			dir, git := taskRepo(t, "*\n!a.txt\n!Makefile\n!.gitignore\n")
			s := newRigIn(t, dir, map[string]string{
				"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: exec, command: [sh, " + dir + "/work.sh], workspace: .}\n",
				"work.sh":       "cat > told\necho \"$FAIRLEAD_SESSION\" >> a.txt\ncase $(cat told) in *Plain*) ;; *) echo \"# $FAIRLEAD_SESSION <img src=x onerror=alert(1)>\" >> Makefile;; esac\n",
			})
			p := uitest.Browse(t)
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			const blocked, free = `!!document.querySelector('%s .order-approve:is([disabled], [aria-disabled=true])')`,
				`!!document.querySelector('%s .order-approve:not([disabled], [aria-disabled=true])')`
			within := func(what, expression, place string) {
				t.Helper()
				p.Until(what, strings.ReplaceAll(expression, "%s", place))
			}
			tick := func(place string) {
				t.Helper()
				within("there is a tick", `(e => e ? (e.click(), true) : false)(document.querySelector('%s .check input'))`, place)
			}

			const answer = ".task-answer"
			s.must("task", "Write the file", "--agent", "coder")
			p.Open(s.url + "#/tasks/T1")
			p.WaitText(answer, "These files decide what runs later, outside of the agent's bounds: Makefile")
			p.Until("they come first", `document.querySelector('.df-head')?.textContent.includes('Makefile')`)
			within("it cannot be approved", blocked, answer)
			tick(answer)
			within("it can be approved", free, answer)
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			tick(answer)
			within("it cannot be approved without the tick", blocked, answer)

			// Another content takes the tick away.
			tick(answer)
			within("it can be approved again", free, answer)
			s.must("request", "T1", "Write more")
			p.Until("the second round is shown",
				`[...document.querySelectorAll('.dl-add')].filter(e => e.textContent.includes('onerror')).length === 2`)
			within("the tick is gone", blocked, answer)
			tick(answer)
			p.Click(answer, "Approve and land")
			p.WaitText(".task-head", "done")
			git("cat-file", "-e", "main:Makefile")
			if out := s.must("run", "show", "T1", "--json"); !strings.Contains(out, `"governing":"`) {
				t.Errorf("the record has no separate yes: %s", out)
			}

			// In the inbox.
			const card = ".need[data-need=step]"
			s.must("task", "Write the file once more", "--agent", "coder")
			uitest.Eval[bool](p, `(location.hash = '#/now', true)`)
			p.WaitText(card, "These files decide what runs later")
			within("it cannot be approved", blocked, card)
			tick(card)
			p.Click(card, "Approve and land")
			p.WaitGone(card, "Approve and land")
			wait.Until(t, "it has landed", func() bool { return strings.Count(git("show", "main:Makefile"), "onerror") == 3 })

			// The twin.
			s.must("task", "Plain", "--agent", "coder")
			p.WaitText(card, "1 file")
			within("it can be approved without a tick", free, card)
			within("there is no tick", `!document.querySelector('%s .check input')`, card)
			p.Click(card, "Approve and land")
			p.WaitGone(card, "Approve and land")
			p.NoConsoleErrors()
		})
	}
}

// A fairlead.yaml that an agent has changed stands among what needs a person, with the difference, as text. The button confirms exactly
// that.
func TestChangedConfigurationOnThePage(t *testing.T) {
	t.Parallel()
	needsBrowser(t)
	for _, v := range uitest.Views[:2] {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s := newRig(t, map[string]string{
				"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: exec, command: [sh, work.sh], workspace: ., sandbox: auto}\n",
				"work.sh":       "echo '  intruder: {driver: exec, command: [\"true\"], workspace: intruder, description: \"<img src=x onerror=alert(1)>\"}' >> fairlead.yaml\n",
			})
			p := uitest.Browse(t)
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			p.Open(s.url + "#/now")
			s.must("once", "coder")
			const card = ".need[data-need=config]"
			p.WaitText(card, "fairlead.yaml")
			p.WaitText(card, `+  intruder:`)
			p.WaitText(card, `<img src=x onerror=alert(1)>`)
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			if out := s.must("ps", "--json"); strings.Contains(out, "intruder") {
				t.Fatalf("it is obeyed before it was confirmed: %s", out)
			}

			// What is shown is what counts: the sum of another text is refused.
			status := uitest.Eval[float64](p,
				`fetch('/api/v1/reload', {method: 'POST', headers: {'Content-Type': 'application/json', Authorization: 'Bearer ' + localStorage.getItem('fairlead.secret')}, body: JSON.stringify({governing: '0'.repeat(32)})}).then(r => r.status)`)
			if status != 409 {
				t.Errorf("a sum of another text is answered with %v, want 409", status)
			}
			if text, err := os.ReadFile(filepath.Join(s.dir, ".fairlead", "confirmed.json")); err != nil ||
				strings.Contains(string(text), "aW50cnVkZX") {
				t.Errorf("the kept text is the agent's: %v", err)
			}
			p.Click(card, "Confirm the change")
			p.WaitGone(card, "Confirm the change")
			wait.Until(t, "it is obeyed",
				func() bool { out, _ := s.fairlead("ps", "--json"); return strings.Contains(out, `"name":"intruder"`) })
			p.NoConsoleErrors()
		})
	}
}
