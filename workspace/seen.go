package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Seen is what the person of a workspace has seen, in any browser.
type Seen struct {
	Visited time.Time `json:"visited"` // when the page was used last
	PutAway time.Time `json:"put_away,omitzero"`
}

func seenPath(dir string) string { return filepath.Join(dir, ".fairlead", "seen.json") }

// ReadSeen reads what was seen; zero if the page was never used. A damaged file counts as none: it is a
// convenience, and the next visit writes it again.
func ReadSeen(dir string) (seen Seen, err error) {
	text, err := readPlain(seenPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return Seen{}, nil
	}
	if err != nil {
		return Seen{}, err
	}
	if json.Unmarshal(text, &seen) != nil {
		return Seen{}, nil //nolint:nilerr // see above
	}
	return seen, nil
}

// Visit records that the page is used at a time and, with putAway, that all that has finished was put away. Times never
// go back, so that two browsers cannot undo each other.
func Visit(dir string, at time.Time, putAway bool) error {
	was, err := ReadSeen(dir)
	if err != nil {
		return err
	}
	next := Seen{Visited: at}
	if putAway {
		next.PutAway = at
	}
	if next.Visited.Before(was.Visited) {
		next.Visited = was.Visited
	}
	if next.PutAway.Before(was.PutAway) {
		next.PutAway = was.PutAway
	}
	text, err := json.Marshal(next)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(seenPath(dir)), 0o700) // a daemon has made it; a server in a test has not
	}
	if err == nil {
		err = ReplaceFile(seenPath(dir), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record what was seen: %w", err)
	}
	return nil
}
