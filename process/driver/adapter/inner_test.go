package adapter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

func TestLineReader(t *testing.T) {
	in := "a\n\n" + strings.Repeat("b", 16) + "\n" + strings.Repeat("c", 17) + "\n" + strings.Repeat("d", 200_000) + "\nhalf"
	for _, r := range []io.Reader{
		strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in)),
		iotest.DataErrReader(strings.NewReader(in)),
	} {
		lines := newLineReader(r)
		lines.max = 16
		var got []string
		for {
			l, ok := lines.next()
			if !ok {
				break
			}
			got = append(got, string(l.Bytes)+strings.Repeat("!", min(1, int(l.Skipped))))
			if l.Skipped != 0 && l.Skipped != 17 && l.Skipped != 200_000 {
				t.Errorf("%d bytes skipped", l.Skipped)
			}
		}
		want := []string{"a", "", strings.Repeat("b", 16), strings.Repeat("c", 17) + "!", strings.Repeat("d", 17) + "!", "half"}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("lines %q", got)
		}
	}
}

// FuzzLines checks that the lines of a program's output do not depend on how it is split, and that
// every byte belongs to a line.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\n{\"x\":1}\nhalf"), 3, 4)
	f.Add([]byte("\n\r\n"+strings.Repeat("x", 100)), 1, 16)
	f.Fuzz(func(t *testing.T, output []byte, piece, most int) {
		most = max(1, min(most, 1<<10))
		read := func(r io.Reader) (all []Line) {
			lines := newLineReader(r)
			lines.max = most
			for {
				l, ok := lines.next()
				if !ok {
					return all
				}
				if l.Skipped == 0 && len(l.Bytes) > most || bytes.ContainsRune(l.Bytes, '\n') {
					t.Fatalf("a line of %d bytes: %q", len(l.Bytes), l.Bytes)
				}
				all = append(all, l)
			}
		}
		whole, cut := read(bytes.NewReader(output)), read(&pieces{rest: output, n: max(1, min(piece, 1<<10))})
		if !reflect.DeepEqual(whole, cut) {
			t.Fatalf("in pieces of %d: %v, whole: %v", piece, cut, whole)
		}
		length := bytes.Count(output, []byte("\n"))
		for _, l := range whole {
			length += max(len(l.Bytes), int(l.Skipped))
		}
		if length != len(output) {
			t.Fatalf("%d bytes of %d are in lines", length, len(output))
		}
	})
}

// pieces returns a few bytes at a time.
type pieces struct {
	rest []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.n)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// TestHeard checks that a line beyond the limit is skipped and reported, and that everything that
// is not a message is reported.
func TestHeard(t *testing.T) {
	var out bytes.Buffer
	c := &Child{stage: NewStage(speech.NewWriter(&out), "", nil)}
	for line, want := range map[string]string{
		`{"a":1}`: "", "": "", " \t\r": "",
		"words\r":  `{"type":"said","text":"words","tool":"stdout"}`,
		"{half":    `{"type":"faulted","text":"a line of the program begins like a message but is not JSON","raw":"{half"}`,
		"{} {}":    `{"type":"faulted","text":"a line of the program begins like a message but is not JSON","raw":"{} {}"}`,
		"null":     `{"type":"said","text":"null","tool":"stdout"}`,
		"\x1b[31m": `{"type":"said","text":"\u001b[31m","tool":"stdout"}`,
	} {
		out.Reset()
		message := c.Heard(Line{Bytes: []byte(line)})
		if (message != nil) != (line == `{"a":1}`) || strings.TrimSpace(out.String()) != want {
			t.Errorf("%q: %s, events: %s", line, message, out.String())
		}
	}
	out.Reset()
	if c.Heard(Line{Bytes: []byte(`{"a":`), Skipped: 70 << 20}) != nil ||
		!strings.Contains(out.String(), "a line of 73400320 bytes was not read, the limit is 67108864") {
		t.Errorf("events: %s", out.String())
	}
}

// TestPrintedLimit checks that endless output is shown up to a limit, with one note about the rest.
func TestPrintedLimit(t *testing.T) {
	var out bytes.Buffer
	s := NewStage(speech.NewWriter(&out), "", nil)
	for range 2 * printedBytesMax / 1000 {
		s.print("stderr", strings.Repeat("x", 999))
	}
	if out.Len() > printedBytesMax*11/10 || strings.Count(out.String(), "the rest is not shown") != 1 {
		t.Errorf("%d bytes reported", out.Len())
	}
}

