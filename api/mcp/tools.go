package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/engine/loop"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/tools"
)

const (
	// mcpWaitUsual is the default time that a call waits: the most common programs give up after a
	// minute and would lose the answer.
	mcpWaitUsual = 50 * time.Second

	mcpInstructions = `These are the tools of the team that you work in. Your session identifies you: you need not say who you are, and you cannot act for another agent.
When you get the turn in a channel, answer there and end the turn with turn_complete (or with pass, if you have nothing to say). In a step of a workflow, report with report_step before you end. If only a person can decide, use ask_human. If git cannot commit, who_is_here says why and what to do. An error says what was requested, what the state is and what is allowed: read it before you try again.`
)

// The input schemas of the tools. Models read these descriptions.
const (
	channelSchema = `"channel": {"type": "string", "maxLength": 64, "pattern": "^[a-z0-9][a-z0-9._-]*$", "description": "The channel, without #. Default: the channel in which you have the turn."}`
	secondsSchema = `"seconds": {"type": "integer", "minimum": 1, "maximum": 240, "description": "How long this call may wait. Default: 50, because many programs give up a call after a minute."}`
)

func objectSchema(required string, properties ...string) json.RawMessage {
	return json.RawMessage(`{"type": "object", "additionalProperties": false, "required": [` + required + `], "properties": {` +
		strings.Join(properties, ", ") + `}}`)
}

type (
	endIn struct {
		Channel string `json:"channel"`
		Message string `json:"message"`
	}
	waitToolIn struct {
		Channel string `json:"channel"`
		Reason  string `json:"reason"`
		Seconds int    `json:"seconds"`
	}
	sayToolIn struct {
		Channel string `json:"channel"`
		Text    string `json:"text"`
	}
	statusIn struct {
		Text string `json:"text"`
	}
	askToolIn struct {
		ID       string   `json:"id"`
		Question string   `json:"question"`
		Options  []string `json:"options"`
		Reason   string   `json:"reason"`
		Seconds  int      `json:"seconds"`
	}
	whoToolIn struct {
		Channel string `json:"channel"`
	}
	statusOut struct {
		Text string `json:"text"`
	}
)

func seconds(n int) time.Duration {
	return min(cmp.Or(time.Duration(n)*time.Second, mcpWaitUsual), tools.ActWaitMax)
}

// tools registers all tools.
func (m *Tools) tools(s *sdk.Server) {
	m.turnTools(s)
	m.workTools(s)
}

// turnTools registers the tools for channels.
func (m *Tools) turnTools(s *sdk.Server) {
	addTool(m, s, &sdk.Tool{
		Name: "turn_complete", Title: "End my turn",
		Description: "Ends your turn in a channel. Call it once, as the last thing, when you have said what you have to say; then end your answer. What you wrote in this answer, also before the call, is in the channel already and need not be repeated in message. Returns at once and says whether you still had the turn: after its end, a message is kept as late and changes nothing. For a step of a workflow use report_step.",
		InputSchema: objectSchema(``, channelSchema,
			`"message": {"type": "string", "maxLength": 65536, "description": "A last message for the channel. Leave it out if it is already in your answer."}`),
	}, func(ctx context.Context, c tools.AgentCaller, in endIn) (string, tools.ActEnded, error) {
		ended, err := m.engine.ActTurnComplete(ctx, c, in.Channel, in.Message)
		return endedWords(ended), ended, err
	})
	addTool(m, s, &sdk.Tool{
		Name: "pass", Title: "Pass",
		Description: "Passes the turn to the next agent and posts nothing. Use it instead of turn_complete if you have nothing to add. Then end your answer.",
		InputSchema: objectSchema(``, channelSchema),
	}, func(ctx context.Context, c tools.AgentCaller, in whoToolIn) (string, tools.ActEnded, error) {
		ended, err := m.engine.ActPass(ctx, c, in.Channel)
		return endedWords(ended), ended, err
	})
	addTool(m, s, &sdk.Tool{
		Name: "wait", Title: "Wait in my turn",
		Description: "Pauses your turn, so that its time stops while you wait for a person, and waits. Returns resumed when a person resumes your turn or writes a message to the channel (in message); turn_over when the turn has passed to another agent: end your answer then; still_waiting after `seconds`: call wait again to continue waiting, or say something to continue your turn. For a question to a person use ask_human.",
		InputSchema: objectSchema(``, channelSchema, secondsSchema,
			`"reason": {"type": "string", "maxLength": 2000, "description": "What you wait for, in one line for people."}`),
	}, func(ctx context.Context, c tools.AgentCaller, in waitToolIn) (string, tools.ActWaited, error) {
		waited, err := m.engine.ActWait(ctx, c, in.Channel, in.Reason, seconds(in.Seconds))
		return waitedWords(waited), waited, err
	})
	addTool(m, s, &sdk.Tool{
		Name: "say", Title: "Say something during my turn",
		Description: "Posts a message in a channel during your turn; the turn continues. Your answer is posted automatically: use this only for what the others need before you are done. Without the turn, a message is kept and marked late, and starts nothing.",
		InputSchema: objectSchema(`"text"`, channelSchema,
			`"text": {"type": "string", "minLength": 1, "maxLength": 65536, "description": "The message. Put a longer text into a file and send its name."}`),
	}, func(ctx context.Context, c tools.AgentCaller, in sayToolIn) (string, tools.ActSpoken, error) {
		spoken, err := m.engine.ActSay(ctx, c, in.Channel, in.Text)
		return fmt.Sprintf("Posted as message %d in #%s. Your turn continues.", spoken.Message, spoken.Channel), spoken, err
	})
	addTool(m, s, &sdk.Tool{
		Name: "who_is_here", Title: "Who is here",
		Description: "Returns your name, the purpose of this session, your channels with the agent that has the turn and the next one, and the other agents of the team; and why a commit fails here, if it does. Changes nothing.",
		InputSchema: objectSchema(``,
			strings.Replace(channelSchema, "Default: the channel in which you have the turn.", "Default: all of your channels.", 1)),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true},
	}, func(ctx context.Context, c tools.AgentCaller, in whoToolIn) (string, tools.ActHere, error) {
		here, err := m.engine.ActWhoIsHere(ctx, c, in.Channel)
		return "", here, err
	})
}

