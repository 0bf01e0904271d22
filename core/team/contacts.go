package team

import (
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
)

// Contact sums up what an agent's programs had to do with one host of the network.
type Contact struct {
	Host    string    `json:"host"` // NAME, or NAME:PORT
	Reached int       `json:"reached,omitempty"`
	Refused int       `json:"refused,omitempty"`
	In      int64     `json:"in,omitempty"`  // bytes that came from it
	Out     int64     `json:"out,omitempty"` // bytes that went to it
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// Contacts is what a session reports of them.
type Contacts struct {
	Session string    `json:"session"`
	Hosts   []Contact `json:"hosts"`
}

const (
	contactsMax       = 100 // of one agent: enough to read, and the journal has all; those without news for longest are dropped
	contactsReportMax = 200 // of one report: a program that asks for more hosts between two reports looks for a way out, and its first ones show that
)

// hostsContacted records which hosts a session's program reached, or was refused. The session may be over.
func (d *decision) hostsContacted(a *Agent, what HostsContacted) error {
	rule, err := d.look(a, session.Contacted)
	if err != nil || a.step() != "" || len(what.Hosts) == 0 {
		return err
	}
	news := Contacts{Session: cutLine(what.Session)}
	for _, one := range what.Hosts[:min(len(what.Hosts), contactsReportMax)] {
		one.Host = cutLine(one.Host)
		one.Reached, one.Refused, one.In, one.Out = max(one.Reached, 0), max(one.Refused, 0), max(one.In, 0), max(one.Out, 0)
		one.First, one.Last = one.First.UTC().Round(0), one.Last.UTC().Round(0)
		news.Hosts = append(news.Hosts, one)
	}
	d.add(a.entity(), "session", rule.ID, string(a.phase()), string(rule.To), string(session.Contacted), &news)
	a.Contacts = ContactsWith(a.Contacts, news.Hosts)
	return nil
}

// ContactsWith adds news to an agent's contacts; the newest come last.
func ContactsWith(before, news []Contact) []Contact {
	all := slices.Clone(before)
	for _, one := range news {
		if at := slices.IndexFunc(all, func(c Contact) bool { return c.Host == one.Host }); at >= 0 {
			was := all[at]
			one.Reached, one.Refused, one.In, one.Out = one.Reached+was.Reached, one.Refused+was.Refused, one.In+was.In, one.Out+was.Out
			if !was.First.IsZero() {
				one.First = was.First
			}
			all = slices.Delete(all, at, at+1)
		}
		all = append(all, one)
	}
	return all[max(0, len(all)-contactsMax):]
}
