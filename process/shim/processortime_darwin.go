package shim

import "time"

// ProcessorTime is not read on macOS.
func ProcessorTime(int) (used time.Duration, known bool) { return 0, false }
