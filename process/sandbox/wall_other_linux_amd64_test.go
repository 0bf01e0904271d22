package sandbox

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// otherOldAttempts use system calls that newer architectures do not have.
var otherOldAttempts = []wallAttempt{
	{
		name: "leave a program with its owner's rights, by the old call", call: "chmod", row: RowRoot, twin: leavesPlain,
		try: leaves(func(_ target, p string) error {
			return sys(unix.SYS_CHMOD, p, unix.S_ISUID|0o755)
		}),
	},
	{
		name: "leave a program with its owner's rights, created so", call: "creat", row: RowRoot, twin: leavesPlain,
		try: leaves(func(_ target, p string) error {
			return errors.Join(os.Remove(p), opens(unix.SYS_CREAT, p, unix.S_ISUID|0o755))
		}),
	},
	{
		name: "leave a program with its owner's rights, as a node", call: "mknod", row: RowRoot, twin: leavesPlain,
		try: leaves(func(_ target, p string) error {
			return errors.Join(os.Remove(p), sys(unix.SYS_MKNOD, p, unix.S_IFREG|unix.S_ISUID|0o755, 0))
		}),
	},
}
