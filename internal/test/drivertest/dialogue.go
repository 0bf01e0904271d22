package drivertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// Entry is one line of a recorded conversation with a program (testdata/dialogues/NAME.jsonl). Dir
// is its kind:
//
//	order  the protocol receives an order (Msg is a speech.Order)
//	start  the adapter starts a program (Argv; Env: the names of what it adds to the environment)
//	send   the adapter writes a message; a JSON text is a line of plain words
//	recv   the program writes a message
//	print  the program writes something else (Text and a line ending)
//	wait   time passes (Seconds)
//	stop   the adapter is asked to stop, as by SIGTERM
//	exit   the program ends (Code, Signal); if this is missing, it ends with its input
//	over   there are no more orders; implied at the recording's end
type Entry struct {
	T       float64         `json:"t,omitempty"` // when it was recorded; for people
	Dir     string          `json:"dir"`
	Msg     json.RawMessage `json:"msg,omitempty"`
	Text    string          `json:"text,omitempty"`
	Argv    []string        `json:"argv,omitempty"`
	Env     []string        `json:"env,omitempty"`
	Seconds float64         `json:"seconds,omitempty"`
	Code    int             `json:"code,omitempty"`
	Signal  string          `json:"signal,omitempty"`
}

// dialoguePatience is how much virtual time the other side may do nothing before it is assumed to
// wait as well.
const dialoguePatience = time.Hour

// startsMax is how many programs may have started before the recording mentions them.
const startsMax = 16

// recordedDir is the workspace in every recording, whatever it was when recorded.
const recordedDir = "/work/repo"

// Dialogue plays a recorded conversation with a protocol, repeatedly, with the program's output
// split into pieces of different sizes. It feeds the program's output to the protocol and compares
// what the protocol writes with the recording, in order, ignoring IDs. The resulting events are
// compared with testdata/transcripts/NAME.raw, which Run then reads. UPDATE=1 renews both; check the
// diff.
//
// part may omit everything that the recording does not depend on. At the end of the recording, the
// orders are closed. Time is synctest's, so waiting takes no real time.
func Dialogue(t *testing.T, p adapter.Protocol, part adapter.Part, file string) {
	t.Helper()
	entries := readEntries(t, file)
	name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
	part.Dir = cmp.Or(part.Dir, recordedDir)
	if len(part.Command) == 0 {
		part.Command = []string{"/usr/bin/program"}
	}
	part.Kind = p.Name()
	if part.Name == "" {
		part.Name, part.Session, part.Attempt = "coder", "coder-17", 1
	}
	part.What = cmp.Or(part.What, driver.Work)
	for _, sizes := range [][]int{nil, {1}, {2, 3}, {7}, {4096}} {
		t.Run(fmt.Sprint(name, "/pieces=", sizes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &dialogue{t: t, sizes: sizes, ids: map[string]json.RawMessage{}, started: make(chan *recorded, startsMax)}
				d.play(p, part, entries)
				if sizes == nil && os.Getenv("UPDATE") != "" {
					writeEntries(t, file, d.said)
				}
				golden(t, filepath.Join("testdata", "transcripts", name+".raw"), d.events.String())
			})
		})
	}
}

// dialogue is one playback of a recording.
type dialogue struct {
	t       testing.TB
	sizes   []int
	events  bytes.Buffer
	ids     map[string]json.RawMessage // IDs of the adapter's requests: recorded ID to current ID
	started chan *recorded
	program *recorded
	said    []Entry // what happened, to update the recording
	lives   []bool  // by program: the recording contains its end
}

// lives reports for each program in a recording whether the recording contains its end. Such a
// program runs until then, even after its input has ended, because some answer only then.
func lives(entries []Entry) (all []bool) {
	for _, e := range entries {
		switch {
		case e.Dir == "start":
			all = append(all, false)
		case e.Dir == "exit" && len(all) > 0:
			all[len(all)-1] = true
		}
	}
	return all
}

func (d *dialogue) play(p adapter.Protocol, part adapter.Part, entries []Entry) {
	if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Dir == "start" }) {
		entries = slices.Insert(slices.Clone(entries), 0, Entry{Dir: "start"})
	}
	d.lives = lives(entries)
	orders, stop := make(chan speech.Order), make(chan struct{})
	stage := adapter.NewStage(speech.NewWriter(&d.events), part.Dir, nil)
	stage.Orders, stage.Stop, stage.Starts = orders, stop, d.start
	done := make(chan driver.Stop, 1)
	ctx, cancel := context.WithCancel(d.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		done <- adapter.Perform(ctx, p, part, stage)
	}()
	defer func() {
		cancel()
		<-ended
	}()

	var taken int64
	for i, e := range entries {
		d.do(i, e, orders, stop, &taken)
	}
	synctest.Wait()
	if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Dir == "over" }) {
		close(orders)
	}
	select {
	case <-done:
	case <-time.After(dialoguePatience):
		d.t.Fatalf("the protocol does not end with the recording; events:\n%s", d.events.String())
	}
	for _, line := range d.program.unread() {
		d.said = append(d.said, Entry{Dir: "send", Msg: message(line)})
		d.complain("after the end of the recording the protocol writes %s", line)
	}
}

