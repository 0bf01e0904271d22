// Package confine runs one shell command of MAIN, or of an agent of it, in a view of the machine.
//
// The answer to a hook replaces a command by one that starts this program again: `fairlead-hook exec ARGUMENT…`. It starts the shell
// that runs the original command in a view, and ends as that does. MAIN reads the project, writes nothing, and starts only programs of a
// list. An agent writes in the project and in the folder of its conversation, but neither in .claude and .git nor elsewhere. Where no view
// can be made, Landlock alone holds the same folders.
//
// Almost nothing of this program is needed: it branches off before most packages are initialised, as package sandbox does. If their
// order changes, it is only slower. A command has a temporary folder of its own. The hook that is called after a command removes it.
//
// The one promise: a command runs in the sandbox, or it does not run.
package confine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// Verb is the argument after the program's name that makes it run a command in the sandbox.
const Verb = "exec"

// first is the first argument of a command, by which it is known.
const first = "--programs"

func init() { //nolint:gochecknoinits // see the package's doc: main is too late
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "hook" { // of fairlead itself
		args = args[1:]
	}
	if len(args) > 1 && args[0] == Verb && args[1] == first {
		os.Exit(Main(args[1:], os.Stderr))
	}
}

// Command is a command of MAIN, and what it may do.
type Command struct {
	Programs []string // that may be executed, besides the shell
	Network  bool
	Not      string   // the project's folder: its programs do not count
	Reads    []string // folders outside of the project that are read, too
	Writes   []string // folders in which an agent's command writes besides the project
	Agent    bool     // an agent's command: it may write in the project, and start every program
	Stays    bool     // it ends in the folder in which it begins, so that nothing is handed back
	Text     string
}

// Args are the arguments that Main reads.
func (c Command) Args() (args []string) {
	args = []string{first, strings.Join(c.Programs, ",")}
	if c.Network {
		args = append(args, "--network")
	}
	if c.Stays {
		args = append(args, "--stays")
	}
	if c.Agent {
		args = append(args, "--agent")
	}
	for _, p := range c.Reads {
		args = append(args, "--read", p)
	}
	for _, p := range c.Writes {
		args = append(args, "--write", p)
	}
	return append(args, "--not", c.Not, "--", c.Text)
}

func parse(args []string) (c Command, err error) {
	for i := 0; i < len(args); i++ {
		switch value := i+1 < len(args); {
		case args[i] == "--" && i == len(args)-2:
			c.Text = args[i+1]
			return c, nil
		case args[i] == first && value:
			i++
			c.Programs = strings.Split(args[i], ",")
		case args[i] == "--not" && value:
			i++
			c.Not = args[i]
		case args[i] == "--read" && value:
			i++
			c.Reads = append(c.Reads, args[i])
		case args[i] == "--write" && value:
			i++
			c.Writes = append(c.Writes, args[i])
		case args[i] == "--network":
			c.Network = true
		case args[i] == "--stays":
			c.Stays = true
		case args[i] == "--agent":
			c.Agent = true
		default:
			return c, fmt.Errorf("%q is not understood; write [--programs NAME,…] [--network] [--stays] [--agent] [--read DIR] [--write DIR] [--not DIR] -- COMMAND", args[i])
		}
	}
	return c, errors.New("there is no command; write [--programs NAME,…] [--network] [--stays] [--agent] [--read DIR] [--write DIR] [--not DIR] -- COMMAND")
}

// Main becomes the shell that runs a command. args are those of Command.Args. The folder in which the command ends is
// written to descriptor 3, if that is a pipe. Main returns only if nothing was run: 126, and a message.
func Main(args []string, errs io.Writer) int {
	c, err := parse(args)
	if err == nil {
		err = run(c)
	}
	fmt.Fprintf(errs, "fairlead: run the command in the sandbox: %v; nothing was run\n", err)
	return sandbox.CannotSandbox
}
