package sessions

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/controller/seam"

	"github.com/fairlead-dev/fairlead/loop"
)

// Elsewhere finds who has a conversation open outside of a workspace's own sessions. argv is the
// program's own command. An empty list where the system does not tell. It is what Options.Elsewhere
// takes in real life.
func Elsewhere(workspace string) func(ctx context.Context, conversation string, argv []string) ([]seam.Occupant, error) {
	return func(ctx context.Context, conversation string, argv []string) ([]seam.Occupant, error) {
		if len(conversation) < conversationMin {
			return nil, nil // it would be found in anybody's arguments
		}
		return occupants(ctx, workspace, conversation, argv)
	}
}

// conversationMin is the shortest name of a conversation that nothing else is called by chance.
const conversationMin = 8

// process is what is known of one process of somebody's.
type process struct {
	pid     int
	name    string // as the system calls it
	args    []string
	environ []string
	writes  func(name string) string // a file of this name that it has open for writing; empty: none
}

// sign says by what a process is known to have a conversation open; empty: it is not.
// Readers and searchers name it as well: only the program itself counts, by whatever it was
// started, or who has its file open for writing.
func (p *process) sign(conversation string, argv []string) string {
	own := p.is(argv)
	for i, arg := range p.args {
		if i > 0 && own && names(arg, conversation) {
			return "its arguments name the conversation"
		}
	}
	for _, kv := range p.environ {
		if name, value, _ := strings.Cut(kv, "="); own && value == conversation {
			return "its environment names the conversation, as " + loop.CutText(name, loop.ActorBytesMax)
		}
	}
	if path := p.writes(conversation); path != "" {
		return "it has " + path + " open for writing"
	}
	return ""
}

// is says whether a process is the program of a command: by its own name, or, where an interpreter
// runs it, by the name of its script. Of a wrapper (npx, env) the last word that names a program
// counts as well, so every word of the command that is no flag is compared.
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

// programWords is how many words at the beginning of a command line may name the program: an
// interpreter, its flags and the script.
const programWords = 4

// base is a program's name without its folder and the ending that a script may have.
func base(word string) string {
	name := filepath.Base(word)
	for _, ending := range []string{".js", ".mjs", ".cjs", ".py", ".exe"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// names says whether an argument is this name, or --flag=NAME, or a command line that has it as a word.
func names(arg, name string) bool {
	for _, word := range strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\n='\"", r) }) {
		if word == name {
			return true
		}
	}
	return false
}
