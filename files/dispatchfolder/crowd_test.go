package dispatchfolder

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
)

// childEnv makes the test binary a program that sends inputs to a folder.
const childEnv = "SESSIONFOLDER_TEST_CHILD"

// child sends inputs to a folder, each over the one before, and prints a line for each that was confirmed. It
// ends after the given number, or when it is killed.
func child(path string, times int) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	for i := range times {
		text := fmt.Sprintf("input %d of %d", i, os.Getpid())
		changes, _, err := f.Do(time.Now(), change.Actor{Kind: "human"}, dispatch.UserInput{Text: text, Over: true})
		if err != nil {
			return err
		}
		fmt.Println(change.As[dispatch.Body](changes[len(changes)-1].Body).Conversation)
	}
	return nil
}

func spawn(t *testing.T, path string, times int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe) //nolint:gosec // this very test
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", childEnv, times, path))
	cmd.Stderr = os.Stderr
	return cmd
}

// Sixteen programs write at once: every input gets its own number, without gaps (D2; whole checks the
// numbers).
func TestSixteenProgramsAtOnce(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	const programs, times = 16, 3
	var all sync.WaitGroup
	for range programs {
		cmd := spawn(t, f.Path(), times)
		all.Go(func() {
			out, err := cmd.Output()
			if err != nil || strings.Count(string(out), "\n") != times {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	whole(t, f)
	s, err := f.Session()
	if err != nil || s.Made != programs*times {
		t.Errorf("%d conversations, %v; want %d", s.Made, err, programs*times)
	}
}

// A program that is killed at any moment loses nothing that was confirmed.
func TestAProgramThatIsKilled(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	safe := 0
	for range 6 {
		cmd := spawn(t, f.Path(), 1_000_000)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(out)
		for told := 0; in.Scan(); {
			if _, err := fmt.Sscan(in.Text(), &safe); err != nil {
				t.Fatal(err)
			}
			if told++; told == 4 { // whether its current input is complete is unknown
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // killed
		_, s, err := f.Do(time.Now(), change.Actor{Kind: "engine"}, dispatch.Interrupt{Why: "a crash"})
		if err != nil || s.Made < safe || s.Made > safe+1 {
			t.Fatalf("%d conversations, %v; %d were confirmed", s.Made, err, safe)
		}
	}
	do(t, f, dispatch.UserInput{Text: "the last", Over: true})
	whole(t, f)
}

// A process that holds the lock for too long is named, with advice.
func TestALockThatIsHeld(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	holder, err := os.Open(filepath.Join(f.Path(), ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if err := unix.Flock(int(holder.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	d, err := openFolder(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	_, err = d.lockWithin(20 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "fuser") {
		t.Errorf("a held lock: %v", err)
	}
	if _, err := f.Session(); err != nil {
		t.Errorf("a reader needs the lock: %v", err)
	}
	if err := unix.Flock(int(holder.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	do(t, f, dispatch.UserInput{Text: "hello"})
}

// A reader takes no lock and never sees an incomplete line or number.
func TestReadersBesideWriters(t *testing.T) {
	noSync(t)
	f := begin(t, dispatch.Setup{})
	over := make(chan struct{})
	var writers, readers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := range 10 {
				if _, _, err := f.Do(at, change.Actor{}, dispatch.UserInput{Text: fmt.Sprint(w, i), Over: true}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for line, from := uint64(0), int64(0); ; {
				select {
				case <-over:
					return
				default:
				}
				s, err := f.Session()
				if err != nil || s.Line < line {
					t.Errorf("line %d after %d: %v", s.Line, line, err)
					return
				}
				line = s.Line
				all, next, err := f.Lines(from)
				for _, l := range all {
					if l.Foreign || err != nil {
						t.Errorf("%+v, %v", l, err)
						return
					}
				}
				from = next
			}
		})
	}
	writers.Wait()
	close(over)
	readers.Wait()
	whole(t, f)
}
