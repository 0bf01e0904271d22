package nemesis

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/cli/offline"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// plain is the host of a team with engine hosts that is none.
const plain = "d"

// mirror is the journal's file of an engine host, as far as the test has read it.
type mirror struct {
	host, dir string

	stamp   string // of the files when they were read
	changes []change
	hashes  []journal.Hash
	broken  error
}

// read reads what is new in the file. It works while a daemon writes to the file, and while none runs.
func (m *mirror) read(t testing.TB) {
	stamp := ""
	for _, tail := range []string{"", "-wal"} {
		if info, err := os.Stat(filepath.Join(m.dir, ".fairlead", "journal.db") + tail); err == nil {
			stamp += fmt.Sprint(info.Size(), info.ModTime().UnixNano(), ";")
		}
	}
	if stamp == m.stamp {
		return
	}
	j, done, err := offline.Journal(t.Context(), m.dir)
	if err != nil {
		return // it is being written
	}
	defer done() //nolint:errcheck // a copy
	if seq, _, err := j.Head(t.Context()); err != nil || seq < uint64(len(m.changes)) {
		m.changes, m.hashes = nil, nil // it is another file
	}
	for c, err := range j.Read(t.Context(), journal.Query{After: uint64(len(m.changes))}) {
		if m.broken = err; err != nil {
			return
		}
		m.changes = append(m.changes, change{Seq: c.Seq, Time: c.Time, Entity: c.Entity, Trigger: c.Trigger, Note: string(c.Data)})
		m.hashes = append(m.hashes, c.Hash)
	}
	m.stamp = stamp
}

// newEngines makes a team of three engine hosts, a, b and c, and the host d. The journal is in the stream of the three.
func newEngines(t *testing.T) *world {
	t.Helper()
	w := makeWorld(t, "b", "c", plain)
	w.disk.mount(filepath.Join(w.dir, "c"))
	for _, host := range []string{"b", "c"} {
		git := w.Command(t.Context(), host, "git", "clone", "-q", filepath.Join(w.dir, leader), filepath.Join(w.dir, host, "clone"))
		out, err := git.CombinedOutput()
		w.ok(err, string(out))
		all, err := os.ReadDir(filepath.Join(w.dir, host, "clone"))
		w.ok(err)
		for _, is := range all {
			w.ok(os.Rename(filepath.Join(w.dir, host, "clone", is.Name()), filepath.Join(w.dir, host, is.Name())))
		}
		w.ok(os.Remove(filepath.Join(w.dir, host, "clone")))
		w.folders(host)
		w.join(host, "--engine", "--listen", w.Address(host)+":4222")
	}
	w.join(plain)
	for _, host := range w.hosts {
		w.up(host)
	}
	for _, host := range []string{leader, "b", "c"} {
		w.engines = append(w.engines, &mirror{host: host, dir: filepath.Join(w.dir, host)})
	}
	for _, e := range w.engines {
		wait.Until(w, e.host+" knows that the journal is replicated", func() bool {
			out, _ := w.try(e.host, "cluster", "status")
			return strings.Contains(out, "replicated by three")
		})
	}
	for _, host := range w.hosts {
		w.is(host, "joined")
	}
	w.Logf("the journal is replicated")
	return w
}

func (w *world) engine(host string) *mirror {
	if i := slices.IndexFunc(w.engines, func(m *mirror) bool { return m.host == host }); i >= 0 {
		return w.engines[i]
	}
	return nil
}

// longest is the journal of the engine host that has most of it.
func (w *world) longest() (m *mirror) {
	for _, m := range w.engines {
		m.read(w)
	}
	return slices.MaxFunc(w.engines, func(a, b *mirror) int { return len(a.changes) - len(b.changes) })
}

// start is what a host that leads writes first.
type start struct {
	seq  uint64
	Team struct {
		Epoch  uint64
		Leader string
	}
}

func (w *world) starts(all []change) (list []start) {
	for _, c := range all {
		if c.Trigger == "daemon_started" {
			s := start{seq: c.Seq}
			w.ok(json.Unmarshal([]byte(c.Note), &s))
			list = append(list, s)
		}
	}
	return list
}

// leads is the host that leads, as the journal says.
func (w *world) leads() string {
	list := w.starts(w.journal())
	if len(list) == 0 || list[len(list)-1].Team.Leader == "" {
		return leader
	}
	return list[len(list)-1].Team.Leader
}

