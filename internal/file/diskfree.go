package file

import "golang.org/x/sys/unix"

// DiskFreeMin is how many bytes should be free where Fairlead keeps its state: below that one talkative session fills the
// disk.
const DiskFreeMin = 1 << 30

// DiskFree is how many bytes this user can still write on the disk of a folder, of how many it has in all.
func DiskFree(dir string) (free, all uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	block := uint64(st.Bsize) //nolint:gosec,unconvert // a block has a positive size; its type differs between systems
	return st.Bavail * block, st.Blocks * block, nil
}
