package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch   = unix.AUDIT_ARCH_X86_64
	foreignFrom = 0x40000000 // the numbers of the x32 interface
)

var attributeCallsOld = []uint32{
	unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
}

var modeCallsOld = []modeCall{{unix.SYS_OPEN, 2, 1}, {unix.SYS_CREAT, 1, 0}, {unix.SYS_CHMOD, 1, 0}, {unix.SYS_MKNOD, 1, 0}}
