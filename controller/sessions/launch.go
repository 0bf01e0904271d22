package sessions

import (
	"context"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/team"
)

// PreparedLaunch is a session that can be started, and what is written down of how.
type PreparedLaunch struct {
	Launch driver.Launch
	record *team.LaunchRecord
	Boxed  bool     // it is in a sandbox already
	Writes []string // folders and files that its session needs, outside of its workspace
}

// launch asks the driver how a session is started. Whether it goes on with an earlier conversation is
// settled first; a person may have to be waited for.
func (e *Controller) Launch(ctx context.Context, m *Slot, s team.Session, agent driver.Agent, session driver.Session) (PreparedLaunch, error) {
	if (m.Run != "" || m.Conf.MCP) && e.opts.Offer != nil { // a step's own command has no settings
		agent.MCP = e.opts.Offer(m.Conf.Name, s.ID)
	}
	record := recordOf(m, agent)
	before, cut, err := e.takenUp(ctx, m, s, agent, record)
	if err != nil {
		return PreparedLaunch{}, err
	}
	session.Resume, record.Resume = before, before
	if cut && before != "" && !s.ServesChannels() {
		session.Prompt = cutOffWords + session.Prompt
	}
	launch, err := m.Driver.Launch(agent, session)
	return PreparedLaunch{Launch: launch, record: record}, err
}

// cutOffWords stand before what a session was asked that goes on after an interruption: the program
// knows what it has done, and not that it was away.
const cutOffWords = `You were interrupted in the middle of this; some time may have passed. Look at what is done already, and go on from there.
What you were asked:

`

// recordOf is what is journaled of a start: nothing of the session's own, so that two starts can be
// compared, and no values of variables.
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
