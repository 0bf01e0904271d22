package edit

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// commented is a file as people write it.
const commented = `# The team of this repository.
version: 1

team: {lead: pm, size: 4}  # small

agents:
  # Writes code.
  coder:
    description: Writes and changes code   # in one sentence
    driver: claude
    model: opus  # the slow one
    env:
      API_KEY: sk-secret-1   # never shown
      PATH_X: ${PATH_X}
    permissions:             # what is answered
      can_write: [src/**]
      # Reading is harmless.
      allow: [Read, "Bash(ls *)"]
    limits: {session: 1h, cost_per_day_usd: 20}
    # what else
    resume: always

  pm:
    driver: script
    script: pm.yaml
    session_prompt: |
      Continue.
      # not a comment

# Where they talk.
channels:
  reviews: {agents: [coder], maxRounds: 3}
listen: 127.0.0.1:7466
`

func apply(t *testing.T, before string, c Change) string {
	t.Helper()
	out, err := Apply([]byte(before), c)
	if err != nil {
		t.Fatalf("%v\n%s", err, before)
	}
	return string(out)
}

func describe(t *testing.T, text, name string) Agent {
	t.Helper()
	a, found, err := Describe([]byte(text), name)
	if err != nil || !found {
		t.Fatalf("%v, found %v", err, found)
	}
	return a
}

