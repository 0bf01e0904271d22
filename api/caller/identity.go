package caller

import (
	"cmp"
	"strings"

	"github.com/fairlead-dev/fairlead/core/table"
)

// Identity is the process that gives an order, as far as it is known. The zero value is a program outside
// of all sessions: a person's, or a foreign agent's with the token. The error of each method is a
// *table.Refusal by rule X10.
type Identity struct {
	Session string // the session that the process runs in, AGENT-NUMBER or STEP@RUN-NUMBER; empty: none
	Foreign string // otherwise: a session of another repository that it runs in; empty: none
	Unknown bool   // the process ended before it could be identified
	Seen    bool   // it was identified as a process on its machine that runs in no session
	Own     bool   // it came through the session's own socket, which proves the session
	Host    string // the other host of the team on which it runs; empty: it runs on this machine
}

// Agent returns the agent whose session it is: coder-17 belongs to coder.
func (c Identity) Agent() string {
	return c.Session[:max(0, strings.LastIndexByte(c.Session, '-'))]
}

// inStep reports whether it is a step's session. The name of such a session does not contain the agent.
func (c Identity) inStep() bool { return strings.Contains(c.Session, "@") }

// MayOrder refuses orders that an agent may not give. about is the agent that the order is for; empty
// means the whole team. Holding the team is allowed for every caller and is not asked about: it stops
// work and releases nothing, and a person can lift it.
func (c Identity) MayOrder(event, about string) error {
	subject := cmp.Or(about, "the team")
	return c.mayOrder(event, subject, about,
		"an agent may not lift a hold, stop the daemon or give itself orders; ask the person who runs this team")
}

// MayOrderAgent refuses an order that no agent may give for itself or for another agent.
func (c Identity) MayOrderAgent(event, agent string) error {
	return c.mayOrder(event, agent, "",
		"an agent may not lift a hold, stop the daemon or give itself orders; ask the person who runs this team")
}

// MayOrderRun refuses orders about runs to every agent: an agent may work in a step of the run and would
// approve its own work. run is empty if a run is to be started.
func (c Identity) MayOrderRun(event, run string) error {
	subject := "the team"
	if run != "" {
		subject = "run " + run
	}
	return c.MayOrderAgent(event, subject)
}

// MayOrderChannel refuses people's orders about channels to every agent: the agent would speak as a
// person, or give itself the turn. Agents have routes of their own.
func (c Identity) MayOrderChannel(event, subject string) error {
	return c.mayOrder(event, subject, "", "this route is for people; an agent speaks under its own name, and only while it has the turn")
}

// MayOrderCrew refuses people's orders about the crew to every agent: an agent may not summon or wake
// others.
func (c Identity) MayOrderCrew(event string) error {
	return c.mayOrder(event, "the team", "", "only people summon and wake a crew; the lead reports its members in its own session")
}

// MayOrderDispatch refuses people's orders about dispatches to every agent: an agent could lift its own
// restrictions.
func (c Identity) MayOrderDispatch(event, subject string) error {
	return c.mayOrder(event, subject, "", "only people start and end sessions and give them input; an agent speaks in its own session")
}

// MayAnswer refuses answers to every agent: it could allow its own calls, or another agent's.
func (c Identity) MayAnswer(event, question string) error {
	return c.mayOrder(event, question, "",
		"only people answer agents' questions and revoke answers; the agent that asked receives the answer")
}

// MayLogin refuses orders about logins to every agent: an agent would act as a person in a browser.
func (c Identity) MayLogin(event string) error {
	return c.mayOrder(event, "Mission Control", "", "only people sign in to Mission Control")
}

// MayConfigure refuses changes of fairlead.yaml to every agent: an agent would lift its own limits.
func (c Identity) MayConfigure(event string) error {
	return c.mayOrder(event, "fairlead.yaml", "", "only people change the agents of a team; ask the person who runs this team")
}

// MayOpenShell refuses a shell in the view of an agent or of a task to every agent: it would act there as another one.
func (c Identity) MayOpenShell(of string) error {
	return c.mayOrder("open_shell", of, "", "only people open a shell in the view of an agent or of a task")
}

// MayOpenPort refuses to open a port of a session to every agent: it would reach what another one serves.
func (c Identity) MayOpenPort(of string) error {
	return c.mayOrder("open_port", of, "", "only people open a port of a session")
}

// MayOrderHost refuses orders about hosts to every agent: they decide where agents run. name is empty for a host
// that is not known yet.
func (c Identity) MayOrderHost(event, name string) error {
	subject := "host " + name
	if name == "" {
		subject = "the team"
	}
	return c.mayOrder(event, subject, "",
		"only people decide which hosts a team has and which one leads; ask the person who runs this team")
}

// MayActAs refuses to let an agent act in the name of another. A caller that is in no session and has the
// token may be a foreign agent.
func (c Identity) MayActAs(event, agent string) error {
	if c.Session != "" && !c.inStep() && c.Agent() == agent {
		return nil
	}
	return c.mayOrder(event, agent, "", "an agent may act only in its own name, and not at all from a step of a run")
}

// MayChange refuses everything except reading to agents of other repositories.
func (c Identity) MayChange(subject, event string) error {
	if c.Foreign == "" {
		return nil
	}
	return &table.Refusal{
		Subject: subject, Event: event, State: "asked from within " + c.Foreign + " of another repository", Row: "X10",
		Reason: "an agent of another repository may read here and change nothing; ask the person who runs this team",
	}
}

// Known refuses everything except reading and holding the team to a caller that could not be identified.
func (c Identity) Known(subject, event string) error {
	if !c.Unknown {
		return nil
	}
	return &table.Refusal{
		Subject: subject, Event: event, State: "the caller is gone", Row: "X10",
		Reason: "the process that connected ended before it could be identified, so it may have been an agent; repeat the request and keep the process alive until the answer",
	}
}

func (c Identity) mayOrder(event, subject, about, reason string) error {
	switch {
	case c.Foreign != "":
		return c.MayChange(subject, event)
	case c.Unknown:
		return c.Known(subject, event)
	case c.Session == "" || about != "" && about != c.Agent() && !c.inStep():
		return nil
	}
	return &table.Refusal{Subject: subject, Event: event, State: "asked from within " + c.Session, Row: "X10", Reason: reason}
}
