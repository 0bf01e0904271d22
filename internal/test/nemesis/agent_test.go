package nemesis

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/boottime"
)

// The files of a world that all hosts see: they are of the test, and not of Fairlead.
const (
	logFile = "processes" // lines of JSON, one a note
	holds   = "holds"     // a folder: a file that the process locks while it lives, for each run and each session
	finish  = "finish"    // a folder: the run of this name is to end
)

// What a process of an agent notes.
const (
	began = "began"
	beat  = "beat" // each second
	ended = "ended"
	two   = "two" // another process of this run or session lives
)

// note is a line of the process log.
type note struct {
	What         string
	At           time.Duration // CLOCK_BOOTTIME
	Host         string
	Run, Session string
	PID          int
	Other        string `json:",omitempty"` // host of the other process
}

// agent is the program of the agents: it works until its run is to end, and then writes its result. The folder is that of the
// world.
func agent(world string) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	below, err := filepath.Rel(world, here)
	if err != nil {
		return err
	}
	host, _, _ := strings.Cut(below, string(filepath.Separator))
	n := note{Host: host, Run: os.Getenv("RUN_ID"), Session: os.Getenv("FAIRLEAD_SESSION"), PID: os.Getpid()}
	if n.Run == "" {
		n.Run = os.Getenv("FAIRLEAD_AGENT") // which has one slot
	}
	for _, name := range []string{n.Run, n.Session} {
		defer hold(world, name, n).Close() //nolint:errcheck // the process ends
	}
	write(world, n, began)
	for {
		if _, err := os.Stat(filepath.Join(world, finish, n.Run)); err == nil {
			break
		}
		wait.Pause(time.Second)
		write(world, n, beat)
	}
	f, err := os.OpenFile("work.txt", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, n.Session)
	write(world, n, ended)
	return errors.Join(err, f.Close())
}

// hold locks the file of a run or session until the process has ended. The system releases it, whatever ends the process.
func hold(world, name string, n note) *os.File {
	f, err := os.OpenFile(filepath.Join(world, holds, name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		panic(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		other, _ := os.ReadFile(f.Name())
		n.Other = string(other)
		write(world, n, two)
		return f
	}
	if err := errors.Join(f.Truncate(0), os.WriteFile(f.Name(), []byte(n.Host), 0o600)); err != nil {
		panic(err)
	}
	return f
}

// write appends one line in one call, so lines of several processes do not mix.
func write(world string, n note, what string) {
	n.What, n.At = what, now()
	text, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	f, err := os.OpenFile(filepath.Join(world, logFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		panic(err)
	}
	_ = f.Close()
}

func now() time.Duration { return time.Duration(boottime.Now()) }

// notes reads the process log.
func notes(t testing.TB, world string) (all []note) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(world, logFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var n note
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, n)
	}
	return all
}
