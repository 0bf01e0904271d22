package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/runs"
)

// Whatever a step says, reports or fails with, is text to a terminal.
func TestEvilRunOnATerminal(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal("log " + evil)
	if err != nil {
		t.Fatal(err)
	}
	report := strings.ReplaceAll(stepDone, `01.000000Z"`,
		`01.000000Z","logs":[`+strings.NewReplacer(`\`, `\\`, "%", "%%").Replace(string(text))+`],"metrics":{"m":`+
			strings.NewReplacer(`\`, `\\`, "%", "%%").Replace(string(text))+`}`)
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents: {}\n",
		"evil.sh":       "printf 'said \\033]0;owned\\007\\033[2J\\n'\n" + report,
		"evil.yaml": `name: "evil \e[2J\u202e flow"
steps:
  - {id: ask, human_in_the_loop: true, command: [sh, evil.sh]}
  - {id: fails, command: [sh, -c, 'exit 1']}
`,
	})
	s.fairlead("run", "--workflow", s.dir+"/evil.yaml", "--run-id", "r1", "--pause-for-human-input", "--no-wait", "--max-attempts", "1")
	seen := s.must("run", "show", "r1")
	if !strings.Contains(seen, "measure m = log") {
		t.Fatalf("the report was not taken:\n%s", seen)
	}
	for _, words := range [][]string{
		{"run", "list"},
		{"run", "show", "r1"},
		{"inbox"},
		{"reject", "r1", "ask", "--note", evil},
		{"run", "show", "r1"},
		{"run", "resume", "r1", "--start-at-step", "nothing " + evil},
	} {
		seen, _ := s.onTerminal(words...)
		harmless(t, strings.Join(words[:1], " "), seen)
		if len(seen) == 0 {
			t.Errorf("%q says nothing", words)
		}
	}
}

// A change in the journal may come from a newer version, or be nonsense: it is printed as plain text, one
// line for each item, or not at all.
func FuzzRunLines(f *testing.F) {
	f.Add("run/r1/code", "reported", "COMPLETED",
		[]byte(`{"run":{"step":{"value":{"state":"COMPLETED","last_error":"a\u001b[2Jb"},"facts":{"artifacts":["a\nb"]}}}}`))
	f.Add("run/r1", "run_cancelled", "cancelled", []byte(`{"run":{"head":{"by":"\u001b","why":"x"}}}`))
	f.Add("run/r1", "looped_back", "PENDING", []byte(`{"run":{"reset":{"gate":"\u001b[2J","target":"\r","moves":[{"step":"a"}]}}}`))
	f.Add("run/r1", "needs_skipped", "SKIPPED", []byte(`{"run":{"moved":{"to":"SKIPPED","moves":[{"step":"\u202e"}]}}}`))
	f.Add("run/r1/\x1b[2J", "started", "RUNNING", []byte(`{"run":{"step":{"value":{"attempts":2,"found":true}}}}`))
	f.Fuzz(func(t *testing.T, entity, trigger, to string, data []byte) {
		var out bytes.Buffer
		lines := &runs.LineDisplay{A: &cli.App{Out: &out}, Id: "r1"}
		if err := lines.Change(api.Change{Time: time.Unix(0, 0), Entity: entity, Trigger: trigger, To: to, Data: data}); err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(out.String()) {
			if l != cli.Plain(l) {
				t.Errorf("a terminal would obey %q", l)
			}
		}
	})
}
