package listen

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/clip"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/driver"
)

const (
	thoughtBytesMax = 16 << 10  // per entry in dialogue.md
	thoughtsMax     = 256 << 10 // per session; the session's output has the rest, and people read dialogue.md
	denialsMax      = 100       // per session; each denial adds a permanent line to the journal, and the session ends at this limit
	notesMax        = 32        // per session: notes about output that could not be parsed
	roundsMax       = 20        // per task; stops an agent that delegates after every answer
	// suffix of the actor ID of a call that was judged after it was made; written before dispatch.Denied.Afterwards existed
	oldAfterwards = "!"
)

// dispatchListener acts on the output of an agent that works for a dispatch folder. Each entry that it writes
// to the folder names its place in the output as the actor. After a crash the output is read again,
// and entries that exist are skipped.
type dispatchListener struct {
	e    *Listener
	m    *sessions.Slot
	s    team.Session
	j    *dispatchctl.Job
	conv driver.Conversation
	acts map[string]bool // actions of this session that are recorded in the folder

	why      string // reason, if Fairlead ended the session
	thought  []byte
	thoughts int
	denials  int
	notes    int
}

// worksFrom starts a listener for a session of a dispatch folder. It returns nil if Fairlead is
// stopping or if the folder no longer needs the session.
func (e *Listener) worksFrom(ctx context.Context, m *sessions.Slot, s team.Session, proc sessionhost.Process) *dispatchListener {
	j, err := e.dispatch.JobOf(ctx, s)
	if err != nil {
		if ctx.Err() == nil {
			e.log.Error("what an agent says cannot be brought to its session folder", "session", s.ID, "error", err)
		}
		return nil
	}
	t := &dispatchListener{
		e: e, m: m, s: s, j: j, conv: m.Driver.Converse(sessions.Known(*m.Conf), sessions.SessionFor(m, s), proc),
		acts: map[string]bool{},
	}
	if err := t.remember(); err != nil {
		e.log.Error("what a session did before cannot be read in its folder; it may be written there twice", "session", s.ID, "error", err)
	}
	return t
}

// remember loads the actions that the session did before the daemon restarted. A new session has
// none.
func (t *dispatchListener) remember() error {
	if time.Since(t.s.StartedAt) < time.Second && t.s.Offset == 0 && t.s.Phase != session.Running {
		return nil
	}
	for from := int64(0); ; {
		lines, next, err := t.j.Folder.Lines(from)
		if err != nil || next == from {
			return err
		}
		for i := range lines {
			ch := &lines[i].Change
			if strings.HasPrefix(ch.Actor.ID, t.s.ID+"@") {
				id, afterwards := strings.CutSuffix(ch.Actor.ID, oldAfterwards)
				t.acts[id] = true
				if denied := change.As[dispatch.Body](ch.Body).Denied; (afterwards || denied != nil && denied.Afterwards) && t.j.Main() {
					t.end("it went past the rules before fairlead was restarted")
				}
			}
		}
		from = next
	}
}

// act names the action that follows from a fact. done reports that the action was recorded before.
func (t *dispatchListener) act(offset int64, of string) (by change.Actor, done bool) {
	sum := sha256.Sum256([]byte(of))
	by = change.Actor{Kind: "agent", ID: fmt.Sprintf("%s@%d-%s", t.s.ID, offset, hex.EncodeToString(sum[:3]))}
	return by, t.acts[by.ID]
}

// note handles a fact. It reports whether the fact had an effect, so that the journal advances the
// session's offset.
func (t *dispatchListener) note(ctx context.Context, fact HeldFact) (some bool) {
	if t == nil {
		return false
	}
	if fact.Kind != driver.Thought {
		t.thinks()
	}
	for _, piece := range fact.pieces {
		if piece.Marker != nil {
			t.delegates(fact.Offset, piece.Marker)
			some = true
		}
	}
	switch fact.Kind {
	case driver.Thought:
		t.thought = append(t.thought, fact.Text...)
		if !fact.Part {
			t.thought = append(t.thought, '\n')
		}
		if len(t.thought) >= thoughtBytesMax {
			t.thinks()
		}
		return false
	case driver.PermissionAsked:
		t.asked(ctx, fact.Fact)
		return true
	case driver.ToolCalled:
		return t.called(fact.Fact)
	default:
		return some
	}
}

// thinks records the agent's thoughts.
func (t *dispatchListener) thinks() {
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.thought), "\uFFFD"))
	t.thought = nil
	if text == "" || t.thoughts > thoughtsMax {
		return
	}
	if t.thoughts += len(text); t.thoughts > thoughtsMax {
		text = fmt.Sprintf("[more than %d bytes: the rest is in the output of session %s]", thoughtsMax, t.s.ID)
	}
	t.write(dispatch.Entry{Kind: dispatch.OfThought, Who: t.state(), Text: text})
}

