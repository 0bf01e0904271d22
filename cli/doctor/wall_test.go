package doctor

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// TestWallFound checks what doctor says of walls: each row that is not held with its words, and why there is nothing better.
func TestWallFound(t *testing.T) {
	t.Parallel()
	closed := []sandbox.Reason{
		{Cause: sandbox.CauseSetting, What: "namespaces are closed", Do: []string{"sysctl one"}},
		{Cause: sandbox.CauseMaskedProc, What: "no /proc", Do: []string{"leave it", "unmask it"}},
	}
	for name, c := range map[string]struct {
		can     sandbox.Ability
		want    []string
		without string
	}{
		"all rows but the network": {
			sandbox.Ability{By: sandbox.ByNamespaces, Unheld: []sandbox.Row{sandbox.RowNetwork}},
			[]string{"made of namespaces", "network is not held: its program can reach every host"},
			"read is not held",
		},
		"Landlock alone": {
			sandbox.Ability{By: sandbox.ByLandlock, Unheld: []sandbox.Row{sandbox.RowProcess, sandbox.RowNetwork}, Why: closed},
			[]string{
				"made of landlock", "process is not held: its program can see processes", "network is not held",
				"better was tried: namespaces are closed, no /proc",
			},
			"read is not held",
		},
		"nothing": {
			sandbox.Ability{By: sandbox.ByNothing, Unheld: sandbox.Rows},
			[]string{"`sandbox: workspace` is not started", "write is not held: its program can write files"},
			"tried",
		},
	} {
		got := wallFound(c.can)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q lacks %q", name, got, want)
			}
		}
		if strings.Contains(got, c.without) {
			t.Errorf("%s: %q has %q", name, got, c.without)
		}
	}
}

// TestWallHelp checks that each reason's help is shown on a line of its own, and in JSON with its code.
func TestWallHelp(t *testing.T) {
	t.Parallel()
	can := sandbox.Ability{By: sandbox.ByLandlock, Unheld: []sandbox.Row{sandbox.RowProcess}, Why: []sandbox.Reason{
		{Cause: sandbox.CauseMaskedProc, What: "no /proc", Do: []string{"leave it", "unmask it"}},
		{Cause: sandbox.CauseAppArmor, What: "AppArmor", Do: []string{"sudo tee x <<'EOF'\nprofile\nEOF"}},
	}}
	var out strings.Builder
	f := Finding{OK: true, About: "sandbox", What: "what", Do: wallHelp(can), Wall: &can}
	PrintFinding(&cli.App{Out: &out}, f)
	const indent = "                   "
	if want := "ok  sandbox        what\n" + indent + "leave it\n" + indent + "or: unmask it\n" + indent +
		"sudo tee x <<'EOF'\nprofile\nEOF\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	text, err := json.Marshal(f)
	if want := `"wall":{"by":"landlock","users":false,"processes":false,"network":false,"overlays":false,"git":false,"unheld":["process"],"why":[{"cause":"masked_proc","what":"no /proc","do":["leave it","unmask it"]},`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	if got := wallHelp(sandbox.Ability{By: sandbox.ByNamespaces}); got != "" {
		t.Errorf("where nothing is missing, %q is advised", got)
	}
}
