package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// A round is what the agent did up to one look of the person. Round 1 is the first that is shown. A request asks for changes to the
// round that is shown, has its number, and begins the next one. A landing that failed begins the next one, too, if other content is
// shown after it. The same content that is shown once more without a request, because the base has moved, is the same round.

// RequestName is the file with what a person asked to be changed in a round, from 1.
func RequestName(round int) string { return fmt.Sprintf("request-%d.md", round) }

// Requests lists the rounds in which a person asked for changes, the oldest first. dir is the folder of the task's run.
func Requests(dir string) (rounds []int, err error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for _, entry := range names {
		number, is := strings.CutPrefix(entry.Name(), "request-")
		n, err := strconv.Atoi(strings.TrimSuffix(number, ".md"))
		if is && err == nil && n > 0 && entry.Name() == RequestName(n) {
			rounds = append(rounds, n)
		}
	}
	slices.Sort(rounds)
	return rounds, nil
}

// newestRounds are the newest round that was shown, with its number 0 if none was, and the newest one with a request; 0: none.
func (t Review) newestRounds(ctx context.Context) (shown Round, requested int, err error) {
	all, err := t.Rounds(ctx)
	if err != nil {
		return shown, 0, err
	}
	if n := len(all); n > 0 {
		shown = all[n-1]
	}
	asked, err := Requests(t.Run)
	if n := len(asked); n > 0 {
		requested = asked[n-1]
	}
	return shown, requested, err
}

// Round is the number of the round that the task is in, from 1.
func (t Review) Round(ctx context.Context) (int, error) {
	shown, requested, err := t.newestRounds(ctx)
	return max(shown.Number, requested+1), err
}

// Requested is the newest round with a request, if nothing was shown since; 0: none.
func (t Review) Requested(ctx context.Context) (int, error) {
	shown, requested, err := t.newestRounds(ctx)
	if err != nil || requested < shown.Number {
		return 0, err
	}
	return requested, nil
}

// roundOf is the number of the round in which a commit is shown. request is the number of the request that began it; 0: none did.
// unchanged says that it has the same content as what that request was about.
func (t Task) roundOf(ctx context.Context, commit, tree string) (number, request int, unchanged bool, err error) {
	shown, requested, err := (Review{t}).newestRounds(ctx)
	if err != nil {
		return 0, 0, false, err
	}
	number = max(shown.Number, requested) + 1
	if shown.Number > requested && shown.Commit == commit {
		number = shown.Number
	}
	if requested == 0 || requested != number-1 {
		return number, 0, false, nil
	}
	was, err := t.ask(ctx, nil, "rev-parse", "--verify", "--quiet", (Review{t}).roundRef(requested)+"^{tree}")
	if worktree.GitSaidNo(err) { // another machine has shown it
		return number, requested, false, nil
	}
	return number, requested, was == tree, err
}

// roundTold are lines about a round for the person who decides.
func (s Shown) roundTold(request int) (lines []string) {
	if s.Unchanged {
		lines = append(lines, fmt.Sprintf("nothing changed since your request in round %d", request))
	}
	if s.Files == 0 {
		lines = append(lines, "0 files changed: there is nothing to land")
	}
	return lines
}

const (
	failedName = "failed.json"
	failedMax  = 200 // failures of checks that are kept: a gate sends a task back less often between two rounds
)

// failedCheck is a check that failed before a round was shown.
type failedCheck struct {
	Round   int    `json:"round"`
	Command string `json:"command"` // empty: a conflict that was left in the files
}

func (t Task) failedChecks() (all []failedCheck, err error) {
	return all, file.LoadJSON(filepath.Join(t.Run, failedName), &all)
}

// noteFailed notes a check that has failed: the person sees in the review that the round was sent back for it.
func (t Task) noteFailed(ctx context.Context, failed *CheckFailed) error {
	shown, requested, err := (Review{t}).newestRounds(ctx)
	if err != nil {
		return err
	}
	all, err := t.failedChecks()
	if err != nil {
		all = nil // what is written is better than what cannot be read
	}
	all = append(all, failedCheck{max(shown.Number, requested) + 1, failed.Command})
	return file.StoreJSON(filepath.Join(t.Run, failedName), all[max(0, len(all)-failedMax):])
}

// failedTold has a line for each check that has failed in a round before it was shown.
func (t Task) failedTold(round int) (lines []string, err error) {
	all, err := t.failedChecks()
	if err != nil {
		return nil, err
	}
	times := map[string]int{}
	var commands []string
	for _, one := range all {
		if one.Round != round {
			continue
		}
		if times[one.Command]++; times[one.Command] == 1 {
			commands = append(commands, one.Command)
		}
	}
	for _, command := range commands {
		what := "check `" + command + "`"
		if command == "" {
			what = "setup, or a merge that was not finished,"
		}
		often := "once"
		if n := times[command]; n > 1 {
			often = fmt.Sprintf("%d times", n)
		}
		lines = append(lines, fmt.Sprintf("%s failed %s in this round, and its agent went on", what, often))
	}
	return lines, nil
}
