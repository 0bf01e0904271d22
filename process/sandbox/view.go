package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
)

// View is what a program gets of the machine: the system's own folders read-only, the listed places, and folders of its own
// for its home, /tmp, /run and /dev. Nothing else is there. Besides it has process, IPC and (without root) user namespaces of its
// own, no rights, and Landlock and a filter of system calls inside.
//
// The zero value is the strictest. A view is data: it can be sent to another process, which makes it ([Wrap], [Attr]).
type View struct {
	// Places are folders of the machine that are in the view, in any order: they are made from the outermost to the innermost.
	// A place below another one stands above it.
	Places []Place `json:"places,omitempty"`

	// Home is the folder that is at $HOME in the view, and Temp the one at /tmp and /var/tmp. Both are the session's own and are
	// writable. Empty: in memory.
	Home string `json:"home,omitempty"`
	Temp string `json:"temp,omitempty"`

	// HomeAt is the path of the home folder in the view; empty: /home/agent.
	HomeAt string `json:"home_at,omitempty"`

	// Sockets are single unix sockets outside that can be reached, at their own paths. Each is a hole.
	Sockets []string `json:"sockets,omitempty"`

	// Session is a folder that is at [SessionDir] in the view, read-only: the session's own socket to Fairlead is in it.
	// Empty: none.
	Session string `json:"session,omitempty"`

	// Dir is the folder in which the program starts; empty: /.
	Dir string `json:"dir,omitempty"`

	// Canaries are what the self-test looks for: none of them may be reached from inside.
	Canaries Canaries `json:"canaries,omitzero"`

	// Required are the rows without which nothing is started.
	Required []Row `json:"required,omitempty"`

	// Execute lists the only program files that may be executed, including the loaders and interpreters that they need ([Programs] finds
	// them); nil: every program. A loader in the list can start a program that is not in it, so the list keeps mistakes and tricks out.
	// Such programs gather information: they get no unix sockets and, by Landlock alone, change no modes and times.
	Execute []string `json:"execute,omitempty"`

	// Network is a network of its own, in which the program reaches only what a proxy answers; nil: that of the machine. It needs
	// namespaces.
	Network *Inside `json:"network,omitempty"`

	// Alone denies the network.
	Alone bool `json:"alone,omitempty"`

	// Pass is a descriptor that the program gets besides its standard streams; 0: none.
	Pass int `json:"pass,omitempty"`

	// Report is the descriptor to which process 1 writes a [Started] and at the end an [Ended], a line each. With one, process 1
	// stays until no process of the view is left, so that the caller decides how long what is left may go on. 0: none; what is
	// left then ends with the program. It is a pipe, or with Network a unix socket, over which a Started brings the sockets.
	Report int `json:"report,omitempty"`

	// EndsLeft says that what the program leaves ends with it, also with Report.
	EndsLeft bool `json:"ends_left,omitempty"`

	// By says how the view is made, and Users and Processes which namespaces there are besides those of mounts and IPC: one of
	// users, which root does not need, and one of processes, which needs a fresh /proc. [Ability] has them.
	By        Mechanism `json:"by"`
	Users     bool      `json:"users,omitempty"`
	Processes bool      `json:"processes,omitempty"`

	// Git says that what git of Fairlead's opens is in a view, too: it has tried that.
	Git bool `json:"git,omitempty"`
}

// Place is a folder of a view.
type Place struct {
	Path   string `json:"path"`           // in the view: absolute, without . and ..
	From   string `json:"from,omitempty"` // the folder of the machine that is there; empty: the one with the same path
	Access Access `json:"access"`

	// Make says that the caller makes the folder where it is missing, before the view, and removes it after the session. A place
	// that is missing all the same is left out.
	Make bool `json:"make,omitempty"`

	// Must says that nothing is started where a place inside a writable one cannot be held, as by Landlock alone.
	Must bool `json:"must,omitempty"`

	// Upper is the folder of an [Overlay] for what is written, with a folder for the kernel beside it (Upper+".work").
	Upper string `json:"upper,omitempty"`
}

// Access says what may be done in a place.
type Access string

const (
	Read    Access = "read"
	Write   Access = "write"
	Hide    Access = "hide"    // an empty folder stands in its place
	Overlay Access = "overlay" // it can be read, and what is written goes to another folder
)

// Row is one thing that a wall holds. `unheld` lists those that it does not.
type Row string

const (
	RowWrite      Row = "write"      // no file outside of the writable places is written
	RowAttributes Row = "attributes" // no mode, owner, time or attribute of such a file is changed
	RowInside     Row = "inside"     // folders inside a writable place are read-only, or not there
	RowRead       Row = "read"       // no file outside of the view is read
	RowNames      Row = "names"      // no name, size, mode or time of such a file is looked up
	RowSocket     Row = "socket"     // no socket of outside is reached
	RowProcess    Row = "process"    // no process of outside is seen, traced or signalled
	RowGit        Row = "git"        // no git outside of a view trusts a repository of the agent
	RowRoot       Row = "root"       // the program has the rights of an ordinary user
	RowNetwork    Row = "network"    // no host is reached that is not allowed
)

