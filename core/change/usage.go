package change

// Usage is what an agent used, according to its own report. Any number can be in a report: Sane takes the impossible ones out.
type Usage struct {
	InputTokens  int64   `json:"input_tokens,omitempty"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
	CostUSD      float64 `json:"cost_usd,omitempty"`
	Model        string  `json:"model,omitempty"` // in the program's own words; empty: not reported, or a sum of several
}

// usageMax limits one report and a sum: agents may report anything, and an overflow would be below
// every limit.
const usageMax = 1 << 53

// Empty reports whether nothing was used.
func (u Usage) Empty() bool { return u.InputTokens == 0 && u.OutputTokens == 0 && u.CostUSD == 0 }

// Plus adds what was used besides, by the same model or by others.
func (u Usage) Plus(more Usage) Usage {
	u.InputTokens = min(u.InputTokens+more.InputTokens, usageMax)
	u.OutputTokens = min(u.OutputTokens+more.OutputTokens, usageMax)
	u.CostUSD = min(u.CostUSD+more.CostUSD, usageMax)
	return u
}

// Sane returns a report without impossible values.
func (u Usage) Sane() Usage {
	u.InputTokens = min(max(u.InputTokens, 0), usageMax)
	u.OutputTokens = min(max(u.OutputTokens, 0), usageMax)
	if !(u.CostUSD > 0) { // also false for NaN
		u.CostUSD = 0
	}
	u.CostUSD = min(u.CostUSD, usageMax)
	return u
}
