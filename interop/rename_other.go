//go:build unix && !linux && !darwin

package interop

import "golang.org/x/sys/unix"

// exchange is not known here; Write falls back to a rename.
func exchange(int, string, string) error { return unix.ENOSYS }

// renameNew is not known here; Write falls back to a hard link.
func renameNew(int, string, string) error { return unix.ENOSYS }
