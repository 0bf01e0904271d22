package sessions

import (
	"github.com/fairlead-dev/fairlead/controller/seam"

	"github.com/fairlead-dev/fairlead/shim"
)

// FoundAs converts the phases of a shim.
var FoundAs = map[shim.Phase]seam.Found{
	shim.NeverStarted: seam.NeverStarted, shim.Running: seam.Running, shim.Exited: seam.Exited, shim.Lost: seam.Lost,
}
