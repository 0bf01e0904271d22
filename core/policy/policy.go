package policy

import "encoding/json"

// Rules say what a role may write and run, in the seed's form (seed 002, Permission Definitions) and as the
// field `permissions` of every line of state.jsonl.
//
// An entry of the first two lists is a glob, matched against names if it has no slash and against paths
// otherwise, or one of the seed's two phrases, "non-executable files" and "any executable file". A denial
// wins. The entry "*" in CanExecute permits every program; without it only information may be gathered.
// CannotExecute then names programs that are denied nevertheless.
type Rules struct {
	CanWrite      []string `json:"can_write" doc:"Globs of names or paths, and the seed's two phrases"`
	CannotWrite   []string `json:"cannot_write,omitempty" doc:"Whatever can_write says"`
	CanExecute    []string `json:"can_execute" doc:"'*': every program; otherwise only commands that gather information"`
	CannotExecute []string `json:"cannot_execute,omitempty" doc:"Whatever can_execute says"`
}

// MainRules returns the seed's MAIN_PERMISSIONS.
func MainRules() Rules {
	return Rules{
		CanWrite: []string{"*.md", "*.txt", "*.log", "*.json", "*.csv", nonExecutable},
		CannotWrite: []string{
			"*.py", "*.js", "*.ts", "*.sh", "*.go", "*.rs", "*.c", "*.cpp", "*.java",
			"package.json", "requirements.txt", "Dockerfile", "Makefile", anyExecutable,
		},
		CanExecute:    []string{"read", "list", "search", "analyze", "information-gathering functions only"},
		CannotExecute: []string{"run", "exec", "eval", "compile", "build"},
	}
}

// AgentRules returns the seed's AGENT_PERMISSIONS.
func AgentRules() Rules {
	return Rules{CanWrite: []string{"*"}, CanExecute: []string{"*"}}
}

// The seed's two phrases among the globs.
const (
	nonExecutable = "non-executable files"
	anyExecutable = "any executable file"
)

// Call is one tool call, from an agent program's hook or its permission request.
type Call struct {
	Tool    string          // Write, Edit, MultiEdit, NotebookEdit, Bash, Read, …, mcp__SERVER__TOOL
	Input   json.RawMessage // the tool's arguments: a JSON object
	Dir     string          // the caller's current folder, absolute; empty: Where.Repo
	AgentID string          // of the calling subagent; empty: MAIN
	// Unread names the arguments that the caller does not know completely; "tool" is the tool's own name, "args"
	// and "paths" stand for arguments and files that are missing. For Permissions they are never allowed by a pattern.
	Unread []string
	// Confined: if it is a shell command of MAIN and allowed, the caller runs it in a sandbox in which it can
	// write nowhere and execute only GatheringPrograms and those of the verdict.
	Confined bool
}

// Where is what is known of the dispatch that a call belongs to. Paths are absolute.
type Where struct {
	Repo     string   // the project's folder
	Session  string   // the dispatch folder
	Outputs  string   // the open conversation's outputs; empty: no conversation is open
	Dialogue string   // its dialogue.md, to which the seed has agents write; empty: no agent may
	Home     string   // the value of ~; empty: a path that begins with ~ is not resolved
	Named    []string // paths that the user's input named (NamedPaths); a folder covers what is below it
	// Protected lists more files and folders that no model may write, with everything below them: the
	// register of dispatch folders by program.
	Protected []string
	Tools     []string // names or globs of unknown tools that MAIN may use, such as mcp__docs__*

	Model       bool // a model makes the call: what X10 protects is denied. False only if a person acts
	Interactive bool // mode interactive: an agent may delegate too (D5)
	Commits     bool // agents may run git add and git commit; otherwise X10 denies it
}

// Verdict is the decision about a call.
type Verdict struct {
	Allow  bool
	Reason string // of a denial: what is missing and what to do. Of an allowance: what was not understood, or empty
	Unsure bool   // an agent's call that was allowed without being understood; Reason says what
	// Code is the rule behind a denial; empty for an allowance. Decisions compare it.
	Code DenyReason
	// Row of the specification, for people: D8 for a denial in MAIN, X10 for one that applies to all roles, D9 for what
	// an agent's permissions decide, either way; empty for an allowance in MAIN.
	Row        string
	Capability string   // of denials: what an agent must be able to do to take over, in words that Rank understands
	Writes     []string // the files that the call would write, resolved, as far as known

	// Unread is what was not understood of an agent's shell command that is allowed; what its programs do does not count.
	// A caller that can ask a person asks.
	Unread string

	// Of a command of MAIN that the kernel confines:
	Gathers  bool     // all of it was understood, and gathers information
	Programs []string // it may execute these too, besides GatheringPrograms
	Network  bool     // they need the network
}

// DenyReason is the code for which rules denied a call.
type DenyReason string

const (
	DeniedMain      DenyReason = "main"      // MAIN's permissions
	DeniedAgent     DenyReason = "agent"     // an agent's permissions
	DeniedProtected DenyReason = "protected" // no model may, in any role
)

// Row is the row of the specification that a reason belongs to.
func (r DenyReason) Row() string {
	switch r {
	case DeniedMain:
		return "D8"
	case DeniedAgent:
		return "D9"
	case DeniedProtected:
		return "X10"
	default:
		return ""
	}
}

// Deny is a denial by one of the codes.
func Deny(code DenyReason, reason string) Verdict {
	return Verdict{Code: code, Row: code.Row(), Reason: reason}
}

// Disk answers questions about files. An implementation changes nothing on disk and opens nothing that could
// block: it calls stat before it reads.
type Disk interface {
	// Look resolves an absolute path like the kernel: every symlink and every "..", never by cleaning the
	// text ("link/.." is the parent of the link's target). For a path that does not exist, the deepest
	// existing parent is resolved and the rest appended; a dangling link leads to where a new file would be
	// created. An error means that the result cannot be known: a loop of links, a parent that is not a folder
	// or not searchable. Judge then denies a write.
	Look(path string) (File, error)
}

// File is what a Disk knows of a path.
type File struct {
	Path   string // absolute and resolved
	Kind   Kind
	Exec   bool // a regular file with any execute bit
	Script bool // a regular file that begins with #!
	Links  int  // number of hard links of a regular file
}

// Kind is a file's type.
type Kind string

// The kinds of File.
const (
	Missing Kind = "missing"
	Regular Kind = "regular"
	Folder  Kind = "folder"
	Other   Kind = "other" // a device, a pipe, a socket
)

// Judge decides whether the rules allow a call. main means that MAIN makes it; agents are judged by the same
// function with their own rules. It never panics, and has no side effects.
func Judge(rules Rules, main bool, call Call, where Where, disk Disk) Verdict {
	return newJudge(rules, main, call, where, disk).verdict()
}
