package policy

import "encoding/json"

// Rules is what a state may write and run, as the seed spells it (seed 002, Permission
// Definitions) and as the field `permissions` of every line of state.jsonl carries it.
//
// An entry of the first two lists is a glob, of names where it holds no slash and of paths
// otherwise, or one of the seed's two phrases, "non-executable files" and "any executable
// file". The denial wins. An entry "*" in CanExecute stands for every program; without it only
// information is gathered. CannotExecute then names programs that are denied all the same.
type Rules struct {
	CanWrite      []string `json:"can_write"`
	CannotWrite   []string `json:"cannot_write,omitempty"`
	CanExecute    []string `json:"can_execute"`
	CannotExecute []string `json:"cannot_execute,omitempty"`
}

// MainRules are the seed's MAIN_PERMISSIONS.
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

// AgentRules are the seed's AGENT_PERMISSIONS.
func AgentRules() Rules {
	return Rules{CanWrite: []string{"*"}, CanExecute: []string{"*"}}
}

// The seed's two phrases among the globs.
const (
	nonExecutable = "non-executable files"
	anyExecutable = "any executable file"
)

// Call is one tool call, as an agent program's hook or its permission request tells it.
type Call struct {
	Tool    string          // Write, Edit, MultiEdit, NotebookEdit, Bash, Read, …, mcp__SERVER__TOOL
	Input   json.RawMessage // the tool's arguments: a JSON object
	Dir     string          // the caller's working folder, absolute; empty: Where.Repo
	AgentID string          // of the subagent that calls; empty: MAIN
}

// Where is what is known of the session that a call belongs to. Paths are absolute.
type Where struct {
	Repo     string   // the project's folder
	Session  string   // the session's folder
	Outputs  string   // the open conversation's outputs; empty: no conversation is open
	Dialogue string   // its dialogue.md, into which the seed has agents write; empty: nobody may
	Home     string   // what ~ stands for; empty: a path that begins with ~ is not understood
	Named    []string // paths that the user's input named (NamedPaths); a folder covers what is below it
	// Protected are folders and files besides X10's own that no model may write, with all that is
	// below them: where it is kept which program belongs to which session.
	Protected []string
	Tools     []string // names or globs of tools that MAIN may use though they are not known, as mcp__docs__*

	Model       bool // a model calls: what X10 protects is denied. False only where a person acts
	Interactive bool // mode interactive: an agent may delegate too (D5)
	Commits     bool // agents may have git write its records (add, commit); X10 denies it otherwise
}

// Verdict is the answer to a call.
type Verdict struct {
	Allow  bool
	Reason string // of a denial: what is missing and what to do. Of an allowance: what was not understood, or empty
	Unsure bool   // allowed without being understood, to an agent; Reason says what
	// Row of the specification: D8 for a denial in MAIN, X10 for one that holds for all, D9 for
	// what an agent's permissions decide, either way; empty for an allowance in MAIN.
	Row        string
	Capability string   // what whoever takes over must be able to do, in words that Rank understands; of denials
	Writes     []string // the files that the call would write, resolved, as far as they are known
}

// The rows that a verdict speaks of.
const (
	rowMain  = "D8"
	rowAgent = "D9"
	rowAll   = "X10"
)

// Disk answers what only the disk knows. Whoever implements it changes nothing on disk and
// opens nothing that could block: it stats before it reads.
type Disk interface {
	// Look follows an absolute path to where it ends: every symlink on the way and at its end,
	// and every "..", as the kernel would follow them, never by cleaning the text ("link/.." is
	// the parent of where the link leads). Of what does not exist, the deepest existing parent is
	// resolved and the rest appended, and a link that leads nowhere leads to where a new file
	// would be made. An error says that it cannot be known: a loop of links, a parent that is no
	// folder or may not be searched; Judge then denies a write.
	Look(path string) (File, error)
	// Read gives a small regular file's content, at most limit bytes of it. It serves git's own
	// configuration. A file that does not exist is an error that says so by the second value.
	Read(path string, limit int) (content []byte, exists bool, err error)
}

// File is what a Disk knows of a path.
type File struct {
	Path   string // absolute and resolved
	Kind   Kind
	Exec   bool // a regular file with any of its three execute bits
	Script bool // a regular file whose first two bytes are #!
	Links  int  // how many names a regular file has (hard links)
}

// Kind is what stands at a path.
type Kind string

// The kinds of File.
const (
	Missing Kind = "missing"
	Regular Kind = "regular"
	Folder  Kind = "folder"
	Other   Kind = "other" // a device, a pipe, a socket
)

// Judge says whether the rules allow a call. main says that the state is MAIN; an agent's own
// rules are judged by the same function. It never panics, and asks nothing but the disk.
func Judge(rules Rules, main bool, call Call, where Where, disk Disk) Verdict {
	return newJudge(rules, main, call, where, disk).verdict()
}
