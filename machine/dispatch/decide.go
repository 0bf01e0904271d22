package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine"
)

// Decide says what an input leads to. It changes nothing: apply the changes for that. No changes and no
// error means that it is so already. A refusal is a *machine.Refusal.
func (s *Session) Decide(at time.Time, in Input) ([]Change, error) {
	d := &draft{is: *s, at: at}
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
		err = d.interrupt(in.Why)
	case End:
		err = d.end(in.Why)
	default:
		panic(fmt.Sprintf("dispatch: no such input: %T", in))
	}
	if err != nil {
		return nil, err
	}
	return d.changes, nil
}

// draft collects the changes of one input; is has those so far applied.
type draft struct {
	is      Session
	at      time.Time
	changes []Change
}

// step looks an event up and makes it a change: edit makes what is true after it, on a copy.
func (d *draft) step(event Event, trigger string, edit func(now *Now, body *Body)) error {
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
	ch := Change{At: d.at, Row: rule.ID, Trigger: trigger, Event: event}
	if d.is.Line > 0 {
		ch.From = d.is.State()
	}
	if now.Open != nil {
		ch.Body.Conversation = now.Open.N
	}
	now.Phase = rule.To
	now.Line++
	edit(&now, &ch.Body)
	if now.Open != nil {
		ch.Body.Conversation = now.Open.N
	}
	ch.Body.Now = now
	d.is.Apply(ch)
	ch.To = d.is.State()
	if ch.From != ch.To && ch.From != "" && ch.Body.Conversation != 0 {
		ch.Body.Entries = append(ch.Body.Entries, Entry{Kind: OfTransition, Who: ch.From, Text: Arrow(ch.From, ch.To) + " " + trigger})
	}
	d.changes = append(d.changes, ch)
	return nil
}

func (s *Session) subject() string { return cmp.Or(s.Path, "the session") }

func (d *draft) refuse(event, row, reason string, takes ...string) error {
	return &machine.Refusal{
		Subject: d.is.subject(), Event: event, State: string(cmp.Or(d.is.Phase, None)), Row: row, Reason: reason, Takes: takes,
	}
}

// tooLong refuses what does not fit into a line; empty words for what do.
func (d *draft) tooLong(event, row, what, text string) error {
	if len(text) <= TextBytesMax {
		return nil
	}
	return d.refuse(event, row, fmt.Sprintf("%s has %d bytes, and the most is %d; put it into a file and name that", what, len(text), TextBytesMax))
}

// room refuses what would make every line of the history too long.
func (d *draft) room(event Event, row, text string) error {
	if d.is.held()+len(text) <= heldBytesMax {
		return nil
	}
	return d.refuse(string(event), row, fmt.Sprintf("the texts that are still to be told would come to more than %d bytes; wait for an answer first", heldBytesMax))
}

func (d *draft) start(setup Setup) error {
	event := Started
	if setup.Mode == Response {
		event = StartedQueue
	}
	switch {
	case !slices.Contains(Modes(), setup.Mode):
		return d.refuse(string(event), "D1", fmt.Sprintf("there is no mode %q; there are orchestrator, interactive and response", setup.Mode))
	case len(setup.Agents) > agentsMax:
		return d.refuse(string(event), "D1", fmt.Sprintf("there are %d agents, and the most is %d", len(setup.Agents), agentsMax))
	case setup.Mode == Response && setup.Host == Claude:
		return d.refuse(string(event), "D6", "mode response serves an inbox, and an agent program with hooks has none; use orchestrator or interactive there, or start it by the command line")
	}
	setup.Began = d.at
	return d.step(event, "", func(_ *Now, body *Body) { body.Setup = &setup })
}

