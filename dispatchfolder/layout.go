package dispatchfolder

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// The names in a session's folder (seed 002, Workspace Management; the last four are ours).
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

// Limits, so that a folder that somebody else filled cannot fill the memory.
const (
	lineBytesMax     = 8 << 20   // of state.jsonl: what Decide may keep (1 MiB to be told, results, files), escaped
	foreignBytesMax  = 1 << 20   // of a line that others wrote; nothing that they have to say is longer
	agentBytesMax    = 256 << 10 // of a file of .claude/agents
	agentsMax        = 2000      // as Decide has it
	describedMax     = 1 << 20   // bytes of all descriptions: the first line is read at every tool call
	describedOneMax  = 4 << 10   // of one; an input is held against it, not an essay
	nameBytesMax     = 200       // of an agent's name
	inboxBytesMax    = 64 << 10  // of a message, as Decide has it for any text
	inboxMax         = 1000      // messages that are looked at; the next ones have their turn later
	dialogueBytesMax = 4 << 20   // of dialogue.md that is read at a time
	outputsMax       = 2000      // files listed of a conversation
	closingFilesMax  = 200       // files that a line of messages.jsonl names
	outputsDepthMax  = 16        // folders below outputs/
	logBytesMax      = 1 << 20   // of what the logger is told
	linesAtOnceMax   = 1000      // lines that Lines gives at a time
	linesBytesMax    = 16 << 20  // and bytes that it reads for them
	conversationsMax = 100_000   // that are looked for in a folder
	lockWait         = 10 * time.Second
)

// seedTime is how the seed writes a time: local, without zone.
const seedTime = "2006-01-02T15:04:05"

// conversationPath is a conversation's folder below the session's.
func conversationPath(n int) string {
	return conversationsName + "/" + dispatch.ConversationID(n)
}

// conversationNumber reads conv_NNN; 0: it is none.
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

// Workspace is where a conversation's files are to go: absolute, with a slash at its end, as the
// seed writes it.
func (f *Folder) Workspace(n int) string {
	return filepath.Join(f.path, filepath.FromSlash(conversationPath(n)), outputsName) + string(filepath.Separator)
}

// DialoguePath is where a conversation is recorded: absolute.
func (f *Folder) DialoguePath(n int) string {
	return filepath.Join(f.path, filepath.FromSlash(conversationPath(n)), dialogueName)
}
