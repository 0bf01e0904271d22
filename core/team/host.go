package team

import (
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/table"
)

// PlaceAsked places a session on a host before its process starts. A session that has a place keeps it. It is
// refused by H7 if no host takes it now, with the reason of each host.
type PlaceAsked struct {
	Session string
	Needs   host.Needs
	OnLost  host.OnLost

	Here string // the leader's own host, on which it has to run; empty: Needs says where it may
}

// decideHost decides an event about a host.
func (d *decision) decideHost(in host.Input) error {
	changes, err := d.team.Hosts.Decide(d.ev.At, d.ev.Actor, in)
	d.changes = append(d.changes, changes...)
	return err
}

// placed chooses a host for a session whose process is to start.
func (d *decision) placed(a *Agent, what PlaceAsked) error {
	if _, err := d.ours(a, what); err != nil {
		return err
	}
	if _, placed := d.team.Hosts.Leases[what.Session]; placed {
		return nil
	}
	if what.Here != "" {
		return d.decideHost(host.Place{Session: what.Session, Host: what.Here, OnLost: what.OnLost, Home: true})
	}
	choice := d.team.Hosts.Choose(what.Needs)
	if choice.Host == "" {
		return &table.Refusal{
			Subject: "session " + what.Session, Event: string(host.SessionPlaced), State: "without a host", Row: "H7",
			Reason: choice.String(),
		}
	}
	return d.decideHost(host.Place{Session: what.Session, Host: choice.Host, OnLost: what.OnLost})
}

// unplace ends the lease of a session that is over.
func (d *decision) unplace(s *Session) error {
	if _, placed := d.team.Hosts.Leases[s.ID]; !placed {
		return nil
	}
	return d.decideHost(host.Release{Session: s.ID, For: s.For.String()})
}

// noteFrom notes that another host than the leader gets the files of a run, with a session of it.
func (t *Team) noteFrom(l *host.Lease) {
	if l == nil || l.Home || l.Host == t.Leader || t.Leader == "" && t.Hosts.Hosts[l.Host] != nil && t.Hosts.Hosts[l.Host].Leads {
		return
	}
	for _, name := range t.Names() {
		if s := t.Agents[name].Open(l.Session); s != nil && s.For.Kind == PurposeStep {
			n := t.Notes[s.For.Run]
			n.From = l.Host
			put(&t.Notes, s.For.Run, n)
		}
	}
}
