package file

import "golang.org/x/sys/unix"

// exchange swaps two names of one folder in a single move.
func Exchange(dir int, a, b string) error {
	return again(func() error { return unix.RenameatxNp(dir, a, dir, b, unix.RENAME_SWAP) })
}

// renameNew renames a to b unless there is a b; then the error is EEXIST.
func RenameNew(dir int, a, b string) error {
	return again(func() error { return unix.RenameatxNp(dir, a, dir, b, unix.RENAME_EXCL) })
}
