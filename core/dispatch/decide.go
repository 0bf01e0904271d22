package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Decide returns the changes that follow from an input. It changes nothing: apply the changes. No
// changes and no error mean that the input has no effect. A refusal is a *table.Refusal.
func (s *Dispatch) Decide(at time.Time, in Input) ([]change.Change, error) {
	d := &folderDraft{is: *s, at: at}
	var err error
	switch in := in.(type) {
	case Start:
		err = d.start(in.Setup)
	case UserInput:
		err = d.input(in)
	case Delegate:
		err = d.delegate(in)
	case Seen:
		err = d.seen(in)
	case TaskEnded:
		err = d.taskEnded(in)
	case MainEnded:
		err = d.mainEnded(in)
	case Respond:
		err = d.respond(in)
	case Deny:
		err = d.deny(in)
	case Wrote:
		err = d.wrote(in)
	case Message:
		err = d.message(in)
	case Interrupt:
		err = d.interrupt(in)
	case End:
		err = d.end(in.Why)
	default:
		panic(fmt.Sprintf("dispatch: unknown input: %T", in))
	}
	if err != nil {
		return nil, err
	}
	return d.changes, nil
}

// folderDraft collects the changes of one input; is has those so far applied.
type folderDraft struct {
	is      Dispatch
	at      time.Time
	changes []change.Change
}

// step applies an event as a change: edit modifies a copy of the state.
func (d *folderDraft) step(event Event, trigger string, edit func(now *Now, body *Body)) error {
	rule, err := Table.Look(d.is.subject(), cmp.Or(d.is.Phase, None), event)
	if err != nil {
		return err
	}
	now := d.is.Now
	if now.Open != nil {
		c := *now.Open
		c.Named, c.Tasks, c.Results = slices.Clone(c.Named), slices.Clone(c.Tasks), slices.Clone(c.Results)
		c.Used, c.Files = slices.Clone(c.Used), slices.Clone(c.Files)
		now.Open = &c
	}
	now.Waiting = slices.Clone(now.Waiting)
	body := &Body{Trigger: trigger}
	ch := change.Change{Machine: "dispatch", At: d.at, Row: rule.ID, Trigger: string(event), Body: body}
	if d.is.Line > 0 {
		ch.From = d.is.State()
	}
	if now.Open != nil {
		body.Conversation = now.Open.N
	}
	now.Phase = rule.To
	now.Line++
	edit(&now, body)
	now.tidy()
	if now.Open != nil {
		body.Conversation = now.Open.N
	}
	body.Now = now
	d.is.Apply(ch)
	ch.To = d.is.State()
	if ch.From != ch.To && ch.From != "" && body.Conversation != 0 {
		body.Entries = append(body.Entries, Entry{Kind: OfTransition, Who: ch.From, Text: Arrow(ch.From, ch.To) + " " + trigger})
	}
	d.changes = append(d.changes, ch)
	return nil
}

// tidy replaces empty lists by nil, as they are after decoding the file.
func (n *Now) tidy() {
	n.Waiting = some(n.Waiting)
	if c := n.Open; c != nil {
		c.Named, c.Tasks, c.Results, c.Used, c.Files = some(c.Named), some(c.Tasks), some(c.Results), some(c.Used), some(c.Files)
	}
}

