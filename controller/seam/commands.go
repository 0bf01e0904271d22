package seam

import (
	"github.com/fairlead-dev/fairlead/team"
)

// Actor is the author of a request: a human, an agent or the engine, with its name.
type Actor = team.Actor
