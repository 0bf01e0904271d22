package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// A person adds an agent on the page, sees the change of fairlead.yaml, starts it, edits it while the file is changed by
// hand, and removes it. Comments and all other lines stay.
func TestConfigurePage(t *testing.T) {
	t.Parallel()
	needsBrowser(t)
	for _, v := range uitest.Views {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			first := "# The team.\nversion: 1\nagents:\n  # writes\n  coder: {description: Writes, driver: exec, command: ['true'], workspace: w} # stays\n"
			s := newRig(t, map[string]string{"fairlead.yaml": first, "w/README": "w\n"})
			path := filepath.Join(s.dir, "fairlead.yaml")
			text := func() string {
				t.Helper()
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
			p := uitest.Browse(t)
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			p.Open(s.url + "#/agents")
			p.Until("the page is live", `document.querySelector('.line-live')`)
			fill := func(name, value string) {
				t.Helper()
				p.Until(name+" has the focus",
					`(() => { const e = document.querySelector('dialog [name="`+name+
						`"]'); e?.focus(); e?.select?.(); return document.activeElement === e; })()`)
				p.Press(value)
			}
			show := `[...document.querySelectorAll('.configure-diff span')].map(e => e.innerText).join('')`

			p.Until("the form is open",
				`(document.querySelector('.roster-add')?.click(), !!document.querySelector('dialog [name=command]'))`)
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			fill("name", "tom")
			fill("command", "no-such-program-here")
			fill("workspace", "w")
			p.Click("dialog", "Show the change")
			p.WaitText("dialog .configure-field .fault", "is the folder of agents.coder too")
			fill("workspace", "tom")
			p.Click("dialog", "Test the program")
			p.WaitText(".configure-findings", "no-such-program-here")
			fill("command", "true")
			p.Click("dialog", "Show the change")
			p.WaitText(".configure-diff", "tom:")
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			if before := text(); before != first {
				t.Fatalf("the file was written by a look at the change:\n%s", before)
			}
			p.Click("dialog", "Write the File")
			p.WaitText("dialog", "is in the team now")
			p.Click("dialog", "Start it")
			p.WaitText("#agent-title", "tom")
			if added := text(); !strings.HasPrefix(added, first) || !strings.Contains(added, "tom:") {
				t.Fatalf("the other lines did not stay:\n%s", added)
			}

			edit := `(document.querySelector('.configure-agent button[aria-label^="%"]')?.click(), !!document.querySelector('dialog'))`
			p.Until("the form of tom is open", strings.Replace(edit, "%", "Edit", 1))
			fill("description", "Runs errands")
			p.Click("dialog", "Show the change")
			p.WaitText(".configure-diff", "Runs errands")
			if err := os.WriteFile(path, []byte("# By hand.\n"+text()), 0o600); err != nil {
				t.Fatal(err)
			}
			p.Click("dialog", "Write the File")
			p.WaitText("dialog [role=alert]", "changed meanwhile")
			p.Until("the change is shown again", show+`.includes('Runs errands')`)
			p.Click("dialog", "Write the File")
			p.Until("the dialog has closed", `!document.querySelector('dialog')`)
			p.WaitText(".about", "Runs errands")
			if edited := text(); !strings.HasPrefix(edited, "# By hand.\n"+first) || !strings.Contains(edited, "Runs errands") {
				t.Fatalf("the change by hand is lost:\n%s", edited)
			}

			p.Until("its removal is shown", strings.Replace(edit, "%", "Remove", 1))
			p.WaitText("dialog", "agent tom removed")
			p.Click("dialog", "Remove the Agent")
			p.Until("the dialog has closed", `!document.querySelector('dialog')`)
			p.WaitText(".agent", "There is no agent called tom")
			if removed := text(); removed != "# By hand.\n"+first {
				t.Errorf("the file is not as before:\n%s", removed)
			}
			p.NoConsoleErrors()
		})
	}
}
