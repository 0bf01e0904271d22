package sessions

import (
	"github.com/fairlead-dev/fairlead/controller/seam"

	"github.com/fairlead-dev/fairlead/shim"
)

// foundAs puts the shim's word for it into ours.
var FoundAs = map[shim.Phase]seam.Found{
	shim.NeverStarted: seam.NeverStarted, shim.Running: seam.Running, shim.Exited: seam.Exited, shim.Lost: seam.Lost,
}
