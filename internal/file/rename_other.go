//go:build unix && !linux && !darwin

package file

import "golang.org/x/sys/unix"

// exchange is not known here; Write falls back to a rename.
func Exchange(int, string, string) error { return unix.ENOSYS }

// renameNew is not known here; Write falls back to a hard link.
func RenameNew(int, string, string) error { return unix.ENOSYS }
