package file

import "golang.org/x/sys/unix"

// exchange swaps two names of one folder in a single move.
func Exchange(dir int, a, b string) error {
	return Uninterrupted(func() error { return unix.Renameat2(dir, a, dir, b, unix.RENAME_EXCHANGE) })
}

// renameNew renames a to b unless there is a b; then the error is EEXIST.
func RenameNew(dir int, a, b string) error {
	return Uninterrupted(func() error { return unix.Renameat2(dir, a, dir, b, unix.RENAME_NOREPLACE) })
}
