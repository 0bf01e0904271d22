package claudehook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

// aliases maps tool names of programs with the same hooks to Claude Code's.
var aliases = map[string]string{
	"run_shell_command": "Bash", "write_file": "Write", "edit": "Edit", "replace": "Edit",
	"read_file": "Read", "read_many_files": "Read", "list_directory": "LS", "glob": "Glob",
	"grep_search": "Grep", "search_file_content": "Grep", "web_fetch": "WebFetch", "web_search": "WebSearch",
	"todo_write": "TodoWrite", "task": "Task",
}

// call converts the tool call for package policy.
func (v *visit) call() policy.Call {
	call := policy.Call{Tool: v.tool(), Input: v.Input, Dir: v.Dir, AgentID: v.Agent}
	if len(bytes.TrimSpace(call.Input)) == 0 || bytes.Equal(call.Input, []byte("null")) {
		call.Input = json.RawMessage("{}")
	}
	return call
}

func (v *visit) tool() string { return cmp.Or(aliases[v.Tool], v.Tool) }

// delegates reports whether a call delegates work to an agent.
func (v *visit) delegates() bool { return v.tool() == "Task" || v.tool() == "Agent" }

// preTool decides before a tool is used: D3 and D5 for a delegation, D8, D9 and X10 for the rest. An allowed
// call gets no answer, so that the user's own settings still apply.
func (v *visit) preTool() (Answer, error) {
	if v.Tool == "" {
		return Answer{}, errNoTool
	}
	if err := v.seen(); err != nil {
		return Answer{}, err
	}
	call := v.call()
	call.Confined = v.confinable()
	verdict := dispatchfolder.Judge(v.session, v.folder, "", call)
	if words, held := selfRelease(call); held {
		verdict = policy.Deny(policy.DeniedProtected, words)
	}
	_, main := v.who()
	switch {
	case !verdict.Allow:
		return v.deny(verdict), nil
	case v.delegates():
		return v.delegate()
	case main && call.Confined, !main && v.confinable():
		return v.confine(verdict, main)
	case verdict.Unread != "":
		return ask("Fairlead cannot tell what this command does, and whether it changes what holds the agents: " + verdict.Unread), nil
	}
	return Answer{}, nil
}

// seen records which task an agent's id belongs to when the id is first seen.
func (v *visit) seen() error {
	if v.Agent == "" || v.AgentType == "" {
		return nil // an unknown agent has MAIN's rights
	}
	if _, main := v.session.InCharge(v.Agent); !main {
		return nil
	}
	_, err := v.do(dispatch.Seen{Caller: v.Agent, Agent: v.AgentType}, change.Actor{Kind: "agent", ID: v.AgentType})
	if err != nil && refused(err) == "" {
		return fmt.Errorf("record that %s is at work: %w", v.AgentType, err)
	}
	return nil
}

// deny denies a call (D8, X10), names an agent that could do it, and records it. If recording fails, the
// denial still holds.
func (v *visit) deny(verdict policy.Verdict) Answer {
	who, main := v.who()
	if v.session.Mode == dispatch.Response && main {
		who = dispatch.Desk
	}
	in := dispatch.Deny{
		Conversation: v.worksIn(), Caller: v.Agent, Tool: v.Tool, Call: shorten(v.Input), Row: cmp.Or(verdict.Row, "D8"),
		Reason: verdict.Reason, Capability: verdict.Capability,
	}
	if v.task != nil {
		in.Task = v.task.ID
	}
	if main && verdict.Code != policy.DeniedProtected {
		in.Delegate = v.whoCould(verdict.Capability)
	}
	text := fmt.Sprintf("Fairlead (%s, %s): %s.", in.Row, dispatch.Display(who), strings.TrimSuffix(verdict.Reason, "."))
	switch {
	case in.Delegate != "" && v.hosted:
		text += " " + in.Delegate + " may do it; delegate it as described at the start."
	case in.Delegate != "":
		text += fmt.Sprintf(" %[1]s may do it (Task tool, subagent_type %[1]q); Fairlead adds the workspace to the task.", in.Delegate)
	case main && verdict.Code != policy.DeniedProtected:
		text += " No agent's description fits; tell the user what is missing, and suggest to describe an agent for it in .claude/agents."
	}
	if main && v.Tool == "Bash" && len(v.Exe) > 0 {
		text += whyPlain(v)
	}
	if _, err := v.do(in, v.actor()); err != nil {
		text += " (This denial could not be recorded: " + err.Error() + ")"
	}
	return deny(text)
}