// Rows are all rows, in the order in which they are shown.
var Rows = []Row{RowWrite, RowAttributes, RowInside, RowRead, RowNames, RowSocket, RowProcess, RowGit, RowRoot, RowNetwork}

// RuntimeDir is the folder in a view for $XDG_RUNTIME_DIR.
const RuntimeDir = "/run/user/agent"

// SessionDir is where the folder of [View.Session] is in a view, and SessionSocket the socket in it.
const (
	SessionDir    = "/run/fairlead"
	SessionSocket = SessionDir + "/socket"
)

// Mechanism is how a wall is made.
type Mechanism string

const (
	ByNamespaces Mechanism = "namespaces" // a view of its own, with Landlock and the filter inside
	ByLandlock   Mechanism = "landlock"   // Landlock and the filter alone
	ByNothing    Mechanism = "nothing"
)

// Canaries are things of outside that exist. The self-test must not reach them.
type Canaries struct {
	Read   string `json:"read,omitempty"`   // a file
	Write  string `json:"write,omitempty"`  // a file
	Socket string `json:"socket,omitempty"` // a unix socket at which a program listens
	PID    int    `json:"pid,omitempty"`    // a process
}

// Started is what process 1 of a view says before the program runs, or instead of it.
type Started struct {
	Unheld []Row  `json:"unheld"`
	PID    int    `json:"pid,omitempty"`   // of the program, as process 1 sees it
	Error  string `json:"error,omitempty"` // nothing was started

	Step  Step          `json:"step,omitempty"` // of the error, for a trial
	Errno syscall.Errno `json:"errno,omitempty"`
}

// Ended is what process 1 says when the program has ended: the wait status as the kernel gave it.
type Ended struct {
	Status uint32 `json:"status"`
}

// placesMax bounds the places of a view: each is a mount.
const placesMax = 1024

// viewBytesMax bounds a view as an argument (the kernel's limit for one is 128 KiB).
const viewBytesMax = 120 << 10

// ViewFlag is the argument before a view.
const ViewFlag = "--view"

// WrapView returns the command that starts argv in a view. It has to be started with [Attr].
func WrapView(exe string, argv []string, v View) ([]string, error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(text) > viewBytesMax {
		return nil, fmt.Errorf("the view has %d bytes, %d are the most; name folders above others", len(text), viewBytesMax)
	}
	return append([]string{exe, Verb, ViewFlag, string(text), "--"}, argv...), nil
}

// check returns what is wrong with a view, before the kernel is asked.
func (v View) check() error {
	if len(v.Execute) > executesMax {
		return fmt.Errorf("%d programs to execute, %d are the most", len(v.Execute), executesMax)
	}
	if len(v.Places) > placesMax {
		return fmt.Errorf("%d folders in a view, %d are the most; name one above them", len(v.Places), placesMax)
	}
	for _, p := range v.Places {
		switch {
		case !plain(p.Path):
			return fmt.Errorf("%q is no absolute path without . and .. and doubled slashes", p.Path)
		case p.From != "" && !plain(p.From):
			return fmt.Errorf("%q is no absolute path without . and .. and doubled slashes", p.From)
		case p.Path == "/" || below(p.Path, "/proc") || below(p.Path, "/sys") || below(p.Path, "/dev"):
			return fmt.Errorf("%s cannot be a place of a view: it would defeat the wall; name a folder to work in", p.Path)
		case p.Access == Overlay && !plain(p.Upper):
			return fmt.Errorf("the overlay at %s has no folder for what is written", p.Path)
		}
		switch p.Access {
		case Read, Write, Hide, Overlay:
		default:
			return fmt.Errorf("%q is no access to %s; it is read, write, hide or overlay", p.Access, p.Path)
		}
	}
	for _, p := range append([]string{v.Home, v.Temp, v.HomeAt, v.Session, v.Dir}, slices.Concat(v.Sockets, v.Execute)...) {
		if p != "" && !plain(p) {
			return fmt.Errorf("%q is no absolute path without . and .. and doubled slashes", p)
		}
	}
	switch v.By {
	case ByNamespaces, ByLandlock:
		return v.Network.check(v.By)
	}
	return errors.New("the view does not say how it is made")
}

// plain reports whether p is absolute and clean.
func plain(p string) bool {
	return strings.HasPrefix(p, "/") && path.Clean(p) == p && !strings.ContainsRune(p, 0)
}

// systemFolders are in every view, read-only, where the machine has them. Of /var there is only what programs look up: it has
// sockets, queues and the data of services.
var systemFolders = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/nix", "/gnu", "/snap",
	"/var/lib/dpkg", "/var/lib/apt/lists", "/var/lib/rpm", "/var/lib/pacman", "/var/lib/alternatives", "/var/lib/ca-certificates",
	"/var/cache/fontconfig", "/var/cache/man",
}

// socketFolders lie in folders of the system, and have the socket of a service that acts for each program which connects. In a view they
// are empty.
var socketFolders = []string{"/nix/var/nix/daemon-socket", "/nix/var/nix/gc-socket"}
