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

// shells are the programs with which an agent program starts a hook.
var shells = []string{"sh", "bash", "dash", "zsh", "ash", "busybox", "ksh"}

// nested reports whether the program that calls the hook was itself started inside an agent program's shell,
// so that a model may have written the prompt. Such a shell has CLAUDECODE=1. A shell that runs a hook's
// command as install wrote it is skipped, because some programs set the variable for their hooks too. Any
// other shell with the variable is an agent's that calls the hook by hand. A process that left the process
// tree is not detected.
func nested() bool {
	above := false // a process above the calling program
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

// callerArgs are the arguments of the program that calls the hook, its own name first.
func callerArgs() []string {
	for pid, n := os.Getppid(), 0; pid > 1 && n < ancestorsMax; n++ {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return nil
		}
		name, parent, ok := parentOf(stat)
		if !ok {
			return nil
		}
		if !slices.Contains(shells, name) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // the process of another user: not known
			return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
		}
		pid = parent
	}
	return nil
}

// Within reports whether a process, or one above it, was started with CLAUDECODE=1, so that it runs inside an
// agent program's shell. A process that left the process tree is not detected.
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

// marked reports whether a process was started with CLAUDECODE=1.
func marked(pid int) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(kv []byte) bool { return string(kv) == "CLAUDECODE=1" })
}

// commandFlags are the flags with which a program starts a shell for one command. With other flags, the last
// word might not be a command.
var commandFlags = []string{"-c", "-l", "-lc", "-e", "-ec", "-lec"}

// asInstalled reports whether a shell runs exactly a hook's command as install wrote it.
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

// parentOf parses a line of /proc/PID/stat: 12 (a name) S 7 …
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
