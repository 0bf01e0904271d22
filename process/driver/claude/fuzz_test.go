package claude

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// FuzzHear feeds arbitrary lines and answers every second question. The events must always be
// well-formed, and each question is closed at most once.
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
	f.Add([]byte(`{"type":"result","total_cost_usd":1e400,"modelUsage":{"m":{"inputTokens":-1}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		h := newHearing(speech.NewWriter(&out), programs[0], adapter.Part{Dir: "/work/repo"})
		h.now = func() time.Time { return time.Unix(0, 0).UTC() }
		for line := range bytes.Lines(b) {
			line = bytes.TrimSpace(line)
			if len(line) == 0 || line[0] != '{' || !json.Valid(line) {
				continue
			}
			lineResult := h.line(line, "mine")
			for _, message := range lineResult.send {
				if _, err := json.Marshal(message); err != nil {
					t.Errorf("encode an answer: %v", err)
				}
			}
			if lineResult.ended && lineResult.stop.Reason == "" {
				t.Error("an answer ended without a reason")
			}
			for id, q := range h.open {
				if len(id)%2 == 0 && len(q.event.Options) > 0 {
					if response := h.answer(speech.Order{ID: q.event.ID, Option: q.event.Options[0].ID}); response == nil {
						t.Errorf("the question %q refuses its own option", id)
					} else if _, err := json.Marshal(response); err != nil {
						t.Errorf("encode an answer: %v", err)
					}
				}
			}
		}
		wellFormed(t, out.Bytes())
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
	f.Add("You've hit your limit · resets Jul 23 at 6pm (America/Los_Angeles)", `{"file_path":"a"}`, "Write")
	f.Add("Claude AI usage limit reached|1800003600", `{"questions":[{"question":"?","options":[{"label":"a"}]}]}`, askTool)
	f.Fuzz(func(t *testing.T, text, input, tool string) {
		resetIn(text, time.Unix(0, 0).UTC())
		q := ask("id", request{Tool: tool, Input: json.RawMessage(input)}, "/work/repo", nil)
		if len(q.event.Options) < 2 || len(q.event.Options) != len(q.answers) {
			t.Errorf("options %v, answers %v", q.event.Options, q.answers)
		}
	})
}
