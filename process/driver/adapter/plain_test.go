package adapter_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// plain is a minimal protocol, and a driver for programs that speak it:
//
//	adapter   {"id":"1","method":"prompt","text":"…"}   {"method":"cancel"}   {"id":"q1","result":"allow"}
//	program   {"say":"…"}  {"ask":"q1","text":"may I?"}  {"id":"1","result":"done"}
type plain struct{ adapter.Behind }

func (plain) Name() string               { return "plain" }
func (plain) Check(a driver.Agent) error { return adapter.Check(a) }

func (plain) Launch(a driver.Agent, s driver.Session) (spawn.Launch, error) {
	return adapter.Launch("plain", a, s)
}

// Capabilities lacks Probes: a plain program cannot be examined.
func (p plain) Capabilities(a driver.Agent, kind driver.Kind) driver.Capabilities {
	c := p.Behind.Capabilities(a, kind)
	c.Probes = false
	return c
}

func (plain) Probe(context.Context, driver.Agent) (driver.Probed, error) {
	return driver.Probed{}, driver.ErrNoProbe
}

type plainMessage struct {
	ID     string `json:"id,omitempty"`
	Method string `json:"method,omitempty"`
	Text   string `json:"text,omitempty"`
	Result string `json:"result,omitempty"`
	Say    string `json:"say,omitempty"`
	Ask    string `json:"ask,omitempty"`
}

const plainPatience = 5 * time.Second // for the end of a cancelled answer

func (plain) Play(ctx context.Context, part adapter.Part, s *adapter.Stage) driver.Stop {
	switch part.Model {
	case "panics":
		panic("out of cards")
	case "deaf":
		select {}
	}
	child, err := s.Start(adapter.Command{Argv: part.Command})
	if err != nil {
		return driver.Stop{Reason: "failed", Detail: err.Error()}
	}
	var told adapter.PromptQueue
	var late <-chan time.Time
	orders, open := s.Orders, ""
	for n := 1; ; {
		if open == "" && told.Over() {
			return driver.Stop{OK: true, Reason: "completed"}
		}
		if text, ok := told.Next(); open == "" && ok {
			open = string(rune('0' + n))
			n++
			if child.Send(plainMessage{ID: open, Method: "prompt", Text: text}) != nil {
				open = "?" // its end reports more
			}
		}
		select {
		case <-ctx.Done():
			return driver.Stop{Reason: "terminated"}
		case <-s.Stop:
			return driver.Stop{Reason: "terminated", Detail: "asked to stop by a signal"}
		case <-late:
			return driver.Stop{Reason: "cancelled", Detail: "it went on"}
		case o, ok := <-orders:
			told.Take(o, ok)
			switch {
			case !ok:
				orders = nil
			case o.Type == speech.OrderCancel:
				_ = child.Send(plainMessage{Method: "cancel"})
				late = time.After(plainPatience)
			case o.Type == speech.OrderAnswer:
				_ = child.Send(plainMessage{ID: o.ID, Result: o.Option})
				s.Out.Tell(driver.Fact{Kind: driver.PermissionAnswered, Ask: driver.Ask{ID: o.ID}, Text: o.Option})
			}
		case l, ok := <-child.Lines():
			if !ok {
				return driver.Stop{Reason: "failed", Detail: child.End().String()}
			}
			var m plainMessage
			raw := child.Heard(l)
			if raw == nil || json.Unmarshal(raw, &m) != nil {
				continue
			}
			switch {
			case m.Say != "":
				s.Out.Speak(driver.Said, m.Say)
			case m.Ask != "":
				s.Out.Tell(driver.Fact{Kind: driver.PermissionAsked, Ask: driver.Ask{ID: m.Ask}, Text: m.Text, Raw: raw})
			case m.ID == open && open != "":
				open = ""
				s.Out.EndMessage()
				switch {
				case late != nil:
					return driver.Stop{Reason: "cancelled"}
				case !part.TakesPrompts():
					return driver.Stop{OK: true, Reason: "completed"}
				case !told.Over():
					s.Out.Tell(driver.Fact{Kind: driver.Listening, Input: told.Answered()})
				}
			default:
				s.Out.Tell(driver.Fact{Kind: driver.Faulted, Text: "an answer to nothing", Raw: raw})
			}
		}
	}
}