// TestLastWords checks that the last error message is found above its stack trace.
func TestLastWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                "",
		"starting\nready": "ready",
		"a\nError: no such model\n    at run (main.js:3)\n  code: 7\n}\n": "Error: no such model",
		"ERROR first\nerror: second\n---\n":                               "error: second",
		"}\n":                                                             "",
		"fatal: " + strings.Repeat("x", 5000):                             "fatal: " + strings.Repeat("x", lastWordsBytes-7) + "…",
	} {
		e := &errorsRead{stage: NewStage(speech.NewWriter(io.Discard), "", nil)}
		e.read(strings.NewReader(text))
		if got := e.last(); got != want {
			t.Errorf("of %.60q the last words are %.100q", text, got)
		}
	}
}

func TestPromptQueue(t *testing.T) {
	var told PromptQueue
	order := func(kind speech.OrderType, text string, end int64) {
		told.Take(speech.Order{Type: kind, Text: text, End: end}, true)
	}
	order(speech.OrderStart, "", 10) // a session that begins without a prompt
	if len(told.waiting) > 0 || told.Answered() != 10 || told.Over() {
		t.Errorf("%+v", told)
	}
	order(speech.OrderPrompt, "one", 20)
	order(speech.OrderAnswer, "", 30)
	order(speech.OrderPrompt, "two", 40)
	if text, ok := told.Next(); !ok || text != "one" || told.Answered() != 30 {
		t.Errorf("%q, %d answered", text, told.Answered())
	}
	told.Take(speech.Order{}, false)
	if told.Over() || !told.Closed() {
		t.Error("the second prompt is lost")
	}
	if text, ok := told.Next(); !ok || text != "two" || told.Answered() != 40 || !told.Over() {
		t.Errorf("%q, %d answered", text, told.Answered())
	}
}

// TestFeed checks that input for a program that does not read is queued up to a limit, and then
// refused without blocking.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		f := newFeed(w)
		var running sync.WaitGroup
		running.Go(f.run)
		big := make([]byte, 1<<20)
		var err error
		for n := 0; err == nil; n++ {
			if err = f.add(big); n > fedBytesMax>>20+1 {
				t.Fatal("the queue has no limit")
			}
		}
		if !strings.Contains(err.Error(), "does not read its input") {
			t.Error(err)
		}
		f.close()
		if err := f.add(big); err == nil {
			t.Error("the feed accepts input after its end")
		}
		got, err := io.ReadAll(r)
		if err != nil || len(got) != fedBytesMax {
			t.Errorf("%d bytes arrived, %v", len(got), err)
		}
		running.Wait()

		f = newFeed(w) // its other end is closed
		running.Go(f.run)
		_ = f.add([]byte("x"))
		synctest.Wait()
		if err := f.add([]byte("y")); err == nil || errors.Is(err, errInputClosed) {
			t.Errorf("it says %v", err)
		}
		running.Wait()
	})
}

// played is a protocol made of one function.
type played func(ctx context.Context, s *Stage) driver.Stop

func (played) Name() string { return "played" }

func (p played) Play(ctx context.Context, _ Part, s *Stage) driver.Stop { return p(ctx, s) }

