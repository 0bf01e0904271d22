package dispatchfolder

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
)

// Names in a dispatch folder (seed 002, Workspace Management; the last four are Fairlead's).
const (
	stateName         = "state.jsonl"
	listName          = "agent-list.txt"
	directoryName     = "AGENT_DIRECTORY.md"
	conversationsName = "conversations"
	messagesName      = conversationsName + "/messages.jsonl"
	dialogueName      = "dialogue.md"
	outputsName       = "outputs"
	inboxName         = "inbox"
	unmatchedName     = inboxName + "/unmatched"
	lockName          = ".lock"
	redoName          = ".commit"
)

// Limits that bound memory for a folder with hostile content.
const (
	lineBytesMax     = 8 << 20   // of state.jsonl: what Decide may keep (1 MiB of inputs, results, files), escaped
	foreignBytesMax  = 1 << 20   // of a line by another program
	agentBytesMax    = 256 << 10 // of a file in .claude/agents
	agentsMax        = 2000      // the same limit as Decide's
	describedMax     = 1 << 20   // bytes of all descriptions, because the first line is read at every tool call
	describedOneMax  = 4 << 10   // bytes of one description
	nameBytesMax     = 200       // of an agent's name
	inboxBytesMax    = 64 << 10  // of a message, the limit of Decide for any text
	inboxMax         = 1000      // messages of one look; the others follow later
	dialogueBytesMax = 4 << 20   // of dialogue.md that is read at once
	outputsMax       = 2000      // files listed of a conversation
	closingFilesMax  = 200       // files that a line of messages.jsonl names
	outputsDepthMax  = 16        // folders below outputs/
	logBytesMax      = 1 << 20   // of the logger's input
	linesAtOnceMax   = 1000      // lines that Lines returns at once
	linesBytesMax    = 16 << 20  // bytes that it reads for them
	conversationsMax = 100_000   // that are searched in a folder
	lockWait         = 10 * time.Second
)

// seedTime is the seed's time format: local, without zone.
const seedTime = "2006-01-02T15:04:05"

// conversationPath is a conversation's folder, relative to the dispatch folder.
func conversationPath(n int) string {
	return conversationsName + "/" + dispatch.ConversationID(n)
}

// conversationNumber parses conv_NNN; 0: it is not such a name.
func conversationNumber(id string) int {
	digits, ok := strings.CutPrefix(id, "conv_")
	if !ok || len(digits) > 9 {
		return 0
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || dispatch.ConversationID(n) != id && len(digits) > 3 {
		return 0
	}
	return n
}

// Workspace is the folder for a conversation's files: absolute, with a final slash, as the seed writes it.
func (f *Folder) Workspace(n int) string {
	return filepath.Join(f.path, filepath.FromSlash(conversationPath(n)), outputsName) + string(filepath.Separator)
}

// DialoguePath is the absolute path of a conversation's dialogue.md.
func (f *Folder) DialoguePath(n int) string {
	return filepath.Join(f.path, filepath.FromSlash(conversationPath(n)), dialogueName)
}

// Status is the initial status block in the seed's format.
func Status(s dispatch.Dispatch, agents int) string {
	rules := rulesOf(s.ForMain, policy.MainRules())
	path := strings.TrimRight(s.Path, "/")
	list := func(some []string) string { return strings.Join(some, ", ") }
	return fmt.Sprintf(`🚀 Agent State Machine Initialized

[State: %s]

Session Parameters:
  Mode: %s
  Path: %s
  Session: start

Available Agents: %d agents loaded
  ✓ State persistence: %s/state.jsonl
  ✓ Agent descriptions: %s/AGENT_DIRECTORY.md
  ✓ Conversations directory: %s/conversations/

Waiting for first user input to create conversation...

MAIN State Permissions:
  Can Write: %s
  Cannot Write: %s
  Can Execute: %s
  Cannot Execute: %s
`, s.State(), s.Mode, path, agents, path, path, path,
		list(rules.CanWrite), list(rules.CannotWrite), list(rules.CanExecute), list(rules.CannotExecute))
}

// WorkspaceHeading marks a prompt that has the seed's block already.
const WorkspaceHeading = "**WORKSPACE REQUIREMENTS:**"

// DelegationPrompt is the text for a delegated agent: the request's first line, the places for files and the
// record, and the rest of the request as details (seed 002, Agent Delegation Protocol).
func DelegationPrompt(request, workspace, dialogue string) string {
	request = strings.TrimSpace(request)
	first, details, _ := strings.Cut(request, "\n")
	details = cmp.Or(strings.TrimSpace(details), "See the request above.")
	return strings.TrimSpace(first) + `

` + WorkspaceHeading + `
- All generated files MUST be placed in: ` + workspace + `
- Record your thinking process in: ` + dialogue + `
- Do NOT use your default working directory or any other location, unless explicitly specified otherwise
- Use only the specified absolute paths above for ALL file creation and documentation

**TASK DETAILS:**

` + details + "\n"
}

// rulesOf parses permissions, or returns otherwise.
func rulesOf(text json.RawMessage, otherwise policy.Rules) policy.Rules {
	var rules policy.Rules
	if len(text) == 0 || text[0] != '{' || json.Unmarshal(text, &rules) != nil {
		return otherwise
	}
	return rules
}
