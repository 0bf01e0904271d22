package sessions

import (
	"github.com/fairlead-dev/fairlead/controller/seam"
)

// IsDone says whether a process has ended.
func IsDone(proc seam.Process) bool {
	select {
	case <-proc.Done():
		return true
	default:
		return false
	}
}

// Upper limits of one usage report. A larger report is wrong, and an overflowing sum would disable
// the agent's limit.
const (
	TokensReportMax = int64(1e9)
	TokensSumMax    = int64(1e15)
	CostReportMax   = 1e5 // USD
	TextBytesMax    = 500 // bytes of an agent's own text about its end
)
