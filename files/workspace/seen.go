package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// seen is the content of seen.json.
type seen struct {
	Until time.Time `json:"until"`
}

func seenPath(dir string) string { return filepath.Join(dir, ".fairlead", "seen.json") }

// ReadSeen returns until when the person of a workspace has seen what happened, in any browser; zero: nothing was marked as
// seen. A damaged file counts as none: it is a convenience, and the next mark writes it again.
func ReadSeen(dir string) (time.Time, error) {
	text, err := readPlain(seenPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	var is seen
	if json.Unmarshal(text, &is) != nil {
		return time.Time{}, nil //nolint:nilerr // see above
	}
	return is.Until, nil
}

// MarkSeen records that a person has seen what happened until a time. It never goes back, so that two browsers cannot undo
// each other.
func MarkSeen(dir string, until time.Time) error {
	was, err := ReadSeen(dir)
	if err != nil {
		return err
	}
	if until.Before(was) {
		return nil
	}
	err = os.MkdirAll(filepath.Dir(seenPath(dir)), 0o700) // a daemon has made it; a server in a test has not
	if err == nil {
		err = file.StoreJSON(seenPath(dir), seen{Until: until})
	}
	if err != nil {
		return fmt.Errorf("record what was seen: %w", err)
	}
	return nil
}
