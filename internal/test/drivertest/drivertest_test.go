package drivertest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// patient is a driver whose facts are made by a function: correct, or wrong in one way.
type patient struct {
	facts func(ctx context.Context, w driver.Wire, from int64, yield func(driver.Fact, error) bool)
}

func (patient) Name() string             { return "patient" }
func (patient) Check(driver.Agent) error { return nil }
func (patient) Launch(driver.Agent, driver.Session) (spawn.Launch, error) {
	return spawn.Launch{}, nil
}

func (p patient) Converse(_ driver.Agent, _ driver.Session, w driver.Wire) driver.Conversation {
	return talk{w, p}
}

func (patient) Outcome(driver.Session, session.Exit, *driver.Stop) driver.Outcome {
	return driver.Outcome{}
}

type talk struct {
	w driver.Wire
	p patient
}

func (t talk) Facts(ctx context.Context, from int64) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) { t.p.facts(ctx, t.w, from, yield) }
}
func (talk) Prompt(context.Context, string) error { return nil }
func (talk) Cancel(context.Context) error         { return nil }

func (talk) Steer(context.Context, string, string) error { return driver.ErrNoSteer }

func (talk) Answer(context.Context, string, string) error {
	return driver.ErrNoAnswer
}

func (patient) Capabilities(driver.Agent, driver.Kind) driver.Capabilities {
	return driver.Capabilities{Input: true}
}

func (patient) Probe(context.Context, driver.Agent) (driver.Probed, error) {
	return driver.Probed{}, driver.ErrNoProbe
}

// lineFacts makes the facts of each line by a function.
func lineFacts(of func(driver.Line) []driver.Fact) patient {
	return patient{func(ctx context.Context, w driver.Wire, from int64, yield func(driver.Fact, error) bool) {
		for l, err := range driver.ReadLines(ctx, w, from) {
			if err != nil {
				yield(driver.Fact{}, err)
				return
			}
			for _, f := range of(l) {
				if !yield(f, nil) {
					return
				}
			}
		}
	}}
}

func said(l driver.Line) driver.Fact {
	return driver.Fact{Kind: driver.Said, Offset: l.End, Text: l.Text()}
}

// TestCheckFindsFaults checks that Check accepts correct drivers and finds each fault.
func TestCheckFindsFaults(t *testing.T) {
	const output = "one two\n{\"three\":4}\nfive\xff\nsix"
	for name, c := range map[string]struct {
		patient patient
		finding string // expected failure; empty: none
	}{
		"healthy": {lineFacts(func(l driver.Line) []driver.Fact { return []driver.Fact{said(l)} }), ""},
		"healthy, several facts a line": {lineFacts(func(l driver.Line) []driver.Fact {
			first := said(l)
			first.Offset = l.Start
			return []driver.Fact{first, first, said(l)}
		}), ""},
		"several facts with the line's end": {lineFacts(func(l driver.Line) []driver.Fact {
			return []driver.Fact{said(l), {Kind: driver.Thought, Offset: l.End}}
		}), "differs"},
		"offset before the line's end": {lineFacts(func(l driver.Line) []driver.Fact {
			f := said(l)
			f.Offset = max(l.End-1, 0)
			return []driver.Fact{f}
		}), "differs"},
		"the offset of the line's beginning instead of its end": {lineFacts(func(l driver.Line) []driver.Fact {
			f := said(l)
			f.Offset = l.Start
			return []driver.Fact{f}
		}), "from the end"},
		"offset beyond": {lineFacts(func(l driver.Line) []driver.Fact {
			f := said(l)
			f.Offset = l.End + 1
			return []driver.Fact{f}
		}), "offset"},
		"offsets go back": {lineFacts(func(l driver.Line) []driver.Fact {
			f := said(l)
			f.Offset = l.Start
			return []driver.Fact{said(l), f}
		}), "after"},
		"bytes that are not UTF-8": {lineFacts(func(l driver.Line) []driver.Fact {
			return []driver.Fact{{Kind: driver.Said, Offset: l.End, Text: string(l.Bytes)}}
		}), "not UTF-8"},
		"raw that is not JSON": {lineFacts(func(l driver.Line) []driver.Fact {
			return []driver.Fact{{Kind: driver.Said, Offset: l.End, Raw: json.RawMessage(strings.ToValidUTF8(string(l.Bytes), ""))}}
		}), "not JSON"},
		"an unknown kind": {lineFacts(func(l driver.Line) []driver.Fact {
			return []driver.Fact{{Kind: "shouted", Offset: l.End}}
		}), "unknown kind"},
		"a point in time with text": {lineFacts(func(l driver.Line) []driver.Fact {
			return []driver.Fact{{Kind: driver.Listening, Offset: l.End, Part: true}}
		}), "must not have speech"},
		"pieces for lines": {patient{func(ctx context.Context, w driver.Wire, from int64, yield func(driver.Fact, error) bool) {
			r, err := w.Output(ctx, from)
			if err != nil {
				return
			}
			defer r.Close()
			b := make([]byte, 64)
			for {
				n, err := r.Read(b)
				if err != nil {
					return
				}
				from += int64(n)
				yield(driver.Fact{Kind: driver.Thought, Offset: from, Text: strings.ToValidUTF8(string(b[:n]), "")}, nil)
			}
		}}, "differs"},
	} {
		t.Run(name, func(t *testing.T) {
			found := examine(t, c.patient, output)
			switch {
			case c.finding == "" && found != "":
				t.Errorf("the correct driver failed: %s", found)
			case c.finding != "" && !strings.Contains(found, c.finding):
				t.Errorf("found %q, want %q in it", found, c.finding)
			}
		})
	}
}

// examine runs Check and returns its failures.
func examine(t *testing.T, p patient, output string) string {
	r := &report{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Check(r, p, []byte(output), 3)
	}()
	<-done
	return r.finding
}

// report is a testing.TB that records a failure and does not fail.
type report struct {
	testing.TB
	finding string
}

func (r *report) Fatalf(format string, args ...any) {
	r.finding = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
