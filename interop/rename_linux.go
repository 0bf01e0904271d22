package interop

import "golang.org/x/sys/unix"

// exchange swaps two names of one folder in a single move.
func exchange(dir int, a, b string) error {
	return again(func() error { return unix.Renameat2(dir, a, dir, b, unix.RENAME_EXCHANGE) })
}

// renameNew renames a to b unless there is a b; then the error is EEXIST.
func renameNew(dir int, a, b string) error {
	return again(func() error { return unix.Renameat2(dir, a, dir, b, unix.RENAME_NOREPLACE) })
}
