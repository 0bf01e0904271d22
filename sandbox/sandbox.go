package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// Verb is the first argument of a process that is to sandbox itself.
const Verb = "__sandbox"

const (
	// CannotSandbox is the exit code if the sandbox could not be created, or the program could not be
	// executed in it: the same as for env and nice.
	CannotSandbox = 126
	// NoProgram is the exit code if the program does not exist.
	NoProgram = 127
)

// Landlock versions that introduced features in use.
const (
	abiMin     = 3 // truncation can be denied; required
	abiDevices = 5 // device ioctls
	abiApart   = 6 // signals and abstract sockets
)

// abiAsked is the newest version whose features are used: all that the kernel has. A test lowers it, because a kernel
// accepts what older ones knew.
var abiAsked = int(^uint(0) >> 1)

// NotHeld says what a sandbox does not prevent because the kernel's Landlock is old, as the end of a sentence; empty: it
// prevents everything that Fairlead asks for.
func NotHeld() string {
	switch abi, why := Supported(); {
	case why != "":
		return ""
	case abi < abiDevices:
		return fmt.Sprintf("Landlock %d does not prevent signals to processes outside, abstract unix sockets where sockets are allowed, and commands to devices that are open (version %d does)", abi, abiApart)
	case abi < abiApart:
		return fmt.Sprintf("Landlock %d does not prevent signals to processes outside, and abstract unix sockets where sockets are allowed (version %d does)", abi, abiApart)
	}
	return ""
}

// writesMax bounds the folders; each is an open descriptor and a rule.
const writesMax = 64

// executesMax bounds the programs, for the same reason.
const executesMax = 256

// Box says what a sandboxed process may do besides reading. The zero value is the strictest.
type Box struct {
	// Write lists writable folders (with everything below) and files. Each must be absolute and clean, must
	// exist, and must have no symbolic link on its path, because an earlier sandboxed process could have
	// created the link. They are resolved once, at the start: a folder that is recreated under the same name
	// is not writable.
	Write []string

	// Attributes permits changing modes, owners, times, flags and extended attributes of every file that the
	// user may change, outside the folders too, because the kernel's filter cannot see which file a call is
	// about.
	Attributes bool

	// Sockets permits connecting to unix sockets: the daemon's, but also those of a service manager, a
	// container daemon or a terminal multiplexer, which could start programs outside the sandbox.
	Sockets bool

	// Terminals permits new pseudo-terminals, in which many programs run commands. The kernel keeps all of
	// them in one folder, so a sandboxed process can also print on other terminals of its user. It cannot
	// insert input into them.
	Terminals bool

	// Execute lists the only program files that may be executed, including the loaders and interpreters that
	// they need (Programs finds them); nil: every program. A loader in the list can start a program that is not
	// in it, so the list keeps mistakes and tricks out, and Write is what holds.
	Execute []string

	// Alone denies the network and, together with Landlock from version 6 on or else with the filter, every
	// signal to a process outside.
	Alone bool
}

// Wrap returns the command that starts argv in a sandbox. exe is this program's file; "/proc/self/exe" works
// if the process that executes it runs this program too. Whether the sandbox is possible is known only when
// it runs: exit code 126, and a message on standard error.
func Wrap(exe string, argv []string, box Box) []string {
	out := make([]string, 0, 8+2*len(box.Write)+2*len(box.Execute)+len(argv))
	out = append(out, exe, Verb)
	for _, w := range box.Write {
		out = append(out, "--write", w)
	}
	if box.Attributes {
		out = append(out, "--attributes")
	}
	if box.Sockets {
		out = append(out, "--sockets")
	}
	if box.Terminals {
		out = append(out, "--terminals")
	}
	for _, p := range box.Execute {
		out = append(out, "--execute", p)
	}
	if box.Alone {
		out = append(out, "--alone")
	}
	return append(append(out, "--"), argv...)
}

// Intercept sandboxes this process and becomes the given program, or exits, if it was started for that;
// otherwise it returns. Call it first in main, and in TestMain of tests that start sandboxes.
func Intercept() {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		os.Exit(Main(os.Args[2:]))
	}
}

// Every sandboxed process waits for this one, and it needs almost nothing of the program: it branches off
// before most packages are initialised (package shim does the same and explains how). If their order changes,
// it is only slower.
func init() { Intercept() } //nolint:gochecknoinits // see above: main is too late

// Main is the verb without its name: `--write DIR … [--attributes] [--sockets] [--terminals] [--execute FILE …]
// [--alone] -- PROGRAM ARGUMENT…`. It returns the exit code, and only if PROGRAM was not started.
func Main(args []string) int {
	return report(os.Stderr, run(args))
}

func run(args []string) error {
	if len(args) > 0 && args[0] == tryWord {
		return tryAll(args[1:])
	}
	box, argv, err := parse(args)
	if err != nil {
		return err
	}
	return Become(argv, os.Environ(), box)
}

// notFound means that the program does not exist; shells use the same exit code.
type notFound struct{ error }

// report prints an error, if any.
func report(to io.Writer, err error) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(notFound)):
		fmt.Fprintf(to, "fairlead: sandbox: %v\n", err)
		return NoProgram
	}
	fmt.Fprintf(to, "fairlead: sandbox: %v; nothing was started\n", err)
	return CannotSandbox
}

// parse reads what Wrap wrote, and nothing else: a misread word could be a permission.
func parse(args []string) (box Box, argv []string, err error) {
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--":
			if argv = args[i+1:]; len(argv) == 0 || argv[0] == "" {
				return box, nil, errors.New("no program after --")
			}
			return box, argv, box.check()
		case "--write":
			if i++; i == len(args) {
				return box, nil, errors.New("no folder after --write")
			}
			box.Write = append(box.Write, args[i])
		case "--execute":
			if i++; i == len(args) {
				return box, nil, errors.New("no program after --execute")
			}
			box.Execute = append(box.Execute, args[i])
		case "--alone":
			box.Alone = true
		case "--attributes":
			box.Attributes = true
		case "--sockets":
			box.Sockets = true
		case "--terminals":
			box.Terminals = true
		default:
			return box, nil, fmt.Errorf("%q is not understood; it takes --write DIR …, --attributes, --sockets, --terminals, --execute FILE …, --alone, -- and the command", args[i])
		}
	}
	return box, nil, errors.New("no -- and no program; write: --write DIR … -- PROGRAM ARGUMENT…")
}

// check returns what is wrong with a box, before the kernel is asked.
func (b Box) check() error {
	if len(b.Write) > writesMax {
		return fmt.Errorf("%d folders to write to, %d are the most; name one above them", len(b.Write), writesMax)
	}
	if len(b.Execute) > executesMax {
		return fmt.Errorf("%d programs to execute, %d are the most", len(b.Execute), executesMax)
	}
	for _, p := range b.Execute {
		if !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.ContainsRune(p, 0) {
			return fmt.Errorf("%q is no absolute path without . and .. and doubled slashes", p)
		}
	}
	for _, w := range b.Write {
		switch {
		case !strings.HasPrefix(w, "/") || path.Clean(w) != w || strings.ContainsRune(w, 0):
			return fmt.Errorf("%q is no absolute path without . and .. and doubled slashes", w)
		case w == "/" || w == "/dev" || below(w, "/proc") || below(w, "/sys"):
			return fmt.Errorf("write access to %s would defeat the sandbox; name a folder to work in", w)
		}
	}
	return nil
}

func below(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
