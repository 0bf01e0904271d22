package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFaults compares the messages for wrong files with golden files. After UPDATE=1, read the difference as
// the person who made the mistake.
func TestFaults(t *testing.T) {
	files, err := filepath.Glob("testdata/faults/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			given, want, ok := strings.Cut(string(b), "-- want --\n")
			if !ok {
				t.Fatal("the file has no line -- want --")
			}
			dir := folder(t, sections(given))
			_, err = Load(dir, environment(map[string]string{"SECRET": "hunter2"}))
			var faults *Faults
			if !errors.As(err, &faults) {
				t.Fatalf("got %v, want faults", err)
			}
			got := faults.Error() + "\n"
			if strings.Contains(got, "hunter2") {
				t.Errorf("a secret is shown:\n%s", got)
			}
			if os.Getenv("UPDATE") != "" {
				want = got
				if err := os.WriteFile(file, []byte(given+"-- want --\n"+got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

var sectionLine = regexp.MustCompile(`(?m)^-- (.+) --\n`)

// sections splits a case into its files: a line `-- NAME --` and the text after it.
func sections(s string) map[string]string {
	files := map[string]string{}
	at := sectionLine.FindAllStringSubmatchIndex(s, -1)
	for i, m := range at {
		end := len(s)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		files[s[m[2]:m[3]]] = s[m[1]:end]
	}
	return files
}

// faultsOf parses a file and returns its faults as text.
func faultsOf(t *testing.T, dir, source string) string {
	t.Helper()
	_, err := Parse(FileName, dir, []byte(source), environment(nil))
	var faults *Faults
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &faults):
		t.Fatalf("got %v, want faults", err)
	}
	return err.Error()
}

func TestIllegible(t *testing.T) {
	dir := folder(t, nil)
	for _, c := range []struct{ name, source, want string }{
		{"not UTF-8", "version: 1\n# \xe4\n", "fairlead.yaml:2:3: is not UTF-8"},
		{"UTF-16", "\xff\xfev\x00e\x00", "fairlead.yaml:1:1: is not UTF-8"},
		{"zero byte", "version: 1\x00\n", "fairlead.yaml:1:11: holds a control character (U+0000)"},
		{"too large", strings.Repeat("# filler\n", 1<<17), "fairlead.yaml: is larger than 1 MiB"},
		{"too deep", "version: 1\nteam: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "exceeds the size of any real team"},
		{"far too deep", strings.Repeat("[", 100_000), "fairlead.yaml:1:"},
		{"too wide", "version: 1\nworkflows: [" + strings.Repeat("x,", nodesMax) + "]\n", "exceeds the size of any real team"},
		{"too long a time", "version: 1\nteam: {limits: {session: 8761h}}\n", `is "8761h"; the most is 8760h`},
		{"no host", "version: 1\nnotify: {webhook: 'https:///x'}\n", "2:19: notify.webhook: is not an address"},
		{"not quite a port", "version: 1\nlisten: 127.0.0.1:07466\n", "is not an address and a port"},
		{
			"origin without TLS", "version: 1\norigins: ['http://fairlead.example.org']\n",
			"fairlead.yaml:2:11: origins[0]: \"http://fairlead.example.org\" has http",
		},
		{"origin with a pattern", "version: 1\norigins: ['https://*.example.org']\n", "has a pattern"},
		{"origin with a path", "version: 1\norigins: ['https://a.example/x']\n", "write only https://a.example"},
		{"origin twice", "version: 1\norigins: ['https://a.example', 'https://A.example:443']\n", "items 1 and 2 are the same"},
		{"origins, too many", "version: 1\norigins: [" + strings.Repeat("'https://a.example',", 17) + "]\n", "the most is 16"},
		{"alias in itself", "version: 1\nteam: &t {lead: *t}\n", "exceeds the size of any real team"},
		{"alias bomb", bomb(), "exceeds the size of any real team"},
		{"many faults", "version: 1\n" + manyKeys(2000), "and 1000 more from here on; correct these first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := faultsOf(t, dir, c.source); !strings.Contains(got, c.want) {
				t.Errorf("got %.300s\nwant %s", got, c.want)
			}
		})
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("version: 1\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return b.String()
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	return b.String()
}

// TestLargeFile checks that a file that is one byte too large is refused when read from disk too.
func TestLargeFile(t *testing.T) {
	const start = "version: 1\n#"
	fits := start + strings.Repeat("x", fileBytesMax-len(start))
	if _, err := Load(folder(t, map[string]string{FileName: fits}), nil); err != nil {
		t.Errorf("1 MiB to the byte: %v", err)
	}
	if _, err := Load(folder(t, map[string]string{FileName: fits + "x"}), nil); err == nil {
		t.Error("1 MiB and a byte was accepted")
	}
}

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		written string
		want    Backoff
	}{
		{"{}", Backoff{time.Second, time.Minute}},
		{"{first: 2m}", Backoff{2 * time.Minute, 2 * time.Minute}}, // max follows first (SPEC C16)
		{"{max: 500ms}", Backoff{500 * time.Millisecond, 500 * time.Millisecond}},
		{"{first: 2s, max: 3s}", Backoff{2 * time.Second, 3 * time.Second}},
	} {
		cfg, err := Parse(FileName, t.TempDir(), []byte("version: 1\nagents: {a: {command: [sh], backoff: "+c.written+"}}\n"), nil)
		if err != nil {
			t.Errorf("%s: %v", c.written, err)
		} else if got := cfg.Agents[0].Backoff; got != c.want {
			t.Errorf("%s: got %v, want %v", c.written, got, c.want)
		}
	}
}

func TestMissingFile(t *testing.T) {
	_, err := Load(t.TempDir(), nil)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "fairlead init") {
		t.Errorf("got %v", err)
	}
}

func TestWorkspaceThroughLinks(t *testing.T) {
	dir := folder(t, map[string]string{"work/x": "", "repo/y": ""})
	repo := filepath.Join(dir, "repo")
	for name, to := range map[string]string{"repo/twin": "y-folder", "repo/out": "../work", "repo/dangling": "../nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(repo, "y-folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := faultsOf(t, repo, `version: 1
agents:
  a: {command: [sh], workspace: y-folder/new}
  b: {command: [sh], workspace: twin/new}
  c: {command: [sh], workspace: out}
  d: {command: [sh], workspace: dangling/d}
`)
	want := `fairlead.yaml:4:33: agents.b.workspace: is the folder of agents.a too; each agent needs its own for its agent_state.json, such as workspace: b
fairlead.yaml:5:33: agents.c.workspace: "out" is outside of the repository; write an absolute path for such a folder
fairlead.yaml:6:33: agents.d.workspace: "dangling/d" contains a symbolic link whose target does not exist`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	outside := fmt.Sprintf("version: 1\nagents:\n  a: {command: [sh], workspace: %q}\n", filepath.Join(dir, "work"))
	if got := faultsOf(t, repo, outside); got != "" {
		t.Errorf("an absolute workspace: %s", got)
	}
}

func TestWorkspaceDefaults(t *testing.T) {
	dir := folder(t, nil)
	cfg, err := Parse(FileName, dir,
		[]byte("version: 1\nagents:\n  a: {command: [sh]}\n  b: {command: [sh]}\n  c: {command: [sh], workspace: z}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{dir, filepath.Join(dir, "b"), filepath.Join(dir, "z")} {
		if got := cfg.Agents[i].Workspace; got != want {
			t.Errorf("%s works in %s, want %s", cfg.Agents[i].Name, got, want)
		}
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	dir := folder(t, nil)
	cfg, err := Parse(FileName, dir,
		[]byte("version: 1\nagents:\n  a: {command: [sh], env: {K: hunter2, L: 1.10}}\nnotify: {webhook: 'https://hunter2/', targets: {phone: {url: 'ntfy://h/hunter2'}}}\n"), environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "env", cfg.Agents[0].Env, "hook", cfg.Notify.Targets[0].URL, "all", cfg)
	for _, shown := range []string{
		string(asJSON), logged.String(),
		fmt.Sprint(cfg.Agents[0].Env, cfg.Notify),
		fmt.Sprintf("%v %+v %#v %v %+v %#v", cfg, cfg, cfg, cfg.Notify, cfg.Agents[0], cfg.Agents[0].Env),
		fmt.Sprintf("%q %x %d", cfg.Notify.Targets[0].URL, cfg.Notify.Targets[0].URL, cfg.Notify.Targets[0].URL),
	} {
		if strings.Contains(shown, "hunter2") || strings.Contains(shown, fmt.Sprintf("%x", "hunter2")) || strings.Contains(shown, "1.10") {
			t.Errorf("shown: %s", shown)
		}
	}
	if got, err := cfg.Agents[0].Env.Resolve(environment(nil)); err != nil || strings.Join(got, " ") != "K=hunter2 L=1.10" {
		t.Errorf("resolved: %q, %v", got, err)
	}
}

func TestExpand(t *testing.T) {
	env := environment(map[string]string{"A": "x", "B": "${A}"})
	for _, c := range []struct{ raw, want string }{
		{"${A}", "x"},
		{"<${A}${A}>", "<xx>"},
		{"$A $$ $", "$A $$ $"},
		{"$${A}", "${A}"},
		{"${B}", "${A}"}, // a variable's value is not expanded again
	} {
		if got, err := (Secret{raw: c.raw}).Resolve(env); err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.raw, got, err, c.want)
		}
	}
	if got := (Secret{raw: "${A}-${C}-${A}"}).References(); !cmp.Equal(got, []string{"A", "C"}) {
		t.Errorf("references: %q", got)
	}
}

// A team may have ten thousand agents with some keys each.
func TestTenThousandAgents(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("version: 1\nagents:\n")
	for n := range 10_001 {
		if n == 10_000 {
			if c, err := Parse(FileName, t.TempDir(), []byte(text.String()), nil); err != nil || len(c.Agents) != n {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(&text, "  a%d: {driver: exec, command: [sh, -c, work], workspace: a%d, limits: {session: 1h}}\n", n, n)
	}
	if _, err := Parse(FileName, t.TempDir(), []byte(text.String()), nil); err == nil ||
		!strings.Contains(err.Error(), "agents: has 10001 entries; the most is 10000") {
		t.Error(err)
	}
}
