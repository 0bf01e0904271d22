package sessions

import (
	"github.com/fairlead-dev/fairlead/core/change"
)

// Actors of events that no caller asked for.
var (
	ByTimer    = change.Actor{Kind: "engine", ID: "timer"}
	ByRecovery = change.Actor{Kind: "engine", ID: "recovery"}
	ByShim     = change.Actor{Kind: "engine", ID: "holder"}
	ByIntent   = change.Actor{Kind: "engine", ID: "last look"}
	ByProbe    = change.Actor{Kind: "engine", ID: "probe"}
)

// ByEngine is the actor of what Fairlead itself does with runs.
var ByEngine = change.Actor{Kind: "engine", ID: "run"}
