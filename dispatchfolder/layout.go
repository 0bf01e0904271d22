package dispatchfolder

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine/dispatch"
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
