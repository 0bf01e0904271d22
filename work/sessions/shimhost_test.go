package sessions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// TestLeasedSessions: a renewal moves the deadline of all sessions that have one, also of those that were adopted, and
// a shim that does not answer delays no other. A session that its deadline has ended is lost; it has not failed.
func TestLeasedSessions(t *testing.T) {
	const never = host.BootTime(math.MaxInt64 - 9)
	here := &Shims{Folder: filepath.Join(t.TempDir(), "sessions"), Workspace: t.Name()}
	run := func(session string, man *host.DeadMan) *shimProcess {
		t.Helper()
		started, err := here.StartLeased(t.Context(), session, 1, spawn.Launch{Argv: []string{"/bin/sleep", "3600"}, Env: os.Environ()},
			time.Second, man)
		if err != nil {
			t.Fatal(err)
		}
		p := started.(*shimProcess) //nolint:forcetypeassert // its only type
		t.Cleanup(func() {
			last, _, err := here.Adopt(context.Background(), session, 2)
			if err != nil {
				t.Fatal(err)
			}
			_ = last.End(context.Background(), 0)
			<-last.Done()
			last.Close()
			p.Close()
		})
		return p
	}
	ends := func(at host.BootTime, ps ...*shimProcess) {
		t.Helper()
		for _, p := range ps {
			if st, err := p.Status(t.Context()); err != nil || st.LeaseEnd != at {
				t.Errorf("%s ends at %d, not %d: %v", p.Folder(), st.LeaseEnd, at, err)
			}
		}
	}
	a, b := run("a-1", &host.DeadMan{StartBy: never, EndAt: never}), run("b-1", &host.DeadMan{StartBy: never, EndAt: never})
	waits, plain := run("waits-1", &host.DeadMan{StartBy: never, EndAt: 1, Waits: true}), run("plain-1", nil)
	over := run("over-1", &host.DeadMan{StartBy: never, EndAt: 1})
	<-over.Done()
	if ending, err := over.Ended(t.Context()); err != nil || !ending.Lost || !strings.Contains(ending.Why, "lease") {
		t.Errorf("ended by its deadline: %+v %v", ending, err)
	}
	if err := here.Extend(t.Context(), never+1); err != nil || len(here.leased) != 2 {
		t.Errorf("extended, and %d sessions are left: %v", len(here.leased), err)
	}
	ends(never+1, a, b)
	ends(0, waits, plain)

	var cannot *spawn.CannotStart
	_, err := here.StartLeased(t.Context(), "late-1", 1, spawn.Launch{Argv: []string{"/bin/true"}}, time.Second,
		&host.DeadMan{StartBy: 1, EndAt: never})
	if !errors.As(err, &cannot) || !strings.Contains(cannot.Why, "lease") {
		t.Errorf("started too late: %v", err)
	}

	st, err := b.Status(t.Context())
	if err != nil || syscall.Kill(st.ShimPID, syscall.SIGSTOP) != nil {
		t.Fatal(err)
	}
	wait.Until(t, "all threads of the shim are stopped", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", st.ShimPID))
		return !slices.ContainsFunc(threads, func(stat string) bool {
			text, err := os.ReadFile(stat)
			return err == nil && !bytes.Contains(text, []byte(") T "))
		})
	})
	err = here.Extend(t.Context(), never+2)
	_ = syscall.Kill(st.ShimPID, syscall.SIGCONT)
	if err == nil || !strings.Contains(err.Error(), "b-1") || strings.Contains(err.Error(), "a-1") {
		t.Errorf("the shim of b-1 was stopped: %v", err)
	}
	ends(never+2, a)

	next := &Shims{Folder: here.Folder, Workspace: here.Workspace}
	taken, _, err := next.Adopt(t.Context(), "a-1", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := next.Extend(t.Context(), never+3); err != nil {
		t.Error(err)
	}
	ends(never+3, taken.(*shimProcess))
	if err := here.Extend(t.Context(), never+4); !errors.As(err, new(*sessionhost.Fenced)) {
		t.Errorf("the sessions have another daemon: %v", err)
	}
}
