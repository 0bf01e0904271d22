package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/git/worktree"
)

// Place settles which folder a command works on: --dir, or the workspace that the current folder
// is in. It may be called again; cmd may be nil.
func (a *App) Place(cmd *cobra.Command) error {
	if a.placed {
		return nil
	}
	given := a.Dir != ""
	dir, err := filepath.Abs(a.Dir)
	if err != nil {
		return fmt.Errorf("find the folder %s: %w", a.Dir, err)
	}
	// The daemon and its callers must use one name for a folder that links lead to.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if !given && (cmd == nil || cmd.Annotations[HereOnly] == "") {
		dir = WorkspaceOf(dir)
	}
	a.Dir, a.placed = dir, true
	return nil
}

// HereOnly marks a command that does not look in parent folders.
const HereOnly = "fairlead/here-only"

// WorkspaceOf is the folder at dir or above it that has a fairlead.yaml or a .fairlead folder;
// dir itself if there is none. A folder inside of .fairlead or .agents/worktrees, as an agent's worktree is,
// belongs to the workspace around it, also if it holds a fairlead.yaml of its own; so does a task's checkout to that
// of the task. Folders of other users are passed over: fairlead.yaml names commands to run.
func WorkspaceOf(dir string) string {
	for _, own := range []string{"/.fairlead/", "/.agents/" + worktree.WorktreesDir + "/"} {
		if before, _, inside := strings.Cut(dir+"/", own); inside && isWorkspace(before) {
			return before
		}
	}
	for at := dir; ; {
		if of := ofCheckout(at); of != "" {
			return of
		}
		if isWorkspace(at) {
			return at
		}
		above := filepath.Dir(at)
		if above == at {
			return dir
		}
		at = above
	}
}

// ofCheckout is the workspace with the task that `fairlead checkout` has checked out in a folder; empty: none is, or the folder has a
// daemon of its own.
func ofCheckout(dir string) string {
	file, _ := os.ReadFile(filepath.Join(dir, ".git")) // a folder, in most repositories
	own, linked := strings.CutPrefix(strings.TrimSpace(string(file)), "gitdir: ")
	if !filepath.IsAbs(own) {
		own = filepath.Join(dir, own)
	}
	head, _ := os.ReadFile(filepath.Join(own, "HEAD"))
	_, err := os.Lstat(filepath.Join(dir, ".fairlead"))
	repo := filepath.Join(own, "../../..") // of .git/worktrees/NAME
	if !linked || err == nil || !strings.HasPrefix(string(head), "ref: refs/heads/"+worktree.BranchPrefix) || !isWorkspace(repo) {
		return ""
	}
	return repo
}

// isWorkspace says whether a folder has a workspace's files, and they belong to this user.
func isWorkspace(dir string) bool {
	return slices.ContainsFunc([]string{config.FileName, ".fairlead"}, func(name string) bool {
		info, err := os.Lstat(filepath.Join(dir, name))
		return err == nil && isOurs(info)
	})
}

func isOurs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}

// IsLocked reports whether another process holds a lock file. It takes a shared lock for an instant,
// and creates no file.
func IsLocked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// PathWidth is the maximum length of a path in an error.
const PathWidth = 200

// Absolute resolves a path relative to the current folder, as typed; if that does not exist,
// relative to the repository.
func Absolute(path, repo string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	here, err := filepath.Abs(path)
	if err != nil {
		return filepath.Join(repo, path)
	}
	if _, err := os.Stat(here); err != nil {
		if there := filepath.Join(repo, path); Exists(there) {
			return there
		}
	}
	return here
}

// Exists says whether a file or folder exists.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// DownPoll is how often a command checks whether the daemon still runs: the daemon cannot report its
// own end.
const DownPoll = 50 * time.Millisecond

// Pause waits, or returns early if ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// FileWait is how long a command waits until agent_state.json matches the journal. It normally takes
// a millisecond; a longer time points to a problem such as a full disk, which `fairlead why`
// reports.
const FileWait = 5 * time.Second
