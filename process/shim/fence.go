package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// epochJumpMax bounds how far a daemon's epoch may be above the last one that is known. Each start of a daemon
// adds one, so a greater difference comes from another program, or from a damaged disk.
const epochJumpMax = 1 << 20

// PlausibleEpoch reports whether a daemon may have reached an epoch after another one.
func PlausibleEpoch(after, epoch uint64) bool { return epoch <= after || epoch-after <= epochJumpMax }

// NotTheDaemon is a shim's answer to a program that cannot be the daemon: it runs in a session, or claims an
// epoch that no daemon can have.
type NotTheDaemon struct{ Why string }

func (n *NotTheDaemon) Error() string { return n.Why }

// readFence returns the highest epoch in the folder: that of the fence file, or that of the daemon that
// started the session. It is 0 if there is none.
func readFence(folder string) (uint64, error) {
	n, err := fenceInFile(folder)
	if err != nil {
		return 0, err
	}
	if r, err := readAgent(folder); err == nil && r != nil && r.Fence > n && PlausibleEpoch(n, r.Fence) {
		n = r.Fence
	}
	return n, nil
}

func fenceInFile(folder string) (uint64, error) {
	raw, err := readSmall(filepath.Join(folder, fenceFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the fence: %w", err)
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(string(raw), "\n"), 10, 64)
	if err != nil {
		return 0, &damaged{filepath.Join(folder, fenceFile), err}
	}
	return n, nil
}

// raiseFence stores the higher of the stored fence and the given one; a lower one returns *Fenced. A stored
// fence that is not plausible was not written by a daemon, and is replaced.
func raiseFence(folder string, fence uint64) error {
	seen, err := readFence(folder)
	switch {
	case err != nil:
		return err
	case fence < seen && PlausibleEpoch(fence, seen):
		return &Fenced{Mine: fence, Seen: seen}
	case fence == seen:
		return nil
	}
	if err := writeSynced(folder, fenceFile, "", []byte(strconv.FormatUint(fence, 10)+"\n")); err != nil {
		return fmt.Errorf("write the fence: %w", err)
	}
	return nil
}

// checkFence is raiseFence for a start. In a folder without a fence file it writes none, because the record
// of the start carries the epoch and is synced before the agent exists.
func checkFence(folder string, fence uint64) error {
	if _, err := os.Lstat(filepath.Join(folder, fenceFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return raiseFence(folder, fence)
}
