package sessions

import (
	"context"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/team"
)

// PreparedLaunch is a session that is ready to start, with the record of how it starts.
type PreparedLaunch struct {
	Launch driver.Launch
	record *team.LaunchRecord
	token  string   // for the team's tools; empty: none
	Boxed  bool     // it is already in a sandbox
	Writes []string // folders and files outside of its workspace that the session needs

	ReadOnly bool // its sandbox does not let it write in its workspace
}

// Launch asks the driver how to start a session. It decides first whether the session resumes an
// earlier conversation, which may wait for a person's answer.
func (c *Controller) Launch(ctx context.Context, m *Slot, s team.Session, agent driver.Agent, session driver.Session) (PreparedLaunch, error) {
	if (m.Run != "" || m.Conf.MCP) && c.opts.Offer != nil { // the command of a step has no settings
		agent.MCP = c.opts.Offer(m.Conf.Name, s.ID)
	}
	record := recordOf(m, agent)
	before, cut, err := c.conversationToResume(ctx, m, s, agent, record)
	if err != nil {
		return PreparedLaunch{}, err
	}
	session.Resume, record.Resume = before, before
	if before != "" && session.Again != "" {
		session.Prompt, session.Images = session.Again, nil // the conversation has them
	}
	if told := team.TellWords(s.Told); told != "" {
		session.Prompt = strings.TrimSpace(strings.TrimSpace(session.Prompt) + "\n\n" + told)
	}
	if cut && before != "" && !s.ServesChannels() {
		session.Prompt = cutOffWords + session.Prompt
	}
	launch, err := m.Driver.Launch(agent, session)
	launch.Ports, launch.PortsFor = m.Conf.Ports, agent.Workspace
	return PreparedLaunch{Launch: launch, record: record, token: agent.MCP.Token}, err
}

// cutOffWords precede the prompt of a session that resumes after an interruption. The program knows
// what it has done, but not that it was interrupted.
const cutOffWords = `You were interrupted in the middle of this; some time may have passed. Look at what is done already, and go on from there.
What you were asked:

`

// recordOf returns what is journaled about a start: nothing specific to the session, so that two
// starts can be compared, and no values of environment variables.
func recordOf(m *Slot, agent driver.Agent) *team.LaunchRecord {
	r := &team.LaunchRecord{Driver: m.Conf.Driver, Argv: slices.Clone(agent.Command), Dir: agent.Workspace, Model: agent.Model, Mode: agent.Mode}
	if len(r.Argv) == 0 && agent.Script != "" {
		r.Argv = []string{agent.Script}
	}
	for _, kv := range agent.Env {
		name, _, _ := strings.Cut(kv, "=")
		r.Env = append(r.Env, name)
	}
	slices.Sort(r.Env)
	r.Env = slices.Compact(r.Env)
	return r
}
