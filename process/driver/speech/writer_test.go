package speech_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// heard parses the facts in what was written.
func parseFacts(t *testing.T, b []byte) (facts []driver.Fact) {
	t.Helper()
	c := speech.Conversation{Wire: &drivertest.Recording{Bytes: b}}
	for f, err := range c.Facts(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		facts = append(facts, f)
	}
	return facts
}

// told returns a writer's events, one fact for each line.
func factLines(t *testing.T, do func(w *speech.Writer)) string {
	t.Helper()
	var out bytes.Buffer
	do(speech.NewWriter(&out))
	var b strings.Builder
	for _, f := range parseFacts(t, out.Bytes()) {
		fmt.Fprintf(&b, "%s", f.Kind)
		if f.Tool != "" {
			fmt.Fprintf(&b, "[%s]", f.Tool)
		}
		fmt.Fprintf(&b, " %s", f.Text)
		if f.Part {
			b.WriteString("…")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestSpeak checks that text that arrives in pieces is read as lines, and that nothing comes
// between the pieces.
func TestSpeak(t *testing.T) {
	got := factLines(t, func(w *speech.Writer) {
		w.EndMessage()
		w.Speak(driver.Thought, "hm")
		w.Speak(driver.Said, "")
		w.Speak(driver.Said, "one\r\ntw")
		w.Say(driver.Said, "stderr", "noise\nmore noise")
		w.Tell(driver.Fact{Kind: driver.UsageReported, Usage: change.Usage{InputTokens: 1}})
		w.Speak(driver.Said, "o\n\nthree")
		w.Tell(driver.Fact{Kind: driver.ToolCalled, Tool: "Read", Text: "a.txt"})
		w.Say(driver.Said, "stderr", "at once")
		w.Speak(driver.Said, "four\n")
		w.Speak(driver.Thought, "five")
		w.Tell(speech.Ended(driver.Stop{OK: true, Reason: "completed"}))
	})
	want := `thought hm…
thought 
said one
said tw…
usage_reported 
said o
said 
said three…
said 
said[stderr] noise
said[stderr] more noise
tool_called[Read] a.txt
said[stderr] at once
said four
thought five…
thought 
stopped completed
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestAsideHasALimit checks that a message that never ends does not hold back other events forever.
func TestAsideHasALimit(t *testing.T) {
	got := factLines(t, func(w *speech.Writer) {
		w.Speak(driver.Said, "once upon")
		for i := range 1000 {
			w.Tell(driver.Fact{Kind: driver.Said, Tool: "stderr", Text: fmt.Sprint(i)})
		}
	})
	if n := strings.Count(got, "[stderr]"); n < 700 || !strings.HasPrefix(got, "said once upon…\nsaid \nsaid[stderr] 0\n") {
		t.Errorf("%d lines, beginning with %.80q", n, got)
	}
}

// calls counts the writes that it gets, also from the writer's timer.
type calls struct {
	mu  sync.Mutex
	all []byte
	n   int
}

func (c *calls) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.all = append(c.all, b...)
	return len(b), nil
}

// got is all that was written, and in how many writes.
func (c *calls) got() (all []byte, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all, c.n
}

// TestGather checks that pieces of a message are written together while more of the program's output
// has been read: not after an event that follows them, not for longer than some milliseconds, and with the bytes of
// single writes.
func TestGather(t *testing.T) {
	t.Parallel()
	speak := func(w *speech.Writer) {
		for _, piece := range []string{"a", " b\n", "c \"d\" \\", "<&>\t", "é„“\u2028\n", "\x7f"} {
			w.Speak(driver.Said, piece)
		}
	}
	var one bytes.Buffer
	speak(speech.NewWriter(&one))
	for line := range bytes.Lines(one.Bytes()) {
		var e driver.Fact
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		var again bytes.Buffer
		enc := json.NewEncoder(&again)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e); err != nil || again.String() != string(line) {
			t.Errorf("a piece is written as %q, encoding/json writes %q (%v)", line, again.String(), err)
		}
	}
	for name, end := range map[string]func(w *speech.Writer){
		"no more":       func(w *speech.Writer) { w.Gather(false) },
		"another event": func(w *speech.Writer) { w.Tell(driver.Fact{Kind: driver.UsageReported}) },
		"other bytes":   func(w *speech.Writer) { w.Print([]byte("x\n")) },
		"time":          func(*speech.Writer) { wait.Elapse(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out calls
				w := speech.NewWriter(&out)
				w.Gather(true)
				for round := range 3 {
					before, earlier := out.got()
					speak(w)
					if _, n := out.got(); n != earlier {
						t.Fatalf("round %d: %d writes, before %d", round, n, earlier)
					}
					end(w)
					if all, n := out.got(); n != earlier+1 || !bytes.HasPrefix(all[len(before):], one.Bytes()) {
						t.Fatalf("round %d: %d writes, before %d; got\n%s\nwant\n%s", round, n, earlier, all[len(before):], one.Bytes())
					}
					w.EndMessage()
					w.Gather(true)
				}
			})
		})
	}
	var out calls
	w := speech.NewWriter(&out)
	w.Gather(true)
	w.Speak(driver.Said, strings.Repeat("x", 100<<10))
	if all, _ := out.got(); len(all) < 60<<10 {
		t.Errorf("of 100 KiB, %d bytes were written", len(all))
	}
}

// TestSpeakLong checks that an agent's text is never cut, regardless of the length of its lines and
// of where they are split.
func TestSpeakLong(t *testing.T) {
	long := strings.Repeat("ä€𝄞x", 30_000)
	got := factLines(t, func(w *speech.Writer) { w.Speak(driver.Said, "a\n"+long+"\nb\n") })
	text := strings.ReplaceAll(strings.ReplaceAll(got, "…\nsaid ", ""), "said ", "")
	if text != "a\n"+long+"\nb\n" {
		t.Errorf("%d bytes of %d", len(text), len(long)+5)
	}
}

// TestEventsHaveLimits checks that every event is one line within the length limit, and that it
// names what was omitted.
func TestEventsHaveLimits(t *testing.T) {
	nul, wide := strings.Repeat("\x00", 100_000), strings.Repeat("\xff", 100_000)
	object := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	options := make([]driver.Option, 1000)
	for i := range options {
		options[i] = driver.Option{ID: fmt.Sprint(i), Kind: nul[:3000], Label: nul[:3000]}
	}
	for name, e := range map[string]driver.Fact{
		"text":      {Kind: driver.Said, Text: nul},
		"bytes":     {Kind: driver.Said, Text: wide},
		"raw":       {Kind: driver.Faulted, Raw: object(nul)},
		"raw bytes": {Kind: driver.Faulted, Raw: []byte(wide)},
		"raw none":  {Kind: driver.Faulted, Raw: []byte("{half")},
		"stop":      {Kind: driver.Stopped, Stop: &driver.Stop{OK: true, Reason: nul, Detail: nul}},
		"args": {
			Kind: driver.PermissionAsked, Text: nul, Tool: nul, Raw: []byte(wide),
			Args: object(map[string]any{"content": nul, "command": wide, "n": 7, "list": []string{nul}}),
			Ask:  driver.Ask{ID: "q", Options: options, Paths: []string{nul, "/a"}},
		},
		"many args": {Kind: driver.ToolCalled, Tool: "x", Args: object(many(15_000))},
		"no object": {Kind: driver.ToolCalled, Tool: "x", Args: json.RawMessage(`["` + nul[:0] + `"]`)},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			speech.NewWriter(&out).Tell(e)
			if out.Len() > driver.LineBytesMax || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
				t.Fatalf("%d bytes", out.Len())
			}
			facts := parseFacts(t, out.Bytes())
			if len(facts) != 1 || facts[0].Kind != e.Kind {
				t.Errorf("read as %.300v", facts)
			}
			var read driver.Fact
			if err := json.Unmarshal(out.Bytes(), &read); err != nil {
				t.Fatal(err)
			}
			if len(e.Args) > 0 && len(read.Cut) == 0 {
				t.Errorf("the event does not name what was cut: %.300s", out.Bytes())
			}
		})
	}
}

func many(n int) map[string]string {
	all := make(map[string]string)
	for i := range n {
		all[fmt.Sprint("argument-", i)] = "x"
	}
	return all
}

// TestCutArguments checks that arguments within the limit are unchanged, that short arguments stay
// complete beside long ones, and that the cut ones are named.
func TestCutArguments(t *testing.T) {
	var out bytes.Buffer
	speech.NewWriter(&out).Tell(driver.Fact{Kind: driver.ToolCalled, Tool: "Write", Args: speech.Args(map[string]string{
		"file_path": "/w/a.txt", "content": strings.Repeat("x", 1<<20),
	})})
	var e driver.Fact
	var args map[string]string
	if err := errors.Join(json.Unmarshal(out.Bytes(), &e), json.Unmarshal(e.Args, &args)); err != nil {
		t.Fatal(err)
	}
	many := map[string]string{"zz_path": "/w/b.txt"}
	for i := range 20 {
		many[fmt.Sprint("a", i)] = strings.Repeat("y", 40_000)
	}
	var last bytes.Buffer
	speech.NewWriter(&last).Tell(driver.Fact{Kind: driver.ToolCalled, Tool: "x", Args: speech.Args(many)})
	if !strings.Contains(last.String(), `"zz_path":"/w/b.txt"`) {
		t.Error("a short argument was cut because of a long one")
	}
	if !slices.Equal(e.Cut, []string{"content"}) || args["file_path"] != "/w/a.txt" ||
		!strings.HasSuffix(args["content"], "[cut: 1048576 bytes]") {
		t.Errorf("cut %q, %.100q", e.Cut, args)
	}
}

// An omitted path is marked: a call must not be judged by the others alone.
func TestCutPaths(t *testing.T) {
	for name, c := range map[string]struct {
		paths []string
		left  int
	}{
		"few":      {[]string{"/a", "/b"}, 2},
		"many":     {slices.Repeat([]string{"/a"}, 300), 256},
		"long":     {[]string{"/a", "/" + strings.Repeat("x", 5000)}, 1},
		"too wide": {slices.Repeat([]string{strings.Repeat("\x01", 4000)}, 256), 0},
	} {
		given := []string{"content"}
		var out bytes.Buffer
		speech.NewWriter(&out).Tell(driver.Fact{Kind: driver.PermissionAsked, Ask: driver.Ask{ID: "q", Paths: c.paths}, Cut: given[:1:1]})
		var e driver.Fact
		if err := json.Unmarshal(out.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if len(e.Paths) != c.left || slices.Contains(e.Cut, "paths") != (c.left < len(c.paths)) || !slices.Contains(e.Cut, "content") {
			t.Errorf("%s: %d paths, cut %q", name, len(e.Paths), e.Cut)
		}
	}
}

func TestHide(t *testing.T) {
	var out bytes.Buffer
	w := speech.NewWriter(&out)
	w.Hide("")
	w.Hide("coder.coder-17.4f2a")
	w.Tell(driver.Fact{
		Kind: driver.Faulted, Text: "x coder.coder-17.4f2a",
		Raw: json.RawMessage(`{"authorization":"Bearer coder.coder-17.4f2a"}`),
	})
	if strings.Contains(out.String(), "4f2a") || strings.Count(out.String(), "***") != 2 {
		t.Errorf("got %s", out.String())
	}
}

// The fields of the newer facts are transmitted.
func TestFacts(t *testing.T) {
	until := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	named := driver.Conversed{ID: "c1", Model: "m1", Mode: "ask", Program: "p 1", Resumed: true, Enforced: "asks"}
	var out bytes.Buffer
	w := speech.NewWriter(&out)
	w.Tell(driver.Fact{Kind: driver.PermissionAsked, Ask: driver.Ask{
		ID: "q1", Paths: []string{"/a"}, Options: []driver.Option{{ID: "y"}},
	}})
	w.Tell(driver.Fact{Kind: driver.PermissionAnswered, Ask: driver.Ask{ID: "q1"}, Text: "y"})
	w.Tell(driver.Fact{Kind: driver.PermissionWithdrawn, Ask: driver.Ask{ID: "q2"}})
	w.Tell(driver.Fact{Kind: driver.ConversationNamed, Conversation: &named})
	w.Tell(driver.Fact{Kind: driver.RateLimited, Until: until, Text: "until three"})
	w.Tell(driver.Fact{Kind: driver.RateLimited})
	facts := parseFacts(t, out.Bytes())
	if len(facts) != 6 {
		t.Fatalf("%+v", facts)
	}
	switch {
	case facts[0].Ask.ID != "q1" || !slices.Equal(facts[0].Ask.Paths, []string{"/a"}) || len(facts[0].Ask.Options) != 1,
		facts[1].Ask.ID != "q1" || facts[1].Text != "y", facts[2].Ask.ID != "q2",
		*facts[3].Conversation != named, !facts[4].Until.Equal(until), !facts[5].Until.IsZero():
		t.Errorf("%+v", facts)
	}
	for _, bad := range []string{
		`{"type":"permission_answered"}`, `{"type":"permission_withdrawn","text":"q"}`, `{"type":"conversation_named"}`,
		`{"type":"conversation_named","conversation":{"model":"m"}}`, `{"type":"rate_limited","until":"soon"}`,
	} {
		if f := parseFacts(t, []byte(bad))[0]; f.Kind != driver.Faulted {
			t.Errorf("%s is taken for %s", bad, f.Kind)
		}
	}
}

// A writer whose output fails reports so, and it is safe for concurrent use.
func TestWriterBroken(t *testing.T) {
	w := speech.NewWriter(brokenPipe{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { w.Say(driver.Said, "", "hello\nyou"); w.Speak(driver.Said, "x"); w.Print([]byte("y")) })
	}
	all.Wait()
	if w.Broken() == nil {
		t.Error("it does not know")
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestPromptHasALimit(t *testing.T) {
	c := speech.Conversation{Wire: &drivertest.Recording{}}
	if c.Prompt(t.Context(), strings.Repeat("x", driver.PromptBytesMax+1)) == nil {
		t.Error("a prompt beyond the limit was sent")
	}
}

// speaker is a driver that only reads.
type speaker struct{}

func (speaker) Name() string { return "speaker" }

func (speaker) Check(driver.Agent) error { return errors.New("it starts nothing") }

func (speaker) Launch(driver.Agent, driver.Session) (l spawn.Launch, err error)       { return l, nil }
func (speaker) Outcome(driver.Session, session.Exit, *driver.Stop) (o driver.Outcome) { return o }
func (speaker) Converse(_ driver.Agent, _ driver.Session, w driver.Wire) driver.Conversation {
	return speech.Conversation{Wire: w}
}

func (speaker) Capabilities(driver.Agent, driver.Kind) (c driver.Capabilities) { return c }
func (speaker) Probe(context.Context, driver.Agent) (p driver.Probed, err error) {
	return p, driver.ErrNoProbe
}

// For any input, the facts keep the rules of package driver.
func FuzzFact(f *testing.F) {
	for _, seed := range []string{
		`{"type":"stopped"}{"type":"said","text":"\ud800"}`, `{"type":"said","text":"a","part":true}` + "\nplain",
		`{"type":"permission_asked","id":"q","options":[{"id":"a","kind":"b","label":"c"}],"paths":["/a"],"args":{"a":1},"cut":["a"]}`,
		`{"type":"permission_answered","id":"q","text":"a"}`, `{"type":"permission_withdrawn","id":"q"}`,
		`{"type":"conversation_named","conversation":{"id":"c","model":"m","resumed":true}}`,
		`{"type":"rate_limited","until":"2026-11-20T15:00:00Z"}`, `{"type":"listening","input":-1}`,
		`{"type":"usage_reported","input_tokens":1,"cost_usd":1e999}`, `{"type":"faulted","raw":{"a":[1]}}`,
		`{"type":"stopped","ok":false,"detail":"x"}`,
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, output []byte, piece int) {
		drivertest.Check(t, speaker{}, output, piece)
	})
}

// An event is read back as it was written.
func FuzzTell(f *testing.F) {
	f.Add("said", "hello\nyou", "stderr", []byte(`{"a":1}`), []byte(`{"b":[2]}`), "q1")
	f.Add("permission_asked", "\xff\x00", "", []byte(`{"a":`), []byte("\xff"), "q")
	f.Fuzz(func(t *testing.T, kind, text, tool string, args, raw []byte, id string) {
		var out bytes.Buffer
		w := speech.NewWriter(&out)
		w.Speak(driver.Said, text)
		w.Tell(driver.Fact{
			Kind: driver.FactKind(kind), Text: text, Tool: tool, Args: args, Raw: raw,
			Conversation: &driver.Conversed{ID: id}, Stop: &driver.Stop{OK: true},
			Ask: driver.Ask{ID: id, Paths: []string{text}, Options: []driver.Option{{ID: id, Label: text}}},
		})
		if out.Len() > 0 && out.Bytes()[out.Len()-1] != '\n' {
			t.Fatalf("no whole line: %q", out.Bytes())
		}
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) || len(line) > driver.LineBytesMax {
				t.Fatalf("got %q", line)
			}
		}
		drivertest.Check(t, speaker{}, out.Bytes(), 7)
	})
}