func (d *draft) input(in UserInput) error {
	if strings.TrimSpace(in.Text) == "" {
		return d.refuse(string(InputCame), "D2", "an input without words begins nothing; say what is to be done")
	}
	if err := d.tooLong(string(InputCame), "D2", "the input", in.Text); err != nil {
		return err
	}
	if err := d.fits(InputCame, in.Match); err != nil {
		return err
	}
	if d.is.Mode == Response && d.is.Phase != Closed {
		return d.refuse(string(InputCame), "D6", "in mode response there is nobody to talk to: put a message into the inbox")
	}
	if d.is.Open != nil && !in.Over {
		if len(d.is.Waiting) >= waitingMax {
			return d.refuse(string(InputWaits), "D2", fmt.Sprintf("%d inputs wait already; wait for an answer first", waitingMax))
		}
		if err := d.room(InputWaits, "D2", in.Text); err != nil {
			return err
		}
		return d.step(InputWaits, "input waits", func(now *Now, _ *Body) {
			now.Waiting = append(now.Waiting, Waiting{Text: in.Text, Named: in.Named, Match: in.Match, At: d.at})
		})
	}
	if d.is.Open != nil {
		if err := d.close(Interrupted, "interrupted by the next input"); err != nil {
			return err
		}
	}
	return d.begin(Waiting{Text: in.Text, Named: in.Named, Match: in.Match})
}

// begin opens a conversation (D2), and puts in charge who fits (D3).
func (d *draft) begin(in Waiting) error {
	err := d.step(InputCame, "user input", func(now *Now, body *Body) {
		now.Made++
		now.Open = &Conversation{N: now.Made, Began: d.at, Input: d.kept(in.Text), Named: in.Named}
		body.Entries = []Entry{{Kind: OfUser, Who: "User", Text: in.Text}}
	})
	if err != nil || in.Match == nil {
		return err
	}
	return d.charge(Delegated, in.Match.Agent, Task{Text: d.kept(in.Text)}, matched(in.Match), "")
}

// kept is an input as the history repeats it.
func (d *draft) kept(text string) string {
	if d.is.Host == Fairlead {
		return text
	}
	return short(text, inputKept)
}

func matched(m *Match) string {
	if len(m.Terms) == 0 {
		return "matched its description"
	}
	quoted := make([]string, len(m.Terms))
	for i, t := range m.Terms {
		quoted[i] = fmt.Sprintf("%q", t)
	}
	return "matched " + strings.Join(quoted, " + ")
}

// fits refuses a match with somebody who is not there.
func (d *draft) fits(event Event, m *Match) error {
	if m == nil || d.is.Phase == None || d.is.Phase == "" || d.is.Knows(m.Agent) {
		return nil
	}
	return d.refuse(string(event), "D3", fmt.Sprintf("no agent %q was found when the session began; describe it in .claude/agents and begin a new one", m.Agent))
}

// charge puts an agent in charge of a task.
func (d *draft) charge(event Event, agent string, task Task, trigger, params string) error {
	return d.step(event, trigger, func(now *Now, body *Body) {
		c := now.Open
		c.Asked++
		task.ID, task.Agent, task.Began = c.Asked, agent, d.at
		c.Tasks = append(c.Tasks, task)
		if !slices.Contains(c.Used, agent) {
			c.Used = append(c.Used, agent)
		}
		who := Main
		for i := range c.Tasks {
			if c.Tasks[i].ID == task.By {
				c.Tasks[i].Called, who = true, c.Tasks[i].Agent
			}
		}
		if task.By == 0 {
			c.Called = event == Delegated && params != "" || c.Called
		}
		body.Entries = append(body.Entries, Entry{Kind: OfDelegation, Who: who, Text: agent + ": " + task.Text, More: params})
	})
}

func (d *draft) delegate(in Delegate) error {
	event, row := Delegated, "D3"
	if in.By != 0 {
		event, row = HelpAsked, "D5"
	}
	if err := d.tooLong(string(event), row, "the task", in.Text); err != nil {
		return err
	}
	if err := d.fits(event, &Match{Agent: in.Agent}); err != nil {
		return err
	}
	c := d.is.Open
	if c == nil {
		_, err := Table.Look(d.is.subject(), cmp.Or(d.is.Phase, None), event)
		return err
	}
	if in.Call != "" && slices.ContainsFunc(c.Tasks, func(t Task) bool { return t.Call == in.Call }) {
		return nil
	}
	if len(c.Tasks) >= tasksMax {
		return d.refuse(string(event), row, fmt.Sprintf("%d agents are at work already; wait for one of them", tasksMax))
	}
	if err := d.room(event, row, in.Text); err != nil {
		return err
	}
	if in.By != 0 {
		if err := d.mayAsk(in); err != nil {
			return err
		}
	}
	trigger := cmp.Or(in.Trigger, "matched its description")
	params := cmp.Or(in.Params, in.Text)
	return d.charge(event, in.Agent, Task{By: in.By, Text: in.Text, Call: in.Call}, trigger, params)
}

