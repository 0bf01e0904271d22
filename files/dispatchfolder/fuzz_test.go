package dispatchfolder

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
)

// Whatever state.jsonl holds: nothing panics, Lines and Session agree, reading in portions equals reading at
// once, and the next input is appended with everything before it kept.
func FuzzLines(f *testing.F) {
	f.Add([]byte(seedsLines), uint16(3))
	f.Add([]byte(`{"type": "session_init"}`+"\r\n"+`{"type": "conversation_start", "conversation_id": "conv_1000"}`+"\n"), uint16(7))
	f.Add([]byte("\xef\xbb\xbf{}\n\n[1]\nhalf"), uint16(1))
	f.Add([]byte(`{"fairlead": {"row": "D2", "event": "input", "line": 2, "at": "2024-12-18T14:30:22Z", "now": {"phase": "talking", "line": 2, "made": 1, "open": {"n": 1}}}}`+"\n"), uint16(0))
	f.Add([]byte(`{"type": "session_init", "state": "MAIN"}`+"\n"+
		`{"type": "transition", "state": "a", "workspace": "/x/conv_009/outputs/"}`+"\n"+`{"type": "transition", "state": "MAIN"}`+"\n"),
		uint16(60))
	f.Fuzz(func(t *testing.T, text []byte, cut uint16) {
		noSync(t)
		folder := others(t, string(text))
		all, next, err := folder.Lines(0)
		if err != nil {
			return // the beginning cannot be read, which is reported
		}
		s, err := folder.Session()
		if err != nil {
			return
		}
		if n := len(all); n > 0 && n < linesAtOnceMax && !sameNow(change.As[dispatch.Body](all[n-1].Change.Body).Now, s.Now) {
			t.Fatalf("the lines lead to %+v, and the session is %+v", change.As[dispatch.Body](all[n-1].Change.Body).Now, s.Now)
		}
		if n := len(all); n > 1 {
			from := all[int(cut)%n].End
			rest, again, err := folder.Lines(from)
			if err != nil || again != next || len(rest) != n-1-int(cut)%n {
				t.Fatalf("from %d there are %d lines to %d, %v; of %d to %d", from, len(rest), again, err, n, next)
			}
		}
		_, now, err := folder.Do(at, change.Actor{}, dispatch.UserInput{Text: "hello", Over: true})
		after, readErr := os.ReadFile(filepath.Join(folder.Path(), "state.jsonl"))
		if readErr != nil || !strings.HasPrefix(string(after), string(text)) {
			t.Fatalf("what was there did not survive: %v", readErr)
		}
		if err != nil {
			return
		}
		if s, err := folder.Session(); err != nil || !sameNow(s.Now, now.Now) {
			t.Fatalf("the session is %+v, %v; it was told %+v", s.Now, err, now.Now)
		}
	})
}

func sameNow(a, b dispatch.Now) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// For any input the logger writes one complete line that can be read again, or none.
func FuzzLog(f *testing.F) {
	f.Add([]byte(seedsWrapped))
	f.Add([]byte(`{"conversation_id": "conv_001", "timestamp": "2024-12-18T14:30:22", "summary": "it's \"quoted\"", "mood": {"a": [1, 2]}}`))
	f.Add([]byte(`{"conversation_data": {"conversation_id": "conv_1000"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		folder := &Folder{path: "/s"}
		_, line, err := folder.logLine(raw)
		if err != nil {
			return
		}
		m, ok := parseMessage(line)
		if !ok || strings.Count(string(line), "\n") != 1 || line[len(line)-1] != '\n' || !json.Valid(line) {
			t.Fatalf("the line is %q", line)
		}
		if m.Files == nil || m.Agents == nil {
			t.Fatalf("the lists are not there: %q", line)
		}
	})
}

// A redo file that is incomplete or not written by Fairlead has no effect.
func FuzzRedo(f *testing.F) {
	f.Add([]byte("abc\n[]\n"), true)
	f.Add([]byte(`[{"file":"../x","text":"eA=="},{"file":"a/b/c","whole":"eA=="},{"file":"state.jsonl","move":"d"}]`), true)
	f.Fuzz(func(t *testing.T, text []byte, sign bool) {
		noSync(t)
		folder := others(t, seedsLines)
		outside := shelf(t, filepath.Dir(folder.Path()))
		if sign {
			text = signed(text)
		}
		if err := os.WriteFile(filepath.Join(folder.Path(), ".commit"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, _ = folder.Do(at, change.Actor{}, dispatch.Interrupt{})
		for name := range shelf(t, filepath.Dir(folder.Path())) {
			if _, was := outside[name]; !was && !strings.HasPrefix(name, filepath.Base(folder.Path())+"/") {
				t.Fatalf("something was written outside: %s", name)
			}
		}
	})
}
