package sessions

import (
	"github.com/fairlead-dev/fairlead/core/team"
)

// Actors of events that no caller asked for.
var (
	ByTimer    = team.Actor{Kind: "engine", ID: "timer"}
	ByRecovery = team.Actor{Kind: "engine", ID: "recovery"}
	ByShim     = team.Actor{Kind: "engine", ID: "holder"}
	byIntent   = team.Actor{Kind: "engine", ID: "last look"}
	ByProbe    = team.Actor{Kind: "engine", ID: "probe"}
)

// ByEngine is the actor of what Fairlead itself does with runs.
var ByEngine = team.Actor{Kind: "engine", ID: "run"}
