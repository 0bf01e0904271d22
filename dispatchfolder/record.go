package dispatchfolder

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// Actor is who or what caused a change.
type Actor struct {
	Kind string `json:"kind"` // human, agent, engine; as in the journal
	ID   string `json:"id,omitempty"`
}

// record is a line of state.jsonl: the seed's fields in the seed's order, then Fairlead's.
type record struct {
	Timestamp    string          `json:"timestamp"`
	Type         string          `json:"type"`
	Conversation string          `json:"conversation_id,omitempty"`
	State        string          `json:"state"`
	Parameters   *parameters     `json:"parameters,omitempty"`
	Descriptions string          `json:"agent_descriptions,omitempty"`
	List         string          `json:"agent_list,omitempty"`
	Trigger      *string         `json:"trigger,omitempty"`
	Previous     string          `json:"previous,omitempty"`
	Workspace    string          `json:"workspace,omitempty"`
	Permissions  json.RawMessage `json:"permissions,omitempty"`
	Ours         *ours           `json:"fairlead,omitempty"`
}

type parameters struct {
	Mode string `json:"mode"`
	Path string `json:"path"`
}

// ours holds what the seed's fields cannot.
type ours struct {
	Row          string            `json:"row"`
	Event        dispatch.Event    `json:"event"`
	Line         uint64            `json:"line"`
	At           time.Time         `json:"at"`
	Actor        Actor             `json:"actor"`
	Trigger      string            `json:"trigger,omitempty"` // if the seed's field is not used
	Conversation int               `json:"conversation,omitempty"`
	Denied       *dispatch.Denied  `json:"denied,omitempty"`
	Summary      *dispatch.Summary `json:"summary,omitempty"`
	Reply        *answered         `json:"reply,omitempty"`
	Aside        *dispatch.Aside   `json:"aside,omitempty"`
	Now          dispatch.Now      `json:"now"`
	Setup        *dispatch.Setup   `json:"setup,omitempty"`
	About        *about            `json:"about,omitempty"` // only in the first line
}

// answered is a reply without its text, which is in the file beside the message.
type answered struct {
	Message string `json:"message"`
	Agent   string `json:"agent"`
	OK      bool   `json:"ok"`
}

// about is what was given at creation and only the folder needs.
type about struct {
	Repo  string   `json:"repo,omitempty"`
	Tools []string `json:"tools,omitempty"`

	NoCommits bool `json:"no_commits,omitempty"`
}

// TypeOf returns the seed's word for an event, or one in its style; empty: it is not an event of Fairlead's,
// such as an unreadable line of another program.
func TypeOf(event dispatch.Event) string {
	switch event {
	case dispatch.Started, dispatch.StartedQueue:
		return "session_init"
	case dispatch.InputCame, dispatch.MessageTaken:
		return "conversation_start"
	case dispatch.InputWaits:
		return "input_waiting"
	case dispatch.Delegated, dispatch.HelpAsked, dispatch.TaskOver, dispatch.TaskOverOthers, dispatch.TaskOverAsker:
		return "transition"
	case dispatch.CallerSeen:
		return "agent_seen"
	case dispatch.RoundOver:
		return "round_end"
	case dispatch.CallDenied:
		return "denied"
	case dispatch.FileWritten:
		return "file_written"
	case dispatch.Responded, dispatch.Interrupted, dispatch.MessageDone:
		return "conversation_end"
	case dispatch.MessageUnmatched:
		return "unmatched"
	case dispatch.EndAsked:
		return "session_end"
	}
	return ""
}

// recordOf returns the line of a change; s is the state after it.
func (f *Folder) recordOf(s dispatch.Dispatch, ch dispatch.Change, actor Actor) record {
	if TypeOf(ch.Event) == "" {
		panic("dispatchfolder: no line type for the event " + string(ch.Event))
	}
	r := record{
		Timestamp: ch.At.Local().Format(seedTime), Type: TypeOf(ch.Event), State: ch.To, Permissions: s.Permissions(),
		Ours: &ours{
			Row: ch.Row, Event: ch.Event, Line: ch.Body.Now.Line, At: ch.At, Actor: actor, Conversation: ch.Body.Conversation,
			Denied: ch.Body.Denied, Summary: ch.Body.Summary, Aside: ch.Body.Aside, Now: ch.Body.Now, Setup: ch.Body.Setup,
		},
	}
	if reply := ch.Body.Reply; reply != nil {
		r.Ours.Reply = &answered{Message: reply.Message, Agent: reply.Agent, OK: reply.OK}
	}
	switch {
	case r.Type == "transition" || ch.From != "" && ch.From != ch.To:
		r.Trigger, r.Previous = &ch.Trigger, ch.From
	default:
		r.Ours.Trigger = ch.Trigger
	}
	if r.Type == "conversation_start" || r.Type == "conversation_end" {
		r.Conversation = dispatch.ConversationID(ch.Body.Conversation)
	}
	n := cmp.Or(ch.Body.Conversation, ch.Body.Now.Made)
	if n > 0 {
		r.Workspace = f.Workspace(n)
	}
	return r
}