// ask asks the leader, else another host.
func (w *world) ask(args ...string) (out string, err error) {
	if w.engines == nil {
		return w.try(leader, args...)
	}
	first := w.leads()
	for _, host := range append([]string{first},
		slices.DeleteFunc([]string{leader, "b", "c"}, func(h string) bool { return h == first })...) {
		if out, err = w.within(5*time.Second, host, args...); err == nil {
			return out, nil
		}
	}
	return out, err
}

// lead moves the lead to a host, which a person may do at any time.
func (w *world) lead(host string) {
	w.Helper()
	wait.Until(w, host+" leads", func() bool {
		if w.leads() == host {
			return true
		}
		_, _ = w.ask("cluster", "lead", host)
		return false
	})
}

// another waits until another host leads than the one before.
func (w *world) another(before string) (now string) {
	w.Helper()
	at, acks := time.Now(), w.acks()
	wait.Until(w, "another host than "+before+" leads", func() bool { now = w.leads(); return now != before })
	all := w.journal()
	led := w.starts(all)
	begun := all[led[len(led)-1].seq-1].Time.Sub(at)
	wait.Until(w, "orders are taken again", func() bool { return w.acks() > acks+1 })
	w.Logf("measured: host %s leads %v after the fault; orders that are given on %s are taken after %v", now,
		begun.Round(100*time.Millisecond), plain, time.Since(at).Round(100*time.Millisecond))
	return now
}

// whole waits until all hosts are back.
func (w *world) whole() {
	w.Helper()
	for _, host := range append([]string{leader}, w.hosts...) {
		if host != w.leads() {
			w.is(host, "joined")
		}
	}
}

// checkEngines compares the journals of all engine hosts with what was acknowledged, and with each other.
func (w *world) checkEngines(ordered []change) {
	w.Helper()
	long := w.longest()
	for _, m := range w.engines {
		lacks, twice := "", ""
		if !wait.Poll(func() bool {
			m.read(w)
			lacks, twice = "", ""
			for _, o := range ordered {
				if n := count(m.changes, o.in); n == 0 {
					lacks += o.Entity + " " + o.Note + " "
				} else if n > 1 && o.Trigger == "" { // a run says several times that it has started
					twice += o.Note + " "
				}
			}
			return lacks == "" || m.broken != nil
		}) || twice != "" || m.broken != nil {
			w.Errorf("the journal of %s (%d changes of %d) lacks %q, has more than once %q, %v", m.host, len(m.changes), len(long.changes),
				lacks, twice, m.broken)
		}
		at := 0
		for _, o := range ordered {
			if o.Trigger != "" {
				continue // of another goroutine
			}
			next := slices.IndexFunc(m.changes[at:], o.in)
			if next < 0 {
				w.Errorf("in the journal of %s, %s is not behind the order before it", m.host, o.Note)
				break
			}
			at += next
		}
		for i := range min(len(m.hashes), len(long.hashes)) {
			if m.hashes[i] != long.hashes[i] {
				w.Errorf("change %d of %s is not that of %s", i+1, m.host, long.host)
				break
			}
		}
		if j, done, err := offline.Journal(w.Context(), m.dir); err == nil {
			if err := journal.Verify(w.Context(), j); err != nil {
				w.Errorf("the journal of %s: %v", m.host, err)
			}
			_ = done()
		}
	}
	epoch := uint64(0)
	for _, s := range w.starts(long.changes) {
		if s.Team.Epoch <= epoch {
			w.Errorf("change %d begins epoch %d after %d", s.seq, s.Team.Epoch, epoch)
		}
		epoch = s.Team.Epoch
	}
}

// acks is how many orders were acknowledged.
func (w *world) acks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ordered)
}

func count(all []change, is func(change) bool) (n int) {
	for _, c := range all {
		if is(c) {
			n++
		}
	}
	return n
}

// goesOnAs checks that the daemon of a host is the same process as before.
func (w *world) goesOnAs(host string, pid int) {
	w.Helper()
	if is := w.daemons[host]; is.Process.Pid != pid || is.Process.Signal(syscall.Signal(0)) != nil {
		w.Errorf("the daemon of %s has ended", host)
	}
}

// cutOff cuts a host off from others.
func (w *world) cutOff(host string, others ...string) {
	w.Helper()
	for _, other := range others {
		if other != host {
			w.Cut(host, other)
		}
	}
}

