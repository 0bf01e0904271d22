package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// charge gives an agent a task. asked: MAIN or an agent asked for it, and gets the result.
func (d *folderDraft) charge(event Event, asked bool, agent string, task Task, trigger, params string) error {
	task.Call, task.Caller = clip.Within(task.Call, wordsMax), clip.Within(task.Caller, wordsMax)
	return d.step(event, clip.Within(trigger, wordsMax), func(now *Now, body *Body) {
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
			c.Called = c.Called || asked
		}
		body.Entries = append(body.Entries,
			Entry{Kind: OfDelegation, Who: who, Text: agent + ": " + task.Text, More: clip.Within(params, TextBytesMax)})
	})
}

func (d *folderDraft) delegate(in Delegate) error {
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
	if d.over(in.Conversation) {
		return d.refuse(string(event), row, ConversationID(in.Conversation)+" has ended and cannot get new tasks")
	}
	c := d.is.Open
	if c == nil {
		_, err := Table.Look(d.is.subject(), cmp.Or(d.is.Phase, None), event)
		return err
	}
	if in.Call = clip.Within(in.Call, wordsMax); in.Call != "" &&
		slices.ContainsFunc(c.Tasks, func(t Task) bool { return t.Call == in.Call }) {
		return nil
	}
	if len(c.Tasks) >= tasksMax {
		return d.refuse(string(event), row, fmt.Sprintf("%d agents are working already; wait for one of them", tasksMax))
	}
	if d.is.Host == Fairlead && c.Asked >= askedMax {
		return d.refuse(string(event), row,
			fmt.Sprintf("this conversation has had %d tasks, which is the limit; answer with the results so far", askedMax))
	}
	if err := d.room(event, row, len(in.Text)); err != nil {
		return err
	}
	if round := c.roundOf(in.By); round >= roundsMax {
		return d.refuse(string(event), row,
			fmt.Sprintf("it has received results in %d rounds, which is the limit; it must answer with the results so far", roundsMax))
	}
	if in.By != 0 {
		if err := d.mayAsk(in); err != nil {
			return err
		}
	}
	trigger := cmp.Or(in.Trigger, "matched its description")
	params := cmp.Or(in.Params, in.Text)
	return d.charge(event, true, in.Agent, Task{By: in.By, Text: in.Text, Call: in.Call}, trigger, params)
}

// mayAsk refuses help that the mode does not allow, and endless cycles (D5).
func (d *folderDraft) mayAsk(in Delegate) error {
	c := d.is.Open
	asker, ok := c.Task(in.By)
	switch {
	case !ok:
		return d.refuse(string(HelpAsked), "D5", fmt.Sprintf("task %d of %s has ended, so it cannot ask for help", in.By, c.ID()))
	case d.is.Mode == Response:
		return d.refuse(string(HelpAsked), "D6",
			"in mode response agents cannot ask each other; say in the answer what is missing, so that it can become another message")
	case d.is.Mode != Interactive:
		return d.refuse(string(HelpAsked), "D4",
			fmt.Sprintf("in mode %s an agent reports back to %s and cannot ask others; say there what is missing, or begin a dispatch with --mode interactive", d.is.Mode, Main))
	}
	chain := []string{in.Agent}
	for t := asker; ok && len(chain) <= len(d.is.Agents)+1; t, ok = c.Task(t.By) {
		chain = append(chain, t.Agent)
	}
	if len(chain) > len(d.is.Agents) {
		slices.Reverse(chain)
		return d.refuse(string(HelpAsked), "D5",
			fmt.Sprintf("%s is a cycle: there are only %d agents, and this chain has as many", strings.Join(chain, " → "),
				len(d.is.Agents)))
	}
	return nil
}

