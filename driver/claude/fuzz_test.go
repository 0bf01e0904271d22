package claude

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
	"github.com/fairlead-dev/fairlead/driver/drivertest"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

// FuzzHear feeds arbitrary lines and answers every second question: the events are always
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
			heard := h.line(line, "mine")
			for _, message := range heard.send {
				if _, err := json.Marshal(message); err != nil {
					t.Errorf("an answer that is no JSON: %v", err)
				}
			}
			if heard.ended && heard.stop.Reason == "" {
				t.Error("an answer is over and does not say how")
			}
			for id, q := range h.open {
				if len(id)%2 == 0 && len(q.told.Options) > 0 {
					if response := h.answer(speech.Order{ID: q.told.ID, Option: q.told.Options[0].ID}); response == nil {
						t.Errorf("the question %q does not take its own option", id)
					} else if _, err := json.Marshal(response); err != nil {
						t.Errorf("an answer that is no JSON: %v", err)
					}
				}
			}
		}
		wellFormed(t, out.Bytes())
	})
}

func wellFormed(t *testing.T, events []byte) {
	for line := range bytes.Lines(events) {
		if fact := speech.Fact(driver.Line{Bytes: bytes.TrimSuffix(line, []byte{'\n'})}); fact.Kind == driver.Faulted && !bytes.Contains(line, []byte(`"faulted"`)) {
			t.Errorf("an event is none (%s): %s", fact.Text, line)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add("You've hit your limit · resets Jul 23 at 6pm (America/Los_Angeles)", `{"file_path":"a"}`, "Write")
	f.Add("Claude AI usage limit reached|1800003600", `{"questions":[{"question":"?","options":[{"label":"a"}]}]}`, askTool)
	f.Fuzz(func(t *testing.T, text, input, tool string) {
		resetIn(text, time.Unix(0, 0).UTC())
		q := ask("id", request{Tool: tool, Input: json.RawMessage(input)}, "/work/repo", nil)
		if len(q.told.Options) < 2 || len(q.told.Options) != len(q.answers) {
			t.Errorf("options %v, answers %v", q.told.Options, q.answers)
		}
	})
}