// workTools registers the tools for an agent's work.
func (m *Tools) workTools(s *sdk.Server) {
	addTool(m, s, &sdk.Tool{
		Name: "report_step", Title: "Report my step",
		Description: "Writes the report of the workflow step that this session is for. Call it when the step is done, or when it cannot be done; then end your answer. If you call it again, the last report counts. Run, step and times are filled in. An invalid report is refused with the reason, and nothing is written. For a turn in a channel use turn_complete.",
		InputSchema: objectSchema(
			`"status"`,
			`"status": {"type": "string", "enum": ["COMPLETED", "FAILED"], "description": "COMPLETED: it is done, even if a gate did not pass. FAILED: it could not be done."}`,
			`"artifacts": {"type": "array", "maxItems": 1000, "items": {"type": "string", "minLength": 1, "maxLength": 4096}, "description": "Paths of the resulting files in the repository. Later steps receive them."}`,
			`"metrics": {"type": "object", "maxProperties": 200, "additionalProperties": {"type": ["string", "number", "boolean"]}, "description": "Measured values by name: {\"tests\": 12}."}`,
			`"logs": {"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 8192}, "description": "What was done, or why it failed; one line each."}`,
			`"gate_failure": {"type": "string", "maxLength": 8192, "description": "Only if the step judges other agents' work: why it is not good enough. The work is then returned."}`,
			`"again_in_seconds": {"type": "integer", "minimum": 1, "maximum": 86400, "description": "Only if the step waits for something outside and is not done: when it is to be run again. It costs no attempt."}`,
			`"next_suggested_steps": {"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 1024}, "description": "For people; it starts nothing."}`,
		),
	}, func(ctx context.Context, c tools.AgentCaller, in runs.AgentReport) (string, tools.ActReported, error) {
		done, err := m.engine.ActReportStep(ctx, c, in)
		return fmt.Sprintf("The report of step %s is written: %s. End your answer now; it counts when this session has ended.", done.Step,
			done.Status), done, err
	})
	addTool(m, s, &sdk.Tool{
		Name: "set_status", Title: "Set my status",
		Description: "Sets a few words about what you are doing, for people who look at the team: \"running the tests\". They are shown beside your name until the next status, and have no other effect.",
		InputSchema: objectSchema(`"text"`,
			`"text": {"type": "string", "maxLength": 200, "description": "One line. Empty removes the status."}`),
		Annotations: &sdk.ToolAnnotations{IdempotentHint: true},
	}, func(ctx context.Context, c tools.AgentCaller, in statusIn) (string, statusOut, error) {
		return "The status is set.", statusOut(in), m.engine.ActSetStatus(ctx, c, in.Text)
	})
	addTool(m, s, &sdk.Tool{
		Name: "ask_human", Title: "Ask a person",
		Description: "Asks a person a question, and waits for the answer. Use it if only a person can decide or knows; not for permission to use a tool, which is requested automatically. Returns answered with the answer; still_waiting with an id after `seconds`: call it again with only that id to continue waiting, or do something else and ask for the answer later; unanswered if no person answered in time: then do what is safe without an answer. The question survives restarts.",
		InputSchema: objectSchema(
			``,
			`"question": {"type": "string", "maxLength": 8192, "description": "The question, understandable without knowing your work. Leave it out if you give an id."}`,
			`"options": {"type": "array", "maxItems": 10, "items": {"type": "string", "minLength": 1, "maxLength": 200}, "description": "Answers to choose from. A person may also answer in other words."}`,
			`"reason": {"type": "string", "maxLength": 500, "description": "Why you ask, in one line."}`,
			`"id": {"type": "string", "maxLength": 64, "description": "The id of a question that you have asked: the call waits for its answer."}`,
			secondsSchema,
		),
	}, func(ctx context.Context, c tools.AgentCaller, in askToolIn) (string, tools.ActAnswer, error) {
		ask := tools.AgentQuestion{ID: in.ID, Text: strings.TrimSpace(in.Question), Options: in.Options, Why: in.Reason}
		if (ask.ID == "") == (ask.Text == "") {
			return "", tools.ActAnswer{}, errors.New("give either a question or the id of one that you have asked")
		}
		answer, err := m.engine.ActAskHuman(ctx, c, ask, seconds(in.Seconds))
		return answerWords(answer, in.Options), answer, err
	})
}