func (d *folderDraft) seen(in Seen) error {
	c := d.is.Open
	in.Caller = clip.Within(in.Caller, wordsMax)
	if c == nil || in.Caller == "" || slices.ContainsFunc(c.Tasks, func(t Task) bool { return t.Caller == in.Caller }) {
		return nil
	}
	at := slices.IndexFunc(c.Tasks, func(t Task) bool { return t.Agent == in.Agent && t.Caller == "" })
	if at < 0 {
		if !d.is.Knows(in.Agent) || len(c.Tasks) >= tasksMax || d.is.Phase == Serving {
			return nil // an agent without a description has MAIN's permissions
		}
		return d.charge(Delegated, false, in.Agent, Task{Caller: in.Caller}, "seen at work", "")
	}
	return d.step(CallerSeen, "seen at work", func(now *Now, _ *Body) { now.Open.Tasks[at].Caller = in.Caller })
}

// taskOf finds the task that has ended.
func (c *Conversation) taskOf(in TaskEnded) int {
	in.Caller, in.Call = clip.Within(in.Caller, wordsMax), clip.Within(in.Call, wordsMax)
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

func (d *folderDraft) taskEnded(in TaskEnded) error {
	c := d.is.Open
	if c == nil {
		return nil
	}
	at := c.taskOf(in)
	if at < 0 || d.over(in.Conversation) {
		return nil // it has ended before
	}
	task := c.Tasks[at]
	if d.is.Host == Fairlead && task.Called {
		return d.step(RoundOver, task.Agent+" asked for help", func(now *Now, body *Body) {
			if text := clip.Within(in.Result, TextBytesMax); text != "" {
				body.Entries = append(body.Entries, Entry{Kind: OfResult, Who: task.Agent, Text: text})
			}
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
		for _, t := range c.Tasks {
			if c.under(t, task.ID) {
				body.Entries = append(body.Entries,
					Entry{Kind: OfNote, Who: t.Agent, Text: "is no longer awaited: " + task.Agent + ", which asked for it, is done"})
			}
		}
		result := Result{
			Task: task.ID, Agent: task.Agent, By: task.By, OK: in.OK, Text: clip.Within(in.Result, ResultBytesMax),
			Round: round,
		}
		if lost, some := open.keep(result); some {
			body.Entries = append(body.Entries,
				Entry{
					Kind: OfNote, Who: lost.Agent,
					Text: fmt.Sprintf("%d newer results are waiting, which is the limit: this one is only recorded here", resultsMax),
				})
		}
		if text := clip.Within(in.Result, TextBytesMax); text != "" || !in.OK {
			body.Entries = append(body.Entries, Entry{Kind: OfResult, Who: task.Agent, Text: cmp.Or(text, trigger)})
		}
	}
	if event != MessageDone {
		return d.step(event, trigger, over)
	}
	return d.step(event, trigger, func(now *Now, body *Body) {
		body.Reply = &Reply{Message: c.Message, Agent: task.Agent, OK: in.OK, Text: clip.Within(in.Result, TextBytesMax)}
		over(now, body)
		body.Summary = now.Open.summary("", nil)
		now.Open = nil
	})
}

// keep adds a result. If there is no room, it removes one that was delivered, or else the oldest
// one. It returns the latter, because it will not be delivered.
func (c *Conversation) keep(r Result) (lost Result, some bool) {
	c.Results = append(c.Results, r)
	if len(c.Results) <= resultsMax {
		return Result{}, false
	}
	told := slices.IndexFunc(c.Results, func(r Result) bool { return !c.tells(r) })
	at := max(told, 0)
	lost = c.Results[at]
	c.Results = slices.Delete(c.Results, at, at+1)
	return lost, told < 0
}

// tells reports whether a result is not delivered yet.
func (c *Conversation) tells(r Result) bool {
	if _, ok := c.Task(r.By); r.By != 0 && !ok {
		return false
	}
	return r.Round >= c.roundOf(r.By)
}

// ending returns the event for the end of a task, by the state after it.
func (d *folderDraft) ending(task Task) Event {
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

// under reports whether a task was requested by another one, directly or indirectly.
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
