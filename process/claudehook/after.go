package claudehook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/rank"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/claudehook/confine"
)

// postTool checks what a tool has done. A write that was not allowed but happened (another hook changed the
// input, or ours was skipped) is recorded as a denial, and the model is told. A new file is recorded (D9),
// and a delegation that returned has ended (D4).
func (v *visit) postTool() (Answer, error) {
	if v.delegates() {
		return v.taskBack()
	}
	who, main := v.who()
	if main && v.Agent != "" && v.session.Knows(v.AgentType) {
		return Answer{}, nil // its task ended meanwhile; the call was judged for the task
	}
	confined := v.restored()
	if confined {
		confine.Sweep()
	}
	call := v.call()
	call.Confined = main && confined
	if main && !confined && v.confinable() {
		if err := v.folder.SetUnconfined(); err != nil {
			return Answer{}, err
		}
	}
	verdict := dispatchfolder.Judge(v.session, v.folder, "", call)
	switch {
	case verdict.Allow:
	case call.Tool == "Bash" && !main && verdict.Code == policy.DeniedAgent:
		return Answer{}, nil // the call itself may have changed where a path leads: ln -s
	default:
		return v.tooLate(verdict), nil
	}
	if v.session.Open == nil {
		return Answer{}, nil
	}
	if call.Tool == "Bash" && !main {
		err := v.folder.Note(v.Now(), v.session.Open.N, dispatch.Entry{Kind: dispatch.OfNote, Who: who, Text: "ran " + shorten(v.Input)})
		if err != nil {
			return Answer{}, fmt.Errorf("record the call: %w", err)
		}
	}
	for _, path := range verdict.Writes {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || path == v.folder.DialoguePath(v.session.Open.N) {
			continue
		}
		if _, err := v.do(dispatch.Wrote{Caller: v.Agent, File: dispatch.File{Path: path}}, v.actor()); err != nil {
			return Answer{}, fmt.Errorf("record the file %s: %w", path, err)
		}
	}
	return Answer{}, nil
}

// tooLate records a call that was not stopped, and asks the model to undo it.
func (v *visit) tooLate(verdict policy.Verdict) Answer {
	denied := dispatch.Deny{
		Conversation: v.worksIn(), Caller: v.Agent, Tool: v.Tool, Call: shorten(v.Input), Row: verdict.Row, Capability: verdict.Capability,
		Reason: "the call ran although it is not allowed: " + verdict.Reason,
	}
	if v.task != nil {
		denied.Task = v.task.ID
	}
	text := "Fairlead: this call is not allowed, but it ran: " + verdict.Reason + ". Tell the user now, and undo nothing yourself."
	if _, err := v.do(denied, v.actor()); err != nil {
		text += " (It could not be recorded: " + err.Error() + ")"
	}
	return say(said{Decision: "block", Reason: text})
}

// taskBack ends a delegation whose SubagentStop was not received. One that runs in the background has not
// returned.
func (v *visit) taskBack() (Answer, error) {
	status, text := resultOf(v.Response)
	if strings.HasSuffix(status, "_launched") || v.Use == "" {
		return Answer{}, nil
	}
	return v.ended(dispatch.TaskEnded{Call: v.Use, OK: status != "failed" && status != "error", Result: text})
}

