package agentstate

import (
	"log/slog"

	"github.com/fairlead-dev/fairlead/files/exchange"
)

// Content is agent_state.json for the exchange. A malformed file stays in its place, because the agent's program may read it.
var Content = exchange.Content[State]{Name: FileName, Most: agentStateBytesMax, Parse: Parse, Copies: true}

// The exchange of agent_state.json.
type (
	Files   = exchange.Files[State]
	Seen    = exchange.Seen[State]
	Changed = exchange.Changed[State]
)

// Watch starts watching; Add adds the folder of an agent.
func Watch(log *slog.Logger) *Files { return exchange.Watch(Content, log) }
