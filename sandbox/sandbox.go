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
	// CannotSandbox is the exit code where the sandbox could not be made, or the
	// program could not be executed in it: the number that env and nice use.
	CannotSandbox = 126
	// NoProgram is the exit code where there is no such program.
	NoProgram = 127
)

// Versions of Landlock that came with something we use.
const (
	abiMin     = 3 // files can be kept from being truncated; without it there is no sandbox
	abiDevices = 5 // ioctls on devices
	abiApart   = 6 // signals and abstract sockets
)

// writesMax is more folders than anybody grants on purpose; each is an open descriptor and a rule.
const writesMax = 64

// Box is what a sandboxed process may do besides reading. The zero value is the
// strictest one.
type Box struct {
	// Write are the folders below which, and the files to which, may be written.
	// Absolute, clean, there already, and with no symbolic link on the way: the
	// process that was sandboxed before could have laid one. They are looked up
	// once, at the start: a folder that is made again under its name is another one.
	Write []string

	// Attributes lets modes, owners, times, flags and extended attributes be
	// changed: of every file that the user may, outside the folders too, for the
	// kernel's filter cannot tell which file a call is about.
	Attributes bool

	// Sockets lets unix sockets be spoken to: the daemon's, but also those of a
	// service manager, a container daemon or a terminal multiplexer, which would
	// start anything, outside.
	Sockets bool

	// Terminals lets new pseudo-terminals be had, in which many programs run what they
	// are told to. The kernel keeps all of them in one folder, so what runs inside
	// can also print on other terminals of its user. Nobody can type into them.
	Terminals bool
}

// Holes are what a sandbox with this version of Landlock and this box does not prevent, a line
// each, for whoever says which layers hold. The package's own page says more.
func Holes(abi int, box Box) []string {
	out := []string{"it reads what its user may, and speaks to the network"}
	if box.Attributes {
		out = append(out, "it changes modes, owners, times and attributes of files outside")
	}
	if box.Sockets {
		out = append(out, "it asks services of this machine over their sockets to act in its stead")
	}
	if box.Terminals {
		out = append(out, "it prints on other terminals of its user")
	}
	if abi < abiDevices {
		out = append(out, fmt.Sprintf("it orders devices about that it may open (Landlock %d would prevent it)", abiDevices))
	}
	if abi < abiApart {
		out = append(out, fmt.Sprintf("it signals processes outside (Landlock %d would prevent it)", abiApart))
	}
	return out
}

// Wrap is the command that starts argv in a sandbox. exe is this program's file;
// "/proc/self/exe" is good where the one that executes it is this program too. Whether
// it can be done is seen when it runs: exit code 126 then, and words on standard error.
func Wrap(exe string, argv []string, box Box) []string {
	out := make([]string, 0, 7+2*len(box.Write)+len(argv))
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
	return append(append(out, "--"), argv...)
}

// Intercept sandboxes this process and becomes the program it was given, or exits,
// where it was started to do so; else it returns. It stands first in main, and in
// TestMain of tests that start sandboxes.
func Intercept() {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		os.Exit(Main(os.Args[2:]))
	}
}

// Every process of a sandboxed session waits for this one, and it needs next to nothing of
// the program that it is: it branches off before most packages are initialised (the shim
// does the same, and says how). Where their order changes it is only slower.
func init() { Intercept() } //nolint:gochecknoinits // see above: main is too late

// Main is the verb without its name: `--write DIR … [--attributes] [--sockets] [--terminals] --
// PROGRAM ARGUMENT…`. It returns only where PROGRAM was not started; the result is the exit code.
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
	return enter(box, argv)
}

// notFound is that there is no such program: an exit code of its own, as shells have it.
type notFound struct{ error }

// report says what went wrong; nothing did where err is nil.
func report(to io.Writer, err error) int {
	var none notFound
	switch {
	case err == nil:
		return 0
	case errors.As(err, &none):
		fmt.Fprintf(to, "fairlead: sandbox: %v\n", err)
		return NoProgram
	}
	fmt.Fprintf(to, "fairlead: sandbox: %v; nothing was started\n", err)
	return CannotSandbox
}

// parse reads what Wrap wrote, and takes nothing else: a word that is misread here
// could be a permission.
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
		case "--attributes":
			box.Attributes = true
		case "--sockets":
			box.Sockets = true
		case "--terminals":
			box.Terminals = true
		default:
			return box, nil, fmt.Errorf("%q is not understood; it takes --write DIR …, --attributes, --sockets, --terminals, -- and the command", args[i])
		}
	}
	return box, nil, errors.New("no -- and no program; write: --write DIR … -- PROGRAM ARGUMENT…")
}

// check says what is wrong with a box before anybody asks the kernel.
func (b Box) check() error {
	if len(b.Write) > writesMax {
		return fmt.Errorf("%d folders to write to, %d are the most; name one above them", len(b.Write), writesMax)
	}
	for _, w := range b.Write {
		switch {
		case !strings.HasPrefix(w, "/") || path.Clean(w) != w || strings.ContainsRune(w, 0):
			return fmt.Errorf("%q is no absolute path without . and .. and doubled slashes", w)
		case w == "/" || w == "/dev" || below(w, "/proc") || below(w, "/sys"):
			return fmt.Errorf("whoever may write to %s is in no sandbox; name a folder to work in", w)
		}
	}
	return nil
}

func below(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
