package claudehook

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/claudehook/confine"
)

// Main is `fairlead hook EVENT`: Run, with this program as what runs MAIN's commands.
func Main(name string, in io.Reader, out, errs io.Writer) int {
	exe, err := os.Executable()
	if err != nil {
		return failed(name, fmt.Errorf("find this program's own file: %w", err)).Write(out, errs)
	}
	return Run(name, []string{exe, "hook", confine.Verb}, in, out, errs)
}

// Run runs a hook: the event's name and the streams in, the exit code out. exe is Hook.Exe.
func Run(name string, exe []string, in io.Reader, out, errs io.Writer) int {
	home, _ := os.UserHomeDir() // none: only the project's agents are found
	h := Hook{Now: time.Now, Env: os.Getenv, Home: home, Nested: nested, Args: callerArgs, Exe: exe}
	done := make(chan Answer, 1)
	go func() {
		defer func() {
			if bug := recover(); bug != nil { // for some events the program would take a crash for consent
				done <- failed(name, fmt.Errorf("this is a bug: %v", bug))
			}
		}()
		done <- h.Answer(name, in)
	}()
	select {
	case a := <-done:
		return a.Write(out, errs)
	case <-time.After(HookWait):
		return failed(name, errors.New("there was no decision in time; check whether a process holds the session's lock")).Write(out, errs)
	}
}
