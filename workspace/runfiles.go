package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// stateEvery bounds how often run_state.json is written: it grows with the run, and to
	// rewrite it at each event costs the square of the steps. The first change after a silence
	// is written at once.
	StateEvery = 10 * time.Millisecond
	StateShare = 2                     // and no more than half of the time goes into writing,
	StateLate  = 40 * time.Millisecond // but it is never further behind than this and one write
	StateOurs  = 2 * time.Second       // from a change to its write, also on a busy machine; a later difference counts as an edit by another program, and is kept

	PollDefault = 200 * time.Millisecond // between checks of files that people are asked to write
	RunFileMax  = 64 << 20               // of an existing run_state.json
	StateMode   = 0o644                  // of a file of a run: as public as the repository
)

// replaceFile puts content in a file's place, whole or not at all. It is not synced: after a
// crash it is written again from the journal.
func ReplaceFile(path string, content []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
