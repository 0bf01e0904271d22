package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	followedName = "followed" // in the store: the state of the repository's refs that it has followed

	// looseMax bounds the files that one look reads. git packs refs long before that; a repository with more is taken as changed.
	looseMax = 20_000
)

// Follow brings the newest commits of the bases of earlier calls of Refresh, and of the person's remote-tracking refs, if a ref has
// changed in the repository whose top folder is repo and whose git folder is git. It starts no git if none has. Without a store there
// is nothing to follow.
func (s Store) Follow(ctx context.Context, repo, git string) (changed bool, err error) {
	if s.There() == "" {
		return false, nil
	}
	now, err := refsOf(git, looseMax) // before the refresh: what changes during it counts as a change the next time
	if err != nil {
		return false, fmt.Errorf("look for new commits in %s: %w", repo, err)
	}
	path := filepath.Join(s.Dir, followedName)
	was, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if now != "" && now == string(was) {
		return false, nil
	}
	if err := s.Refresh(ctx, repo); err != nil {
		return false, err
	}
	return true, os.WriteFile(path, []byte(now), 0o600) // half a file differs from each sum
}

// refsOf is a sum over the branches and the remote-tracking refs of a git folder, and over its packed refs; empty: there are more loose
// ones than most. Contents are compared and not times: two changes of a ref can have the same time.
func refsOf(git string, most int) (string, error) {
	sum := sha256.New()
	add := func(path string) error {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) { // git has packed or deleted it meanwhile, which the next look sees
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Fprintf(sum, "%q\n", path)
		_, err = io.Copy(sum, f)
		return err
	}
	for _, list := range []string{"packed-refs", filepath.Join("reftable", "tables.list")} {
		if err := add(filepath.Join(git, list)); err != nil {
			return "", err
		}
	}
	loose := 0
	for _, below := range []string{"heads", "remotes"} {
		err := filepath.WalkDir(filepath.Join(git, "refs", below), func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case !d.Type().IsRegular() || strings.HasSuffix(path, ".lock"):
				return nil
			}
			if loose++; loose > most {
				return errTooMany
			}
			return add(path)
		})
		if errors.Is(err, errTooMany) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

var errTooMany = errors.New("too many loose refs")
