package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// Mark says how new the copy of a run is that the leader has sent to this engine host: its checkout and its files.
type Mark struct {
	Run string `json:"run"`
	N   uint64 `json:"n"` // the number of changes of the run that were made before its files were read
}

func markFile(root, run string) (string, error) {
	if !runName().MatchString(run) {
		return "", fmt.Errorf("%.64q is no name of a run", run)
	}
	return filepath.Join(root, ".fairlead", "hosts", "copies", run+".json"), nil
}

// StoreMark keeps the mark of a run whose files have arrived.
func StoreMark(root string, m Mark) error {
	path, err := markFile(root, m.Run)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), file.StoreJSON(path, m))
	}
	return err
}

func dropMark(root, run string) error {
	path, err := markFile(root, run)
	if err == nil {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Arrived reads what StoreMark wrote. It is zero if nothing has arrived, or if a newer checkout was arriving and only a part of it is
// there.
func Arrived(ctx context.Context, repo worktree.Git, run string) (m Mark, err error) {
	path, err := markFile(repo.Dir, run)
	if err != nil {
		return m, err
	}
	half, err := objects(ctx, repo, nil, refOf(run, "going"))
	if err != nil || half[0] != "" {
		return m, err
	}
	return m, file.LoadJSON(path, &m)
}
