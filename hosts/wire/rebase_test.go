package wire_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

var (
	leader = wire.Places{Root: "/home/ann/shop", Exe: "/home/ann/shop/bin/fairlead", Home: "/home/ann"}
	other  = wire.Places{Root: "/srv/shop", Exe: "/usr/local/bin/fairlead", Home: "/root"}
)

// rebased is the text of a start with only an argument.
func rebased(text string, from, to wire.Places) string {
	return wire.Rebase(wire.StartIn{Launch: spawn.Launch{Argv: []string{text}}}, from, to).Launch.Argv[0]
}

func TestRebase(t *testing.T) {
	for text, want := range map[string]string{
		"/home/ann/shop":                                   "/srv/shop",
		"/home/ann/shop/":                                  "/srv/shop/",
		"/home/ann/shop/.agents/runs/r1":                   "/srv/shop/.agents/runs/r1",
		"/home/ann/shop/bin/fairlead":                      "/usr/local/bin/fairlead",
		"/home/ann/shop/bin/fairlead-hook":                 "/srv/shop/bin/fairlead-hook",
		"/home/ann/.claude":                                "/root/.claude",
		"KEY=/home/ann/shop:/other:/home/ann":              "KEY=/srv/shop:/other:/root",
		`["/home/ann/shop/bin/fairlead","mcp"]`:            `["/usr/local/bin/fairlead","mcp"]`,
		`{"text":"look at\n/home/ann/shop/a.go\tand"}`:     `{"text":"look at\n/srv/shop/a.go\tand"}`,
		`{"text":"\u003c/home/ann/shop\u003e"}`:            `{"text":"\u003c/srv/shop\u003e"}`,
		"It is in /home/ann/shop. Look (/home/ann/shop/x)": "It is in /srv/shop. Look (/srv/shop/x)",
		"file:///home/ann/shop/x --dir=/home/ann/shop":     "file:///srv/shop/x --dir=/srv/shop",
		"line\n/home/ann/shop":                             "line\n/srv/shop",

		"/home/ann/shop.git":           "/root/shop.git", // below the home
		"/home/anna /home/ann-2":       "/home/anna /home/ann-2",
		"/mnt/home/ann/shop":           "/mnt/home/ann/shop",
		"x/home/ann ./home/ann":        "x/home/ann ./home/ann",
		"$HOME/home/ann ${X}/home/ann": "$HOME/home/ann ${X}/home/ann",
		"//home/ann":                   "//home/ann",
		"home/ann /HOME/ANN /home":     "home/ann /HOME/ANN /home",
		`a\\n/home/ann`:                `a\\n/home/ann`, // the name of a folder behind a backslash
		"/home/änn /home/ann\u0308":    "/home/änn /home/ann\u0308",
		"":                             "",
	} {
		if got := rebased(text, leader, other); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
	// takes minutes if the time grows with the square
	if long := strings.Repeat("x/w/repo/y", wire.BodyMax/20); rebased(long, wire.Places{Root: "/w/repo"}, wire.Places{Root: "/q"}) != long {
		t.Error("a long text without a place is changed")
	}
	if got := rebased("/ /x", wire.Places{Home: "/"}, wire.Places{Home: "/root"}); got != "/ /x" {
		t.Errorf("a home of / gives %s", got)
	}
	if got := rebased("/a/b /b/c", wire.Places{Root: "/a", Home: "/b"}, wire.Places{Root: "/b", Home: "/a"}); got != "/b/b /a/c" {
		t.Errorf("a replacement is replaced again: %s", got)
	}
}

// TestRebaseWhole checks that each part of a start that names places is replaced, that the original stays, and that
// nil and empty lists stay what they are.
func TestRebaseWhole(t *testing.T) {
	start := func(p wire.Places) wire.StartIn {
		return wire.StartIn{
			Epoch: 7, GraceMS: 1000,
			Launch: spawn.Launch{
				Argv: []string{p.Exe, "adapter"}, Dir: p.Root + "/w", Env: []string{"PWD=" + p.Root + "/w"},
				Input: []byte(`{"images":["` + p.Root + `/i.png"]}`), KeepStdin: true, Ports: 2, PortsFor: "w",
			},
			Confine: &sessionhost.Confinement{
				Agent: "coder", Driver: "acp", Command: []string{p.Root + "/agent"}, CanWrite: []string{}, Read: []string{p.Home + "/docs"},
				Write: []string{p.Home + "/data"},
				Mode:  "workspace", Hide: []string{p.Root + "/keys"}, Sockets: []string{p.Home + "/agent.sock"},
				Writes:      []string{p.Root + "/.agents"},
				CannotWrite: []string{p.Root + "/w/keys/**"}, Others: []string{p.Root + "/v"}, Clone: p.Root + "/w",
				Run: &sessionhost.RunView{
					Dir: p.Root + "/r", Reports: p.Root + "/r/reports", Artifacts: p.Root + "/r/artifacts",
					Files: []string{p.Root + "/r/x"}, Folders: []string{p.Root + "/r/y"},
				},
			},
		}
	}
	in := start(leader)
	if got := wire.Rebase(in, leader, other); !reflect.DeepEqual(got, start(other)) {
		t.Errorf("got %+v", got)
	}
	if !reflect.DeepEqual(in, start(leader)) {
		t.Errorf("the original became %+v", in)
	}
	text, err := json.Marshal(wire.Rebase(in, leader, other))
	var read wire.StartIn
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil || read.Confine.CanWrite == nil {
		t.Errorf("an empty can_write, which grants nothing, is read as none, which grants everything: %v", err)
	}
	if got := wire.Rebase(wire.StartIn{}, leader, other); !reflect.DeepEqual(got, wire.StartIn{}) {
		t.Errorf("an empty start becomes %+v", got)
	}
}

// TestRebaseRandom makes texts of places and of what looks like them, and compares with what each part becomes.
func TestRebaseRandom(t *testing.T) {
	parts := []struct{ is, becomes string }{
		{"/home/ann/shop", "/srv/shop"},
		{"/home/ann/shop/bin/fairlead", "/usr/local/bin/fairlead"},
		{"/home/ann", "/root"},
		{"/home/ann/shop/x/y.go", "/srv/shop/x/y.go"},
		{"/home/ann/shopping", "/root/shopping"},
		{"/home/anna", "/home/anna"},
		{"/mnt/home/ann/shop", "/mnt/home/ann/shop"},
		{"shop", "shop"},
		{"/", "/"},
		{"größe", "größe"},
		{"\x00value:HOME\x00", "\x00value:HOME\x00"},
	}
	between := []string{" ", "\n", `"`, ":", "=", ",", "'", "`", "(", " \\n", "\t", ";", ". "}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var is, want strings.Builder
		for range 1 + r.IntN(8) {
			p, gap := parts[r.IntN(len(parts))], between[r.IntN(len(between))]
			is.WriteString(p.is + gap)
			want.WriteString(p.becomes + gap)
		}
		if got := rebased(is.String(), leader, other); got != want.String() {
			t.Fatalf("%q becomes %q, want %q", is.String(), got, want.String())
		}
		if back := rebased(want.String(), other, leader); back != is.String() {
			t.Fatalf("%q becomes %q on the way back, want %q", want.String(), back, is.String())
		}
	}
}