// mayAsk refuses help that the mode does not give, and a cycle that would not end (D5).
func (d *draft) mayAsk(in Delegate) error {
	c := d.is.Open
	asker, ok := c.Task(in.By)
	switch {
	case !ok:
		return d.refuse(string(HelpAsked), "D5", fmt.Sprintf("task %d of %s is over, so it can ask nobody", in.By, c.ID()))
	case d.is.Mode != Interactive:
		return d.refuse(string(HelpAsked), "D4", fmt.Sprintf("in mode %s an agent reports back to %s and asks no other; say there what is missing, or begin a session with --mode interactive", d.is.Mode, Main))
	}
	chain := []string{in.Agent}
	for t := asker; ok && len(chain) <= len(d.is.Agents)+1; t, ok = c.Task(t.By) {
		chain = append(chain, t.Agent)
	}
	if len(chain) > len(d.is.Agents) {
		slices.Reverse(chain)
		return d.refuse(string(HelpAsked), "D5", fmt.Sprintf("%s would be a circle: there are %d agents, and so many have been asked on this way", strings.Join(chain, " → "), len(d.is.Agents)))
	}
	return nil
}

func (d *draft) seen(in Seen) error {
	c := d.is.Open
	if c == nil || in.Caller == "" || slices.ContainsFunc(c.Tasks, func(t Task) bool { return t.Caller == in.Caller }) {
		return nil
	}
	at := slices.IndexFunc(c.Tasks, func(t Task) bool { return t.Agent == in.Agent && t.Caller == "" })
	if at < 0 {
		if !d.is.Knows(in.Agent) || len(c.Tasks) >= tasksMax || d.is.Phase == Serving {
			return nil // nobody whom a description knows: it has MAIN's permissions
		}
		return d.charge(Delegated, in.Agent, Task{Caller: in.Caller}, "seen at work", "")
	}
	return d.step(CallerSeen, "seen at work", func(now *Now, _ *Body) { now.Open.Tasks[at].Caller = in.Caller })
}

// taskOf finds whom an end is about.
func (c *Conversation) taskOf(in TaskEnded) int {
	return slices.IndexFunc(c.Tasks, func(t Task) bool {
		switch {
		case in.Task != 0:
			return t.ID == in.Task && t.Round == in.Round
		case in.Caller != "" && t.Caller == in.Caller:
			return true
		default:
			return in.Call != "" && t.Call == in.Call
		}
	})
}

func (d *draft) taskEnded(in TaskEnded) error {
	c := d.is.Open
	if c == nil {
		return nil
	}
	at := c.taskOf(in)
	if at < 0 {
		return nil // it has ended before
	}
	task := c.Tasks[at]
	if d.is.Host == Fairlead && task.Called {
		return d.step(RoundOver, task.Agent+" asked for help", func(now *Now, _ *Body) {
			t := &now.Open.Tasks[at]
			t.Round++
			t.Called = false
		})
	}
	event, trigger := d.ending(task), "task completed"
	if !in.OK {
		trigger = "task failed"
	}
	over := func(now *Now, body *Body) {
		open := now.Open
		round := open.round(task.By)
		open.Tasks = slices.DeleteFunc(open.Tasks, func(t Task) bool { return t.ID == task.ID || c.under(t, task.ID) })
		open.Results = append(open.Results, Result{Task: task.ID, Agent: task.Agent, By: task.By, OK: in.OK, Text: short(in.Result, ResultBytesMax), Round: round})
		if len(open.Results) > resultsMax {
			open.Results = open.Results[1:]
		}
		if text := short(in.Result, TextBytesMax); text != "" || !in.OK {
			body.Entries = append(body.Entries, Entry{Kind: OfResult, Who: task.Agent, Text: cmp.Or(text, trigger)})
		}
	}
	if event != MessageDone {
		return d.step(event, trigger, over)
	}
	return d.step(event, trigger, func(now *Now, body *Body) {
		body.Reply = &Reply{Message: c.Message, Agent: task.Agent, OK: in.OK, Text: short(in.Result, TextBytesMax)}
		over(now, body)
		body.Summary = now.Open.summary("", nil)
		now.Open = nil
	})
}

