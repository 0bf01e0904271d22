package shim

import (
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

const (
	guardEvery    = 200 * time.Millisecond // 400 MB of a program that takes 2 GB a second
	processesLast = 10 * time.Second       // a program whose forks fail gets so long to notice, such as a build with too many jobs
	useFresh      = 2 * time.Second        // figures for people need not be newer
)

// guard ends the session when it reaches one of its limits, and knows what it uses. All of it is in its own goroutine but for
// what mu protects.
type guard struct {
	limits spawn.Limits
	sight  sight // what of the machine is the session's
	group  *group
	disk   disk
	growth growth

	fullSince time.Time // since when the session has had all its processes; zero: it has not

	mu     sync.Mutex
	use    session.Use // the last figures
	peak   session.Use // the highest ones
	lookAt time.Time   // when the last figures were taken
}

// guard begins to look after the session. Without a limit that needs it, it looks at nothing until someone asks.
func (k *keeper) startGuard(l *Spec) {
	k.guard = &guard{limits: l.Launch.Limits, sight: k.newSight(), group: k.group, disk: newDisk(writable(l))}
	k.guard.growth.asked = make(chan struct{}, 1)
	k.guard.confine(k)
	if k.guard.limits.EndAtOutput {
		go func() {
			select {
			case <-k.spool.reached:
				k.limitReached(session.LimitOutput, false)
			case <-k.alone:
			}
		}()
	}
	if lim := k.guard.limits; lim.Memory > 0 || lim.Processes > 0 {
		go k.guard.watch(k)
	}
	if k.guard.limits.Disk > 0 {
		go k.guard.watchDisk(k)
	}
}

// watch looks at memory and processes until none is left. What outlives the agent counts, too.
func (g *guard) watch(k *keeper) {
	look := time.NewTicker(guardEvery)
	defer look.Stop()
	for {
		select {
		case <-k.alone:
			return
		case now := <-look.C:
			g.mu.Lock()
			over := g.over(now)
			g.mu.Unlock()
			if over != "" {
				k.limitReached(over, false)
			}
		}
	}
}

// over takes the figures, and names the limit that is reached.
func (g *guard) over(now time.Time) session.Limit {
	seen := g.sight.processes()
	g.note(seen, g.sight.about(seen), now)
	if most := g.limits.Processes; most > 0 {
		full := g.group.refuses() || seen.tasks >= most
		switch {
		case !full:
			g.fullSince = time.Time{}
		case g.fullSince.IsZero():
			g.fullSince = now
		}
		// The kernel lets a session have a few more than its limit, for process 1 of its view.
		held := g.sight.holdsTasks() || g.group.holdsTasks(g.limits)
		if full && (!held && seen.tasks > most || seen.tasks > 2*most+tasksMore ||
			now.Sub(g.fullSince) >= processesLast) {
			return session.LimitProcesses
		}
	}
	if most := g.limits.Memory; most > 0 && g.sight.mayExceed(seen, most, now) {
		memory := g.sight.memory(seen, now)
		if g.note(seen, memory, now); memory > most {
			g.peak.MemoryBytes = max(g.peak.MemoryBytes, memory)
			return session.LimitMemory
		}
	}
	return ""
}

// note keeps figures. An inexact one above the limit is not shown.
func (g *guard) note(seen counts, memory int64, now time.Time) {
	if most := g.limits.Memory; most > 0 {
		memory = min(memory, most)
	}
	g.use.MemoryBytes, g.use.Processes, g.lookAt = memory, seen.tasks, now
	g.peak.MemoryBytes, g.peak.Processes = max(g.peak.MemoryBytes, memory), max(g.peak.Processes, seen.tasks)
}

// watchDisk looks at the folders that the session can write.
func (g *guard) watchDisk(k *keeper) {
	stop := func() bool { return closed(k.alone) }
	g.disk.begin(k.record.StartedAt, stop)
	look := time.NewTicker(diskEvery)
	defer look.Stop()
	for {
		select {
		case <-k.alone:
			return
		case <-look.C:
		}
		if !g.disk.due(g.limits.Disk, time.Now()) {
			continue
		}
		grown := g.disk.walk(stop) + g.deleted()
		g.mu.Lock()
		g.use.DiskBytes, g.peak.DiskBytes = grown, max(g.peak.DiskBytes, grown)
		g.mu.Unlock()
		if grown > g.limits.Disk {
			k.limitReached(session.LimitDisk, false)
		}
	}
}

// deleted is what files take on a disk that are only open.
func (g *guard) deleted() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sight.deleted()
}

func (g *guard) written() (int64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sight.written()
}

// now are the figures for someone who asks. pid is the agent's process.
func (g *guard) now(pid int) session.Use {
	if g == nil {
		return session.Use{} // it is about to start
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); now.Sub(g.lookAt) > useFresh {
		seen := g.sight.processes()
		g.note(seen, g.sight.about(seen), now)
	}
	use := g.use
	_, ended := childrenUsed()
	use.Processor, _ = ProcessorTime(pid) // 0: it has just ended
	use.Processor += ended
	return use
}

// last are the figures of a session that has ended. Where nothing has looked at its memory, that of its largest process counts.
func (g *guard) last() session.Use {
	if g == nil {
		return session.Use{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	use := g.peak
	largest, processor := childrenUsed()
	use.MemoryBytes, use.Processor = max(use.MemoryBytes, largest), processor
	return use
}

// limitReached ends the session for a limit: at once, because it takes more with every second, but for its output, which is not
// read any more.
func (k *keeper) limitReached(limit session.Limit, ofTeam bool) {
	k.mu.Lock()
	if k.limit == "" && k.endedAt.IsZero() && !k.ordered {
		k.limit, k.limitOfTeam = limit, ofTeam
	}
	k.mu.Unlock()
	grace := time.Duration(0)
	if limit == session.LimitOutput {
		grace = -1
	}
	_ = k.end(grace)
}