// FuzzRebase checks that a text that is sent there and back is the same, and that only places change.
func FuzzRebase(f *testing.F) {
	for _, text := range []string{
		"/w/repo/x", "/w/repository", "a\\n/w/repo", "/w/repo/w/repo", "/w/repo/bin/f/w", "=/w:/w/repo.", "://w",
		"\xff/w/repo\xff", "\\u00e4/w",
	} {
		f.Add(text)
	}
	from := wire.Places{Root: "/w/repo", Exe: "/w/repo/bin/f", Home: "/w"}
	to := wire.Places{Root: "/Q1", Exe: "/Q2", Home: "/Q3"}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "/Q") {
			return
		}
		there := rebased(text, from, to)
		if back := rebased(there, to, from); back != text {
			t.Errorf("%q, there %q, back %q", text, there, back)
		}
		if !strings.Contains(text, "/w") && there != text {
			t.Errorf("%q has no place and became %q", text, there)
		}
		if same := rebased(text, from, from); same != text {
			t.Errorf("%q became %q between equal places", text, same)
		}
	})
}

// TestPlacesOf checks that the repository and the program are named without links, and HOME as it is written.
func TestPlacesOf(t *testing.T) {
	real := t.TempDir()
	home, repository := filepath.Join(real, "home"), filepath.Join(real, "repository")
	for _, link := range []string{home, repository} {
		if err := os.Symlink(real, link); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home+"/")
	want, err := filepath.EvalSymlinks(real)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := wire.PlacesOf(repository); err != nil || got.Root != want || got.Home != home || !filepath.IsAbs(got.Exe) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := wire.PlacesOf(filepath.Join(real, "none")); err == nil {
		t.Error("a repository that does not exist is accepted")
	}
}

func TestPlacesCheck(t *testing.T) {
	good := wire.Places{Root: "/srv/my shop", Exe: "/usr/bin/fairlead"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []wire.Places{
		{},
		{Root: "shop", Exe: "/f"},
		{Root: "/srv/../shop", Exe: "/f"},
		{Root: "/srv/", Exe: "/f"},
		{Root: `/srv/"`, Exe: "/f"},
		{Root: `/srv\x`, Exe: "/f"},
		{Root: "/srv\n", Exe: "/f"},
		{Root: "/srv/a&b", Exe: "/f"},
		{Root: "/srv", Exe: ""},
		{Root: "/srv", Exe: "/f", Home: "home"},
		{Root: "/srv/\x00", Exe: "/f"},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// TestResolve checks that what a host lacks is an end of the session with a cause, after the way through JSON.
func TestResolve(t *testing.T) {
	in := wire.StartIn{Launch: spawn.Launch{
		Argv: []string{"x"}, Env: []string{"KEY=<" + driver.Variable("TEAM_KEY") + ">"},
		Input: []byte(driver.Variable("TEAM_KEY")),
	}}
	text, err := json.Marshal(in)
	if err == nil {
		in = wire.StartIn{}
		err = wire.Read(strings.NewReader(string(text)), &in)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.Resolve(in, []string{"TEAM_KEY=1"}, "b")
	if err != nil || got.Launch.Env[0] != "KEY=<1>" || string(got.Launch.Input) != driver.Variable("TEAM_KEY") {
		t.Errorf("%+v, %v", got.Launch, err)
	}
	_, err = wire.Resolve(in, []string{"TEAM_KEYS=1"}, "b")
	var cannot *spawn.CannotStart
	if !errors.As(err, &cannot) || cannot.Why != "the environment of host b has no TEAM_KEY; set it where its daemon starts" {
		t.Errorf("a missing variable: %v", err)
	}
}
