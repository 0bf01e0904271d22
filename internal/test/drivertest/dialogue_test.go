package drivertest

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

// parrot is a protocol that sends its orders to a program, counts the program's messages, and ends
// after some answers.
type parrot struct {
	says  func(n int, text string) any // message for the n-th order
	stays bool                         // never ends
	deaf  bool                         // reads no orders
	idle  bool                         // starts no program
}

func (parrot) Name() string { return "parrot" }

func (p parrot) Play(ctx context.Context, part adapter.Part, s *adapter.Stage) driver.Stop {
	if p.idle {
		<-ctx.Done()
		return driver.Stop{}
	}
	child, err := s.Start(adapter.Command{Argv: part.Command, Env: []string{"MODE=ask"}})
	if err != nil {
		return driver.Stop{Reason: "failed", Detail: err.Error()}
	}
	orders := s.Orders
	if p.deaf {
		orders = nil
	}
	for n := 1; ; {
		select {
		case <-ctx.Done():
			return driver.Stop{Reason: "terminated"}
		case o, ok := <-orders:
			if !ok && !p.stays {
				return driver.Stop{OK: true}
			}
			if !ok {
				orders = nil
				continue
			}
			if message := p.says(n, o.Text); message != nil {
				_ = child.Send(message)
			}
			n++
		case l, ok := <-child.Lines():
			if !ok {
				return driver.Stop{Reason: "failed", Detail: child.End().String()}
			}
			if m := child.Heard(l); m != nil {
				s.Out.Speak(driver.Said, string(m)+"\n")
			}
		}
	}
}

// asking returns a request with an ID, as protocols send it.
func asking(n int, text string) any {
	return map[string]any{"id": 100 + n, "method": "say", "text": text}
}

// TestDialogueFinds checks that a dialogue reports a faulty protocol, and nothing for a correct
// one.
func TestDialogueFinds(t *testing.T) {
	const recording = `{"dir":"order","msg":{"type":"start","text":"one"}}
{"dir":"start","argv":["/usr/bin/program"],"env":["MODE"]}
{"dir":"send","msg":{"id":1,"method":"say","text":"one"}}
{"dir":"recv","msg":{"id":1,"result":"done"}}
{"dir":"order","msg":{"type":"prompt","text":"two"}}
{"dir":"send","msg":{"text":"two","method":"say","id":2}}
`
	for name, c := range map[string]struct {
		parrot    parrot
		recording string // empty: the one above
		finding   string // expected failure; empty: none
	}{
		"unchanged": {parrot: parrot{says: asking}},
		"another text": {
			parrot:  parrot{says: func(n int, _ string) any { return asking(n, "boo") }},
			finding: "line 3: the protocol writes",
		},
		"nothing":  {parrot: parrot{says: func(int, string) any { return nil }}, finding: "line 3: the protocol writes nothing"},
		"too much": {parrot: parrot{says: asking}, recording: firstLines(recording, 5), finding: "after the end of the recording"},
		"words":    {parrot: parrot{says: func(int, string) any { return "words" }}, finding: "line 3: the protocol writes"},
		"other arguments": {
			parrot: parrot{says: asking}, recording: strings.Replace(recording, `"env":["MODE"]`, `"env":["MOOD"]`, 1),
			finding: "line 2: the protocol starts",
		},
		"stays":            {parrot: parrot{says: asking, stays: true}, finding: "the protocol does not end"},
		"reads no orders":  {parrot: parrot{deaf: true}, finding: "line 1: the protocol does not read the order"},
		"starts nothing":   {parrot: parrot{idle: true}, recording: `{"dir":"start"}`, finding: "starts no program"},
		"an unknown entry": {parrot: parrot{says: asking}, recording: `{"dir":"dance"}`, finding: "unknown entry"},
		"the program dies": {parrot: parrot{says: asking}, recording: `{"dir":"exit","code":3}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("UPDATE", "")
			var entries []Entry
			if c.recording == "" {
				c.recording = recording
			}
			for line := range strings.Lines(c.recording) {
				var e Entry
				must(t, json.Unmarshal([]byte(line), &e))
				entries = append(entries, e)
			}
			findings := &findings{}
			var events string
			synctest.Test(t, func(t *testing.T) {
				findings.TB = t
				over := make(chan struct{})
				go func() { // a failure ends the goroutine
					defer close(over)
					d := &dialogue{t: findings, ids: map[string]json.RawMessage{}, started: make(chan *recorded, startsMax)}
					defer func() { events = d.events.String() }()
					d.play(c.parrot, adapter.Part{Command: []string{"/usr/bin/program"}, Dir: recordedDir}, entries)
				}()
				<-over
			})
			found := strings.Join(findings.all, "\n")
			if (c.finding == "") != (found == "") || !strings.Contains(found, c.finding) {
				t.Errorf("found %q, want %q; events:\n%s", found, c.finding, events)
			}
			if name == "unchanged" && !strings.Contains(events, `{\"id\":101,\"result\":\"done\"}`) {
				t.Errorf("the answer does not have the id of the question; events:\n%s", events)
			}
			if name == "the program dies" && !strings.Contains(events, "exit code 3") {
				t.Errorf("events:\n%s", events)
			}
		})
	}
}

func firstLines(text string, n int) string {
	return strings.Join(slices.Collect(strings.Lines(text))[:n], "")
}

// findings is a testing.TB that records failures and does not fail.
type findings struct {
	testing.TB
	all []string
}

func (f *findings) Errorf(format string, args ...any) {
	f.all = append(f.all, fmt.Sprintf(format, args...))
}

func (f *findings) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}
