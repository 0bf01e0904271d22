package team

import (
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/host"
	"github.com/fairlead-dev/fairlead/machine/session"
)

const hostPrefix = "host/"

// PlaceAsked places a session on a host before its process starts. A session that has a place keeps it. It is
// refused by H7 if no host takes it now, with the reason of each host.
type PlaceAsked struct {
	Session string
	Needs   host.Needs
	OnLost  host.OnLost

	Here string // the leader's own host, on which it has to run; empty: Needs says where it may
}

// decideHost decides an event about a host.
func decideHost(d *decision, in host.Input) error {
	changes, err := d.team.Hosts.Decide(d.ev.At, d.ev.Actor.Kind+"/"+d.ev.Actor.ID, in)
	for _, ch := range changes {
		d.add(hostPrefix+ch.Entity, "host", ch.Row, string(ch.From), string(ch.To), string(ch.Event), Body{Host: &ch.Body})
	}
	return err
}

// placed chooses a host for a session whose process is to start.
func placed(d *decision, a *Agent, what PlaceAsked) error {
	if _, err := d.ours(a, session.Event(host.SessionPlaced), what.Session); err != nil {
		return err
	}
	if _, placed := d.team.Hosts.Leases[what.Session]; placed {
		return nil
	}
	if what.Here != "" {
		return decideHost(d, host.Place{Session: what.Session, Host: what.Here, OnLost: what.OnLost, Home: true})
	}
	choice := d.team.Hosts.Choose(what.Needs)
	if choice.Host == "" {
		return &machine.Refusal{Subject: "session " + what.Session, Event: string(host.SessionPlaced), State: "without a host", Row: "H7", Reason: choice.String()}
	}
	return decideHost(d, host.Place{Session: what.Session, Host: choice.Host, OnLost: what.OnLost})
}

// unplace ends the lease of a session that is over.
func unplace(d *decision, s *Session) error {
	if _, placed := d.team.Hosts.Leases[s.ID]; !placed {
		return nil
	}
	return decideHost(d, host.Release{Session: s.ID, For: s.For.String()})
}
