package sessions

import (
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/team"
)

// Resumption is what is known in advance about an agent's next launch, as far as resuming a
// conversation depends on it.
type Resumption struct {
	How    config.Resume
	Record *team.LaunchRecord
}

// Resumption describes how an agent would be started; nil if its driver cannot resume
// conversations.
func (m *Slot) Resumption() *Resumption {
	if m.Run != "" || !m.Resumes {
		return nil
	}
	agent := Known(*m.Conf)
	for _, name := range m.Conf.Env.Names() { // only names are recorded, not values
		agent.Env = append(agent.Env, name+"=")
	}
	return &Resumption{m.Conf.Resume, recordOf(m, agent)}
}