// ending names the end of a task by who is in charge after it.
func (d *draft) ending(task Task) Event {
	c := d.is.Open
	left := slices.DeleteFunc(slices.Clone(c.Tasks), func(t Task) bool { return t.ID == task.ID || c.under(t, task.ID) })
	switch {
	case d.is.Phase == Serving:
		return MessageDone
	case len(left) == 0:
		return TaskOver
	case left[len(left)-1].ID == task.By:
		return TaskOverAsker
	default:
		return TaskOverOthers
	}
}

// under says whether a task was asked for by another one, or by one that it asked.
func (c *Conversation) under(t Task, id uint64) bool {
	for range tasksMax {
		if t.By == 0 {
			return false
		}
		if t.By == id {
			return true
		}
		asker, ok := c.Task(t.By)
		if !ok {
			return false
		}
		t = asker
	}
	return false
}

func (d *draft) mainEnded(in MainEnded) error {
	c := d.is.Open
	if c == nil || d.is.Host != Fairlead || in.Round != c.Round {
		return nil
	}
	if c.Called || len(c.Tasks) > 0 {
		return d.step(RoundOver, "MAIN is told what came of it", func(now *Now, _ *Body) {
			now.Open.Round++
			now.Open.Called = false
		})
	}
	return d.respond(Respond{Text: in.Result})
}

func (d *draft) respond(in Respond) error {
	c := d.is.Open
	if c != nil && len(c.Tasks) > 0 && !in.Over {
		return d.refuse(string(Responded), "D7", fmt.Sprintf("%s is at work; say first that it is done, or end the conversation over it", d.is.State()))
	}
	for _, text := range []string{in.Text, in.Summary} {
		if err := d.tooLong(string(Responded), "D7", "the answer", text); err != nil {
			return err
		}
	}
	err := d.step(Responded, "response complete", func(now *Now, body *Body) {
		for _, task := range now.Open.Tasks {
			body.Entries = append(body.Entries, Entry{Kind: OfNote, Who: task.Agent, Text: "was not seen to end"})
		}
		if in.Text != "" {
			body.Entries = append(body.Entries, Entry{Kind: OfMain, Who: Main, Text: in.Text})
		}
		body.Summary = now.Open.summary(in.Summary, in.Files)
		now.Open = nil
	})
	if err != nil {
		return err
	}
	return d.next()
}

// next begins with the input that waits the longest.
func (d *draft) next() error {
	if len(d.is.Waiting) == 0 || d.is.Phase != Ready {
		return nil
	}
	first := d.is.Waiting[0]
	d.is.Waiting = d.is.Waiting[1:] // what follows is one change, and says so
	return d.begin(first)
}

// close ends the conversation that is open without an answer (D11).
func (d *draft) close(event Event, why string) error {
	return d.step(event, why, func(now *Now, body *Body) {
		c := now.Open
		body.Summary = c.summary("Interrupted ("+why+"): "+firstLine(c.Input), nil)
		body.Entries = append(body.Entries, Entry{Kind: OfNote, Text: "interrupted: " + why})
		if c.Message != "" {
			body.Reply = &Reply{Message: c.Message, Agent: strings.Join(c.Used, ", "), Text: "interrupted: " + why}
		}
		now.Open = nil
	})
}

func (d *draft) interrupt(why string) error {
	if d.is.Open == nil {
		return nil
	}
	if err := d.close(Interrupted, cmp.Or(why, "nobody ended it")); err != nil {
		return err
	}
	return d.next()
}

