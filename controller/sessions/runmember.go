package sessions

import (
	"github.com/fairlead-dev/fairlead/team"
)

var ByEngine = team.Actor{Kind: "engine", ID: "run"}
