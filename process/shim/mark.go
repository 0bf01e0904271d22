package shim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/runtimedir"
)

const (
	// markVar is the variable that every process of an agent's tree inherits. Its value is HASH.SESSION.
	// If Fairlead runs inside an agent of another Fairlead, the value lists all marks, outermost first,
	// separated by commas.
	markVar = "FAIRLEAD_MARK"

	// shimVar names the session in a shim's own environment.
	shimVar = "FAIRLEAD_SHIM"
)

func markOf(workspace, session string) string { return workspaceHash(workspace) + "." + session }

func workspaceHash(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return hex.EncodeToString(sum[:8])
}

// markedEnv adds mark to an agent's environment, after the marks of enclosing Fairlead instances,
// and keeps the last value of repeated variables.
func markedEnv(env []string, mark string) []string {
	marks := mark
	last := make(map[string]int, len(env))
	for i, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		if k == markVar && v != "" {
			marks = v + "," + mark
		}
		last[k] = i
	}
	out := make([]string, 0, len(env)+1)
	for i, kv := range env {
		k, _, ok := strings.Cut(kv, "=")
		if ok && k != "" && k != markVar && k != shimVar && last[k] == i && !strings.ContainsRune(kv, 0) {
			out = append(out, kv)
		}
	}
	return append(out, markVar+"="+marks)
}

// marksIn finds the marks in an environment in the kernel's format: K=V, each ended by a zero byte.
func marksIn(environ []byte) []string {
	v, ok := envValue(environ, markVar)
	if !ok || v == "" {
		return nil
	}
	return strings.Split(v, ",")
}

func envValue(environ []byte, key string) (string, bool) {
	for len(environ) > 0 {
		kv, rest, _ := bytes.Cut(environ, []byte{0})
		if k, v, ok := bytes.Cut(kv, []byte{'='}); ok && string(k) == key {
			return string(v), true
		}
		environ = rest
	}
	return "", false
}

// ancestorsMax limits the path from a process to its agent; a longer one is a loop in a process
// table that changes while it is read.
const ancestorsMax = 256

// SessionOf finds the session of a workspace in which a process runs: by its own mark, or by that of
// an ancestor if its environment was cleared. A process that an agent leaves behind is its shim's
// child, and a shim's mark counts too. A process that a program outside of the tree started for the
// agent is not found, nor is one that has ended: LifeOf distinguishes these. Caller, unlike this, notices
// a tree that changes. workspace is spelled as in Config.Workspace.
func SessionOf(workspace string, pid int) (session string, ok bool) {
	is := sessionIn(marksAbove(pid), workspaceHash(workspace)+".", nil)
	return is.Session, is.Session != ""
}

// marksAbove returns the marks of a process and of its ancestors, innermost first.
func marksAbove(pid int) (marks []string) {
	for range ancestorsMax {
		environ := environOf(pid)
		if mark, ok := envValue(environ, shimVar); ok && mark != "" {
			marks = append(marks, mark)
		}
		for _, mark := range slices.Backward(marksIn(environ)) {
			marks = append(marks, mark)
		}
		p, there := readProcess(pid)
		if !there || p.parent <= 1 {
			break
		}
		pid = p.parent
	}
	return marks
}

// shimEnv is the shim's own small environment, without the daemon's secrets.
func shimEnv(mark string) []string {
	env := []string{
		shimVar + "=" + mark,
		// A shim does little and must be small: garbage is collected from 1 MB on. An ordinary start and a quiet session
		// leave less than that, and the first collection alone takes 0.4 MB for its own lists.
		"GOMAXPROCS=1", "GOGC=25", "GOMEMLIMIT=24MiB",
	}
	for _, k := range []string{markVar, runtimedir.Var, crashVar, "GOCOVERDIR", "GORACE"} {
		if v, ok := os.LookupEnv(k); ok {
			env = append(env, k+"="+v)
		}
	}
	return env
}