// resultOf reads a delegation's result: text, or an object with a status and content.
func resultOf(response json.RawMessage) (status, text string) {
	if json.Unmarshal(response, &text) == nil {
		return "", text
	}
	var whole struct {
		Status  string          `json:"status"`
		Content json.RawMessage `json:"content"`
		Error   string          `json:"error"`
	}
	if json.Unmarshal(response, &whole) != nil {
		return "", ""
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(whole.Content, &text) != nil && json.Unmarshal(whole.Content, &parts) == nil {
		var all []string
		for _, p := range parts {
			if p.Text != "" {
				all = append(all, p.Text)
			}
		}
		text = strings.Join(all, "\n")
	}
	if whole.Error != "" {
		return cmp.Or(whole.Status, "failed"), cmp.Or(text, whole.Error)
	}
	return whole.Status, text
}

// subagentStop ends an agent's task (D4, D5). An agent that made no call is seen here for the first time; one
// that was not delegated to in this conversation is ignored.
func (v *visit) subagentStop() (Answer, error) {
	c := v.session.Open
	if v.Agent == "" || c == nil {
		return Answer{}, nil
	}
	if v.taskOf(v.Agent) == 0 {
		waits := slices.ContainsFunc(c.Tasks, func(t dispatch.Task) bool { return t.Agent == v.AgentType && t.Caller == "" })
		if !waits {
			return Answer{}, nil
		}
		if err := v.seen(); err != nil {
			return Answer{}, err
		}
	}
	return v.ended(dispatch.TaskEnded{Caller: v.Agent, OK: true, Result: v.Last})
}

// ended reports the end of a task, and shows which agent is in charge then.
func (v *visit) ended(in dispatch.TaskEnded) (Answer, error) {
	in.Result = cut(in.Result, dispatch.TextBytesMax)
	changes, err := v.do(in, v.actor())
	if err != nil && refused(err) == "" {
		return Answer{}, fmt.Errorf("record the end of the task: %w", err)
	}
	if len(changes) == 0 {
		return Answer{}, nil
	}
	last := changes[len(changes)-1]
	if last.From == last.To {
		return Answer{}, nil
	}
	return say(said{Message: dispatch.Arrow(last.From, last.To)}), nil
}

// stop is MAIN's answer (D7): the conversation ends, unless agents still run in the background. It never
// makes the model continue, so it may be called again.
func (v *visit) stop() (Answer, error) {
	c := v.session.Open
	if v.Agent != "" || c == nil || len(c.Tasks) > 0 && v.agentsGoOn() {
		return Answer{}, nil
	}
	in := dispatch.Respond{Text: cut(v.Last, dispatch.TextBytesMax), Over: true}
	if _, err := v.do(in, change.Actor{Kind: "agent", ID: dispatch.Main}); err != nil && refused(err) == "" {
		return Answer{}, fmt.Errorf("end the conversation: %w", err)
	}
	return Answer{}, nil
}

func (v *visit) agentsGoOn() bool {
	return slices.ContainsFunc(v.Background, func(b Background) bool {
		return b.Type == "subagent" && (b.Status == "" || b.Status == "running")
	})
}

// lasting are the reasons with which a program's session ends although it may continue under the same id: a
// call for a single prompt, and two reasons of a session that continues. The dispatch and its rules stay.
var lasting = []string{"other", "resume", "bypass_permissions_disabled"}

// sessionEnd ends the dispatch when the person leaves (D10); otherwise it interrupts what was in progress
// (D11).
func (v *visit) sessionEnd() (Answer, error) {
	if v.Agent != "" {
		return Answer{}, nil
	}
	who := change.Actor{Kind: "engine", ID: "claude"}
	if slices.Contains(lasting, v.Reason) {
		if _, err := v.do(dispatch.Interrupt{Why: "the program ended"}, who); err != nil && refused(err) == "" {
			return Answer{}, fmt.Errorf("close the conversation: %w", err)
		}
		return Answer{}, nil
	}
	if _, err := v.do(dispatch.End{Why: "the program's session ended: " + cmp.Or(v.Reason, "no reason given")}, who); err != nil {
		return Answer{}, fmt.Errorf("end the session: %w", err)
	}
	return Answer{}, nil
}

// sessionStart handles a program that was restarted, or whose memory was compacted: the model may have lost
// what it was told about the dispatch, so it is told again. A conversation that nothing will end is closed
// (D11).
func (v *visit) sessionStart() (Answer, error) {
	if v.Source != "compact" {
		_, err := v.do(dispatch.Interrupt{Why: "the program was restarted"}, change.Actor{Kind: "engine", ID: "claude"})
		if err != nil && refused(err) == "" {
			return Answer{}, fmt.Errorf("close the interrupted conversation: %w", err)
		}
	}
	var r rank.Ranking
	if c := v.session.Open; c != nil {
		r = dispatchfolder.Best(v.session, c.Input)
	}
	context := v.inCharge(r)
	if v.session.Open == nil {
		context = fmt.Sprintf("Fairlead: the state machine session in %s continues. %s, mode %s. Every input of the user starts a new conversation.\n%s",
			v.folder.Path(), v.display(), v.session.Mode, mainRules)
	}
	return tell(SessionStart, context, ""), nil
}
