package codex

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// FuzzHear feeds arbitrary lines. The events must always be well-formed.
func FuzzHear(f *testing.F) {
	files, err := filepath.Glob("testdata/dialogues/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var said []byte
		for line := range bytes.Lines(b) {
			var e drivertest.Entry
			if json.Unmarshal(line, &e) == nil && e.Dir == "recv" {
				said = append(append(said, e.Msg...), '\n')
			}
		}
		f.Add(said)
	}
	f.Add([]byte(`{"type":"item.completed","item":{"id":"i","type":"file_change","changes":[{"path":"\u0000","kind":"add"}]}}`))
	f.Add([]byte(`{"type":"turn.completed","usage":{"input_tokens":1e300}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		h := newHearing(speech.NewWriter(&out), adapter.Part{Dir: "/work/repo"})
		h.now = func() time.Time { return time.Unix(0, 0).UTC() }
		h.begin()
		for line := range bytes.Lines(b) {
			if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '{' {
				h.line(line)
			}
		}
		wellFormed(t, out.Bytes())
		if h.finished && h.stop.Reason == "" {
			t.Error("an answer ended without a reason")
		}
	})
}

func wellFormed(t *testing.T, events []byte) {
	for line := range bytes.Lines(events) {
		if fact := speech.Fact(driver.Line{Bytes: bytes.TrimSuffix(line, []byte{'\n'})}); fact.Kind == driver.Faulted &&
			!bytes.Contains(line, []byte(`"faulted"`)) {
			t.Errorf("invalid event (%s): %s", fact.Text, line)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add("try again at Mar 10th, 2026 3:39 AM", `/bin/bash -lc "printf '%s\\n' 'a' > b"`)
	f.Add("try again in 2 hours 13 minutes", `bash -lc 'it'"'"'s'`)
	f.Fuzz(func(_ *testing.T, limit, command string) {
		failed(limit, time.Unix(0, 0).UTC())
		unwrapped(command)
	})
}

func FuzzRollout(f *testing.F) {
	f.Add([]byte(`{"payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1,"output_tokens":2}}}}` + "\n"))
	f.Add([]byte(`{"type":"turn_context","payload":{"model":"gpt-5"}}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if strings.Contains(lastModel(b), "\n") {
			t.Error("a model of two lines")
		}
		if u, _ := lastTotal(b); u.InputTokens < 0 || u.OutputTokens < 0 {
			t.Errorf("%+v", u)
		}
	})
}