func endedWords(e tools.ActEnded) string {
	switch {
	case !e.Over:
		return fmt.Sprintf("Turn %d in #%s ends with this answer. End it now.", e.Turn, e.Channel)
	case e.Next != "":
		return fmt.Sprintf("Turn %d in #%s is over; %s has the turn now. End your answer: anything more is kept as late.", e.Turn,
			e.Channel, e.Next)
	default:
		return fmt.Sprintf("Turn %d in #%s is over. End your answer: anything more is kept as late.", e.Turn, e.Channel)
	}
}

func waitedWords(w tools.ActWaited) string {
	switch w.State {
	case tools.ActResumed:
		text := fmt.Sprintf("resumed: %s. Your turn %d in #%s continues.", w.Why, w.Turn, w.Channel)
		if w.Message != nil {
			text += fmt.Sprintf("\n%s wrote (message %d):\n%s", w.Message.By, w.Message.N, w.Message.Text)
		}
		return text
	case tools.ActForfeited:
		return fmt.Sprintf("turn_over: %s. End your answer; you are notified when it is your turn again in #%s.", w.Why, w.Channel)
	default:
		text := "still_waiting: call wait again to continue waiting, or say something to continue your turn."
		if !w.Until.IsZero() {
			text += " The turn is forfeited at " + w.Until.UTC().Format("15:04:05") + " UTC."
		}
		return text
	}
}

func answerWords(a tools.ActAnswer, options []string) string {
	var text string
	switch a.State {
	case tools.ActAnswered:
		text = "answered by " + a.By + ":"
		if n := 0; a.Option != "" {
			text += " option " + a.Option
			if _, err := fmt.Sscanf(a.Option, "%d", &n); err == nil && n > 0 && n <= len(options) {
				text += " (" + options[n-1] + ")"
			}
		}
		if a.Text != "" {
			text += "\n" + a.Text
		}
	case tools.ActStillWaiting:
		return fmt.Sprintf("still_waiting: %s has no answer yet. Call ask_human again with id %q to continue waiting, or do something else first.", a.ID, a.ID)
	case tools.ActUnanswered:
		text = "unanswered: no person answered " + a.ID + " in time. Do what is safe without an answer, and say that you did."
	default:
		text = "withdrawn: " + a.Why + "."
	}
	if a.Lost {
		text += "\nYour turn has passed to another agent meanwhile: end your answer; you are notified when it is your turn again."
	}
	return text
}

// addTool registers a tool. do returns the result as text for the model and as data; an empty text
// means that the data suffice. Its errors are returned to the model as answers.
func addTool[In, Out any](m *Tools, s *sdk.Server, t *sdk.Tool, do func(context.Context, tools.AgentCaller, In) (string, Out, error)) {
	if t.Annotations == nil {
		t.Annotations = &sdk.ToolAnnotations{}
	}
	closed, no := false, false
	t.Annotations.OpenWorldHint, t.Annotations.DestructiveHint = &closed, &no
	sdk.AddTool(s, t, func(ctx context.Context, req *sdk.CallToolRequest, in In) (result *sdk.CallToolResult, out Out, err error) {
		asked, ok := ctx.Value(mcpKey{}).(mcpAsked)
		if !ok {
			panic("api: a tool was called without a caller")
		}
		if callerIn(ctx).Unknown { // it has ended since
			return nil, out, errUnknown
		}
		if err := m.enter(asked.who); err != nil {
			return nil, out, err
		}
		defer m.leave(asked.who)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(asked.gone, cancel)()
		defer func() {
			if bug := recover(); bug != nil { // the library runs this without recovering from panics
				m.log.Error("a bug ended a call of a tool", "tool", t.Name, "agent", asked.who.Agent, "session", asked.who.Session, "bug",
					bug, "stack", string(debug.Stack()))
				err = errors.New("this is a bug in fairlead; see its log for details")
			}
		}()
		beating := make(chan struct{})
		go func() { defer close(beating); beat(ctx, req) }()
		defer func() { cancel(); <-beating }()
		words, out, err := do(ctx, asked.who, in)
		switch {
		case errors.Is(err, loop.ErrClosed):
			return nil, out, errors.New("fairlead is stopping or restarting; call again in a few seconds; answered calls are not lost")
		case err != nil:
			return nil, out, err
		case words != "":
			result = &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: words}}}
		}
		return result, out, nil
	})
}

// beat sends progress to a client that requested it, because some clients give up a silent call.
func beat(ctx context.Context, req *sdk.CallToolRequest) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return
	}
	tick := time.NewTicker(mcpBeatEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if req.Session.NotifyProgress(ctx,
				&sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: "still waiting"}) != nil {
				return
			}
		}
	}
}
