package sessions

import (
	"fmt"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// LimitsOf are the limits of an agent's processes, for their shim. One session has no more than the whole team.
func LimitsOf(conf *config.Agent, team config.Limits) spawn.Limits {
	l := conf.Limits
	return spawn.Limits{
		Memory: lower(l.MemoryBytes, team.MemoryBytes), Processes: int(lower(int64(l.Processes), int64(team.Processes))),
		Disk: lower(l.DiskBytes, team.DiskBytes), Output: l.OutputBytes, EndAtOutput: l.OnOutput == config.OutputEnds,
	}
}

// lower is the lower of two limits; 0 is none.
func lower(own, team int64) int64 {
	if own == 0 || team > 0 && team < own {
		return team
	}
	return own
}

// LimitWords say for which limit a session was ended, and what helps.
func LimitWords(conf *config.Agent, team config.Limits, exit session.Exit) string {
	if exit.Limit == session.LimitFreeDisk {
		return "the free disk was almost used up, and its folders grew fastest: free disk space, look at what it writes, or set limits.disk " +
			"in fairlead.yaml"
	}
	own := map[session.Limit]int64{
		session.LimitMemory: conf.Limits.MemoryBytes, session.LimitProcesses: int64(conf.Limits.Processes),
		session.LimitDisk: conf.Limits.DiskBytes, session.LimitOutput: 1,
	}[exit.Limit]
	teams := map[session.Limit]int64{
		session.LimitMemory: team.MemoryBytes, session.LimitProcesses: int64(team.Processes), session.LimitDisk: team.DiskBytes,
	}[exit.Limit]
	whose := fmt.Sprintf("limits.%s of %s", exit.Limit, conf.Name)
	if exit.OfTeam || lower(own, teams) != own {
		whose = fmt.Sprintf("team.limits.%s", exit.Limit)
	}
	used := map[session.Limit]string{
		session.LimitMemory:    "its processes had " + file.Size(exit.Use.MemoryBytes) + " of memory",
		session.LimitProcesses: fmt.Sprintf("it had %d processes and threads", exit.Use.Processes),
		session.LimitDisk:      "its folders have grown by " + file.Size(exit.Use.DiskBytes),
		session.LimitOutput:    "it has written " + file.Size(exit.SpoolBytes) + " of output",
	}[exit.Limit]
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
