package nemesis

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// table has the failures. Each is made while the process of a task works on a host.
var table = map[string]func(w *world, n note){
	"power of a host is lost": func(w *world, n note) {
		w.measured(n, func() { w.powerLost(n.Host) })
		w.up(n.Host)
		w.is(n.Host, "joined")
	},
	"daemon of a host is killed": func(w *world, n note) {
		seq := w.last()
		w.kill(n.Host)
		w.after(seq, "host/"+n.Host, "doubt_due")
		w.up(n.Host)
		w.after(seq, "host/"+n.Host, "lease_renewed")
		w.goesOn(n)
	},
	"link is down for a while": func(w *world, n note) {
		seq := w.last()
		w.Cut(leader, n.Host)
		w.after(seq, "host/"+n.Host, "doubt_due")
		w.Heal()
		w.after(seq, "host/"+n.Host, "lease_renewed")
		w.goesOn(n)
	},
	"link is down": func(w *world, n note) {
		w.measured(n, func() { w.Cut(leader, n.Host) })
		w.heal(n)
	},
	"host does not hear": func(w *world, n note) {
		w.measured(n, func() { w.CutOneWay(leader, n.Host) })
		w.heal(n)
	},
	"host is not heard": func(w *world, n note) {
		w.measured(n, func() { w.CutOneWay(n.Host, leader) })
		w.heal(n)
	},
	"host is paused": func(w *world, n note) {
		w.paused[n.Host] = true
		w.measured(n, func() { w.Signal(n.Host, syscall.SIGSTOP) })
		at := now()
		w.Signal(n.Host, syscall.SIGCONT)
		w.is(n.Host, "joined")
		wait.Until(w, "the late process has ended", func() bool { return !w.alive(n) })
		w.Logf("measured: the late process gave its last sign %v after its host went on (negative: none); the host has joined again after %v",
			(w.lastSign(n).At - at).Round(time.Millisecond), (now() - at).Round(time.Millisecond))
	},
	"leader is killed": func(w *world, n note) {
		stop := w.orders()
		defer stop()
		at := now()
		w.kill(leader)
		w.up(leader)
		w.is(n.Host, "joined")
		w.Logf("measured: the host is connected again %v after the leader was killed", (now() - at).Round(time.Millisecond))
		w.goesOn(n)
	},
	"leader is down for two minutes": func(w *world, n note) {
		at := now()
		w.kill(leader)
		wait.Until(w, "the session has ended", func() bool { return !w.alive(n) })
		w.inTime(n, at)
		w.Logf("measured: the session's last sign is %v after the leader was killed", (w.lastSign(n).At - at).Round(100*time.Millisecond))
		wait.Pause(2*time.Minute - (now() - at))
		back := now()
		w.up(leader)
		next := w.works(n.Run, n.Session)
		w.Logf("measured: its work begins anew %v after the leader is back", (next.At - back).Round(100*time.Millisecond))
	},
	"host is removed while it is cut off": func(w *world, n note) {
		w.measured(n, func() {
			w.Cut(leader, n.Host)
			w.remove(n.Host)
		})
		w.Heal()
		w.is(n.Host, "left")
		if err := w.daemons[n.Host].Wait(); err == nil {
			w.Error("the daemon of a host that was removed ended without an error")
		}
	},
	"host is drained": func(w *world, n note) {
		w.fairlead(leader, "host", "drain", n.Host)
		w.acknowledged(change{Entity: "host/" + n.Host, Trigger: "drain_asked"})
		if next := w.works(w.task("After the drain")); next.Host == n.Host {
			w.Errorf("a session was placed on a host that is draining: %+v", next)
		}
		w.goesOn(n)
		w.is(n.Host, "left")
	},
}

// TestFaults plays the table. In each world one task has ended before the fault, and one is worked on.
func TestFaults(t *testing.T) {
	for name, fault := range table {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := newWorld(t, "b", "c")
			defer w.show()
			before := w.task("Before")
			w.works(before)
			w.finish(before)
			run := w.task("During")
			n := w.works(run)
			fault(w, n)
			if _, over := w.done[run]; !over {
				if by := w.finish(run); by == n.Session {
					t.Errorf("the result is that of the session that was lost: %s", by)
				}
			}
			w.check()
		})
	}
}

// alive reports whether the process of a session has not ended; one that is stopped has not. Its lock says so exactly:
// its number may be that of another process by now.
func (w *world) alive(n note) bool {
	f, err := os.Open(filepath.Join(w.dir, holds, n.Session))
	w.ok(err)
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}

// goesOn lets a session end that a fault must not have ended.
func (w *world) goesOn(n note) {
	w.Helper()
	if !w.alive(n) {
		w.Errorf("the process of %s has ended", n.Session)
	}
	if by := w.finish(n.Run); by != n.Session {
		w.Errorf("%s was worked on by %q, not by %s", n.Run, by, n.Session)
	}
}

// remove removes a host, as a person does.
func (w *world) remove(host string) {
	w.Helper()
	w.fairlead(leader, "host", "remove", host, "--yes")
	w.acknowledged(change{Entity: "host/" + host, Trigger: "removed_busy"})
}

// heal ends the cuts of a host that was lost, and waits until it has joined again and what its session left is shown as late.
func (w *world) heal(n note) {
	w.Helper()
	w.Heal()
	w.is(n.Host, "joined")
	wait.Until(w, "what "+n.Session+" left is shown as late", func() bool {
		h := w.host(n.Host)
		return len(h.Missing) == 0 &&
			slices.ContainsFunc(h.Late, func(l late) bool { return l.Session == n.Session && l.Run == n.Run && l.Lacks == "" })
	})
}

// measured makes a fault after which a session moves, and prints when what has happened.
func (w *world) measured(n note, fault func()) {
	w.Helper()
	seq, at, clock := w.last(), time.Now(), now()
	fault()
	cut := now()
	next := w.works(n.Run, n.Session)
	said := ""
	for _, c := range w.journal() {
		if c.Seq > seq && c.Entity == "host/"+n.Host && (strings.HasSuffix(c.Trigger, "_due") || c.Trigger == "removed_busy") {
			said += fmt.Sprintf("%s %v, ", c.Trigger, c.Time.Sub(at).Round(100*time.Millisecond))
		}
	}
	end := w.lastSign(n)
	w.Logf("measured: %slast sign of the process %v, begun on host %s %v after the fault", said,
		(end.At - clock).Round(100*time.Millisecond), next.Host, (next.At - clock).Round(100*time.Millisecond))
	if next.Host == n.Host {
		w.Errorf("it was placed on the same host: %+v", next)
	}
	if w.paused[n.Host] {
		return
	}
	w.inTime(n, cut)
	if end.At > next.At || w.alive(n) {
		w.Errorf("it began on %s before it had ended on %s: %+v, %+v", next.Host, n.Host, next, end)
	}
}

// inTime checks that a process was not alive when the lease of its host had ended, which was cut off.
func (w *world) inTime(n note, cut time.Duration) {
	w.Helper()
	if lived := w.lastSign(n).At - cut; lived > time.Duration(host.EndAfter+host.EndWithin) {
		w.Errorf("the process of %s lived %v after its host was cut off", n.Session, lived)
	}
}
