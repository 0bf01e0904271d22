package sessions

import (
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/team"
)

// resumption is what is known of how an agent's sessions would be started, as far as going on with a
// conversation asks for it.
type Resumption struct {
	How    config.Resume
	Record *team.LaunchRecord
}

// resumption looks at how an agent would be started. Nil: its driver has no conversations to go on with.
func (m *Slot) Resumption() *Resumption {
	resumer, can := m.Driver.(driver.Resumer)
	agent := Known(*m.Conf)
	for _, name := range m.Conf.Env.Names() { // of its values nothing is written down
		agent.Env = append(agent.Env, name+"=")
	}
	if !can || m.Run != "" || !resumer.Resumes(agent) {
		return nil
	}
	return &Resumption{m.Conf.Resume, recordOf(m, agent)}
}
