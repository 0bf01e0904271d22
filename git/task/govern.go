package task

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/core/governing"
	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/git/worktree"
)

// Governs are the governing files that differ between two commits.
type Governs = state.Governs

// Governs lists the governing files that differ, in git's bytes.
func (t Review) Governs(ctx context.Context, from, to string) ([]string, error) {
	g, err := t.governs(ctx, from, to)
	return g.Files, err
}

// governs finds the governing files that differ. A renamed file is one that is gone and one that is new; modes and links count. It is
// read from git's objects, so nothing in the folder decides.
func (t Review) governs(ctx context.Context, from, to string) (g Governs, err error) {
	if err := commits(from, to); err != nil {
		return g, err
	}
	said, err := t.ask(ctx, nil, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to)
	if err != nil {
		return g, err
	}
	sum := sha256.New()
	fields := worktree.Zeroed(said)
	for i := 0; i+1 < len(fields); i += 2 {
		raw, name := fields[i], fields[i+1]
		is, err := t.mayRun(ctx, raw, name)
		if err != nil {
			return g, err
		}
		if is {
			fmt.Fprintf(sum, "%s\x00%s\x00", raw, name)
			g.Files = append(g.Files, name)
		}
	}
	if len(g.Files) > 0 {
		g.Hash = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	return g, nil
}

// mayRun reports whether a change decides what runs later. raw is git's line for it.
func (t Review) mayRun(ctx context.Context, raw, name string) (bool, error) {
	if !governing.Match(name, t.Governing) {
		return false, nil
	}
	if !governing.Mixed(name, t.Governing) {
		return true, nil
	}
	part := strings.Fields(raw) // :MODE MODE ID ID STATUS
	if len(part) < 5 {
		return true, nil
	}
	const plain, runs, none = "100644", "100755", "000000"
	for _, mode := range []string{strings.TrimPrefix(part[0], ":"), part[1]} {
		if mode != plain && mode != runs && mode != none {
			return true, nil // a link, or a submodule
		}
	}
	size, err := t.Size(ctx, part[2], part[3])
	if err != nil || size > governing.MixedBytesMax {
		return true, err
	}
	var text [2]string
	for i, id := range part[2:4] {
		if strings.Trim(id, "0") == "" {
			continue
		}
		if text[i], err = t.ask(ctx, nil, "cat-file", "blob", id); err != nil {
			return true, err
		}
	}
	return governing.Differs(name, []byte(text[0]), []byte(text[1])), nil
}
