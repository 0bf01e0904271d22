package sessions

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// TestWall checks what is said of an agent's wall on a machine, and of a session by its own trial.
func TestWall(t *testing.T) {
	t.Parallel()
	on, off := config.Agent{Sandbox: config.AgentSandbox{Mode: config.SandboxAuto}},
		config.Agent{Sandbox: config.AgentSandbox{Mode: config.SandboxOff}}
	whole := sandbox.Ability{By: sandbox.ByNamespaces}
	open := sandbox.Ability{By: sandbox.ByNamespaces, Unheld: []sandbox.Row{sandbox.RowNetwork}}
	landlock := sandbox.Ability{By: sandbox.ByLandlock, Unheld: []sandbox.Row{sandbox.RowNetwork, sandbox.RowProcess, sandbox.RowInside}}
	all := "write attributes inside read names socket process git root network"
	for name, c := range map[string]struct {
		got  Wall
		by   sandbox.Mechanism
		want string
	}{
		"all rows":                 {WallHere(&on, "", whole), sandbox.ByNamespaces, ""},
		"all rows but the network": {WallHere(&on, "", open), sandbox.ByNamespaces, "network"},
		"Landlock alone":           {WallHere(&on, "", landlock), sandbox.ByLandlock, "inside process network"},
		"mode off":                 {WallHere(&off, "", whole), sandbox.ByNothing, all},
		"no sandbox here":          {WallHere(&on, "old kernel", whole), sandbox.ByNothing, all},
		"nothing can be made":      {WallHere(&on, "", sandbox.Ability{By: sandbox.ByNothing}), sandbox.ByNothing, all},
		"a session":                {WallOf(sessionhost.Proof{Wall: "namespaces"}), sandbox.ByNamespaces, ""},
		"a session, and its trial": {
			WallOf(sessionhost.Proof{Wall: "landlock", Unheld: []string{"root", "read"}}), sandbox.ByLandlock,
			"read root",
		},
		"a session without a wall":  {WallOf(sessionhost.Proof{}), sandbox.ByNothing, all},
		"two sessions, one without": {WallOf(sessionhost.Proof{Wall: "namespaces"}).Both(WallOf(sessionhost.Proof{})), sandbox.ByNothing, all},
		"two sessions, one with less": {WallOf(sessionhost.Proof{Wall: "namespaces"}).Both(WallOf(sessionhost.Proof{
			Wall:   "namespaces",
			Unheld: []string{"root"},
		})), sandbox.ByNamespaces, "root"},
	} {
		if got := strings.Join(c.got.Words(), " "); got != c.want || c.got.By != c.by {
			t.Errorf("%s: %s, not held: %s; want %s, %s", name, c.got.By, got, c.by, c.want)
		}
	}
	for unheld, want := range map[string]bool{
		"": true, "root": true, "read": false, "write": false, "inside": false, "process read": false,
		"attributes": false, "names": false,
	} {
		if got := HoldsFiles(sessionhost.Proof{Wall: "namespaces", Unheld: strings.Fields(unheld)}); got != want {
			t.Errorf("not held: %q: files are held: %v", unheld, got)
		}
	}
	if HoldsFiles(sessionhost.Proof{}) {
		t.Error("a session without a wall holds files")
	}
	for _, row := range sandbox.Rows {
		if UnheldWords(string(row)) == "" {
			t.Errorf("the row %s has no words", row)
		}
	}
}

// TestHoles checks which openings of a wall are named.
func TestHoles(t *testing.T) {
	t.Parallel()
	conf := config.Agent{Workspace: "/r/coder", Sandbox: config.AgentSandbox{
		Mode: config.SandboxWorkspace, Write: []string{"/r/.git", "/r/coder/.git", "/r/coder/cache", "/srv/data", "/r/coders"},
		Read: []string{"/srv/docs"},
		Hide: []string{"/r/coder/keys"}, Sockets: []string{"/run/docker.sock"},
	}}
	want := []string{
		"it can write /r/.git, so what git runs there later is its choice",
		"it can write /r/coder/.git, so what git runs there later is its choice",
		"it can write /srv/data, which is outside of its workspace", "it can write /r/coders, which is outside of its workspace",
		"it can connect to /run/docker.sock, and what listens there acts outside of its wall",
	}
	if diff := cmp.Diff(want, HolesOf(&conf)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	conf.Sandbox.Mode = config.SandboxOff
	if got := HolesOf(&conf); got != nil {
		t.Errorf("without a wall: %q", got)
	}
}

// TestWallGroups checks that agents with the same rows share a line.
func TestWallGroups(t *testing.T) {
	t.Parallel()
	less := Wall{sandbox.ByLandlock, []sandbox.Row{sandbox.RowRead, sandbox.RowNetwork}}
	walls := map[string]Wall{"a": less, "b": {sandbox.ByNothing, sandbox.Rows}, "c": less, "d": {sandbox.ByNamespaces, nil}}
	var lines []string
	for _, g := range groupsOf([]config.Agent{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}},
		func(conf *config.Agent) Wall { return walls[conf.Name] }) {
		lines = append(lines, g.String())
	}
	want := []string{
		"the wall around a, c does not hold: read, network (`fairlead doctor` says why)",
		"no wall around b: each program can do what your user can", "the wall around d holds everything",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
}
