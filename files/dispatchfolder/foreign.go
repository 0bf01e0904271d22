package dispatchfolder

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/internal/encode"
)

// fold applies a line of another program, as far as it uses the seed's words, and returns it as a change. It
// is not applied where it would weaken enforcement: a line cannot end a dispatch that hooks or the daemon
// enforce, and an agent without a description cannot be in charge. fault says what was not applied.
func fold(s *dispatch.Dispatch, r record, last time.Time) (ch change.Change, fault string) {
	body := &dispatch.Body{}
	ch = change.Change{
		Machine: "dispatch", At: seedTimeOf(r.Timestamp, last), From: s.State(), Actor: change.Actor{Kind: "foreign", ID: r.Type}, Body: body,
	}
	if s.Line == 0 {
		ch.From = ""
	}
	now := s.Now
	if now.Open != nil {
		c := *now.Open
		c.Tasks, c.Used = slices.Clone(c.Tasks), slices.Clone(c.Used)
		now.Open = &c
	}
	if r.Trigger != nil {
		body.Trigger = *r.Trigger
	}
	switch {
	case s.Line == 0 && r.Type != "session_init":
		fault = "the first line is not a session_init; the following lines are read without one"
		s.Setup = setupOf(record{}, ch.At)
		now.Phase = dispatch.Ready
		body.Setup = &s.Setup
	case s.Line == 0:
		setup := setupOf(r, ch.At)
		ch.Row, ch.Trigger, body.Setup = "D1", string(dispatch.Started), &setup
		now.Phase = dispatch.Ready
		if setup.Mode == dispatch.Response {
			ch.Trigger, now.Phase = string(dispatch.StartedQueue), dispatch.Queue
		}
		s.Setup = setup
	case now.Phase == dispatch.Closed:
		fault = "a line after the session's end has no effect"
	default:
		fault = foldInto(s, &now, r, &ch, body)
	}
	now.Line++
	body.Now = now
	if now.Open != nil {
		body.Conversation = now.Open.N
	}
	s.Now = now
	ch.To = s.State()
	return ch, fault
}

func foldInto(s *dispatch.Dispatch, now *dispatch.Now, r record, ch *change.Change, body *dispatch.Body) (fault string) {
	switch r.Type {
	case "conversation_start":
		openForeign(s, now, conversationNumber(r.Conversation), ch.At)
		ch.Row, ch.Trigger = "D2", string(dispatch.InputCame)
	case "conversation_end":
		if now.Open == nil {
			return "no conversation is open, so none can end"
		}
		body.Conversation = now.Open.N
		ch.Row, ch.Trigger = "D7", string(dispatch.Responded)
		now.Open, now.Phase = nil, dispatch.Ready
		if s.Mode == dispatch.Response {
			now.Phase = dispatch.Queue
		}
	case "transition":
		return foldTransition(s, now, r, ch, body)
	case "session_end":
		if s.Host != dispatch.NoHost {
			return "a line in the file cannot end an enforced session; a person ends it (fairlead dispatch end)"
		}
		ch.Row, ch.Trigger = "D10", string(dispatch.EndAsked)
		now.Open, now.Waiting, now.Phase, now.Ended = nil, nil, dispatch.Closed, "ended by a line in state.jsonl"
	case "session_init":
		return "a second session_init has no effect"
	default:
		return "a line of an unknown type"
	}
	return ""
}

func foldTransition(s *dispatch.Dispatch, now *dispatch.Now, r record, ch *change.Change, body *dispatch.Body) (fault string) {
	if r.State == dispatch.Main || r.State == dispatch.Desk {
		ch.Row, ch.Trigger = "D4", string(dispatch.TaskOver)
		if now.Open == nil {
			return ""
		}
		now.Open.Tasks = nil
		now.Phase = dispatch.Talking
		if s.Mode == dispatch.Response { // mode response without an agent in charge: the message is done
			ch.Row, ch.Trigger, body.Conversation = "D6", string(dispatch.MessageDone), now.Open.N
			now.Open, now.Phase = nil, dispatch.Queue
		}
		return ""
	}
	if r.State == "" || len(r.State) > nameBytesMax || !s.Knows(r.State) && len(s.Agents) > 0 {
		return "the agent of this line has no description, so it is not put in charge"
	}
	if now.Open == nil {
		openForeign(s, now, numberOfWorkspace(r.Workspace), ch.At)
	}
	c := now.Open
	if len(c.Tasks) >= foreignTasksMax {
		return "too many agents are at work"
	}
	c.Asked++
	c.Tasks = append(c.Tasks, dispatch.Task{ID: c.Asked, Agent: r.State, Began: ch.At})
	if !slices.Contains(c.Used, r.State) {
		c.Used = append(c.Used, r.State)
	}
	ch.Row, ch.Trigger, now.Phase = "D3", string(dispatch.Delegated), dispatch.Working
	if s.Mode == dispatch.Response {
		ch.Row, now.Phase = "D6", dispatch.Serving
	}
	return ""
}

const foreignTasksMax = 64 // the same limit as Decide's

// openForeign starts a conversation of another program; theirs is its number, if given.
func openForeign(s *dispatch.Dispatch, now *dispatch.Now, n int, at time.Time) {
	if n == 0 || n > conversationsMax {
		n = now.Made + 1
	}
	now.Open = &dispatch.Conversation{N: n, Began: at}
	now.Made = max(now.Made, n)
	now.Phase = dispatch.Talking
}

// numberOfWorkspace parses …/conversations/conv_NNN/outputs/; 0: it is not such a path.
func numberOfWorkspace(path string) int {
	return conversationNumber(filepath.Base(filepath.Dir(strings.TrimRight(path, "/"))))
}

// setupOf returns what another program's session_init says.
func setupOf(r record, at time.Time) dispatch.Setup {
	setup := dispatch.Setup{Mode: dispatch.Orchestrator, Began: at}
	if r.Parameters != nil {
		setup.Path = r.Parameters.Path
		if slices.Contains(dispatch.Modes(), dispatch.Mode(r.Parameters.Mode)) {
			setup.Mode = dispatch.Mode(r.Parameters.Mode)
		}
	}
	setup.ForMain, setup.ForAll = rulesText(policy.MainRules()), rulesText(policy.AgentRules())
	if len(r.Permissions) > 0 && r.Permissions[0] == '{' {
		setup.ForMain = json.RawMessage(r.Permissions)
	}
	return setup
}

func rulesText(rules policy.Rules) json.RawMessage {
	return encode.JSON(rules)
}

// seedTimeOf parses a time of another program; an invalid one becomes the previous line's.
func seedTimeOf(text string, last time.Time) time.Time {
	if t, err := time.ParseInLocation(seedTime, text, time.Local); err == nil {
		return t.UTC()
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t.UTC()
	}
	return last
}
