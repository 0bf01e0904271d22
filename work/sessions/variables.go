package sessions

import (
	"strings"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// VariablesInWords says which environment variables an agent's process gets, and how to add one. It has no values.
// The usual variables, which every agent gets, are listed in doc/config.md.
func VariablesInWords(d driver.Driver, conf *config.Agent) string {
	agent := Known(*conf)
	for _, name := range conf.Env.Names() {
		agent.Env = append(agent.Env, name+"=")
	}
	words := "its environment: PATH, HOME and other usual variables"
	if more := driver.Needs(d, agent); len(more) > 0 {
		words += "; " + strings.Join(more, ", ")
	}
	if names := conf.Env.Names(); len(names) > 0 {
		words += "; from `env`: " + strings.Join(names, ", ")
	}
	return words + "; add others with `env: {NAME: \"${NAME}\"}`"
}
