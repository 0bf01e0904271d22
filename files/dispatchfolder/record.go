package dispatchfolder

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	legacy "github.com/go-json-experiment/json/v1"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// actor is a change.Actor as a line of state.jsonl has it: without an empty id.
type actor struct {
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
}

// record is a line of state.jsonl: the seed's fields in the seed's order, then Fairlead's.
type record struct {
	Timestamp    string         `json:"timestamp"`
	Type         string         `json:"type"`
	Conversation string         `json:"conversation_id,omitempty"`
	State        string         `json:"state"`
	Parameters   *parameters    `json:"parameters,omitempty"`
	Descriptions string         `json:"agent_descriptions,omitempty"`
	List         string         `json:"agent_list,omitempty"`
	Trigger      *string        `json:"trigger,omitempty"`
	Previous     string         `json:"previous,omitempty"`
	Workspace    string         `json:"workspace,omitempty"`
	Permissions  jsontext.Value `json:"permissions,omitempty"`
	Ours         *ours          `json:"fairlead,omitempty"`
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
	Actor        actor             `json:"actor"`
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
func (f *Folder) recordOf(s dispatch.Dispatch, ch change.Change) record {
	body, event := change.As[dispatch.Body](ch.Body), dispatch.Event(ch.Trigger)
	if TypeOf(event) == "" {
		panic("dispatchfolder: no line type for the event " + ch.Trigger)
	}
	r := record{
		Timestamp: ch.At.Local().Format(seedTime), Type: TypeOf(event), State: ch.To, Permissions: jsontext.Value(s.Permissions()),
		Ours: &ours{
			Row: ch.Row, Event: event, Line: body.Now.Line, At: ch.At, Actor: actor(ch.Actor), Conversation: body.Conversation,
			Denied: body.Denied, Summary: body.Summary, Aside: body.Aside, Now: body.Now, Setup: body.Setup,
		},
	}
	if reply := body.Reply; reply != nil {
		r.Ours.Reply = &answered{Message: reply.Message, Agent: reply.Agent, OK: reply.OK}
	}
	switch {
	case r.Type == "transition" || ch.From != "" && ch.From != ch.To:
		r.Trigger, r.Previous = &body.Trigger, ch.From
	default:
		r.Ours.Trigger = body.Trigger
	}
	if r.Type == "conversation_start" || r.Type == "conversation_end" {
		r.Conversation = dispatch.ConversationID(body.Conversation)
	}
	n := cmp.Or(body.Conversation, body.Now.Made)
	if n > 0 {
		r.Workspace = f.Workspace(n)
	}
	return r
}

// changeOf returns the change of one of our lines.
func (r *record) change() change.Change {
	o := r.Ours
	body := &dispatch.Body{
		Trigger: o.Trigger, Setup: o.Setup, Now: o.Now, Conversation: o.Conversation, Summary: o.Summary, Denied: o.Denied, Aside: o.Aside,
	}
	ch := change.Change{
		Machine: "dispatch", At: o.At, Row: o.Row, From: r.Previous, To: r.State, Trigger: string(o.Event), Actor: change.Actor(o.Actor),
		Body: body,
	}
	if r.Trigger != nil {
		body.Trigger = *r.Trigger
	}
	if r.Previous == "" && o.Setup == nil {
		ch.From = r.State
	}
	if o.Reply != nil {
		body.Reply = &dispatch.Reply{Message: o.Reply.Message, Agent: o.Reply.Agent, OK: o.Reply.OK}
	}
	return ch
}

// jsonLine encodes a value like the seed's programs: on one line, with a space after each colon and comma.
func jsonLine(v any) []byte {
	line, err := json.Marshal(v, jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true), jsontext.PreserveRawStrings(true),
		jsontext.AllowInvalidUTF8(true), json.Deterministic(true), legacy.OmitEmptyWithLegacySemantics(true))
	if err != nil {
		panic("dispatchfolder: a line is not written: " + err.Error())
	}
	return append(line, '\n')
}

// trimmed removes what editors add around a line.
func trimmed(line []byte) []byte {
	return bytes.TrimSpace(file.Unmarked(line))
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
	err := json.Unmarshal(line, &r, jsontext.AllowInvalidUTF8(true), loose)
	switch {
	case err == nil && r.Ours == nil && len(line) > foreignBytesMax:
		return record{}, fmt.Errorf("a line of %d bytes by another program; the maximum is %d", len(line), foreignBytesMax)
	case errors.Is(err, errOurs):
		return record{}, errOurs
	case err != nil:
		return record{}, fmt.Errorf("a line that is not JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	return r, nil
}

// loose reads a field of another type, which another program wrote, as missing.
var loose = json.WithUnmarshalers(json.JoinUnmarshalers(
	only[string]('"'), only[*string]('"'), only[*parameters]('{'), only[[]string]('['), only[[]dispatch.File]('[')))

func only[T any](kind jsontext.Kind) *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ *T) error {
		if d.PeekKind() == kind {
			return json.SkipFunc
		}
		return d.SkipValue()
	})
}

var errOurs = errors.New("a line whose field fairlead cannot be read, or holds a state that no change produces")

// UnmarshalJSONFrom reads our field of a line, where nothing is loose.
func (o *ours) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	type fields ours
	if json.Unmarshal(value, (*fields)(o), jsontext.AllowInvalidUTF8(true)) != nil || !o.sound() {
		return errOurs
	}
	return nil
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
	for _, row := range dispatch.Table {
		if _, ok := row[event]; ok {
			return true
		}
	}
	return false
}
