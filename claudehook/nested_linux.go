package claudehook

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ancestorsMax bounds the walk up to the first process.
const ancestorsMax = 64

// shells are what a program starts a hook with.
var shells = []string{"sh", "bash", "dash", "zsh", "ash", "busybox", "ksh"}

// nested says whether the program that asks the hook was itself started from within the shell of an
// agent program, so that a model may have written the prompt. Such a shell carries CLAUDECODE=1. What
// runs a hook as install wrote it is not looked at: some programs give that to their hooks, too. Any
// other shell that has it is an agent's, which asks the hook by hand. Who leaves the tree of processes
// is not seen.
func nested() bool {
	above := false // of the program that asks
	for pid, n := os.Getppid(), 0; pid > 1 && n < ancestorsMax; n++ {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		name, parent, ok := parentOf(stat)
		if !ok {
			return false
		}
		if !above && !slices.Contains(shells, name) {
			above = true
		}
		if (above || !asInstalled(pid)) && marked(pid) {
			return true
		}
		pid = parent
	}
	return false
}

// Within says whether a process runs in an agent program's shell: it, or one above it, was started with
// CLAUDECODE=1. Who leaves the tree of processes is not seen.
func Within(pid int) bool {
	for range ancestorsMax {
		if marked(pid) {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		_, parent, ok := parentOf(stat)
		if !ok || parent <= 1 {
			return false
		}
		pid = parent
	}
	return false
}

// marked says whether a process was started with CLAUDECODE=1.
func marked(pid int) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(kv []byte) bool { return string(kv) == "CLAUDECODE=1" })
}

// commandFlags are those with which a program starts a shell for one command. No other is taken: behind it
// the last word might be no command.
var commandFlags = []string{"-c", "-l", "-lc", "-e", "-ec", "-lec"}

// asInstalled says whether a shell runs a hook's command as install wrote it, and nothing besides.
func asInstalled(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	words := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	last := len(words) - 1
	return last >= 2 && isCommandOfOurs(words[last]) && strings.Contains(strings.Join(words[1:last], ""), "c") &&
		!slices.ContainsFunc(words[1:last], func(flag string) bool { return !slices.Contains(commandFlags, flag) })
}

// parentOf reads a line of /proc/PID/stat: 12 (a name) S 7 …
func parentOf(stat []byte) (name string, parent int, ok bool) {
	open, shut := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || shut < open {
		return "", 0, false
	}
	fields := strings.Fields(string(stat[shut+1:]))
	if len(fields) < 2 {
		return "", 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	return string(stat[open+1 : shut]), parent, err == nil
}
