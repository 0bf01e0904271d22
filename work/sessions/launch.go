package sessions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// OtherHost is the other host on which a session is placed; empty: it runs on this machine.
func (c *Controller) OtherHost(t *team.Team, session string) string {
	lease, placed := t.Hosts.Leases[session]
	if !placed || c.opts.Cluster != nil && lease.Host == c.opts.Cluster.Name {
		return ""
	}
	return lease.Host
}

// AgentFor returns the agent for its driver, including the values of its environment; for a session on another host,
// with placeholders for the values that the host has.
func (c *Controller) AgentFor(m *Slot, otherHost string) (agent driver.Agent, err error) {
	agent = Known(*m.Conf)
	agent.Script = c.opts.Included(agent.Script)
	agent.OtherHost = otherHost
	if otherHost != "" {
		agent.Env, err = m.Conf.Env.Defer(driver.Variable)
	} else {
		agent.Env, err = m.Conf.Env.Resolve(c.opts.Lookup)
	}
	if err != nil {
		return driver.Agent{}, fmt.Errorf("env of agent %s: %w", m.Conf.Name, err)
	}
	return agent, nil
}

// Known returns the agent for its driver, without secrets.
func Known(conf config.Agent) driver.Agent {
	return driver.Agent{
		Name: conf.Name, Command: conf.Command, Script: conf.Script, Workspace: conf.Workspace, Model: conf.Model,
		Mode: conf.Mode,
	}
}

// SessionFor is a session as its driver knows it.
func SessionFor(m *Slot, s team.Session) driver.Session {
	prompt := m.Conf.SessionPrompt
	if s.Kind == control.Cleanup {
		prompt = m.Conf.CleanupPrompt
	}
	session := driver.Session{ID: s.ID, Kind: driver.Kind(s.Kind), Prompt: prompt, Attempt: 1}
	if s.ServesChannels() {
		session.Prompt, session.Channel, session.Turn = "", string(s.Delivery.Token.Channel), s.Delivery.Token.Turn
	}
	return session
}

// ErrNotAsked means that what a session was opened for, or was to be told, is not due. The loop knows whether a session that is to
// start is still wanted: then it is prepared again.
var ErrNotAsked = errors.New("this is no longer due")

// PreparedLaunch is a session that is ready to start, with the record of how it starts.
type PreparedLaunch struct {
	Launch spawn.Launch
	Record *team.LaunchRecord
	Token  string               // for the team's tools; empty: none
	Wall   *config.AgentSandbox // in place of its agent's; nil: its agent's
	Writes []string             // folders outside of its workspace that the session needs
	Clone  string               // the clone in which it works, if it is the agent's with its .git
	Run    *sessionhost.RunView

	Confined bool // it runs only in a sandbox, whatever its agent's entry says
	ReadOnly bool // its sandbox does not let it write in its workspace
}

// Launch asks the driver how to start a session. It decides first whether the session resumes an
// earlier conversation, which may wait for a person's answer.
func (c *Controller) Launch(ctx context.Context, m *Slot, s team.Session, agent driver.Agent,
	session driver.Session,
) (PreparedLaunch, error) {
	if (m.Run != "" || m.Conf.MCP) && c.opts.Offer != nil { // the command of a step has no settings
		agent.MCP = c.opts.Offer(m.Conf.Name, s.ID)
		if agent.OtherHost != "" {
			agent.MCP.URL = "" // an address of this machine; the command asks the socket of that host
		}
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
	if told := team.TellWords(s.FirstTells); told != "" {
		session.Prompt = strings.TrimSpace(strings.TrimSpace(session.Prompt) + "\n\n" + told)
	}
	if cut && before != "" && !s.ServesChannels() {
		session.Prompt = cutOffWords + session.Prompt
	}
	launch, err := m.Driver.Launch(agent, session)
	launch.Ports, launch.PortsFor = m.Conf.Ports, agent.Workspace
	return PreparedLaunch{Launch: launch, Record: record, Token: agent.MCP.Token}, err
}

// cutOffWords precede the prompt of a session that resumes after an interruption. The program knows
// what it has done, but not that it was interrupted.
const cutOffWords = `You were interrupted in the middle of this; some time may have passed. Look at what is done already, and go on from there.
What you were asked:

`

// recordOf returns what is journaled about a start: nothing specific to the session, so that two
// starts can be compared, and no values of environment variables.
func recordOf(m *Slot, agent driver.Agent) *team.LaunchRecord {
	r := &team.LaunchRecord{
		Host: agent.OtherHost, Driver: m.Conf.Driver, Argv: slices.Clone(agent.Command), Dir: agent.Workspace,
		Model: agent.Model, Mode: agent.Mode,
	}
	if len(r.Argv) == 0 && m.Conf.Script != "" {
		r.Argv = []string{m.Conf.Script}
	}
	for _, kv := range agent.Env {
		name, _, _ := strings.Cut(kv, "=")
		r.Env = append(r.Env, name)
	}
	slices.Sort(r.Env)
	r.Env = slices.Compact(r.Env)
	return r
}

// HashOfToken is what the journal keeps of an agent's token. A token has 32 random bytes, so its hash
// does not help to guess it.
func HashOfToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
