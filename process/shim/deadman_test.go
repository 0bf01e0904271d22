package shim

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/boottime"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// never is a reading that the clock of a boot does not reach.
const never = host.BootTime(math.MaxInt64)

// startLeased starts an agent with a deadline, and calls ready when it has written n lines. If that took longer than until
// the deadline, it does so again with a later one.
func startLeased(t *testing.T, n int, ready func(h *Handle, end host.BootTime) error, args ...string) (*Handle, string) {
	t.Helper()
	for life := host.BootTime(time.Second / 4); ; life *= 2 {
		folder, spec := t.TempDir(), agent(t, args...)
		end := boottime.Now() + life
		spec.DeadMan = &host.DeadMan{StartBy: never, EndAt: end}
		h := start(t, folder, spec)
		out, err := h.Output(t.Context(), 0)
		ok(t, err)
		said := readLines(out, n)
		out.Close()
		if len(said) == n {
			err = ready(h, end)
		}
		switch {
		case err != nil && !errors.Is(err, ErrEnded), life > host.BootTime(patience):
			t.Fatalf("%q %v", said, err)
		case len(said) == n && err == nil:
			return h, folder
		}
	}
}

// TestDeadline: when the deadline has come, the whole tree is ended, also where no daemon is connected.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    []string
		lines   int
		stopped bool
	}{
		"children that ignore SIGTERM": {[]string{"tree"}, 3, false},
		"agent that ignores SIGTERM":   {[]string{"deaf"}, 1, false},
		"stopped agent":                {[]string{"hang"}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, folder := startLeased(t, c.lines, func(h *Handle, _ host.BootTime) error {
				st, err := h.Status(t.Context())
				if err != nil || st.Exit != nil {
					return errors.Join(err, ErrEnded)
				}
				h.Close()
				if c.stopped {
					return syscall.Kill(st.AgentPID, syscall.SIGSTOP)
				}
				return nil
			}, c.args...)
			var e *session.Exit
			wait.Until(t, "the shim has recorded the end", func() (over bool) {
				e, _ = readExit(folder)
				return e != nil
			})
			if e.Why != leaseEnded || !e.Ordered {
				t.Errorf("%+v", e)
			}
			noSurvivor(t, folder)
		})
	}
}

// TestDeadlineLongOver: a deadline that was over before the shim looked leaves no time for SIGTERM.
func TestDeadlineLongOver(t *testing.T) {
	t.Parallel()
	spec := agent(t, "hang")
	spec.DeadMan = &host.DeadMan{StartBy: never, EndAt: boottime.Now() - host.EndWithin}
	st := done(t, start(t, t.TempDir(), spec))
	if st.Exit == nil || st.Exit.Why != leaseEnded || st.Exit.Signal != "SIGKILL" {
		t.Errorf("%+v", st.Exit)
	}
}

// TestDeadlineCutsGrace: an end that was ordered with a long grace does not last longer than the deadline.
func TestDeadlineCutsGrace(t *testing.T) {
	t.Parallel()
	h, _ := startLeased(t, 3, func(h *Handle, _ host.BootTime) error {
		ok(t, h.End(t.Context(), time.Hour))
		st, err := h.Status(t.Context())
		if err == nil && !st.Ending {
			t.Errorf("%+v", st)
		}
		return err
	}, "tree")
	if st := done(t, h); st.Exit == nil || st.Exit.Swept == 0 {
		t.Errorf("the children that ignored SIGTERM were not ended: %+v", st.Exit)
	}
}

// TestExtend: a deadline only moves forward, and the one before ends nothing any longer.
func TestExtend(t *testing.T) {
	t.Parallel()
	var before host.BootTime
	h, folder := startLeased(t, 1, func(h *Handle, end host.BootTime) error {
		before = end
		return h.Extend(t.Context(), never-1)
	}, "hang")
	ok(t, h.Extend(t.Context(), before))
	wait.Until(t, "the first deadline has passed", func() bool { return boottime.Now() > before+host.EndWithin })
	st, err := h.Status(t.Context())
	if err != nil || st.LeaseEnd != never-1 || st.Ending {
		t.Fatalf("%+v %v", st, err)
	}
	next, st, err := Adopt(t.Context(), folder, 2)
	if err != nil || st.LeaseEnd != never-1 {
		t.Fatalf("%+v %v", st, err)
	}
	defer next.Close()
	if err := h.Extend(t.Context(), never); !errors.As(err, new(*Fenced)) {
		t.Errorf("a daemon that was replaced moved the deadline: %v", err)
	}
	ok(t, next.Extend(t.Context(), never))
	ok(t, next.End(t.Context(), 0))
	if st := done(t, next); st.Exit.Why != "" {
		t.Errorf("%+v", st.Exit)
	}
	if err := next.Extend(t.Context(), never); !errors.Is(err, ErrEnded) {
		t.Errorf("extended after its end: %v", err)
	}
}

// TestStartByOver: where the time for the start is over, no process starts, now or later.
func TestStartByOver(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	folder, spec := t.TempDir(), agent(t, "note", ran)
	spec.DeadMan = &host.DeadMan{StartBy: boottime.Now(), EndAt: never}
	for range 2 {
		_, err := Start(t.Context(), folder, spec)
		if !errors.As(err, new(*spawn.CannotStart)) || !strings.Contains(err.Error(), leaseEnded) {
			t.Fatal(err)
		}
		spec.DeadMan = nil // a later start gets the same answer
	}
	h, st, err := Adopt(t.Context(), folder, 1)
	ok(t, err)
	defer h.Close()
	if _, err := os.Stat(ran); st.Phase != NeverStarted || !strings.Contains(st.Why, leaseEnded) || err == nil {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestNoDeadline: a session that waits for its host, and one without a lease, have no deadline and cannot get one.
func TestNoDeadline(t *testing.T) {
	t.Parallel()
	for name, man := range map[string]*host.DeadMan{"waits": {StartBy: never, EndAt: 1, Waits: true}, "not leased": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := agent(t, "hang")
			spec.DeadMan = man
			h := start(t, t.TempDir(), spec)
			lines(t, h, 1)
			if err := h.Extend(t.Context(), never); !errors.Is(err, ErrNoDeadline) {
				t.Errorf("extended: %v", err)
			}
			if st, err := h.Status(t.Context()); err != nil || st.Ending || st.LeaseEnd != 0 {
				t.Errorf("%+v %v", st, err)
			}
		})
	}
}

// A shim that was stopped over its deadline finds an extension before it has looked at the clock. Its session may run
// elsewhere by then.
func TestExtendedTooLate(t *testing.T) {
	k := &keeper{deadMan: &host.DeadMan{EndAt: boottime.Now()}}
	if err := k.extend(boottime.Now() + host.EndWithin*20); !errors.Is(err, ErrEnded) || !k.deadMan.Due(boottime.Now()) {
		t.Errorf("extended after its deadline: %v", err)
	}
}
