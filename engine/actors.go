package engine

import "github.com/fairlead-dev/fairlead/team"

// Actors of events that no caller asked for.
var (
	byTimer    = team.Actor{Kind: "engine", ID: "timer"}
	byRecovery = team.Actor{Kind: "engine", ID: "recovery"}
	byShim     = team.Actor{Kind: "engine", ID: "holder"}
	byIntent   = team.Actor{Kind: "engine", ID: "last look"}
	byProbe    = team.Actor{Kind: "engine", ID: "probe"}
)
