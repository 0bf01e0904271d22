//go:build unix && !linux && !darwin

package file

import "golang.org/x/sys/unix"

// Exchange is not supported; callers use a rename.
func Exchange(int, string, string) error { return unix.ENOSYS }

func renameNew(int, string, string) error { return unix.ENOSYS }
