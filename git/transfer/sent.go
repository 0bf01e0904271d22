package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// HeaderMax is the length of a Sent as JSON: a name of a run, two hashes, a path and a branch.
const HeaderMax = 4 << 10

const nameMax = 1 << 10 // bytes of a path or a branch

var (
	runName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,47}$`) })
	hash    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`) })
)

// Sent says what a checkout holds. The objects of it travel beside.
type Sent struct {
	Run      string `json:"run"`
	Path     string `json:"path"`             // of the checkout below the root, with slashes
	Head     string `json:"head"`             // the commit that is checked out
	Snapshot string `json:"snapshot"`         // a commit of all files, with Head as its parent; Head itself if nothing differs
	Branch   string `json:"branch,omitempty"` // refs/heads/...; empty: a detached HEAD
}

// ParseSent reads a Sent that another machine wrote.
func ParseSent(text string) (s Sent, err error) {
	if len(text) > HeaderMax {
		return s, fmt.Errorf("the description of a checkout is longer than %d bytes", HeaderMax)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("the description of a checkout cannot be read: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return s, errors.New("the description of a checkout has more than one JSON value")
	}
	return s, s.Valid()
}

// String is the Sent in one line of JSON, as ParseSent reads it.
func (s Sent) String() string {
	text, _ := json.Marshal(s) // texts only
	return string(text)
}

// Valid checks each field. No valid one is a flag, leads out of the root or into a .git.
func (s Sent) Valid() error {
	if !runName().MatchString(s.Run) || strings.Contains(s.Run, "..") || strings.HasSuffix(s.Run, ".") ||
		strings.HasSuffix(s.Run, ".lock") {
		return fmt.Errorf("%.64q is no name of a run", s.Run)
	}
	if err := ValidPath(s.Path); err != nil {
		return err
	}
	if !hash().MatchString(s.Head) || !hash().MatchString(s.Snapshot) || len(s.Head) != len(s.Snapshot) {
		return errors.New("the commits of a checkout are two hashes of git, of the same length")
	}
	if s.Branch != "" && (!strings.HasPrefix(s.Branch, "refs/heads/") || strings.HasPrefix(s.Branch, "refs/heads/-") || !plain(s.Branch)) {
		return fmt.Errorf("%.64q is no branch", s.Branch)
	}
	return nil
}

// ValidPath checks the path of a checkout below a root.
func ValidPath(name string) error {
	ok := plain(name) && name != "." && path.IsAbs("/"+name) && path.Clean(name) == name && name[0] != '/' && name[0] != '-' &&
		!strings.Contains(name, `\`)
	for part := range strings.SplitSeq(name, "/") {
		ok = ok && part != ".." && !strings.EqualFold(part, ".git")
	}
	if !ok {
		return fmt.Errorf("%.64q is no path of a checkout below the root", name)
	}
	return nil
}

// plain reports whether a name has a length that git takes, and nothing that a terminal or a header would.
func plain(name string) bool {
	return name != "" && len(name) <= nameMax && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}
