package sessions

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/work/sessionhost"

	"github.com/fairlead-dev/fairlead/engine/loop"
)

// ProcessConflicts returns a function that finds processes outside of a workspace's own sessions
// that have a conversation open. argv is the program's own command. The list is empty on systems
// that do not show other processes. It is the production value of Options.ProcessConflicts.
func ProcessConflicts(workspace string) func(
	ctx context.Context, conversation string, argv []string,
) ([]sessionhost.ProcessConflict, error) {
	return func(ctx context.Context, conversation string, argv []string) ([]sessionhost.ProcessConflict, error) {
		if len(conversation) < conversationMin {
			return nil, nil // a name this short occurs in unrelated arguments
		}
		return conflicts(ctx, workspace, conversation, argv)
	}
}

// conversationMin is the length below which a conversation's name may occur in unrelated text.
const conversationMin = 8

// process is what the process table shows about one process.
type process struct {
	pid     int
	name    string // as the system reports it
	args    []string
	environ []string
	writes  func(name string) string // returns a file with this name that the process has open for writing; empty if there is none
}

// sign describes how a process shows that it has a conversation open; empty if it does not. Readers
// and searches mention the name as well, so only the agent's program counts, or a process that has
// the file open for writing.
func (p *process) sign(conversation string, argv []string) string {
	own := p.is(argv)
	for i, arg := range p.args {
		if i > 0 && own && names(arg, conversation) {
			return "its arguments name the conversation"
		}
	}
	for _, kv := range p.environ {
		if name, value, _ := strings.Cut(kv, "="); own && value == conversation {
			return "its environment names the conversation, as " + clip.Text(name, loop.ActorBytesMax)
		}
	}
	if path := p.writes(conversation); path != "" {
		return "it has " + path + " open for writing"
	}
	return ""
}

// is reports whether a process is the program of a command: by its own name, or, if an interpreter
// runs it, by the name of the script. With a wrapper (npx, env) the command names the program
// later, so every word of the command that is not a flag is compared.
func (p *process) is(argv []string) bool {
	for i, arg := range p.args[:min(len(p.args), programWords)] {
		if i > 0 && strings.HasPrefix(arg, "-") {
			continue
		}
		for _, word := range argv {
			if word != "" && !strings.HasPrefix(word, "-") && base(arg) == base(word) {
				return true
			}
		}
	}
	return len(argv) > 0 && p.name == base(argv[0])
}

// programWords is how many leading words of a command line can name the program: interpreter, flags
// and script.
const programWords = 4

// base returns a program's name without its folder and without a script's extension.
func base(word string) string {
	name := filepath.Base(word)
	for _, ending := range []string{".js", ".mjs", ".cjs", ".py", ".exe"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// names reports whether an argument is name, or --flag=NAME, or a command line that contains name
// as a word.
func names(arg, name string) bool {
	return slices.Contains(strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\n='\"", r) }), name)
}