// changed lists the lines that differ, with - and +.
func changed(t *testing.T, before, after string) string {
	t.Helper()
	text, err := Diff([]byte(before), []byte(after))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(text) {
		if (line[0] == '+' || line[0] == '-') && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "+++") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestDescribe(t *testing.T) {
	got := describe(t, commented, "coder")
	want := Agent{
		Description: "Writes and changes code", Driver: "claude", Model: "opus", Env: []string{"API_KEY", "PATH_X"},
		CanWrite:     []string{"src/**"},
		SessionLimit: "1h", CostPerDayUSD: 20,
		Rest: "permissions:\n  # Reading is harmless.\n  allow: [Read, \"Bash(ls *)\"]\n# what else\nresume: always\n",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if pm := describe(t, commented, "pm"); !pm.Lead || pm.SessionPrompt != "Continue.\n# not a comment\n" {
		t.Errorf("got %+v", pm)
	}
}

func TestEdit(t *testing.T) {
	for _, test := range []struct {
		name, file, agent string
		edit              func(*Agent)
		want              string
	}{
		{"nothing", commented, "coder", func(*Agent) {}, ""},
		{
			"a value with a comment behind it", commented, "coder", func(a *Agent) { a.Model = "sonnet" },
			"-    model: opus  # the slow one\n+    model: sonnet  # the slow one\n",
		},
		{
			"a text that needs quotes", commented, "coder", func(a *Agent) { a.Description = "yes: #1" },
			"-    description: Writes and changes code   # in one sentence\n+    description: \"yes: #1\"   # in one sentence\n",
		},
		{"a key that is not there", commented, "coder", func(a *Agent) { a.Instances = 3 }, "+    instances: 3\n"},
		{"a key less", commented, "coder", func(a *Agent) { a.Model = "" }, "-    model: opus  # the slow one\n"},
		{
			"within braces", commented, "coder", func(a *Agent) { a.SessionLimit, a.TokensPerDay = "2h", 5_000_000 },
			"-    limits: {session: 1h, cost_per_day_usd: 20}\n+    limits: {session: 2h, cost_per_day_usd: 20, tokens_per_day: 5000000}\n",
		},
		{
			"a key less within braces", commented, "coder", func(a *Agent) { a.SessionLimit = "" },
			"-    limits: {session: 1h, cost_per_day_usd: 20}\n+    limits: {cost_per_day_usd: 20}\n",
		},
		{
			"all keys less", commented, "coder", func(a *Agent) { a.SessionLimit, a.CostPerDayUSD = "", 0 },
			"-    limits: {session: 1h, cost_per_day_usd: 20}\n",
		},
		{
			"below a key with comments", commented, "coder", func(a *Agent) { a.CanWrite = []string{"src/**", "*.md"} },
			"-      can_write: [src/**]\n+      can_write: [src/**, \"*.md\"]\n",
		},
		{
			"a variable", commented, "coder", func(a *Agent) { a.Env = []string{"API_KEY", "TOKEN"} },
			"-      PATH_X: ${PATH_X}\n+      TOKEN: ${TOKEN}\n",
		},
		{
			"no variables", commented, "coder", func(a *Agent) { a.Env = nil },
			"-    env:\n-      API_KEY: [hidden]\n-      PATH_X: ${PATH_X}\n",
		},
		{
			"another key", commented, "coder", func(a *Agent) { a.Rest = strings.Replace(a.Rest, "always", "never  # really", 1) },
			"-    resume: always\n+    resume: never  # really\n",
		},
		{
			"another key below permissions", commented, "coder",
			func(a *Agent) { a.Rest = strings.Replace(a.Rest, ", \"Bash(ls *)\"", "", 1) },
			"-      allow: [Read, \"Bash(ls *)\"]\n+      allow: [Read]\n",
		},
		{
			"other keys more and less", commented, "coder", func(a *Agent) { a.Rest = "backoff:\n  first: 2s\n  max: 3s\n" },
			"-      # Reading is harmless.\n-      allow: [Read, \"Bash(ls *)\"]\n-    # what else\n-    resume: always\n+    backoff:\n+      first: 2s\n+      max: 3s\n",
		},
		{
			"the lead", commented, "coder", func(a *Agent) { a.Lead = true },
			"-team: {lead: pm, size: 4}  # small\n+team: {lead: coder, size: 4}  # small\n",
		},
		{"no lead", commented, "pm", func(a *Agent) { a.Lead = false }, "-team: {lead: pm, size: 4}  # small\n+team: {size: 4}  # small\n"},
		{
			"a text of several lines", commented, "pm", func(a *Agent) { a.SessionPrompt = "One." },
			"-    session_prompt: |\n-      Continue.\n-      # not a comment\n+    session_prompt: One.\n",
		},
		{
			"a text that becomes several lines", commented, "coder", func(a *Agent) { a.Description = "One.\n\n  Two." },
			"-    description: Writes and changes code   # in one sentence\n+    description: |-   # in one sentence\n+      One.\n+\n+        Two.\n",
		},
		{
			"the entry in braces", "version: 1\nagents:\n  a: {driver: exec, command: [sh, -c, 'a, b']}  # here\n", "a",
			func(a *Agent) { a.Command, a.Model, a.Env = []string{"sh"}, "x", []string{"K"} },
			"-  a: {driver: exec, command: [sh, -c, 'a, b']}  # here\n+  a: {driver: exec, command: [sh], model: x, env: {K: \"${K}\"}}  # here\n",
		},
		{
			"a key in braces less", "version: 1\nagents:\n  a: {model: x, command: [sh]}\n", "a", func(a *Agent) { a.Model = "" },
			"-  a: {model: x, command: [sh]}\n+  a: {command: [sh]}\n",
		},
		{
			"no line ending at the end", "version: 1\nagents:\n  a:\n    command: [sh]", "a", func(a *Agent) { a.Model = "m" },
			"-    command: [sh]\n+    command: [sh]\n+    model: m\n",
		},
		{
			"a list over several lines", "version: 1\nagents:\n  a:\n    command:  # why\n    - sh\n    - -c\n    model: m\n", "a",
			func(a *Agent) { a.Command = []string{"bash"} }, "-    command:  # why\n-    - sh\n-    - -c\n+    command: [bash]  # why\n",
		},
		{"a sandbox", commented, "coder", func(a *Agent) { a.Sandbox = "workspace" }, "+    sandbox: workspace\n"},
		{
			"a sandbox in place of a mapping", "version: 1\nagents:\n  a:\n    command: [sh]\n    sandbox:\n      write: [x]\n", "a",
			func(a *Agent) { a.Sandbox, a.Rest = "auto", "" }, "-    sandbox:\n-      write: [x]\n+    sandbox: auto\n",
		},
		{
			"a mapping in place of a sandbox", "version: 1\nagents:\n  a:\n    command: [sh]\n    sandbox: auto\n", "a",
			func(a *Agent) { a.Sandbox, a.Rest = "", "sandbox:\n  write: [x]\n" },
			"-    sandbox: auto\n+    sandbox:\n+      write: [x]\n",
		},
		{
			"four spaces", "version: 1\nagents:\n    a:\n        command: [sh]\n", "a", func(a *Agent) { a.TokensPerDay = 7 },
			"+        limits:\n+            tokens_per_day: 7\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			form := describe(t, test.file, test.agent)
			test.edit(&form)
			for _, eol := range []string{"\n", "\r\n"} {
				before := strings.ReplaceAll(test.file, "\n", eol)
				after := apply(t, before, Change{Edit, test.agent, form})
				if eol == "\r\n" && strings.Contains(strings.ReplaceAll(after, "\r\n", ""), "\n") {
					t.Errorf("a line ends in LF alone:\n%q", after)
				}
				got := strings.ReplaceAll(changed(t, before, after), "\\ No newline at end of file\n", "")
				if got != test.want {
					t.Errorf("with %q:\ngot\n%s\nwant\n%s", eol, got, test.want)
				}
			}
		})
	}
}

func TestAddAndRemove(t *testing.T) {
	form := Agent{
		Description: "Reads", Driver: "acp", Command: []string{"opencode", "acp"}, SessionPrompt: "One.\nTwo.\n",
		CanWrite: []string{"*.md"}, SessionLimit: "1h", Env: []string{"KEY"}, Lead: true, Rest: "resume: never\n",
	}
	const entry = `  reader:
    description: Reads
    driver: acp
    command: [opencode, acp]
    env:
      KEY: ${KEY}
    session_prompt: |
      One.
      Two.
    resume: never
    limits:
      session: 1h
    permissions:
      can_write: ["*.md"]
`
	for _, test := range []struct{ name, file, want string }{
		{
			"after the last agent", commented,
			strings.Replace(strings.Replace(commented, "lead: pm", "lead: reader", 1), "      # not a comment\n",
				"      # not a comment\n\n"+entry, 1),
		},
		{
			"the first one", "version: 1\nagents: {}  # none\nlisten: 127.0.0.1:1\n",
			"version: 1\n\nteam:\n  lead: reader\nagents:  # none\n" + entry + "listen: 127.0.0.1:1\n",
		},
		{"no key agents", "version: 1\n", "version: 1\n\nteam:\n  lead: reader\n\nagents:\n" + entry},
		{"an empty key agents", "version: 1\nteam: {size: 2}\nagents:\n", "version: 1\nteam: {size: 2, lead: reader}\nagents:\n" + entry},
	} {
		t.Run(test.name, func(t *testing.T) {
			after := apply(t, test.file, Change{Add, "reader", form})
			if after != test.want {
				t.Errorf("got\n%s\nwant\n%s", after, test.want)
			}
			if got := describe(t, after, "reader"); !reflect.DeepEqual(got, form) {
				t.Errorf("got %+v", got)
			}
		})
	}
	if after := apply(t, commented, Change{Op: Remove, Name: "coder"}); strings.Contains(after, "Writes") ||
		!strings.Contains(after, "agents:\n  pm:\n") || !strings.Contains(after, "\n# Where they talk.\n") {
		t.Errorf("without coder:\n%s", after)
	}
	after := apply(t, commented, Change{Op: Remove, Name: "pm"})
	if !strings.Contains(after, "resume: always\n\n# Where they talk.") || !strings.Contains(after, "team: {size: 4}") {
		t.Errorf("without pm:\n%s", after)
	}
	if after := apply(t, "version: 1\nagents:\n  # a\n  a: {command: [sh]}\n",
		Change{Op: Remove, Name: "a"}); after != "version: 1\nagents:\n" {
		t.Errorf("without its last agent: %q", after)
	}
}

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		c    Change
		want string
	}{
		"an anchor": {
			"agents:\n  a: &a {command: [sh]}\n  b: *a\n",
			Change{Op: Edit, Name: "a"},
			"agents.a has an anchor (&), an alias (*) or a merge key (<<)",
		},
		"an alias": {
			"agents:\n  a: &a {command: [sh]}\n  b: *a\n",
			Change{Op: Remove, Name: "b"},
			"change fairlead.yaml by hand",
		},
		"a merge key": {
			"agents:\n  a: &a {command: [sh]}\n  b:\n    <<: *a\n    model: x\n",
			Change{Op: Edit, Name: "b"},
			"agents.b has an anchor",
		},
		"an anchor below": {
			"agents:\n  a:\n    env: &e {K: v}\n    command: [sh]\n",
			Change{Op: Remove, Name: "a"},
			"agents.a has an anchor",
		},
		"braces": {
			"{version: 1, agents: {a: {command: [sh]}}}\n",
			Change{Op: Edit, Name: "a", Agent: Agent{Model: "x"}},
			"the whole file is within braces",
		},
		"a key twice": {"agents:\n  a: {command: [sh]}\n  a: {command: [sh]}\n", Change{Op: Edit, Name: "a"}, "is written twice"},
		"a comment inside": {
			"agents:\n  a: {command: [sh], # why\n    model: x}\n",
			Change{Edit, "a", Agent{Command: []string{"sh"}, Model: "y"}},
			"has a comment between its braces",
		},
		"odd line endings": {"agents:\r  a: {command: [sh]}\r", Change{Op: Edit, Name: "a"}, "neither LF nor CR LF"},
		"an explicit key":  {"agents:\n  ? a\n  : command: [sh]\n", Change{Op: Remove, Name: "a"}, "is not on a line of its own"},
		"no such agent":    {commented, Change{Op: Edit, Name: "x"}, `has no agent "x"`},
		"there already":    {commented, Change{Op: Add, Name: "pm"}, `has an agent "pm" already`},
		"a field in the rest": {
			commented,
			Change{Edit, "coder", Agent{Rest: "model: x\n"}},
			"agents.coder.model: line 1: is a field of its own",
		},
		"no YAML in the rest": {commented, Change{Edit, "coder", Agent{Rest: "a: b: c\n"}}, "line 1: "},
		"a list as the rest":  {commented, Change{Edit, "coder", Agent{Rest: "- a\n"}}, "write the other keys as in the file"},
		"an anchor in it":     {commented, Change{Edit, "coder", Agent{Rest: "resume: &x always\n"}}, "are not written here"},
		"the sandbox twice":   {commented, Change{Edit, "coder", Agent{Sandbox: "off", Rest: "sandbox: {write: [x]}\n"}}, "is given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Apply([]byte(test.file), test.c); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// No value of an environment is in a diff, however it is written.
func TestDiffHides(t *testing.T) {
	for _, env := range []string{
		"env: {A: s3cret, B: ${B}}", "env:\n      A: s3cret  # s3cret\n      # A: s3cret\n      B: ${B}",
		"env:\n      A: >\n        s3cret\n\n        s3cret\n      B: ${B}",
		"env: {A: \"x\n      s3cret\", B: ${B}}", "env: &e {A: s3cret, B: ${B}}", "env: &e\n      A: s3cret\n      B: ${B}",
		"env:\n      \"A\": 's3cret'\n      B: ${B}", "env:\n      A: 'a\n      s3cret'\n      B: ${B}",
		"env:\n      A:\n        s3cret\n      B: ${B}",
	} {
		before := "version: 1\nnotify: {webhook: 's3cret'}\nagents:\n  b: {driver: exec, env: {K: s3cret}, command: [x]}\n  a:\n    " +
			env + "\n    command: [sh]\nlisten: 127.0.0.1:1\n"
		text, err := Diff([]byte(before), []byte(strings.ReplaceAll(before, "127.0.0.1:1", "127.0.0.1:2")))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := shown([]byte(before))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text+whole, "s3cret") || !strings.Contains(whole, "command: [sh]\nlisten: 127.0.0.1:1\n") ||
			!strings.Contains(whole, hidden) || !strings.Contains(whole, "command: [x]}") {
			t.Errorf("%s\nis shown as\n%s", before, whole)
		}
	}
}

// Where the lines of an environment cannot be told, more than its values is written again from the tree.
func TestDiffHidesInOddForms(t *testing.T) {
	for _, entry := range []string{
		"env:\n      A: \"x\n# s3cret\"\n    model: m", "<<: {env: {A: s3cret}}", "<<: [{env: {\n      A: s3cret}}] # it",
		"? env\n    : A: s3cret", "env:\n      A=s3cret: x", "env: {A: s3cret,\n      # s3cret\n      B: x}",
	} {
		whole, err := shown([]byte("version: 1\nagents:\n  a:\n    " + entry + "\n    command: [sh]\nlisten: 127.0.0.1:1\n"))
		if err != nil || strings.Contains(whole, "s3cret") || !strings.Contains(whole, hidden) || !strings.Contains(whole, "listen: ") {
			t.Errorf("%s\nis shown as\n%s\n%v", entry, whole, err)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, config.FileName)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	_, sum, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, []byte("two"), sum); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if b, _, rerr := Read(dir); err != nil || rerr != nil || string(b) != "two" || info.Mode().Perm() != 0o640 {
		t.Errorf("got %q, mode %v, %v %v", b, info.Mode(), err, rerr)
	}
	var meanwhile *Changed
	if err := Write(dir, []byte("three"), sum); !errors.As(err, &meanwhile) {
		t.Errorf("the file was changed meanwhile: %v", err)
	}
	part := filepath.Join(dir, "part") // the file changes between the comparison and the exchange
	if err := os.WriteFile(part, []byte("three"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder, _, err := file.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer file.CloseFolder(folder)
	if err := swap(dir, folder, "part", sum); !errors.As(err, &meanwhile) {
		t.Errorf("the file was changed at the last moment: %v", err)
	}
	if b, _, err := Read(dir); err != nil || string(b) != "two" {
		t.Errorf("what was written meanwhile is now %q, %v", b, err)
	}
	if err := os.Remove(part); err != nil {
		t.Fatal(err)
	}
	_, sum, _ = Read(dir)
	if err := os.Chmod(path, 0o444); err != nil { //nolint:gosec // a test
		t.Fatal(err)
	}
	if err := Write(dir, []byte("x"), sum); err == nil || !strings.Contains(err.Error(), "read-only (mode 0444)") {
		t.Errorf("a read-only file: %v", err)
	}
	if err := os.Rename(path, filepath.Join(dir, "real.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.yaml", path); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, []byte("x"), sum); err == nil || !strings.Contains(err.Error(), `symbolic link to "real.yaml"`) {
		t.Errorf("a symbolic link: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".fairlead.yaml-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Whatever is changed of one agent: all other lines stay the same bytes, and all other values stay the same.
func TestOtherLinesStay(t *testing.T) {
	words := []string{
		"", "x", "yes", "1.10", "a: b", "# no", "it's", "two\nlines", "ends\n", "ü — 漢", "\ttab", " space ", "-", "{", "*a",
		"&a", "!t", "%", "@", "`", "a,b", "${HOME}", "null", "\"q\"", "\\", "\u0085", "c:\\d",
	}
	refusals := 0
	entries := []string{
		"  a:\n    command: [sh]\n    model: m\n",
		"\n  # about b\n  b: {command: [sh, -c, 'x # y'], env: {K: v}}  # braces\n",
		"  c:\n    env:\n      K: v\n    session_prompt: |+\n      text\n\n\n",
		"  # about d\ttab\n  d:\n    driver: exec\t# tab\n    command:\n    - sh\n    # last\n",
	}
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		word := func() string { return words[r.IntN(len(words))] }
		some := func(most int) (list []string) {
			for range r.IntN(most + 1) {
				list = append(list, word())
			}
			return list
		}
		var file strings.Builder
		file.WriteString("# head\nversion: 1\nteam:\n  size: 2\n\nagents:\n")
		for _, i := range r.Perm(len(entries)) {
			file.WriteString(entries[i])
		}
		file.WriteString("\n# tail\nlisten: 127.0.0.1:0\n")
		before := strings.ReplaceAll(file.String(), "\n", []string{"\n", "\r\n"}[r.IntN(2)])
		name := []string{"a", "b", "c", "d", "new"}[r.IntN(5)]
		form, there, err := Describe([]byte(before), name)
		if err != nil {
			t.Fatal(err)
		}
		form.Description, form.Model, form.SessionPrompt = word(), word(), word()
		form.Command, form.CanWrite, form.Env = some(3), some(2), [][]string{nil, {"K"}, {"L", "K"}}[r.IntN(3)]
		form.Instances, form.Lead = r.IntN(4), r.IntN(2) == 0
		c := Change{Edit, name, form}
		if !there {
			c.Op = Add
		} else if r.IntN(3) == 0 {
			c = Change{Op: Remove, Name: name}
		}
		out, err := Apply([]byte(before), c)
		var refused *Refused
		switch {
		case errors.As(err, &refused):
			refusals++ // blank lines that are part of the text of c
			continue
		case err != nil:
			t.Fatalf("seed %d: %v\n%s\n%+v", seed, err, before, c)
		}
		if err := onlyItsLines(before, string(out), name); err != "" {
			t.Fatalf("seed %d: %s\nbefore\n%s\nafter\n%s", seed, err, before, out)
		}
	}
	if refusals > 60 {
		t.Errorf("%d of 600 changes were refused", refusals)
	}
}

// onlyItsLines compares the lines outside of an agent's entry and of team.
func onlyItsLines(before, after, name string) string {
	outside := func(text string) []string {
		var lines []string
		own, team := false, false
		for line := range strings.SplitSeq(text, "\n") {
			key := strings.TrimRight(line, "\r")
			bare := strings.TrimSpace(key)
			comment := strings.HasPrefix(bare, "#") && !strings.HasPrefix(key, "    ")
			if !strings.HasPrefix(key, "    ") && bare != "" && !comment {
				own, team = strings.HasPrefix(key, "  "+name+":"), strings.HasPrefix(key, "team:") || team && strings.HasPrefix(key, "  ")
			}
			if !comment && (own || team) || bare == "" ||
				strings.HasPrefix(bare, "# about "+name) { // blank lines around an entry come and go with it
				continue
			}
			lines = append(lines, line)
		}
		return lines
	}
	was, is := outside(before), outside(after)
	if len(was) != len(is) {
		return "another number of lines"
	}
	for i := range was {
		if was[i] != is[i] {
			return "a line was " + was[i] + " and is " + is[i]
		}
	}
	return ""
}

// Any text gives an error, or a file in which all else has its value.
func FuzzApply(f *testing.F) {
	f.Add(commented, "coder", "m", "resume: never\n", uint8(0))
	f.Add("version: 1\nagents:\n  a: {command: [sh], env: {K: ${K}}} # x\n", "a", "x y", "", uint8(1))
	f.Add("agents:\n  a: &x\n    command: [sh]\n  b: *x\n", "c", "", "permissions: {allow: [Read]}", uint8(2))
	f.Add("agents:\r\n  a:\r\n    command:\r\n    - sh\r\n", "a", "\"", "backoff:\n  first: 1s\n", uint8(0))
	f.Fuzz(func(t *testing.T, text, name, model, rest string, op uint8) {
		c := Change{Op: []Op{Edit, Add, Remove}[op%3], Name: name}
		form, there, err := Describe([]byte(text), name)
		if c.Op == Edit && there && err == nil {
			c.Agent = form
		}
		if c.Op != Remove {
			c.Agent.Model, c.Agent.Rest = model, rest
		}
		out, err := Apply([]byte(text), c)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\x00\x1b") {
				t.Fatalf("control characters in %q", err)
			}
			return
		}
		was, err := config.Tree([]byte(text))
		if err != nil {
			t.Fatal("a file that cannot be read was changed")
		}
		is, err := config.Tree(out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		agents := was.Get("agents")
		if agents == nil {
			agents = &file.YAMLNode{}
		}
		for _, f := range agents.Fields {
			if f.Name != name && !same(f.Value, is.Get("agents").Get(f.Name)) {
				t.Fatalf("agents.%s was changed:\n%s\n%s", f.Name, text, out)
			}
		}
		if _, there, err := Describe(out, name); err != nil || there == (c.Op == Remove) {
			t.Fatalf("%v, %v", there, err)
		}
		if _, err := Diff([]byte(text), out); err != nil {
			t.Fatal(err)
		}
	})
}