// do plays one entry.
func (d *dialogue) do(i int, e Entry, orders chan<- speech.Order, stop chan struct{}, taken *int64) {
	synctest.Wait() // all output has been handled
	switch e.Dir {
	case "order":
		var o speech.Order
		must(d.t, json.Unmarshal(e.Msg, &o))
		*taken += int64(len(o.Encode()))
		o.End = *taken
		select {
		case orders <- o:
		case <-time.After(dialoguePatience):
			d.t.Fatalf("line %d: the protocol does not read the order; events:\n%s", i+1, d.events.String())
		}
	case "start":
		select {
		case d.program = <-d.started:
		case <-time.After(dialoguePatience):
			d.t.Fatalf("line %d: the protocol starts no program; events:\n%s", i+1, d.events.String())
		}
		now := d.program.command
		if e.Argv != nil && !(slices.Equal(e.Argv, now.Argv) && slices.Equal(e.Env, variables(now.Env))) {
			d.complain("line %d: the protocol starts %q with %q, not %q with %q", i+1, now.Argv, variables(now.Env), e.Argv, e.Env)
		}
		e.Argv, e.Env = now.Argv, variables(now.Env)
	case "send":
		e.Msg = d.sent(i, e.Msg)
	case "recv":
		e.Msg = d.answered(e.Msg)
		d.program.print(append(slices.Clone(e.Msg), '\n'))
	case "print":
		d.program.print([]byte(e.Text + "\n"))
	case "wait":
		<-wait.After(time.Duration(e.Seconds * float64(time.Second)))
	case "stop":
		close(stop)
	case "over":
		close(orders)
	case "exit":
		d.program.end(session.Exit{Code: e.Code, Signal: e.Signal})
	default:
		d.t.Fatalf("line %d: unknown entry %q", i+1, e.Dir)
	}
	if e.Msg != nil || e.Dir != "send" {
		d.said = append(d.said, e)
	}
}

// sent reads the next line that the protocol writes and compares it with the recording.
func (d *dialogue) sent(i int, recorded json.RawMessage) json.RawMessage {
	line, ok := d.program.line()
	if !ok {
		d.complain("line %d: the protocol writes nothing, want %s", i+1, shorten(string(recorded)))
		return nil
	}
	now := message(line)
	want, got := object(recorded), object(line)
	if want == nil || got == nil { // plain text
		if !bytes.Equal(compacted(recorded), now) {
			d.complain("line %d: the protocol writes %s, want %s", i+1, shorten(string(now)), shorten(string(recorded)))
		}
		return now
	}
	for _, id := range []string{"id", "request_id"} {
		if w, g := want[id], got[id]; w != nil && g != nil && asks(want) {
			d.ids[string(w)] = g
			want[id] = g
		}
	}
	if !reflect.DeepEqual(plain(want), plain(got)) {
		d.complain("line %d: the protocol writes\n %s\nwant\n %s", i+1, shorten(string(line)), shorten(string(recorded)))
	}
	return now
}

// message returns a line as it is recorded: an object unchanged, anything else as a JSON string.
func message(line []byte) json.RawMessage {
	if object(line) != nil {
		return bytes.Clone(line)
	}
	return encode.JSON(strings.ToValidUTF8(string(line), "\uFFFD"))
}

// compacted formats a recorded text as the adapter writes it.
func compacted(recorded json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(recorded, &text) != nil {
		return recorded
	}
	return encode.JSON(text)
}

// answered replaces the ID in a recorded response by the current ID of the adapter's request.
func (d *dialogue) answered(msg json.RawMessage) json.RawMessage {
	m := object(msg)
	switch id := m["id"]; {
	case m == nil:
	case id != nil && m["method"] == nil:
		if now := d.ids[string(id)]; now != nil && !bytes.Equal(now, id) {
			m["id"] = now
			return encode.JSON(m)
		}
	case string(m["type"]) == `"control_response"`:
		inner := object(m["response"])
		if now := d.ids[string(inner["request_id"])]; now != nil && !bytes.Equal(now, inner["request_id"]) {
			inner["request_id"] = now
			m["response"] = encode.JSON(inner)
			return encode.JSON(m)
		}
	}
	return msg
}

// asks reports whether a message of the adapter expects a response, so that its ID is the adapter's
// own.
func asks(m map[string]json.RawMessage) bool {
	return m["method"] != nil || string(m["type"]) == `"control_request"`
}

func (d *dialogue) complain(format string, args ...any) {
	d.t.Helper()
	if os.Getenv("UPDATE") == "" {
		d.t.Errorf(format, args...)
	}
}

func object(b []byte) (m map[string]json.RawMessage) {
	if json.Unmarshal(b, &m) != nil {
		return nil
	}
	return m
}

func plain(m map[string]json.RawMessage) (v any) {
	if err := json.Unmarshal(encode.JSON(m), &v); err != nil {
		panic("drivertest: " + err.Error())
	}
	return v
}

// variables returns the sorted names of an environment's variables.
func variables(env []string) (all []string) {
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func readEntries(t *testing.T, file string) (all []Entry) {
	t.Helper()
	b, err := os.ReadFile(file)
	must(t, err)
	for line := range bytes.Lines(b) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: line %d: %v", file, len(all)+1, err)
		}
		all = append(all, e)
	}
	return all
}

func writeEntries(t *testing.T, file string, all []Entry) {
	t.Helper()
	var b bytes.Buffer
	for _, e := range all {
		b.Write(append(encode.JSON(e), '\n'))
	}
	must(t, os.MkdirAll(filepath.Dir(file), 0o777))
	must(t, os.WriteFile(file, b.Bytes(), 0o666))
}

// guarded is the state that a recorded program and its reader share. The mutex guards it.
type guarded struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
}

func (g *guarded) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}
