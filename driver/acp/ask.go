package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

// Cancelled is the option by which an answer takes no option at all: the program is told that the
// question was cancelled. An empty one means the same. For a program that offers no way to say no.
const Cancelled = "cancelled"

// AllowAndMode is the kind of an option that would also switch the program's mode: who chose it as
// if it were a plain yes would never be asked again.
const AllowAndMode = "allow_once_and_mode"

const (
	openAsksMax = 256 // a program that asks more at once is broken; what is more is cancelled
	deniedMax   = 10  // denied calls that the terminal event names
)

// ask is a question of the program that waits for an answer.
type ask struct {
	id      string          // ours
	rpc     json.RawMessage // the program's: the answer carries it
	options []driver.Option
	what    string
}

// readOptions reads what may be answered, in the program's order: nothing is sorted and nothing is chosen.
func readOptions(list []json.RawMessage, modes []choice) []driver.Option {
	var all []driver.Option
	for _, raw := range list {
		of := objectOf(raw)
		o := driver.Option{ID: of.text("optionId"), Kind: oneLine(of.text("kind")), Label: oneLine(of.text("name"))}
		if o.ID == "" {
			continue // it could not be chosen
		}
		if !strings.HasPrefix(o.Kind, "reject") && switchesMode(o, modes) {
			o.Kind = AllowAndMode
		}
		all = append(all, o)
	}
	return all
}

// switchesMode says whether an option would also change what is asked from then on: it is called like
// a mode, or its label says so.
func switchesMode(o driver.Option, modes []choice) bool {
	return slices.ContainsFunc(modes, func(c choice) bool { return c.id == o.ID }) || modeWords().MatchString(o.Label)
}

var modeWords = adapter.Words(`(?i)auto[- ]?(accept|approve|edit)|bypass|yolo|full[- ]access|don.t ask|\bmode\b|all edits`)

// isReject says whether an option means no.
func isReject(o driver.Option) bool { return strings.HasPrefix(o.Kind, "reject") }

// asked hears session/request_permission: the call is told, if it was not yet, and then the question.
func (p *play) asked(m message) {
	of := objectOf(m.params)
	options := readOptions(of.list("options"), p.talk.modes)
	c := readToolCall(of.object("toolCall"))
	if p.leaving != "" { // nobody would answer any more
		p.send(reply{"2.0", m.id, outcome("")})
		return
	}
	if len(options) == 0 || len(p.asks) >= openAsksMax {
		p.fault("a question for permission that cannot be answered was cancelled", m.raw)
		p.send(reply{"2.0", m.id, outcome("")})
		return
	}
	t := p.track(c, true)
	if t.told { // what is asked for now need not be what was told
		c = t.call.with(c)
	} else {
		t.call = t.call.with(c)
		c = t.call
		p.tellCall(t, m.params)
	}
	tool := c.tool(serverName)
	what := strings.TrimSpace(verbFor(tool) + " " + c.what(tool, p.part.Dir))
	if tool == "other" {
		what = namedBy(options) + what
	}
	p.lastAsk++
	a := &ask{id: fmt.Sprintf("ask-%d", p.lastAsk), rpc: m.id, options: options, what: what}
	p.asks = append(p.asks, a)
	args, cut := c.told(tool, p.part.Dir)
	p.stage.Out.Tell(speech.Event{
		Type: driver.PermissionAsked, ID: a.id, Tool: tool, Text: a.what, Options: options,
		Args: args, Cut: cut, Paths: c.absolute(tool, p.part.Dir), Raw: m.raw,
	})
}

// namedBy finds the name of a tool in what may be answered, where the question does not say it. It is for
// people to read and for nothing else: which server's tool that is nobody says.
func namedBy(options []driver.Option) string {
	for _, o := range options {
		if _, name, ok := strings.Cut(o.Label, ": "); ok && o.Kind == "allow_always" && identifier().MatchString(name) {
			return name + ": "
		}
	}
	return ""
}

// verbFor begins the line that says what is asked.
func verbFor(tool string) string {
	switch tool {
	case "Bash":
		return "run:"
	case "Write", "Edit", "Read":
		return strings.ToLower(tool)
	case "WebFetch":
		return "fetch"
	case "WebSearch":
		return "search the web for"
	case "Glob", "Grep":
		return "look for"
	}
	if strings.HasPrefix(tool, "mcp__") {
		return tool + ":"
	}
	return ""
}

// answer tells the program what somebody chose. A question that is not open any more is nobody's.
func (p *play) answer(o speech.Order) {
	i := slices.IndexFunc(p.asks, func(a *ask) bool { return a.id == o.ID })
	if i < 0 {
		return
	}
	a := p.asks[i]
	j := slices.IndexFunc(a.options, func(d driver.Option) bool { return d.ID == o.Option })
	switch {
	case j >= 0:
		p.send(reply{"2.0", a.rpc, outcome(o.Option)})
		if isReject(a.options[j]) {
			p.deny(a.what)
		}
	case o.Option == "" || o.Option == Cancelled:
		p.send(reply{"2.0", a.rpc, outcome("")})
		p.deny(a.what)
	default:
		p.fault(fmt.Sprintf("an answer to %s was not given: the program offers no option %q", a.id, clip(o.Option, 80)), nil)
		return
	}
	p.asks = slices.Delete(p.asks, i, i+1)
	p.stage.Out.Tell(speech.Event{Type: driver.PermissionAnswered, ID: a.id, Text: o.Option})
}

// deny remembers what was denied: the result says so.
func (p *play) deny(what string) {
	p.deniedHere = true
	if p.denials++; len(p.denied) < deniedMax {
		p.denied = append(p.denied, what)
	}
}

// outcome is the answer to session/request_permission; without an option it is cancelled.
func outcome(option string) any {
	type chosen struct {
		Outcome  string `json:"outcome"`
		OptionID string `json:"optionId,omitempty"`
	}
	o := chosen{Outcome: "cancelled"}
	if option != "" {
		o = chosen{"selected", option}
	}
	return map[string]any{"outcome": o}
}

// withdraw takes back questions that the program does not want to know any more: those with its id,
// or, where that is nil, all. Each is answered nevertheless: no request stays without.
func (p *play) withdraw(rpc json.RawMessage) {
	p.asks = slices.DeleteFunc(p.asks, func(a *ask) bool {
		if rpc != nil && string(a.rpc) != string(rpc) {
			return false
		}
		p.send(reply{"2.0", a.rpc, outcome("")})
		p.stage.Out.Tell(speech.Event{Type: driver.PermissionWithdrawn, ID: a.id})
		return true
	})
}
