package runstate

import "github.com/fairlead-dev/fairlead/files/exchange"

// Content is run_state.json for the exchange.
var Content = exchange.Content[RunState]{Name: RunStateName, Most: runStateBytesMax, Parse: ParseRunState, Projection: true}

// The exchange of run_state.json.
type (
	Files   = exchange.Files[RunState]
	Seen    = exchange.Seen[RunState]
	Changed = exchange.Changed[RunState]
)