// changeOf returns the change of one of our lines.
func (r *record) change() dispatch.Change {
	o := r.Ours
	ch := dispatch.Change{
		At: o.At, Row: o.Row, From: r.Previous, To: r.State, Trigger: o.Trigger, Event: o.Event,
		Body: dispatch.Body{
			Setup: o.Setup, Now: o.Now, Conversation: o.Conversation, Summary: o.Summary, Denied: o.Denied, Aside: o.Aside,
		},
	}
	if r.Trigger != nil {
		ch.Trigger = *r.Trigger
	}
	if r.Previous == "" && o.Setup == nil {
		ch.From = r.State
	}
	if o.Reply != nil {
		ch.Body.Reply = &dispatch.Reply{Message: o.Reply.Message, Agent: o.Reply.Agent, OK: o.Reply.OK}
	}
	return ch
}

// jsonLine encodes a value like the seed's programs: on one line, with a space after each colon and comma.
func jsonLine(v any) []byte { return append(spaced(encode.JSON(v)), '\n') }

// spaced adds the spaces to compact JSON.
func spaced(compact []byte) []byte {
	out := make([]byte, 0, len(compact)+len(compact)/8)
	quoted, escaped := false, false
	for _, c := range compact {
		out = append(out, c)
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ':' || c == ','):
			out = append(out, ' ')
		}
	}
	return out
}

var bom = []byte("\xef\xbb\xbf")

// trimmed removes what editors add around a line.
func trimmed(line []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(line, bom))
}

// parseRecord parses a line. Its error says why the line cannot be read.
func parseRecord(line []byte) (record, error) {
	var r record
	line = trimmed(line)
	switch {
	case len(line) == 0:
		return r, fmt.Errorf("an empty line")
	case len(line) > lineBytesMax:
		return r, fmt.Errorf("a line of %d bytes; the maximum is %d", len(line), lineBytesMax)
	case len(line) > foreignBytesMax && !bytes.Contains(line, []byte(`"fairlead"`)): // checked before the line is parsed
		return r, fmt.Errorf("a line of %d bytes by another program; the maximum is %d", len(line), foreignBytesMax)
	case line[0] != '{':
		return r, fmt.Errorf("a line that is not a JSON object")
	}
	if err := json.Unmarshal(line, &r); err == nil {
		if r.Ours != nil && !r.Ours.sound() {
			return record{}, fmt.Errorf("a line whose field fairlead holds a state that no change produces")
		}
		if r.Ours == nil && len(line) > foreignBytesMax {
			return record{}, fmt.Errorf("a line of %d bytes by another program; the maximum is %d", len(line), foreignBytesMax)
		}
		return r, nil
	}
	// a field of another program has another type: the readable ones are read
	var loose map[string]json.RawMessage
	if err := json.Unmarshal(line, &loose); err != nil {
		return record{}, fmt.Errorf("a line that is not JSON: %w", err)
	}
	if _, is := loose["fairlead"]; is {
		return record{}, fmt.Errorf("a line whose field fairlead cannot be read")
	}
	if len(line) > foreignBytesMax {
		return record{}, fmt.Errorf("a line of %d bytes by another program; the maximum is %d", len(line), foreignBytesMax)
	}
	r = record{}
	for name, to := range map[string]*string{
		"timestamp": &r.Timestamp, "type": &r.Type, "conversation_id": &r.Conversation, "state": &r.State,
		"previous": &r.Previous, "workspace": &r.Workspace,
	} {
		_ = json.Unmarshal(loose[name], to) // of another type: treated as missing
	}
	var trigger string
	if json.Unmarshal(loose["trigger"], &trigger) == nil {
		r.Trigger = &trigger
	}
	var p parameters
	if json.Unmarshal(loose["parameters"], &p) == nil && loose["parameters"] != nil {
		r.Parameters = &p
	}
	r.Permissions = loose["permissions"]
	return r, nil
}

// sound reports whether one of our lines is consistent, so that a forged field cannot put the machine into a
// state that it does not know.
func (o *ours) sound() bool {
	now := &o.Now
	switch now.Phase {
	case dispatch.Ready, dispatch.Queue, dispatch.Closed:
		if now.Open != nil {
			return false
		}
	case dispatch.Talking:
		if now.Open == nil || len(now.Open.Tasks) > 0 {
			return false
		}
	case dispatch.Working, dispatch.Serving:
		if now.Open == nil || len(now.Open.Tasks) == 0 {
			return false
		}
	default:
		return false
	}
	if now.Open != nil && (now.Open.N < 1 || now.Open.N > now.Made) || now.Made < 0 || now.Line == 0 {
		return false
	}
	return knownEvent(o.Event)
}

func knownEvent(event dispatch.Event) bool {
	for _, row := range dispatch.Table() {
		if _, ok := row[event]; ok {
			return true
		}
	}
	return false
}