func (d *draft) end(why string) error {
	if d.is.Phase == Closed {
		return nil
	}
	if d.is.Open != nil {
		if err := d.close(Interrupted, cmp.Or(why, "the session was ended")); err != nil {
			return err
		}
	}
	return d.step(EndAsked, "session end", func(now *Now, _ *Body) {
		now.Ended = cmp.Or(why, "ended")
		if n := len(now.Waiting); n > 0 {
			now.Ended += fmt.Sprintf("; inputs that waited and were not begun: %d", n)
		}
		now.Waiting = nil
	})
}

func (d *draft) deny(in Deny) error {
	by, _ := d.is.InCharge(in.Caller)
	if task, ok := d.is.Open.Task(in.Task); ok {
		by = task.Agent
	}
	denied := Denied{
		By: by, Tool: short(in.Tool, 200), Call: short(in.Call, 1000), Row: cmp.Or(in.Row, "D8"),
		Reason: short(in.Reason, 1000), Delegate: in.Delegate, Capability: short(in.Capability, 200),
	}
	return d.step(CallDenied, "denied "+denied.Tool, func(now *Now, body *Body) {
		now.Denied++
		body.Denied = &denied
		if now.Open != nil {
			body.Entries = append(body.Entries, Entry{Kind: OfDenial, Who: by, Text: denied.Tool + ": " + denied.Reason, More: denied.Call})
		}
	})
}

func (d *draft) wrote(in Wrote) error {
	c := d.is.Open
	if c == nil || slices.ContainsFunc(c.Files, func(f File) bool { return f.Path == in.File.Path }) {
		return nil
	}
	who, _ := d.is.InCharge(in.Caller)
	if task, ok := c.Task(in.Task); ok {
		who = task.Agent
	}
	file := File{Path: short(in.File.Path, 1024), Summary: cmp.Or(short(in.File.Summary, 200), "written by "+who)}
	return d.step(FileWritten, "file written", func(now *Now, body *Body) {
		if len(now.Open.Files) >= filesMax {
			now.Open.More++
		} else {
			now.Open.Files = append(now.Open.Files, file)
		}
		body.Entries = append(body.Entries, Entry{Kind: OfNote, Who: who, Text: "wrote " + file.Path})
	})
}

func (d *draft) message(in Message) error {
	if in.Match == nil {
		return d.step(MessageUnmatched, "nobody's description fits", func(_ *Now, body *Body) {
			body.Aside = &Aside{Message: in.Name, Ranking: in.Ranking}
		})
	}
	if err := d.tooLong(string(MessageTaken), "D6", "the message", in.Text); err != nil {
		return err
	}
	if err := d.fits(MessageTaken, in.Match); err != nil {
		return err
	}
	return d.step(MessageTaken, matched(in.Match), func(now *Now, body *Body) {
		now.Made++
		now.Open = &Conversation{
			N: now.Made, Began: d.at, Input: in.Text, Message: in.Name, Asked: 1, Used: []string{in.Match.Agent},
			Tasks: []Task{{ID: 1, Agent: in.Match.Agent, Text: in.Text, Began: d.at}},
		}
		body.Entries = []Entry{{Kind: OfUser, Who: in.Name, Text: in.Text}}
	})
}

// summary is what messages.jsonl says of a conversation that is over.
func (c *Conversation) summary(text string, more []File) *Summary {
	files := slices.Clone(c.Files)
	for _, f := range more {
		if !slices.ContainsFunc(files, func(is File) bool { return is.Path == f.Path }) && len(files) < filesMax {
			files = append(files, f)
		}
	}
	text = cmp.Or(text, firstLine(c.Input))
	if c.More > 0 {
		text += fmt.Sprintf(" (files that were made beside those named: %d)", c.More)
	}
	return &Summary{Conversation: c.N, Began: c.Began, Text: text, Files: files, Agents: slices.Clone(c.Used)}
}

// firstLine is enough of a text to know it again.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return short(strings.TrimSpace(line), 200)
}

// short cuts a text at a character, and says that it did.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const cut = "…"
	end := most - len(cut)
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end] + cut
}
