package shim

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// sparesOf makes spares that wait for any time, and returns their processes.
func sparesOf(t *testing.T, s *Spares) (pids []int) {
	t.Helper()
	if !haveSpares {
		t.Skip("a process of this system cannot change what others see of it")
	}
	wait.Until(t, "spares wait", func() bool {
		s.refill("")
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, one := range s.idle {
			if !one.until.Stop() {
				return false
			}
		}
		return len(s.idle) == sparesMax
	})
	wait.Until(t, "they are found", func() bool {
		all, err := processes()
		ok(t, err)
		pids = nil
		for _, p := range all {
			if mark, has := envValue(environOf(p.PID), shimVar); has && p.parent == os.Getpid() && strings.Trim(mark, " ") == "" {
				pids = append(pids, p.PID)
			}
		}
		return len(pids) == sparesMax
	})
	return pids
}

// TestSpare: a spare becomes the shim of a session, with all by which other programs know that one, whatever the length
// of the session's name, and ends like it.
func TestSpare(t *testing.T) {
	var spares Spares
	pids := sparesOf(t, &spares)
	dir := filepath.Join(t.TempDir(), "sessions", "coder-1")
	spec := agent(t, "hang")
	spec.Session = strings.Repeat("s", sessionNameBytesMax)
	spec.Spares = &spares
	h := start(t, dir, spec)
	lines(t, h, 1)
	st, err := h.Status(t.Context())
	ok(t, err)
	pid := st.ShimPID
	if !slices.Contains(pids, pid) {
		t.Fatalf("process %d runs the session, and the spares were %v", pid, pids)
	}
	if got := shimsOf(t, spec); len(got) != 1 || got[0].PID != pid {
		t.Errorf("shims that have the session's mark: %v", got)
	}
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	ok(t, err)
	real, err := realFolder(dir)
	ok(t, err)
	words := strings.FieldsFunc(string(line), func(r rune) bool { return r == 0 })
	if want := []string{"fairlead", shimWord, spec.Session, real}; !slices.Equal(words, want) {
		t.Errorf("its arguments are %q, want %q", words, want)
	}
	if session, is := SessionOf(spec.Workspace, pid); !is || session != spec.Session {
		t.Errorf("the shim is found in session %q", session)
	}
	if strays, err := Strays(spec.Workspace); err != nil || len(strays) != 0 {
		t.Errorf("the agent counts as without a shim: %v %v", strays, err)
	}
	if _, err := os.Stat(filepath.Join(dir, logFile)); err != nil {
		t.Error(err)
	}
	h.Close()
	next, st, err := Adopt(t.Context(), dir, spec.Fence+1) // as the next daemon does
	ok(t, err)
	defer next.Close()
	if st.Phase != Running || st.ShimPID != pid {
		t.Errorf("%+v", st)
	}
	ok(t, next.End(t.Context(), 0))
	done(t, next)
}

// TestSpareEnds: a spare that no start takes ends, as one does whose maker has ended: its socket is closed then. A start
// after a rest makes none.
func TestSpareEnds(t *testing.T) {
	var spares Spares
	pids := sparesOf(t, &spares)
	spares.mu.Lock()
	for _, one := range spares.idle {
		one.until.Reset(time.Nanosecond)
	}
	spares.mu.Unlock()
	wait.Until(t, "the spares have ended", func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { return LifeOf(pid, 0) != Gone })
	})
	spares.last = time.Now().Add(-2 * spareWaits)
	if spares.refill(""); spares.take("") != nil {
		t.Error("a start after a rest made a spare")
	}
}

// TestSpareFails: a start that cannot use the spare starts a shim of its own.
func TestSpareFails(t *testing.T) {
	t.Run("killed", func(t *testing.T) {
		var spares Spares
		pids := sparesOf(t, &spares)
		for _, pid := range pids {
			ok(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		for _, one := range spares.idle {
			<-one.gone
		}
		withSpares(t, &spares, pids)
	})
	t.Run("refuses", func(t *testing.T) {
		ours, theirs, err := socketPair()
		ok(t, err)
		var spares Spares
		pids := sparesOf(t, &spares)
		for _, one := range spares.idle { // they end, and what answers in their place refuses
			one.conn.Close()
			one.conn = ours
		}
		spares.idle = spares.idle[:1]
		go func() {
			defer theirs.Close()
			var o order
			if readFrame(theirs, launchBytesMax, &o) == nil {
				_ = writeFrame(theirs, answer{ID: 1, Fault: toFault(errSpare)})
			}
		}()
		withSpares(t, &spares, pids)
	})
}

// withSpares starts a session whose shim must not be one of these processes.
func withSpares(t *testing.T, spares *Spares, not []int) {
	t.Helper()
	spec := agent(t, "hang")
	spec.Spares = spares
	h := start(t, filepath.Join(t.TempDir(), "s"), spec)
	if st := h.Begun(); st.Phase != Running || slices.Contains(not, st.ShimPID) {
		t.Errorf("%+v", st)
	}
	ok(t, h.End(t.Context(), 0))
	done(t, h)
}
