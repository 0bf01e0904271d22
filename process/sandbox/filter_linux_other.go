//go:build linux && !amd64 && !arm64

package sandbox

const (
	auditArch   = 0 // Supported says that there is no filter
	foreignFrom = 0
)

var (
	attributeCallsOld []uint32
	modeCallsOld      []modeCall
)
