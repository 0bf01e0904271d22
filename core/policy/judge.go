package policy

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// judge decides about one call.
type judge struct {
	rules Rules
	main  bool
	call  Call
	where Where
	disk  Disk

	dir     string
	outputs []string // as given, and resolved
	session []string
	guarded []string // Where.Protected, likewise
	notes   []string
	writes  []string

	bound   bool   // the rules are an agent's own bounds (within): nil lists set no bound, and only the lists decide about places
	doubt   string // why it cannot be decided whether the call keeps the bounds; empty: it can, as far as words go
	unclear bool   // a program runs whose writes the command line does not show

	shell *shell // of an agent's shell command, after it was read

	gathers  bool // of MAIN's confined command: Verdict has these three
	programs []string
	network  bool
}

// denial is why a call is denied.
type denial struct {
	code       DenyReason // empty: the rules of the role
	capability string     // what is missing: "write Python", "run npm"
	why        string
	instead    string // what the caller can do itself; may be empty
}

func newJudge(rules Rules, main bool, call Call, where Where, disk Disk) *judge {
	j := &judge{rules: rules, main: main, call: call, where: where, disk: disk, dir: call.Dir}
	if !path.IsAbs(j.dir) {
		j.dir = join(where.Repo, j.dir)
	}
	j.session = j.both(where.Session)
	j.outputs = j.both(where.Outputs)
	if len(j.outputs) > 1 && below(j.outputs[0], j.session[:min(len(j.session), 1)]) && !below(j.outputs[1], j.session) {
		j.outputs = j.outputs[:1] // a link replaced the outputs folder: its target does not count as outputs
	}
	for _, p := range where.Protected {
		j.guarded = append(j.guarded, j.both(p)...)
	}
	return j
}

// both returns a folder as named and as resolved.
func (j *judge) both(folder string) []string {
	if !path.IsAbs(folder) {
		return nil
	}
	all := []string{path.Clean(folder)}
	if f, err := j.disk.Look(folder); err == nil && f.Path != all[0] {
		all = append(all, f.Path)
	}
	return all
}

func (j *judge) verdict() Verdict {
	code := DeniedAgent
	if j.main {
		code = DeniedMain
	}
	if d := j.tool(); d != nil {
		d.code = cmp.Or(d.code, code)
		return Verdict{Reason: j.words(d), Code: d.code, Row: d.code.Row(), Capability: d.capability, Writes: j.writes}
	}
	row := code.Row()
	if j.main {
		row = ""
	}
	unread := ""
	if !j.main && j.shell != nil {
		unread = j.shell.opaque
	}
	return Verdict{
		Allow: true, Unread: unread, Row: row, Reason: strings.Join(j.notes, "; "), Unsure: len(j.notes) > 0, Writes: j.writes,
		Gathers: j.gathers, Programs: j.programs, Network: j.network,
	}
}

// words formats a denial for the caller.
func (j *judge) words(d *denial) string {
	var b strings.Builder
	switch {
	case d.code == DeniedProtected:
		b.WriteString("an agent may not change its own restrictions: ")
	case j.main:
		fmt.Fprintf(&b, "this requires to %s, which MAIN cannot do: ", d.capability)
	default:
		fmt.Fprintf(&b, "this agent may not %s: ", d.capability)
	}
	b.WriteString(d.why)
	switch {
	case d.instead != "":
		b.WriteString("; " + d.instead)
	case d.code == DeniedProtected:
		b.WriteString("; no model may, in no state: ask a person to do it")
	}
	switch {
	case !j.main || d.code == DeniedProtected:
	case d.instead != "":
		b.WriteString("; or delegate it to an agent (Task)")
	default:
		b.WriteString("; delegate it to an agent (Task)")
	}
	return b.String()
}

// note records what was not understood of a call that is allowed nevertheless.
func (j *judge) note(what string) {
	const notesMax = 3 // a longer list is not read
	if len(j.notes) < notesMax {
		j.notes = append(j.notes, what)
	}
}

func (j *judge) tool() *denial {
	switch j.call.Tool {
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return j.fileTool()
	case "Bash":
		return j.shellTool()
	case "Read", "NotebookRead", "LS":
		return j.readTool()
	case "Glob", "Grep", "WebFetch", "WebSearch", "ListMcpResourcesTool", "ReadMcpResourceTool", "LSP", "ToolSearch":
		return nil // they gather information
	case "TodoRead", "TodoWrite", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode":
		return nil // they plan, and talk
	case "BashOutput", "TaskOutput", "AgentOutputTool":
		return nil // they read what was already judged
	case "Task", "Agent":
		return j.delegation()
	case "SlashCommand", "Skill":
		if strings.Contains(strings.ToLower(string(j.call.Input)), "agent-state-machine") {
			return &denial{
				code: DeniedProtected, capability: "govern the session",
				why: "only a person's input or the command line outside starts or ends a session",
			}
		}
	}
	return j.unknownTool()
}

// delegation is MAIN's right. An agent reports back to MAIN, and may ask another one for help only in mode
// interactive (D5).
func (j *judge) delegation() *denial {
	if j.main || j.where.Interactive {
		return nil
	}
	return &denial{
		capability: "delegate",
		why:        "in this mode an agent does not delegate: it reports back to MAIN, which sends for another one",
		instead:    "finish, and say in your answer what is still needed",
	}
}

func (j *judge) unknownTool() *denial {
	name := j.call.Tool
	if !j.main {
		if p := j.protectedValue(); p != "" {
			return &denial{
				code: DeniedProtected, capability: "write " + p,
				why: fmt.Sprintf("the tool %s may write, and its arguments contain %s", name, p),
			}
		}
		j.note(fmt.Sprintf("the tool %s is not known: what it writes was not seen", name))
		return nil
	}
	for _, pattern := range j.where.Tools {
		if ok, err := doublestar.Match(pattern, name); ok && err == nil && name != "" {
			return nil
		}
	}
	return &denial{
		capability: "use " + strings.ReplaceAll(strings.TrimPrefix(name, "mcp__"), "__", " "),
		why:        fmt.Sprintf("the tool %q is not known, and the configuration does not allow it to MAIN", cut(name)),
	}
}

// protectedValue returns a path among the input's values that X10 protects, or empty.
func (j *judge) protectedValue() string {
	in, fault := readInput(j.call.Input)
	if fault != "" || !j.where.Model {
		return ""
	}
	for _, key := range in.keys {
		if value, ok := in.text(key); ok && len(value) <= pathBytesMax && !strings.ContainsAny(value, " \n\x00") {
			if abs, ok := j.abs(value); ok && j.protects(abs) != "" {
				return value
			}
		}
	}
	return ""
}

// cut shortens a foreign text for a sentence.
func cut(word string) string {
	const wordBytesMax = 80
	return clip.Text(word, wordBytesMax)
}
