package seam

import (
	"github.com/fairlead-dev/fairlead/team"
)

// Actor is who gives an order: human, agent or engine, and who exactly.
type Actor = team.Actor
