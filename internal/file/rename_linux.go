package file

import "golang.org/x/sys/unix"

// Exchange swaps two names in one folder atomically.
func Exchange(dir int, a, b string) error {
	return Uninterrupted(func() error { return unix.Renameat2(dir, a, dir, b, unix.RENAME_EXCHANGE) })
}

func renameNew(dir int, a, b string) error {
	return Uninterrupted(func() error { return unix.Renameat2(dir, a, dir, b, unix.RENAME_NOREPLACE) })
}
