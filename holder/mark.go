package holder

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
)

const (
	// markVar is the variable that every process of an agent's tree inherits. Its
	// value is HASH.SESSION; where Fairlead runs inside an agent of another
	// Fairlead, the marks stand in a row, outermost first, with commas between.
	markVar = "FAIRLEAD_MARK"

	// holderVar names, in a holder's own environment, the session it holds.
	holderVar = "FAIRLEAD_HOLDER"
)

func markOf(workspace, session string) string { return workspaceHash(workspace) + "." + session }

func workspaceHash(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return hex.EncodeToString(sum[:8])
}

// markedEnv adds mark to an agent's environment, behind the marks of those who
// hold us ourselves, and keeps the last of variables given twice.
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
		if ok && k != "" && k != markVar && k != holderVar && last[k] == i && !strings.ContainsRune(kv, 0) {
			out = append(out, kv)
		}
	}
	return append(out, markVar+"="+marks)
}

// marksIn finds the marks in an environment as the kernel shows it: K=V, each ended by a zero byte.
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

// holderEnv is the holder's own small environment. The daemon's secrets are not in it.
func holderEnv(mark string) []string {
	env := []string{
		holderVar + "=" + mark,
		"GOMAXPROCS=1", "GOGC=50", "GOMEMLIMIT=24MiB", // a holder does little and must be small
	}
	for _, k := range []string{markVar, runtimeDirVar, crashVar, "GOCOVERDIR", "GORACE"} {
		if v, ok := os.LookupEnv(k); ok {
			env = append(env, k+"="+v)
		}
	}
	return env
}