// TestPerform checks that there is exactly one terminal event, in time, regardless of what Play
// does.
func TestPerform(t *testing.T) {
	for name, c := range map[string]struct {
		play  played
		stop  bool          // duration of Play
		after time.Duration // duration of Play
		want  driver.Stop
	}{
		"done": {
			play: func(context.Context, *Stage) driver.Stop { return driver.Stop{OK: true} },
			want: driver.Stop{OK: true, Reason: "completed"},
		},
		"no words": {play: func(context.Context, *Stage) driver.Stop { return driver.Stop{} }, want: driver.Stop{Reason: "failed"}},
		"panics": {
			play: func(context.Context, *Stage) driver.Stop { panic("no reason") },
			want: driver.Stop{Reason: "failed", Detail: "the adapter broke: no reason; this is a bug in Fairlead"},
		},
		"leaves": {
			play: func(context.Context, *Stage) driver.Stop { runtime.Goexit(); return driver.Stop{} },
			want: driver.Stop{Reason: "failed", Detail: "the adapter did not end; this is a bug in Fairlead"},
		},
		"obeys stop": {
			stop: true, after: time.Second, want: driver.Stop{Reason: "terminated"},
			play: func(_ context.Context, s *Stage) driver.Stop {
				<-s.Stop
				wait.Elapse(time.Second)
				return driver.Stop{Reason: "terminated"}
			},
		},
		"the program was quicker": {
			stop: true, want: driver.Stop{Reason: "terminated", Detail: "asked to stop by a signal: the program was ended by SIGTERM"},
			play: func(context.Context, *Stage) driver.Stop {
				return driver.Stop{Reason: "failed", Detail: "the program was ended by SIGTERM"}
			},
		},
		"ignores stop": {
			stop: true, after: stopGrace, want: driver.Stop{Reason: "gone"},
			play: func(ctx context.Context, _ *Stage) driver.Stop { <-ctx.Done(); return driver.Stop{Reason: "gone"} },
		},
		"ignores everything": {
			stop: true, after: stopGrace + leaveGrace,
			want: driver.Stop{Reason: "terminated", Detail: "asked to stop; the program's conversation is unchanged"},
			play: func(context.Context, *Stage) driver.Stop { wait.Elapse(time.Hour); return driver.Stop{} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				s := NewStage(speech.NewWriter(&out), "", nil)
				stop := make(chan struct{})
				s.Stop = stop
				if c.stop {
					close(stop)
				}
				began := time.Now()
				got := Perform(t.Context(), c.play, Part{}, s)
				if got != c.want || time.Since(began) != c.after || strings.Count(out.String(), `"type":"stopped"`) != 1 {
					t.Errorf("stopped %+v after %v, events: %s", got, time.Since(began), out.String())
				}
				if name == "ignores everything" {
					wait.Elapse(time.Hour) // Play still runs
				}
			})
		})
	}
}

// TestArguments checks that arguments pass through the command line unchanged.
func TestArguments(t *testing.T) {
	a := driver.Agent{
		Name: "--name", Command: []string{os.Args[0], "--", "-x", "--resume=1", ""}, Workspace: t.TempDir(), Model: "--mode",
		Mode: "a b=c",
	}
	l, err := Launch("plain", a, driver.Session{ID: "coder-1", Kind: driver.Lead, Resume: "--"})
	if err != nil {
		t.Fatal(err)
	}
	part, err := parseArgs(l.Argv[2:])
	want := Part{
		Kind: "plain", Name: "--name", Session: "coder-1", What: driver.Lead, Attempt: 1,
		Command: a.Command, Resume: "--", Model: "--mode", Mode: "a b=c",
	}
	if err != nil || !reflect.DeepEqual(part, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, part, want)
	}
	for _, args := range [][]string{{}, {"acp"}, {"acp", "--", "relative"}, {"acp", "--unknown", "--", "/bin/true"}} {
		if _, err := parseArgs(args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

// TestLaunchRefuses checks that a work session needs a prompt, and that a session for turns may
// begin without one.
func TestLaunchRefuses(t *testing.T) {
	a := driver.Agent{Name: "coder", Command: []string{os.Args[0]}, Workspace: t.TempDir()}
	for kind, word := range map[driver.Kind]string{
		driver.Work: "session_prompt", driver.Cleanup: "cleanup_prompt",
		driver.Foreign: "loop: fairlead", driver.Turn: "", driver.Lead: "",
	} {
		_, err := Launch("plain", a, driver.Session{ID: "coder-1", Kind: kind, Prompt: " \n"})
		if (err == nil) != (word == "") || err != nil && !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	a.Command = []string{"no-such-program-anywhere"}
	if _, err := Launch("plain", a, driver.Session{Kind: driver.Turn}); err == nil || Check(a) == nil {
		t.Error("a missing program is started")
	}
}

// TestMCPVariables checks that the address of the team's tools comes from the environment and is
// not passed on automatically.
func TestMCPVariables(t *testing.T) {
	a := driver.Agent{
		Name: "coder",
		MCP:  driver.MCP{URL: "http://127.0.0.1:1/mcp", Token: "secret-4711", Stdio: []string{"/bin/x y", "mcp"}},
	}
	env := driver.Environment(a, driver.Session{})
	got := mcpFrom(func(name string) string {
		for _, kv := range env {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value
			}
		}
		return ""
	})
	if !reflect.DeepEqual(got, a.MCP) {
		t.Errorf("read %+v", got)
	}
	if left := strings.Join(NewStage(nil, "", env).Env, "\n"); strings.Contains(left, "MCP") ||
		!strings.Contains(left, "FAIRLEAD_AGENT=coder") {
		t.Errorf("handed on: %s", left)
	}
}
