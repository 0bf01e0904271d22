package dispatch

import (
	"github.com/fairlead-dev/fairlead/marker"
)

// delegateMarkers are what an agent with work in a session folder says to us and not to people.
var DelegateMarkers = []marker.Kind{marker.Delegate}
