package view

import (
	"github.com/fairlead-dev/fairlead/team"
)

// Add adds a usage to the row.
func (r *UsageRow) Add(u team.Usage) {
	r.InputTokens += u.InputTokens
	r.OutputTokens += u.OutputTokens
	r.CostUSD += u.CostUSD
}
