package shim

import (
	"os"
	"slices"
	"strings"
	"sync"
)

// Birth identifies one process: PIDs are reused, and then the start time differs.
type Birth struct {
	PID   int
	Start uint64 // ticks since boot
}

// Origin is where a process runs, as far as Fairlead's sessions are concerned.
type Origin struct {
	Session string // the session of the workspace that asks; empty: it runs in none of them
	Foreign string // otherwise: a session of another workspace; empty: none
	Who     Birth  // the process, if it runs in no session
	Unseen  bool   // it could not be inspected: it has ended, or its ancestors changed during each attempt
}

// walksMax bounds the repeated walks up a process tree that changes during the walk. A process that
// forks and exits endlessly is refused, not waited for.
const walksMax = 8

// Caller finds the session in which the process at the other end of a socket runs. Ask it as soon as the
// process connects, because a PID can be reused later. A caller that is Unseen may be an agent. Sessions in
// which this process itself runs are not Foreign: an agent that starts a daemon owns that daemon. workspace is
// spelled as in Config.Workspace.
func Caller(workspace string, pid int) Origin {
	return caller(pid, marksAbove, ancestry, workspaceHash(workspace)+".", enclosing())
}

// Here finds the session in which this process runs, of whichever workspace.
func Here(workspace string) Origin {
	return caller(os.Getpid(), marksAbove, ancestry, workspaceHash(workspace)+".", nil)
}

// enclosing returns the marks of the sessions in which this process runs.
var enclosing = sync.OnceValue(func() []string { return marksAbove(os.Getpid()) })

// caller counts the marks only if the ancestors are the same before and after they were read: if an ancestor
// exits meanwhile, the walk ends below the shim, and the orphaned process becomes the shim's child a moment
// later.
func caller(pid int, marks func(int) []string, above func(int) ([]Birth, bool), prefix string, around []string) Origin {
	for range walksMax {
		before, whole := above(pid)
		found := marks(pid)
		after, still := above(pid)
		if !whole || !still || !slices.Equal(before, after) {
			continue
		}
		is := sessionIn(found, prefix, around)
		if is.Session == "" && is.Foreign == "" {
			is.Who = before[0]
		}
		return is
	}
	return Origin{Unseen: true}
}

// sessionIn chooses the session that counts among the marks of a process and its ancestors, innermost first.
// It is the outermost, whose shim a daemon started: a process can only add marks below it. Sessions around the
// process that asks count only if there is no other one.
func sessionIn(marks []string, prefix string, around []string) (is Origin) {
	for _, mark := range marks {
		session, ours := strings.CutPrefix(mark, prefix)
		switch inside := !slices.Contains(around, mark); {
		case ours && session == "":
		case ours && (inside || is == Origin{}):
			is = Origin{Session: plainName(session)}
		case !ours && inside:
			_, session, _ = strings.Cut(mark, ".")
			is = Origin{Foreign: plainName(session)}
		}
	}
	return is
}

const nameBytesMax = 200 // longer than the name of any session

// plainName makes a name that a process may have forged fit to be shown. It is never empty.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r
		}
		return '?'
	}, name[:min(len(name), nameBytesMax)])
	if name == "" {
		return "?"
	}
	return name
}

// BirthOf returns the process with a PID. It is called for each order; reading the ancestors costs many
// more files.
func BirthOf(pid int) (is Birth, ok bool) {
	chain, _ := lineage(pid)
	return chain, chain.PID != 0
}
