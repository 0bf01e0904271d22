package sessions

import (
	"github.com/fairlead-dev/fairlead/team"
)

// ByEngine is the actor of what Fairlead itself does with runs.
var ByEngine = team.Actor{Kind: "engine", ID: "run"}
