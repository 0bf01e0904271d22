package claudehook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/claudehook/confine"
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
	is.Name = cmp.Or(is.Name, name)
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
		return failed(name,
			fmt.Errorf("the hook is installed for %s, but was called for %s; install it again with fairlead claude install", name, is.Name))
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
	folder, _, err := dispatchfolder.ByProgramIn(h.project(is.Dir), is.Session)
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
func (v *visit) do(in dispatch.Input, who change.Actor) ([]change.Change, error) {
	changes, s, err := v.folder.Do(v.Now(), who, in)
	if err == nil {
		v.session = s
	}
	return changes, err
}

// Actors behind a hook: a person for a prompt, an agent for its actions, and the program itself.
func (v *visit) person() change.Actor {
	return change.Actor{Kind: "human", ID: "claude"}
}

func (v *visit) actor() change.Actor {
	who, _ := v.who()
	return change.Actor{Kind: "agent", ID: who}
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
// without an id, it counts as one if this user, or the project, has any.
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
	if !h.anySession() && !h.anyOpenHere() {
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

// anyOpenHere reports whether the project has an open dispatch with a program, whatever the user's state folder says.
func (h Hook) anyOpenHere() bool {
	wd, err := os.Getwd()
	if err != nil {
		return true
	}
	all, err := dispatchfolder.List(h.project(wd))
	return err != nil || slices.ContainsFunc(all, func(f dispatchfolder.Found) bool { return f.Open() && f.Session.Program != "" })
}

// refused returns the text of a refusal; empty: it is a failure, or nothing.
func refused(err error) string {
	if r, ok := errors.AsType[*table.Refusal](err); ok {
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

// Main is `fairlead hook EVENT`: Run, with this program as what runs MAIN's commands.
func Main(name string, in io.Reader, out, errs io.Writer) int {
	exe, err := os.Executable()
	if err != nil {
		return failed(name, fmt.Errorf("find this program's own file: %w", err)).Write(out, errs)
	}
	return Run(name, []string{exe, "hook", confine.Verb}, in, out, errs)
}

// Run runs a hook: the event's name and the streams in, the exit code out. exe is Hook.Exe.
func Run(name string, exe []string, in io.Reader, out, errs io.Writer) int {
	home, _ := os.UserHomeDir() // none: only the project's agents are found
	h := Hook{Now: time.Now, Env: os.Getenv, Home: home, Nested: nested, Args: callerArgs, Exe: exe}
	done := make(chan Answer, 1)
	go func() {
		defer func() {
			if bug := recover(); bug != nil { // for some events the program would take a crash for consent
				done <- failed(name, fmt.Errorf("this is a bug: %v", bug))
			}
		}()
		done <- h.Answer(name, in)
	}()
	select {
	case a := <-done:
		return a.Write(out, errs)
	case <-time.After(HookWait):
		return failed(name, errors.New("there was no decision in time; check whether a process holds the session's lock")).Write(out, errs)
	}
}

// Exit codes for the program: 2 blocks; any other except 0 is shown to the user and does not block.
const (
	codePass  = 0
	codeFault = 1
	codeBlock = 2
)

// Answer is a hook's result. The zero value says nothing, so the program does what it would do without the
// hook.
type Answer struct {
	Out  []byte // standard output: one JSON object, or nothing
	Err  string // standard error, without a newline
	Code int    // exit code
}

// Write writes an answer to the streams and returns the exit code.
func (a Answer) Write(out, errs io.Writer) int {
	if len(a.Out) > 0 {
		if _, err := out.Write(append(a.Out, '\n')); err != nil { // the denial was not delivered
			_, _ = io.WriteString(errs, "fairlead: send the decision to the program: "+err.Error()+"\n")
			return codeBlock
		}
	}
	if a.Err != "" {
		_, _ = io.WriteString(errs, "fairlead: "+a.Err+"\n")
	}
	return a.Code
}

// block is a failure where letting the call through would be wrong.
func block(text string) Answer { return Answer{Err: text, Code: codeBlock} }

// said is the part of an answer that is an object, in the documented order.
type said struct {
	Decision string    `json:"decision,omitempty"` // block: of a prompt, or of what a tool has done
	Reason   string    `json:"reason,omitempty"`
	Message  string    `json:"systemMessage,omitempty"` // for the user
	Specific *specific `json:"hookSpecificOutput,omitempty"`
}

type specific struct {
	Event    string          `json:"hookEventName"`
	Decision string          `json:"permissionDecision,omitempty"`
	Reason   string          `json:"permissionDecisionReason,omitempty"`
	Updated  json.RawMessage `json:"updatedInput,omitempty"`
	Context  string          `json:"additionalContext,omitempty"`
}

func say(s said) Answer { return Answer{Out: encode.JSON(s)} }

// deny denies a tool call, with a reason for the model.
func deny(reason string) Answer {
	return say(said{Specific: &specific{Event: PreToolUse, Decision: "deny", Reason: reason}})
}

// ask has the program ask the user about a tool call, also if the user's settings allow it.
func ask(reason string) Answer {
	return say(said{Specific: &specific{Event: PreToolUse, Decision: "ask", Reason: reason}})
}

// refusePrompt erases a prompt, with a reason for the user.
func refusePrompt(reason string) Answer { return say(said{Decision: "block", Reason: reason}) }

// tell adds text to the model's context, and shows the user a line.
func tell(event, context, message string) Answer {
	return say(said{Message: message, Specific: &specific{Event: event, Context: context}})
}

// configured is the part of fairlead.yaml that hooks need.
type configured struct {
	Tools   []string `yaml:"tools"`   // that MAIN may use besides the known ones
	Hooks   []string `yaml:"hooks"`   // commands of other hooks that do not replace shell commands
	Commits *bool    `yaml:"commits"` // whether agents may run git add and git commit; nil: yes
}

func configuredIn(repo string) (configured, error) {
	var conf struct {
		Dispatch configured `yaml:"dispatch"`
	}
	err := readConfig(repo, &conf)
	return conf.Dispatch, err
}

// readConfig reads the needed part of fairlead.yaml; without the file nothing is set. Package config is not used, because it would
// slow down the start of every hook; an error in the needed part is an error here.
func readConfig(repo string, needed any) error {
	path := filepath.Join(repo, "fairlead.yaml")
	text, _, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := yaml.Unmarshal(text, needed); err != nil {
		return fmt.Errorf("read the dispatch settings in %s: %w; fairlead doctor reports the fault", path, err)
	}
	return nil
}
