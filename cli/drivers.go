package cli

import (
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/acp"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/claude"
	"github.com/fairlead-dev/fairlead/process/driver/codex"
	"github.com/fairlead-dev/fairlead/process/driver/exec"
	"github.com/fairlead-dev/fairlead/process/driver/script"
)

// Drivers are the kinds of agent that this build can drive, by the word in fairlead.yaml.
func Drivers() map[string]driver.Driver {
	all := map[string]driver.Driver{}
	for _, d := range []driver.Driver{exec.Driver{}, script.Driver{}, acp.Driver{}, claude.Driver{}, codex.Driver{}} {
		all[d.Name()] = d
	}
	return all
}

// Protocols are the protocols of real programs that this build's adapters implement.
func Protocols() []adapter.Protocol {
	return []adapter.Protocol{acp.Driver{}, claude.Driver{}, codex.Driver{}}
}
