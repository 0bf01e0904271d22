package cluster

import (
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
)

// proc is a shim with the process of one session.
type proc struct {
	p       *peer
	session string
	token   host.Token
	man     host.DeadMan
	asked   host.BootTime // of the daemon's last report

	began, over bool
	why         string // it ended
	endedAt     time.Duration
}

// Why a process ended, or will never begin.
const (
	didItsWork = "its work is done"
	leaseEnded = "its lease ended"
	noLease    = "the journal no longer leases it here"
	turnedOff  = "its machine was turned off"
	neverBegan = "it never began"
)

func agentOf(session string) string { return session[:strings.LastIndexByte(session, '-')] }

func (s *proc) runs() bool { return s.began && !s.over }

// machine lets a shim do something after a time of its machine's clock, or when the machine wakes.
func (p *peer) machine(d host.BootTime, do func()) {
	boots := p.boots
	p.w.in(p.after(d), func() {
		switch {
		case p.boots != boots || p.off:
		case p.asleep:
			p.atWake = append(p.atWake, do)
		default:
			do()
		}
	})
}

// work does what the host has to do about its sessions.
func (p *peer) work() {
	all := p.sessions()
	for session := range p.mine {
		all = append(all, session)
	}
	slices.Sort(all)
	for _, session := range slices.Compact(all) {
		p.does(session)
	}
}

func (p *peer) does(session string) {
	s, is := p.shims[session], host.Local{Used: p.used[session]}
	if s != nil {
		is.Shim, is.Began, is.Over, is.Waits, is.Token = true, s.began, s.over, s.man.Waits, s.token
	}
	l, placed := p.mine[session]
	lease := &l
	if !placed {
		lease = nil
	}
	switch p.guard.Duty(lease, p.bootID(), is) {
	case host.AskToStart:
		p.ask(l)
	case host.Withdraw:
		p.used[session] = true
		p.tell(func(to *lead) { to.ended(p, l.Token, neverBegan, func() {}) })
	case host.EndProcess:
		s.end(noLease)
	case host.ReportStart:
		if p.reports(s) {
			p.tell(func(to *lead) { to.started(s.token) })
		}
	case host.ReportEnd:
		done := func() {
			if p.shims[session] == s && p.mine[session].Token != s.token {
				delete(p.shims, session)
			}
		}
		if p.reports(s) {
			p.tell(func(to *lead) { to.ended(p, s.token, s.why, done) })
		}
	case host.NoDuty:
	}
}

// reports reports whether it is time for a report, which is repeated.
func (p *peer) reports(s *proc) bool {
	due := p.now()-s.asked >= host.BootTime(3*time.Second)
	if due {
		s.asked = p.now()
	}
	return due
}

// ask asks the leader whether a session may start.
func (p *peer) ask(l host.Lease) {
	if p.now()-p.asked[l.Session] < host.BootTime(2*time.Second) || !p.guard.Holds(p.now()) {
		return
	}
	asked := p.now()
	p.asked[l.Session] = asked
	p.guard.Ask(l.Session, asked)
	p.tell(func(to *lead) {
		to.asked(l.Token, func(epoch uint64) {
			p.w.send(to.p, p, func() { p.granted(host.Grant{Token: l.Token, Epoch: epoch, Asked: asked}) })
		}, func() {
			p.w.send(to.p, p, func() {
				if p.shims[l.Session] == nil { // from now on it never begins here
					p.used[l.Session] = true
				}
			})
		})
	})
}

// granted starts a shim, which looks at the clock again before it starts the process.
func (p *peer) granted(grant host.Grant) {
	var lease *host.Lease
	if l, placed := p.mine[grant.Session]; placed {
		lease = &l
	}
	by, why := p.guard.MayStart(lease, grant, p.now())
	if why != "" || p.shims[grant.Session] != nil || p.used[grant.Session] {
		return
	}
	end, _ := p.guard.Deadline()
	s := &proc{
		p: p, session: grant.Session, token: grant.Token,
		man: host.DeadMan{StartBy: by, EndAt: end, Waits: lease.OnLost == host.Wait},
	}
	p.shims[s.session] = s
	p.machine(host.BootTime(p.w.between(time.Millisecond, 100*time.Millisecond)), s.begin)
}

func (s *proc) begin() {
	if !s.man.MayBegin(s.p.now()) {
		delete(s.p.shims, s.session)
		return
	}
	s.began, s.p.used[s.session] = true, true
	s.p.w.truth.began(s)
	takes := s.p.w.between(s.p.w.size.Session/2, s.p.w.size.Session*2)
	s.p.machine(host.BootTime(takes), func() {
		if s.runs() {
			s.end(didItsWork)
		}
	})
	s.guard()
}

// guard kills the process at its deadline, which acknowledged renewals move.
func (s *proc) guard() {
	if s.man.Waits {
		return
	}
	s.p.machine(max(s.man.EndAt-s.p.now(), host.BootTime(100*time.Millisecond)), func() {
		switch {
		case !s.runs():
		case s.man.Due(s.p.now()):
			s.p.machine(host.BootTime(s.p.w.between(0, time.Duration(host.EndWithin)-time.Second)), func() {
				if s.runs() {
					s.end(leaseEnded)
				}
			})
		default:
			s.guard()
		}
	})
}

func (s *proc) end(why string) {
	s.over, s.why, s.endedAt = true, why, s.p.w.now
	s.p.w.truth.ended(s)
}
