package dispatchfolder

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
)

// BenchmarkInput measures an input over another one, from the lock to the disk (seven writes to four files),
// in turns with one synced line of the same length.
func BenchmarkInput(b *testing.B) {
	f := benchFolder(b, two())
	bare, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	line := make([]byte, 1200)
	line[len(line)-1] = '\n'
	var ours, yardstick time.Duration
	for b.Loop() {
		began := time.Now()
		if _, _, err := f.Do(at, change.Actor{Kind: "human"}, dispatch.UserInput{Text: "hello", Over: true}); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		if _, err := bare.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := bare.Sync(); err != nil {
			b.Fatal(err)
		}
		ours, yardstick = ours+between.Sub(began), yardstick+time.Since(between)
	}
	b.ReportMetric(float64(ours)/float64(yardstick), "times-a-synced-line")
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "µs/input")
}

// BenchmarkSession measures reading the state of a history of 10,000 lines, and of 10 lines.
func BenchmarkSession(b *testing.B) {
	long, short := benchFolder(b, two()), benchFolder(b, two())
	grow(b, long, 10_000)
	grow(b, short, 10)
	var ours, yardstick time.Duration
	for b.Loop() {
		for f, sum := range map[*Folder]*time.Duration{long: &ours, short: &yardstick} {
			fresh := &Folder{path: f.path} // like a process that has just started
			began := time.Now()
			if s, err := fresh.Session(); err != nil || s.Phase != dispatch.Talking {
				b.Fatal(s.Phase, err)
			}
			*sum += time.Since(began)
		}
	}
	b.ReportMetric(float64(ours)/float64(yardstick), "times-of-10-lines")
	b.ReportMetric(float64(ours.Nanoseconds())/1000/float64(b.N), "µs/session")
}

// BenchmarkJudge measures what a hook does for a tool call, except starting: find the state, and judge.
func BenchmarkJudge(b *testing.B) {
	f := benchFolder(b, two())
	grow(b, f, 1000)
	repo := b.TempDir()
	call := policy.Call{Tool: "Bash", Input: json.RawMessage(`{"command": "git status && ls -l | wc -l"}`), Dir: repo}
	for b.Loop() {
		fresh := &Folder{path: f.path}
		s, err := fresh.Session()
		if err != nil {
			b.Fatal(err)
		}
		if v := Judge(s, fresh, repo, call); v.Row == "X10" {
			b.Fatal(v.Reason)
		}
	}
}

func benchFolder(b *testing.B, agents []dispatch.Description) *Folder {
	b.Helper()
	b.Setenv("XDG_STATE_HOME", b.TempDir())
	f, _, err := Create(filepath.Join(b.TempDir(), "session"), dispatch.Setup{Agents: agents}, Options{At: at})
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// grow writes a history without syncing.
func grow(b *testing.B, f *Folder, lines uint64) {
	b.Helper()
	_, s, err := f.Do(at, change.Actor{}, dispatch.UserInput{Text: "hello"})
	if err != nil {
		b.Fatal(err)
	}
	var text []byte
	for s.Line < lines {
		changes, err := s.Decide(at, dispatch.Deny{Tool: "Bash", Call: "make", Reason: "MAIN runs nothing"})
		if err != nil {
			b.Fatal(err)
		}
		s.Apply(changes[0])
		line := jsonLine(f.recordOf(s, changes[0]))
		text = append(text, line...)
	}
	add(b, f, string(text))
}
