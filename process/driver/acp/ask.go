package acp

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// Cancelled is the option ID that answers a question without choosing any of its options: the
// program receives the outcome "cancelled". An empty option ID means the same. It is for programs
// that offer no option to reject, and stands for a program's own option of this name.
const Cancelled = "cancelled"

// AllowAndMode is the kind of an option that also switches the program's mode. Treating it as a
// plain yes would turn off all later questions.
const AllowAndMode = "allow_once_and_mode"

const (
	openAsksMax = 256 // limit for one program; questions beyond it are cancelled
	deniedMax   = 10  // denied calls that the terminal event names
)

// ask is a question from the program that waits for an answer.
type ask struct {
	id      string          // our ID
	rpc     json.RawMessage // the program's JSON-RPC ID, repeated in the answer
	options []driver.Option
	what    string
}

// readOptions reads the options of a question in the program's order. It neither sorts nor chooses.
func readOptions(list []json.RawMessage, modes []choice) []driver.Option {
	var all []driver.Option
	for _, raw := range list {
		of := objectOf(raw)
		o := driver.Option{ID: of.text("optionId"), Kind: oneLine(of.text("kind")), Label: oneLine(of.text("name"))}
		if o.ID == "" {
			continue // an option without an ID cannot be chosen
		}
		if !strings.HasPrefix(o.Kind, "reject") && switchesMode(o, modes) {
			o.Kind = AllowAndMode
		}
		all = append(all, o)
	}
	return all
}

// switchesMode reports whether an option also changes what the program asks about later: its ID is
// the name of a mode, or its label mentions one.
func switchesMode(o driver.Option, modes []choice) bool {
	return slices.ContainsFunc(modes, func(c choice) bool { return c.id == o.ID }) || modeWords.MatchString(o.Label)
}

var modeWords = regexp.MustCompile(`(?i)auto[- ]?(accept|approve|edit)|bypass|yolo|full[- ]access|don.t ask|\bmode\b|all edits`)

// isReject reports whether an option rejects the call.
func isReject(o driver.Option) bool { return strings.HasPrefix(o.Kind, "reject") }

// asked handles session/request_permission. It reports the tool call first, if that has not happened
// yet, and then the question.
func (p *play) asked(m message) {
	of := objectOf(m.params)
	options := readOptions(of.list("options"), p.conversation.modes)
	given := len(options)
	if options = driver.Unambiguous(options); len(options) < given {
		p.fault("a permission question has several options with one id; an id that says both yes and no cannot be chosen", m.raw)
		if !slices.ContainsFunc(options, isReject) { // otherwise a no would end the whole answer
			options = append(options, driver.Option{ID: Cancelled, Kind: "reject_once", Label: "Cancel"})
		}
	}
	c := readToolCall(of.object("toolCall"))
	if p.leaving != "" { // the session is ending, so no answer will come
		p.send(reply{"2.0", m.id, outcome("")})
		return
	}
	if len(options) == 0 || len(p.asks) >= openAsksMax {
		p.fault("a permission question without options was cancelled", m.raw)
		p.send(reply{"2.0", m.id, outcome("")})
		return
	}
	t := p.track(c, true)
	if t.reported { // the arguments in the question may differ from those already reported
		c = t.call.with(c)
	} else {
		t.call = t.call.with(c)
		c = t.call
		p.tellCall(t, m.params)
	}
	tool := c.tool()
	what := strings.TrimSpace(verbFor(tool) + " " + c.what(tool, p.part.Dir))
	if tool == "other" {
		what = namedBy(options) + what
	}
	p.lastAsk++
	a := &ask{id: fmt.Sprintf("ask-%d", p.lastAsk), rpc: m.id, options: options, what: what}
	p.asks = append(p.asks, a)
	args, cut := c.eventArguments(tool, p.part.Dir, p.known.titled)
	p.stage.Out.Tell(driver.Fact{
		Kind: driver.PermissionAsked, Tool: tool, Text: a.what, Args: args, Cut: cut, Raw: m.raw,
		Ask: driver.Ask{ID: a.id, Options: options, Paths: c.absolute(tool, p.part.Dir)},
	})
}

// namedBy takes a tool name from the labels of the options if the question does not name the tool.
// It is only for display, because the labels do not say which MCP server the tool belongs to.
func namedBy(options []driver.Option) string {
	for _, o := range options {
		if _, name, ok := strings.Cut(o.Label, ": "); ok && o.Kind == "allow_always" && identifier.MatchString(name) {
			return name + ": "
		}
	}
	return ""
}

// verbFor returns the beginning of the line that describes a question.
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

// answer sends a person's answer to the program. An answer to a question that is no longer open is
// ignored.
func (p *play) answer(o speech.Order) {
	i := slices.IndexFunc(p.asks, func(a *ask) bool { return a.id == o.ID })
	if i < 0 {
		return
	}
	a := p.asks[i]
	j := slices.IndexFunc(a.options, func(d driver.Option) bool { return d.ID == o.Option })
	switch {
	case j >= 0 && o.Option != Cancelled:
		p.send(reply{"2.0", a.rpc, outcome(o.Option)})
		if isReject(a.options[j]) {
			p.deny(a.what)
		}
	case o.Option == "" || o.Option == Cancelled:
		p.send(reply{"2.0", a.rpc, outcome("")})
		p.deny(a.what)
	default:
		p.fault(fmt.Sprintf("the answer to %s was not sent: the program offers no option %q", a.id, clip(o.Option, 80)), nil)
		return
	}
	p.asks = slices.Delete(p.asks, i, i+1)
	p.stage.Out.Tell(driver.Fact{Kind: driver.PermissionAnswered, Ask: driver.Ask{ID: a.id}, Text: o.Option})
}

// deny records a denied call for the terminal event.
func (p *play) deny(what string) {
	if p.denials++; len(p.denied) < deniedMax {
		p.denied = append(p.denied, what)
	}
}

// outcome is the result for session/request_permission. Without an option, the question is
// cancelled.
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

// withdraw cancels the questions that the program has withdrawn: those with the given JSON-RPC ID,
// or all if it is nil. Each still gets a response, as JSON-RPC requires.
func (p *play) withdraw(rpc json.RawMessage) {
	p.asks = slices.DeleteFunc(p.asks, func(a *ask) bool {
		if rpc != nil && string(a.rpc) != string(rpc) {
			return false
		}
		p.send(reply{"2.0", a.rpc, outcome("")})
		p.stage.Out.Tell(driver.Fact{Kind: driver.PermissionWithdrawn, Ask: driver.Ask{ID: a.id}})
		return true
	})
}
