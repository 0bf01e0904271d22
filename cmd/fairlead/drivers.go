package main

import (
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/exec"
	"github.com/fairlead-dev/fairlead/driver/script"
)

// drivers are the kinds of agent that this build can drive, by the word in fairlead.yaml.
func drivers() map[string]driver.Driver {
	all := map[string]driver.Driver{}
	for _, d := range []driver.Driver{exec.Driver{}, script.Driver{}} {
		all[d.Name()] = d
	}
	return all
}
