package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch   = unix.AUDIT_ARCH_AARCH64
	foreignFrom = 0 // there is only one set of numbers
)

// They are empty: the architecture is newer than those calls.
var (
	attributeCallsOld []uint32
	modeCallsOld      []modeCall
)
