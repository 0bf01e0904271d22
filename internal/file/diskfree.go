package file

import "golang.org/x/sys/unix"

// DiskFreeMin is how many bytes should be free where Fairlead keeps its state: below that one talkative session fills the
// disk.
const DiskFreeMin = 1 << 30

// DiskFree is how many bytes this user can still write on the disk of a folder.
func DiskFree(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil //nolint:gosec,unconvert // a block has a positive size; its type differs between systems
}
