package sessions

import (
	"fmt"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// LimitsOf are the limits of an agent's processes, for their shim.
func LimitsOf(conf *config.Agent) spawn.Limits {
	l := conf.Limits
	return spawn.Limits{
		Memory: l.MemoryBytes, Processes: l.Processes, Disk: l.DiskBytes, Output: l.OutputBytes, EndAtOutput: l.OnOutput == config.OutputEnds,
	}
}

// LimitWords say for which limit a session was ended, and what helps.
func LimitWords(conf *config.Agent, exit session.Exit) string {
	whose := fmt.Sprintf("limits.%s of %s", exit.Limit, conf.Name)
	if exit.OfTeam {
		whose = fmt.Sprintf("team.limits.%s", exit.Limit)
	}
	used := map[session.Limit]string{
		session.LimitMemory:    "its processes had " + file.Size(exit.Use.MemoryBytes) + " of memory",
		session.LimitProcesses: fmt.Sprintf("it had %d processes and threads", exit.Use.Processes),
		session.LimitDisk:      "its folders have grown by " + file.Size(exit.Use.DiskBytes),
		session.LimitOutput:    "it has written " + file.Size(exit.SpoolBytes) + " of output",
	}[exit.Limit]
	if exit.Limit == session.LimitFreeDisk {
		return "the disk of its machine was almost full, and its folders grew fastest: make room, or give it a limit (limits.disk)"
	}
	return whose + " was reached: " + used + "; look at what it does, or raise the limit in fairlead.yaml"
}

// Upper limits of one usage report. A larger report is wrong, and an overflowing sum would disable
// the agent's limit.
const (
	TokensReportMax = int64(1e9)
	TokensSumMax    = int64(1e15)
	CostReportMax   = 1e5 // USD
	TextBytesMax    = 500 // bytes of an agent's own text about its end
)

// PastShown is how many of the calls that a program made without asking are listed for a session; further
// ones are only counted.
const PastShown = 5

// NotAsked begins the text about calls that a program made without asking.
const NotAsked = "it did not ask for what its rules deny: "