func some[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func (s *Dispatch) subject() string { return cmp.Or(s.Path, "the session") }

func (d *folderDraft) refuse(event, row, reason string, takes ...string) error {
	return &table.Refusal{
		Subject: d.is.subject(), Event: event, State: string(cmp.Or(d.is.Phase, None)), Row: row, Reason: reason, Takes: takes,
	}
}

// over reports whether a named conversation is not the open one.
func (d *folderDraft) over(conversation int) bool {
	return conversation != 0 && (d.is.Open == nil || d.is.Open.N != conversation)
}

// tooLong refuses a text that does not fit into a line; nil if it fits.
func (d *folderDraft) tooLong(event, row, what, text string) error {
	if len(text) <= TextBytesMax {
		return nil
	}
	return d.refuse(event, row,
		fmt.Sprintf("%s has %d bytes, the limit is %d; put it into a file and name the file", what, len(text), TextBytesMax))
}

// room refuses an input that would make every line of the history too long.
func (d *folderDraft) room(event Event, row string, bytes int) error {
	if d.is.held()+bytes <= heldBytesMax {
		return nil
	}
	return d.refuse(string(event), row, fmt.Sprintf("the undelivered texts would exceed %d bytes; wait for an answer first", heldBytesMax))
}

func (d *folderDraft) start(setup Setup) error {
	event := Started
	if setup.Mode == Response {
		event = StartedQueue
	}
	switch {
	case !slices.Contains(Modes(), setup.Mode):
		return d.refuse(string(event), "D1", fmt.Sprintf("there is no mode %q; use orchestrator, interactive or response", setup.Mode))
	case len(setup.Agents) > agentsMax:
		return d.refuse(string(event), "D1", fmt.Sprintf("there are %d agents, the limit is %d", len(setup.Agents), agentsMax))
	case slices.ContainsFunc(setup.Agents, func(a Description) bool { return a.Name == "" || a.Name == Main || a.Name == Desk }):
		return d.refuse(string(event), "D1",
			fmt.Sprintf("an agent needs a name other than %s and %s, which are reserved; rename it", Main, Desk))
	case setup.Mode == Response && setup.Host == Claude:
		return d.refuse(string(event), "D6",
			"mode response serves an inbox, which agent programs with hooks do not have; let the daemon serve it (host fairlead)")
	}
	setup.Began, setup.Agents = d.at, slices.Clone(setup.Agents)
	return d.step(event, "", func(_ *Now, body *Body) { body.Setup = &setup })
}

func (d *folderDraft) deny(in Deny) error {
	if d.over(in.Conversation) {
		return d.refuse(string(CallDenied), "D8", ConversationID(in.Conversation)+" has ended, so the denied call is not part of it")
	}
	by, _ := d.is.InCharge(in.Caller)
	if task, ok := d.is.Open.Task(in.Task); ok {
		by = task.Agent
	}
	denied := Denied{
		By: by, Tool: clip.Within(in.Tool, 200), Call: clip.Within(in.Call, 1000), Row: cmp.Or(in.Row, "D8"),
		Reason: clip.Within(in.Reason, 1000), Delegate: clip.Within(in.Delegate, 200), Capability: clip.Within(in.Capability, 200),
		Afterwards: in.Afterwards,
	}
	return d.step(CallDenied, "denied "+denied.Tool, func(now *Now, body *Body) {
		now.Denied++
		body.Denied = &denied
		if now.Open != nil {
			body.Entries = append(body.Entries, Entry{Kind: OfDenial, Who: by, Text: denied.Tool + ": " + denied.Reason, More: denied.Call})
		}
	})
}

func (d *folderDraft) wrote(in Wrote) error {
	c := d.is.Open
	file := in.File.cut()
	if c == nil || d.over(in.Conversation) || file.Path == "" ||
		slices.ContainsFunc(c.Files, func(f File) bool { return f.Path == file.Path }) {
		return nil
	}
	who, _ := d.is.InCharge(in.Caller)
	if task, ok := c.Task(in.Task); ok {
		who = task.Agent
	}
	file.Summary = cmp.Or(file.Summary, "written by "+who)
	return d.step(FileWritten, "file written", func(now *Now, body *Body) {
		if len(now.Open.Files) >= filesMax {
			now.Open.More++
		} else {
			now.Open.Files = append(now.Open.Files, file)
		}
		body.Entries = append(body.Entries, Entry{Kind: OfNote, Who: who, Text: "wrote " + file.Path})
	})
}

func (d *folderDraft) end(why string) error {
	if d.is.Phase == Closed {
		return nil
	}
	if d.is.Open != nil {
		if err := d.close(Interrupted, cmp.Or(why, "the dispatch was ended")); err != nil {
			return err
		}
	}
	return d.step(EndAsked, "session end", func(now *Now, _ *Body) {
		now.Ended = cmp.Or(clip.Within(why, wordsMax), "ended")
		if n := len(now.Waiting); n > 0 {
			now.Ended += fmt.Sprintf("; waiting inputs that were not begun: %d", n)
		}
		now.Waiting = nil
	})
}

// fits refuses a match with an unknown agent.
func (d *folderDraft) fits(event Event, m *Match) error {
	if m == nil || d.is.Phase == None || d.is.Phase == "" || d.is.Knows(m.Agent) {
		return nil
	}
	return d.refuse(string(event), "D3",
		fmt.Sprintf("no agent %q existed when the dispatch began; describe it in .claude/agents and begin a new dispatch", m.Agent))
}

// cut shortens a file's texts for the lines of the history.
func (f File) cut() File {
	return File{Path: clip.Within(f.Path, 1024), Summary: clip.Within(f.Summary, 200)}
}
