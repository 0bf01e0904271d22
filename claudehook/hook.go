package claudehook

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// HookWait is a hook's time limit, after which it blocks if that is right. It is longer than the wait for a
// dispatch's lock, and shorter than the program's own limit, after which a call passes.
const HookWait = 20 * time.Second

// Hook is one call of a hook. Env is its environment.
type Hook struct {
	Now  func() time.Time
	Env  func(name string) string
	Home string // the user's home folder

	// Exe is the command that runs package confine: this program's file, and confine.Verb. Empty: MAIN's commands are not
	// run in the sandbox, and only the small language of package policy is allowed.
	Exe []string

	Args   func() []string // the arguments of the program that calls the hook; nil: not known
	Nested func() bool     // reports whether the program runs inside an agent program's shell; nil: not checked
}

// Answer decides on one event. name is the hook for which it was installed; in is its standard input. There
// is always an answer: faults are part of it.
func (h Hook) Answer(name string, in io.Reader) Answer {
	is, err := Decode(in)
	if err != nil {
		return h.undecoded(name, err)
	}
	if is.Name == "" {
		is.Name = name
	}
	if is.Name == UserPromptSubmit {
		if args, ok := isCommand(is.Prompt); ok {
			return h.command(is, args)
		}
	}
	if is.Session == "" {
		return h.withoutSession(name, errNoSession)
	}
	v, err := h.visit(is)
	switch {
	case err != nil:
		return failed(name, err)
	case v == nil:
		if a, ok := h.hosted(is); ok {
			return a
		}
		return h.outside(is)
	case is.Name != name:
		return failed(name, fmt.Errorf("the hook is installed for %s, but was called for %s; install it again with fairlead claude install", name, is.Name))
	case speaks(name):
		if why := h.modelSays(Event{}); why != "" {
			return failed(name, fmt.Errorf("%s, and only the person or the program of this session may send this event (X10)", why))
		}
	}
	return v.answer()
}

// speaks reports whether a hook is called for an action of a person or of the program itself. The others
// are tool calls, which are an agent's.
func speaks(name string) bool {
	return name != PreToolUse && name != PostToolUse
}

// visit is an event in a dispatch.
type visit struct {
	Hook
	Event
	folder  *dispatchfolder.Folder
	session dispatch.Dispatch
	hosted  bool           // the daemon runs this agent
	task    *dispatch.Task // the task that the daemon gave it; nil: it is MAIN
}

// visit finds the dispatch that an event belongs to; nil: none, or one that has ended.
func (h Hook) visit(is Event) (*visit, error) {
	folder, err := dispatchfolder.ByProgram(is.Session)
	if err != nil {
		return nil, fmt.Errorf("find the session's folder: %w", err)
	}
	if folder == nil {
		return nil, nil
	}
	s, err := folder.Session()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the session: %w", err)
	case s.Phase == dispatch.Closed:
		return nil, nil
	case s.Program != is.Session:
		return nil, fmt.Errorf("%s is the session of another conversation of the program (%q); end it there, or with fairlead dispatch end --path", folder.Path(), s.Program)
	}
	return &visit{Hook: h, Event: is, folder: folder, session: s}, nil
}

// project is the repository in which the program was started, or else the current folder.
func (h Hook) project(dir string) string {
	if p := h.Env("CLAUDE_PROJECT_DIR"); filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return dir
}

// answer is what each hook does in a dispatch.
func (v *visit) answer() Answer {
	var a Answer
	var err error
	switch v.Name {
	case SessionStart:
		a, err = v.sessionStart()
	case UserPromptSubmit:
		a, err = v.prompt()
	case PreToolUse:
		a, err = v.preTool()
	case PostToolUse:
		a, err = v.postTool()
	case SubagentStop:
		a, err = v.subagentStop()
	case Stop:
		a, err = v.stop()
	case SessionEnd:
		a, err = v.sessionEnd()
	}
	if err != nil {
		return failed(v.Name, err)
	}
	return a
}

// do sends the dispatch an event, and keeps the new state.
func (v *visit) do(in dispatch.Input, who dispatchfolder.Actor) ([]dispatch.Change, error) {
	changes, s, err := v.folder.Do(v.Now(), who, in)
	if err == nil {
		v.session = s
	}
	return changes, err
}

// Actors behind a hook: a person for a prompt, an agent for its actions, and the program itself.
func (v *visit) person() dispatchfolder.Actor {
	return dispatchfolder.Actor{Kind: "human", ID: "claude"}
}

func (v *visit) actor() dispatchfolder.Actor {
	who, _ := v.who()
	return dispatchfolder.Actor{Kind: "agent", ID: who}
}

// who makes the call: an agent, or MAIN.
func (v *visit) who() (name string, main bool) {
	if v.task != nil {
		return v.task.Agent, false
	}
	return v.session.InCharge(v.Agent)
}

// failed is a failure of Fairlead in a dispatch. It blocks where letting the event pass would be wrong.
func failed(name string, err error) Answer {
	text := err.Error()
	switch name {
	case PreToolUse:
		return block(text + ". The call cannot be checked, so it is blocked.")
	case UserPromptSubmit:
		return block(text + ". The input cannot be recorded, so it is refused.")
	}
	return Answer{Err: text, Code: codeFault}
}

// undecoded answers an input that cannot be parsed. It belongs to a dispatch if its session id can be found;
// without an id, it counts as one if this user has any.
func (h Hook) undecoded(name string, err error) Answer {
	var fault *Fault
	if !errors.As(err, &fault) || fault.Session == "" {
		return h.withoutSession(name, err)
	}
	switch v, found := h.visit(Event{Name: name, Session: fault.Session}); {
	case found != nil:
		return failed(name, errors.Join(err, found))
	case v == nil:
		return Answer{}
	}
	return failed(name, err)
}

// withoutSession answers an input that has no session id.
func (h Hook) withoutSession(name string, err error) Answer {
	if !h.anySession() {
		return Answer{}
	}
	return failed(name, err)
}

// anySession reports whether this user has an open dispatch with any program.
func (h Hook) anySession() bool {
	state, err := dispatchfolder.StateHome()
	if err != nil {
		return true // then none can be found either
	}
	dir, err := os.Open(filepath.Join(state, "fairlead", "sessions"))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer dir.Close() //nolint:errcheck // it was only read
	names, err := dir.Readdirnames(1)
	return len(names) > 0 || err != nil && !errors.Is(err, io.EOF)
}

// refused returns the text of a refusal; empty: it is a failure, or nothing.
func refused(err error) string {
	var r *machine.Refusal
	if errors.As(err, &r) {
		if r.Reason != "" {
			return r.Reason
		}
		return r.Error()
	}
	return ""
}

// cut shortens a text at a character's border and marks the cut.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	mark := fmt.Sprintf(" … (cut here; it has %d bytes)", len(text))
	return clip.To(text, most-len(mark)) + mark
}
