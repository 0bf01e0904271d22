package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	dispatchcli "github.com/fairlead-dev/fairlead/cli/dispatch"
	"github.com/fairlead-dev/fairlead/core/dispatch"
)

const describedWriter = "---\nname: writer\ndescription: Use to write prose, and to revise it\n---\n"

// Whose description fits is decided by the threshold of fairlead.yaml, where it has one; what is
// wrong with that file is said before anything begins.
func TestSessionConfigured(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{
		"fairlead.yaml":                 "version: 1\ndispatch: {main: boss, threshold: 100}\nagents:\n  boss: {description: Writes nothing, command: [sh], workspace: a}\n  coder: {description: Use to write programs, command: [sh], workspace: b}\n",
		".claude/agents/writer.md":      describedWriter,
		".claude/agents/coder.md":       "---\nname: coder\ndescription: Use to brew coffee\n---\n",
		".claude/agents/no-name.md":     "no front matter",
		"broken/fairlead.yaml":          "version: 1\ndispatch: {main: nobody}\n",
		".claude/agents/nested/boss.md": "---\nname: boss\ndescription: Use to be asked\n---\n",
	})
	var begun dispatchcli.SessionBegun
	if err := json.Unmarshal([]byte(d.must("dispatch", "start", "--json")), &begun); err != nil {
		t.Fatal(err)
	}
	if begun.Agents != 2 || begun.Host != dispatchcli.HostNone ||
		!slices.ContainsFunc(begun.Notes, func(n string) bool { return strings.Contains(n, "no-name.md") }) {
		t.Errorf("it began with %+v", begun)
	}
	if out := d.must("dispatch", "input", "Write a program"); strings.Contains(out, "→") {
		t.Errorf("below the threshold somebody takes it: %s", out)
	}
	d.no(cli.ExitRefused, []string{"no agent \"boss\" existed when the dispatch began"}, "dispatch", "delegate", "boss", "do it")
	d.dir = filepath.Join(d.dir, "broken")
	d.no(cli.ExitFailed, []string{"dispatch.main: there is no agent \"nobody\""}, "dispatch", "start")
	if out := d.must("dispatch", "list"); !strings.Contains(out, "no dispatch here") {
		t.Errorf("it began all the same: %s", out)
	}
}

// What others wrote is harmless on a terminal: an agent's description, an input, an answer.
func TestSessionHostileWords(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[31mred\u202e\x07"
	d := newDesk(t, map[string]string{
		".claude/agents/writer.md": strings.Replace(describedWriter, "prose", "prose "+evil, 1),
	})
	d.started()
	var seen strings.Builder
	for _, words := range [][]string{
		{"dispatch", "input", "write prose" + evil + "\nand more"},
		{"dispatch", "status"},
		{"dispatch", "done", evil},
		{"dispatch", "delegate", "writer", "again" + evil},
		{"dispatch", "done"},
		{"dispatch", "respond", "--summary", "s" + evil, "a" + evil},
		{"dispatch", "status"},
		{"dispatch", "list"},
		{"dispatch", "route", "prose" + evil},
		{"dispatch", "end", "--why", evil},
	} {
		seen.WriteString(d.must(words...))
	}
	if strings.ContainsAny(seen.String(), "\x1b\x07\u202e") {
		t.Errorf("it is not harmless: %q", seen.String())
	}
	if !strings.Contains(seen.String(), "[MAIN → WRITER]  # Matched: ") ||
		!strings.Contains(seen.String(), "[WRITER → MAIN]  # Task completed") {
		t.Errorf("it does not show who takes over:\n%s", seen.String())
	}
}

// Where several are open the newest is meant, and --path names the others by their name alone.
func TestSessionSeveralOpen(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{".claude/agents/writer.md": describedWriter})
	first, second := d.started(), d.started()
	d.must("dispatch", "input", "Thanks!")
	var status dispatchcli.SessionStatus
	for folder, want := range map[string]int{first: 0, second: 1} {
		if err := json.Unmarshal([]byte(d.must("dispatch", "status", "--json", "--path", filepath.Base(folder))), &status); err != nil {
			t.Fatal(err)
		}
		if status.Path != folder || len(status.Conversations) != want || status.State != dispatch.Main || len(status.Permissions) == 0 {
			t.Errorf("%s stands at %+v", folder, status)
		}
	}
	d.must("dispatch", "end", "--path", filepath.Base(second))
	d.no(cli.ExitRefused, []string{"not possible while it is ready"}, "dispatch", "respond", "--path", first, "nothing was asked")
}
