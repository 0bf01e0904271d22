package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
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

// executesMax bounds the programs of a view; each is an open descriptor and a rule.
const executesMax = 256

// box is what Landlock and the filter hold of a view. The zero value is the strictest.
type box struct {
	// Write lists writable folders (with everything below) and files. Each must be absolute and clean, must
	// exist, and must have no symbolic link on its path, because an earlier sandboxed process could have
	// created the link. They are resolved once, at the start: a folder that is recreated under the same name
	// is not writable.
	Write []string

	// Read lists the only folders and files that may be read, besides those of Write; nil: everything. What is missing is left out.
	Read []string

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

	// inside permits only sockets of kinds that stay in the network of the view.
	inside bool

	// modes are the bits of a file's mode that no program of a view sets; 0: the box is not of a view.
	modes uint32

	// group says that the process group has processes outside of the view, and signals that a signal to it would reach them.
	group, signals bool
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

// Main is the verb without its name, as [WrapView] writes it: `--view VIEW -- PROGRAM ARGUMENT…`. It returns the exit code: by Landlock
// alone only if PROGRAM was not started.
func Main(args []string) int {
	if len(args) > 2 && args[0] == ViewFlag && args[2] == "--" {
		return inView(args[1], args[3:])
	}
	return report(os.Stderr, errors.New("its arguments are not understood; it takes --view VIEW -- PROGRAM ARGUMENT…"))
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

func below(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
