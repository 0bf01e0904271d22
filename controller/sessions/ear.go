package sessions

import (
	"github.com/fairlead-dev/fairlead/controller/seam"
)

func IsDone(proc seam.Process) bool {
	select {
	case <-proc.Done():
		return true
	default:
		return false
	}
}

// What one report may claim at most. An agent that says more is mistaken or lies; a sum
// that overflowed would lift its limit.
const (
	TokensReportMax = int64(1e9)
	TokensSumMax    = int64(1e15)
	CostReportMax   = 1e5 // USD
	TextBytesMax    = 500 // of what an agent may say of its own end
)