// engineTable has the failures of teams with engine hosts. Each is made while a process of a task works, and one of an agent of the
// leader's machine. Orders are given on d meanwhile.
var engineTable = map[string]func(w *world, n, keeper note){
	"leader is killed and comes back": func(w *world, n, keeper note) {
		w.kill(leader)
		w.another(leader)
		w.up(leader)
		w.whole()
		w.stays(n, keeper)
	},
	"power of the leader is lost": func(w *world, n, keeper note) {
		w.powerLost(leader)
		w.another(leader)
		w.moved(keeper)
		w.up(leader)
	},
	"leader is paused": func(w *world, n, keeper note) {
		w.paused[leader] = true
		pid := w.daemons[leader].Process.Pid
		w.Signal(leader, syscall.SIGSTOP)
		w.another(leader)
		w.moved(keeper)
		w.Signal(leader, syscall.SIGCONT)
		w.whole()
		w.goesOnAs(leader, pid)
	},
	"leader is paused for a short time": func(w *world, n, keeper note) {
		w.paused[leader] = true
		pid := w.daemons[leader].Process.Pid
		w.Signal(leader, syscall.SIGSTOP)
		w.another(leader)
		w.Signal(leader, syscall.SIGCONT)
		w.whole()
		w.goesOnAs(leader, pid)
		w.stays(n, keeper)
	},
	"leader is cut off from all": func(w *world, n, keeper note) {
		pid := w.daemons[leader].Process.Pid
		cut := now()
		w.cutOff(leader, w.hosts...)
		w.another(leader)
		if _, err := w.within(10*time.Second, leader, "start", "idle", "--note", "order of a minority;"); err == nil {
			w.Error("a leader that is cut off has taken an order")
		}
		w.moved(keeper)
		w.inTime(keeper, cut)
		w.Heal()
		w.whole()
		w.goesOnAs(leader, pid)
		if n := count(w.journal(), change{Entity: "control/idle", Note: "order of a minority;"}.in); n > 1 {
			w.Errorf("the order of a minority is there %d times", n)
		}
	},
	"leader is cut off from the other engine hosts": func(w *world, n, keeper note) {
		pid := w.daemons[leader].Process.Pid
		w.cutOff(leader, "b", "c")
		w.another(leader)
		w.is(plain, "joined")
		w.Heal()
		w.whole()
		w.goesOnAs(leader, pid)
	},
	"an engine host that does not lead is killed": func(w *world, n, keeper note) {
		w.kill("b")
		seq := w.last()
		w.after(seq, "host/b", "doubt_due")
		w.up("b")
		w.after(seq, "host/b", "lease_renewed")
		w.stays(n, keeper)
	},
	"two of three engine hosts are away": func(w *world, n, keeper note) {
		w.kill("b")
		w.kill("c")
		was := w.acks()
		wait.Until(w, "the process of the leader's machine has ended", func() bool { return !w.alive(keeper) })
		w.Logf("measured: %d orders were taken after that", w.acks()-was)
		w.up("b")
		w.up("c")
		w.whole()
	},
	"disk of an engine host is full": fullDisk,
	"the lead is moved": func(w *world, n, keeper note) {
		pid := w.daemons[leader].Process.Pid
		w.lead("b")
		w.whole()
		w.lead("c")
		w.whole()
		w.goesOnAs(leader, pid)
		w.stays(n, keeper)
	},
}

// TestEngineFaults plays the table.
func TestEngineFaults(t *testing.T) {
	for name, fault := range engineTable {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := newEngines(t)
			defer w.show()
			run := w.task("During")
			n := w.works(run)
			keeper := w.keeper()
			stop := w.orders()
			fault(w, n, keeper)
			t.Logf("measured: the longest time between two acknowledged orders was %v; %d were acknowledged",
				stop().Round(100*time.Millisecond), w.acks())
			w.end(run)
			w.check()
		})
	}
}

// keeper starts the agent of the leader's machine.
func (w *world) keeper() note {
	w.Helper()
	_, err := w.ask("start", "keeper")
	w.ok(err)
	return w.works("keeper")
}

// stays checks that processes have not ended.
func (w *world) stays(all ...note) {
	w.Helper()
	for _, n := range all {
		if !w.alive(n) {
			w.Errorf("the process of %s has ended", n.Session)
		}
	}
}

// moved waits for the next session of the leader's machine.
func (w *world) moved(keeper note) {
	w.Helper()
	next := w.works("keeper", keeper.Session)
	end := w.lastSign(keeper)
	w.Logf("measured: %s begins on %s %v after the last sign of %s on %s", next.Session, next.Host,
		(next.At - end.At).Round(100*time.Millisecond), keeper.Session, keeper.Host)
	if end.At > next.At && !w.paused[keeper.Host] {
		w.Errorf("%+v began before %+v", next, end)
	}
}

// end lets a run end, while the host leads on which it began.
func (w *world) end(run string) {
	w.Helper()
	w.lead(w.homes[run])
	w.whole()
	w.finish(run)
}
