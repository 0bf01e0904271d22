package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	checksName    = "checks.json"
	checkTailMax  = 4 << 10 // bytes of the end of a command's output that are kept
	checksFileMax = 4 << 20
)

// CheckResult is the result of one command of the checks.
type CheckResult struct {
	Command string        `json:"command"`
	Passed  bool          `json:"passed"`
	Took    time.Duration `json:"took_ns"`
	Ended   time.Time     `json:"ended_at"`
	Tail    string        `json:"tail,omitempty"` // the end of its output
}

// CheckResults are the results of the newest checks, in order. Commands after one that failed have none.
func (t Review) CheckResults() (all []CheckResult, err error) {
	file, err := os.Open(filepath.Join(t.Run, checksName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, checksFileMax))
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

// checkOne runs one command. The error is *CheckFailed if it fails.
func (t Task) checkOne(ctx context.Context, out io.Writer, tree, line string) (done CheckResult, err error) {
	began, end := time.Now(), &tail{out: out}
	err = t.shell(ctx, end, tree, line)
	done = CheckResult{Command: line, Passed: err == nil, Took: time.Since(began), Ended: time.Now().UTC(), Tail: end.text()}
	if err != nil {
		err = &CheckFailed{line, err}
	}
	return done, err
}

// noteCheck keeps the result of a command; the first one replaces those of earlier checks.
func noteCheck(t Task, at int, done CheckResult) error {
	var all []CheckResult
	if at > 0 {
		var err error
		if all, err = (Review{t}).CheckResults(); err != nil {
			return err
		}
	}
	return file.StoreJSON(filepath.Join(t.Run, checksName), append(all, done))
}

// tail hands output on, and keeps its end.
type tail struct {
	out  io.Writer
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if more := len(t.kept) - checkTailMax; more > 0 {
		t.kept = append(t.kept[:0], t.kept[more:]...)
	}
	return t.out.Write(b)
}

func (t *tail) text() string {
	kept := t.kept
	if _, rest, ok := bytes.Cut(kept, []byte("\n")); ok { // the command's own line, or half a line
		kept = rest
	}
	return string(bytes.ToValidUTF8(kept, []byte("\uFFFD")))
}