// whoCould returns the agent whose description matches the missing capability, or else the input.
func (v *visit) whoCould(capability string) string {
	input := ""
	if c := v.session.Open; c != nil {
		input = c.Input
	}
	if capability != "" {
		if r := dispatchfolder.Best(v.session, capability+" "+input); r.Best != "" {
			return r.Best
		}
	}
	if input == "" {
		return ""
	}
	return dispatchfolder.Best(v.session, input).Best
}

// selfRelease detects a call that would send the slash command in the user's place, later or in another
// session of the program (X10). Which tools can do that is unknown; an argument that is the command is
// enough.
func selfRelease(call policy.Call) (string, bool) {
	if !bytes.Contains(call.Input, []byte(CommandName)) {
		return "", false
	}
	switch call.Tool {
	case "Write", "Edit", "MultiEdit", "NotebookEdit", "Read", "Grep", "Glob", "LS", "TodoWrite":
		return "", false // these tools only write or search for the text
	}
	var input any
	if json.Unmarshal(call.Input, &input) != nil {
		return "", false // policy judges shell commands
	}
	if !says(input) {
		return "", false
	}
	return "it would send /" + CommandName +
		" in place of the user, and an agent may not change its own restrictions; ask the user to type it", true
}

func says(v any) bool {
	switch v := v.(type) {
	case string:
		_, is := isCommand(v)
		return is
	case []any:
		for _, e := range v {
			if says(e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if says(e) {
				return true
			}
		}
	}
	return false
}

// shorten shows a tool's input to people.
func shorten(input json.RawMessage) string {
	var known struct {
		Command  string `json:"command"`
		FilePath string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Path     string `json:"path"`
		URL      string `json:"url"`
	}
	if json.Unmarshal(input, &known) == nil {
		if text := cmp.Or(known.Command, known.FilePath, known.Notebook, known.Path, known.URL); text != "" {
			return cut(text, 900)
		}
	}
	var flat bytes.Buffer
	if json.Compact(&flat, input) != nil {
		return ""
	}
	return cut(flat.String(), 900)
}

// hosted answers for an agent that the daemon runs for a dispatch (FAIRLEAD_FOLDER). The daemon reads its
// output and ends it; the hook only checks that its role permits each tool call, also where the program would
// not ask. ok is false if the agent is not the daemon's.
func (h Hook) hosted(is Event) (a Answer, ok bool) {
	path := h.Env("FAIRLEAD_FOLDER")
	if path == "" || is.Name != PreToolUse && is.Name != PostToolUse {
		return Answer{}, false
	}
	folder, s, err := openHosted(path)
	if err != nil {
		return failed(is.Name, fmt.Errorf("find the session that this agent works for: %w", err)), true
	}
	if s.Phase == dispatch.Closed || s.Host != dispatch.Fairlead {
		return Answer{}, false
	}
	if is.Tool == "" {
		return failed(is.Name, errNoTool), true
	}
	v := &visit{Hook: h, Event: is, folder: folder, session: s, hosted: true}
	v.task = v.hostedTask()
	call := v.call()
	v.Agent, call.AgentID = "", "" // the program's own subagents have the rights of the agent that called them
	if v.task != nil {
		call.AgentID = fmt.Sprintf("%s/%d/%d", s.Open.ID(), v.task.ID, v.task.Round)
	}
	verdict := dispatchfolder.Judge(s, folder, "", call)
	if words, held := selfRelease(call); held {
		verdict = policy.Deny(policy.DeniedProtected, words)
	}
	switch {
	case verdict.Allow:
		return Answer{}, true
	case is.Name == PostToolUse:
		return v.tooLate(verdict), true
	}
	return v.deny(verdict), true
}

func openHosted(path string) (*dispatchfolder.Folder, dispatch.Dispatch, error) {
	var s dispatch.Dispatch
	if !filepath.IsAbs(path) {
		return nil, s, errors.New("FAIRLEAD_FOLDER is not an absolute path")
	}
	folder, err := dispatchfolder.Open(path)
	if err != nil {
		return nil, s, err //nolint:wrapcheck // the caller adds the context
	}
	s, err = folder.Session()
	return folder, s, err //nolint:wrapcheck // the caller adds the context
}

// worksIn is the conversation in which the daemon gave this agent a task, which may have ended; 0: the
// program has its own dispatch, and means the open conversation.
func (v *visit) worksIn() int {
	if !v.hosted {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimPrefix(v.Env("FAIRLEAD_CONVERSATION"), "conv_"))
	if err != nil {
		return 0
	}
	return n
}

// hostedTask is the task that the daemon gave to this agent; nil: it is MAIN, or its task has ended, so that
// it has MAIN's rights.
func (v *visit) hostedTask() *dispatch.Task {
	c, state := v.session.Open, v.Env("FAIRLEAD_STATE")
	if c == nil || state == dispatch.Main || v.Env("FAIRLEAD_CONVERSATION") != c.ID() {
		return nil
	}
	for i := range c.Tasks {
		if c.Tasks[i].Agent == state {
			return &c.Tasks[i]
		}
	}
	return nil
}

const (
	transcriptTail = 256 << 10 // bytes at the end of the program's transcript that are read
	thoughtMax     = 16 << 10  // bytes that dialogue.md keeps
)

// thought records what MAIN said and thought before it delegates, if the program's transcript has it by then
// (seed 002, Dialogue Recording). It is optional: if there is no transcript, or its format is unknown,
// nothing is recorded.
func (v *visit) thought() {
	c := v.session.Open
	if c == nil || v.Agent != "" || !filepath.IsAbs(v.Transcript) {
		return
	}
	tail, err := readTail(v.Transcript)
	if err != nil {
		return
	}
	if text := lastThought(tail); text != "" {
		_ = v.folder.Note(v.Now(), c.N, dispatch.Entry{Kind: dispatch.OfThought, Who: dispatch.Main, Text: cut(text, thoughtMax)})
	}
}

// readTail reads the end of a regular file.
func readTail(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // the error is only tested for nil
	}
	if !info.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // the error is only tested for nil
	}
	defer file.Close() //nolint:errcheck // it was only read
	from := max(0, info.Size()-transcriptTail)
	return io.ReadAll(io.NewSectionReader(file, from, transcriptTail)) //nolint:wrapcheck // the error is only tested for nil
}

// lastThought returns what the assistant thought and said since the last text by another speaker.
func lastThought(tail []byte) string {
	var parts []string
	for line := range bytes.Lines(tail) {
		var is struct {
			Type    string `json:"type"`
			Side    bool   `json:"isSidechain"` // a subagent's
			Message struct {
				Content json.RawMessage `json:"content"`
			} `json:"message"`
		}
		if json.Unmarshal(line, &is) != nil || is.Side {
			continue // the first line is incomplete
		}
		switch is.Type {
		case "user":
			parts = nil
		case "assistant":
			var blocks []struct {
				Type     string `json:"type"`
				Thinking string `json:"thinking"`
				Text     string `json:"text"`
			}
			if json.Unmarshal(is.Message.Content, &blocks) != nil {
				continue
			}
			for _, b := range blocks {
				if text := strings.TrimSpace(b.Thinking + b.Text); text != "" && (b.Type == "thinking" || b.Type == "text") {
					parts = append(parts, text)
				}
			}
		}
	}
	return strings.Join(parts, "\n\n")
}
