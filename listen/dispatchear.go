package listen

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	dispatchctl "github.com/fairlead-dev/fairlead/controller/dispatch"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/control"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/machine/session"
	"github.com/fairlead-dev/fairlead/marker"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	thoughtBytesMax = 16 << 10  // of one entry in dialogue.md
	thoughtsMax     = 256 << 10 // of one session: what is longer is in its output, and dialogue.md is read by people
	denialsMax      = 100       // of one session: whoever goes on is not at work any more, and every one is a line for ever
	notesMax        = 32        // of what was not understood
	roundsMax       = 20        // of one task: whoever delegates after every answer would never end
	oldAfterwards   = "!"       // ends the actor's id of a call judged after it was made, in lines of versions before dispatch.Denied.Afterwards
)

// workEar acts on what an agent says that has work in a session folder. Whatever it writes into the
// folder carries the place in the output that it comes from as its actor, so that what is heard
// again after a crash is not done again.
type workEar struct {
	e    *Listener
	m    *sessions.Slot
	s    team.Session
	j    *dispatchctl.Job
	conv driver.Conversation
	acts map[string]bool // that the folder knows of this session

	why      string // it was ended by us; the reason
	thought  []byte
	thoughts int
	denials  int
	notes    int
}

// worksFrom begins to listen to a session for its folder. Nil: we stop, or there is nobody any more
// to whom it would matter.
func (e *Listener) worksFrom(ctx context.Context, m *sessions.Slot, s team.Session, proc seam.Process) *workEar {
	j, err := e.dispatch.JobOf(ctx, s)
	if err != nil {
		if ctx.Err() == nil {
			e.log.Error("what an agent says cannot be brought to its session folder", "session", s.ID, "error", err)
		}
		return nil
	}
	t := &workEar{e: e, m: m, s: s, j: j, conv: m.Driver.Converse(sessions.Known(*m.Conf), sessions.SessionFor(m, s), proc), acts: map[string]bool{}}
	if err := t.remember(); err != nil {
		e.log.Error("what a session did before cannot be read in its folder; it may be written there twice", "session", s.ID, "error", err)
	}
	return t
}

// remember finds what a session did before the daemon was restarted. Of a new one there is nothing.
func (t *workEar) remember() error {
	if time.Since(t.s.StartedAt) < time.Second && t.s.Offset == 0 && t.s.Phase != session.Running {
		return nil
	}
	for from := int64(0); ; {
		lines, next, err := t.j.Folder.Lines(from)
		if err != nil || next == from {
			return err
		}
		for i := range lines {
			if strings.HasPrefix(lines[i].Actor.ID, t.s.ID+"@") {
				id, afterwards := strings.CutSuffix(lines[i].Actor.ID, oldAfterwards)
				t.acts[id] = true
				if denied := lines[i].Change.Body.Denied; (afterwards || denied != nil && denied.Afterwards) && t.j.Main() {
					t.end("it went past the rules before fairlead was restarted")
				}
			}
		}
		from = next
	}
}

// act names something that comes of a fact; done says that it was done before.
func (t *workEar) act(offset int64, of string) (by dispatchfolder.Actor, done bool) {
	sum := sha256.Sum256([]byte(of))
	by = dispatchfolder.Actor{Kind: "agent", ID: fmt.Sprintf("%s@%d-%s", t.s.ID, offset, hex.EncodeToString(sum[:3]))}
	return by, t.acts[by.ID]
}

// note takes a fact in. It says whether anything came of it, so that the journal is to know how far
// this was heard.
func (t *workEar) note(ctx context.Context, fact HeldFact) (some bool) {
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

// thinks writes down what it thought.
func (t *workEar) thinks() {
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

// remark writes down what nothing came of.
func (t *workEar) remark(format string, args ...any) {
	if t.notes++; t.notes > notesMax {
		return
	}
	t.write(dispatch.Entry{Kind: dispatch.OfNote, Who: t.state(), Text: fmt.Sprintf(format, args...)})
}

func (t *workEar) write(entry dispatch.Entry) {
	if err := t.j.Folder.Note(time.Now(), t.j.Work.Conversation, entry); err != nil {
		t.e.log.Error("a conversation could not be recorded", "session", t.s.ID, "error", err)
	}
}

func (t *workEar) state() string {
	if t.j.Main() {
		return dispatch.Main
	}
	return t.m.Conf.Name
}

// delegation is what stands behind [DELEGATE].
type delegation struct {
	To   string `json:"to"`
	Task string `json:"task"`
}

// readDelegation reads what stands behind the tag; fault: why it is none.
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
		return d, `it names nobody, or no task; say [DELEGATE] {"to": NAME, "task": TEXT}`
	}
	return d, ""
}

// delegates has somebody else do something (D3, D5).
func (t *workEar) delegates(offset int64, m *marker.Marker) {
	d, fault := ReadDelegation(m)
	if fault != "" {
		t.remark("delegated to nobody: %s: %s", fault, loop.CutText(m.Text, 500))
		return
	}
	by, done := t.act(offset, m.Text)
	if done {
		return
	}
	if t.j.Work.Round >= roundsMax {
		t.remark("could not delegate to %s: it was told %d times already what came of what it had delegated; it is to answer now", d.To, t.j.Work.Round)
		return
	}
	in := dispatch.Delegate{Conversation: t.j.Work.Conversation, Agent: d.To, Text: d.Task, By: t.j.Work.Task, Call: by.ID, Params: string(m.JSON)}
	if match := dispatchfolder.MatchOf(dispatchfolder.Best(t.j.Session, d.Task)); match != nil && match.Agent == d.To {
		in.Trigger = triggerOf(match)
	}
	t.do(by, in, func(refused *machine.Refusal) { t.remark("could not delegate to %s: %s", d.To, refused.Reason) })
}

// triggerOf says why a description fits, as state.jsonl has it.
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

// do says something to the folder, once. What cannot be said now is said when it is heard again, or is
// lost with words in the log: the agent goes on meanwhile.
func (t *workEar) do(by dispatchfolder.Actor, in dispatch.Input, refused func(*machine.Refusal)) {
	t.acts[by.ID] = true
	now, err := t.e.dispatch.FolderState.Door(t.j.Folder, by, in)
	var no *machine.Refusal
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

// end ends the session with words, which its folder is told.
func (t *workEar) end(why string) {
	if t.why != "" {
		return
	}
	t.why = why
	t.e.Go(func(ctx context.Context) { t.e.sessions.End(ctx, t.m, t.s.ID, t.m.Conf.Grace) })
}

// over adds to the end of a session what its folder is to be told of it. False: we stop.
func (t *workEar) over(ctx context.Context, what *team.SessionEnded) bool {
	if t == nil {
		return true
	}
	t.thinks()
	others := false
	if t.e.View(ctx, func(tm *team.Team) {
		for name, a := range tm.Agents {
			others = others || name != t.m.Conf.Name && a.Session != nil
		}
	}) != nil {
		return false
	}
	t.compare(others)
	if err := os.RemoveAll(t.e.dispatch.PrivateTemp(t.s.ID)); err != nil {
		t.e.log.Warn("the temporary folder of a session could not be removed", "session", t.s.ID, "error", err)
	}
	if t.why != "" {
		what.Outcome, what.Why = control.Failed, t.why
	}
	return true
}

// gone says whether its process is over, so that nothing can be said to it.
func (t *workEar) gone() bool {
	proc := t.e.sessions.Proc(t.s.ID)
	return proc == nil || sessions.IsDone(proc)
}
