package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch   = unix.AUDIT_ARCH_AARCH64
	foreignFrom = 0 // there is one set of numbers
)

// attributeCallsOld is empty: the architecture came after them.
var attributeCallsOld []uint32