// remark records input that had no effect.
func (t *dispatchListener) remark(format string, args ...any) {
	if t.notes++; t.notes > notesMax {
		return
	}
	t.write(dispatch.Entry{Kind: dispatch.OfNote, Who: t.state(), Text: fmt.Sprintf(format, args...)})
}

func (t *dispatchListener) write(entry dispatch.Entry) {
	if err := t.j.Folder.Note(time.Now(), t.j.Work.Conversation, entry); err != nil {
		t.e.log.Error("a conversation could not be recorded", "session", t.s.ID, "error", err)
	}
}

func (t *dispatchListener) state() string {
	if t.j.Main() {
		return dispatch.Main
	}
	return t.m.Conf.Name
}

// delegation is the content after [DELEGATE].
type delegation struct {
	To   string `json:"to"`
	Task string `json:"task"`
}

// ReadDelegation parses the content after the tag. fault says why it is not a valid delegation.
func ReadDelegation(m *marker.Marker) (d delegation, fault string) {
	if m.Fault != "" {
		return d, m.Fault
	}
	dec := json.NewDecoder(bytes.NewReader(m.JSON))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return d, err.Error()
	}
	d.To, d.Task = strings.TrimSpace(d.To), strings.TrimSpace(d.Task)
	if d.To == "" || d.Task == "" {
		return d, `it lacks the agent or the task; say [DELEGATE] {"to": NAME, "task": TEXT}`
	}
	return d, ""
}

// delegates starts the work that MAIN delegates to another agent (D3, D5).
func (t *dispatchListener) delegates(offset int64, m *marker.Marker) {
	d, fault := ReadDelegation(m)
	if fault != "" {
		t.remark("invalid delegation: %s: %s", fault, clip.Text(m.Text, 500))
		return
	}
	by, done := t.act(offset, m.Text)
	if done {
		return
	}
	if t.j.Work.Round >= roundsMax {
		t.remark("could not delegate to %s: it was told %d times already what came of what it had delegated; it is to answer now", d.To,
			t.j.Work.Round)
		return
	}
	in := dispatch.Delegate{
		Conversation: t.j.Work.Conversation, Agent: d.To, Text: d.Task, By: t.j.Work.Task, Call: by.ID,
		Params: string(m.JSON),
	}
	if match := dispatchfolder.MatchOf(dispatchfolder.Best(t.j.Session, d.Task)); match != nil && match.Agent == d.To {
		in.Trigger = triggerOf(match)
	}
	t.do(by, in, func(refused *table.Refusal) { t.remark("could not delegate to %s: %s", d.To, refused.Reason) })
}

// triggerOf says why a description matches, in the format of state.jsonl.
func triggerOf(m *dispatch.Match) string {
	quoted := make([]string, len(m.Terms))
	for i, term := range m.Terms {
		quoted[i] = fmt.Sprintf("%q", term)
	}
	if len(quoted) == 0 {
		return ""
	}
	return "matched " + strings.Join(quoted, " + ")
}

// do submits an input to the folder once. If that fails, the input is repeated when the output is
// read again, or it is logged and lost. The agent continues either way.
func (t *dispatchListener) do(by change.Actor, in dispatch.Input, refused func(*table.Refusal)) {
	t.acts[by.ID] = true
	now, err := t.e.dispatch.FolderState.Decide(t.j.Folder, by, in)
	var no *table.Refusal
	switch {
	case err == nil:
		t.j.Session = now
	case errors.As(err, &no):
		refused(no)
	default:
		t.e.log.Error("what an agent did could not be written into its session folder", "session", t.s.ID, "folder", t.j.Name, "error", err)
	}
	t.e.dispatch.FolderState.Poke()
}

// end ends the session and records the reason in the folder.
func (t *dispatchListener) end(why string) {
	if t.why != "" {
		return
	}
	t.why = why
	t.e.loop.Go(func(ctx context.Context) { t.e.sessions.End(ctx, t.m, t.s.ID, t.m.Conf.Grace) })
}

// over adds the result for the folder to the end of a session. It returns false if Fairlead is
// stopping.
func (t *dispatchListener) over(ctx context.Context, what *team.SessionEnded) bool {
	if t == nil {
		return true
	}
	t.thinks()
	others := false
	if t.e.loop.View(ctx, func(tm *team.Team) {
		for name, a := range tm.Agents {
			others = others || name != t.m.Conf.Name && len(a.Sessions()) > 0
		}
	}) != nil {
		return false
	}
	t.compare(others)
	if t.why != "" {
		what.Outcome, what.Why = control.Failed, t.why
	}
	return true
}

// gone reports whether the process has ended and can no longer receive input.
func (t *dispatchListener) gone() bool {
	proc := t.e.sessions.Proc(t.s.ID)
	return proc == nil || sessions.IsDone(proc)
}
