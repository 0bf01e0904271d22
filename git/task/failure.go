package task

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Kinds of a landing that failed.
const (
	FailedConflict = "conflict" // with the newest commit of the base
	FailedChecks   = "checks"   // on the files merged with the newest commit of the base
	FailedDirty    = "dirty"    // a checkout of the base has changes, or something is half done in it
	FailedMoved    = "moved"    // the base is not where it was shown, or another program holds its lock
)

// Metrics in the report of StepLand about a landing that failed.
const (
	metricFailed = "landing_failed"
	metricFiles  = "landing_files" // a JSON list, which may be cut
	metricLines  = "landing_lines"
	metricCheck  = "landing_check"
)

// Failure says why a task did not land. Its zero value is a landing that did not fail.
type Failure struct {
	Kind  string   // one of the Failed constants; empty: none of them
	Files []string // with conflicts, or in the way
	Lines int      // of the base or of the task, whichever are more, in the conflicts; 0: not known
	Check string   // the command that failed
}

// NotLanded says what a person has to do before a task can land. Nothing was changed. It is a *Blocked, too.
type NotLanded struct {
	Failure
	Why string
}

func (e *NotLanded) Error() string { return e.Why }

func (e *NotLanded) Unwrap() error { return &Blocked{e.Why} }

// FailureOf is the failure that an error of Land means.
func FailureOf(err error) Failure {
	if known, is := errors.AsType[*NotLanded](err); is {
		return known.Failure
	}
	if conflict, is := errors.AsType[*Conflict](err); is {
		return Failure{Kind: FailedConflict, Files: conflict.Files, Lines: conflict.Lines}
	}
	if failed, is := errors.AsType[*CheckFailed](err); is {
		return Failure{Kind: FailedChecks, Check: failed.Command}
	}
	if errors.As(err, new(*Again)) {
		return Failure{Kind: FailedMoved}
	}
	return Failure{}
}

// AsksAgain is why a person is asked again after an error of Land, as a metric can have it; empty: the error is for a person to end first.
func AsksAgain(err error, base string) string {
	why := ""
	if again, is := errors.AsType[*Again](err); is {
		why = again.Why
	} else if errors.As(err, new(*Conflict)) || errors.As(err, new(*CheckFailed)) {
		all := FailureOf(err).Metrics()
		why = ParseFailure(func(name string) string { return all[name] }).Sentence(base) // with as many files as a metric has
	}
	return clip.Text(why, againBytesMax)
}

// againBytesMax keeps a reason within the limit of a metric.
const againBytesMax = 1000

// Metrics are a report's metrics for the failure; none if there was none.
func (f Failure) Metrics() map[string]string {
	if f.Kind == "" {
		return nil
	}
	all := map[string]string{metricFailed: f.Kind}
	if len(f.Files) > 0 {
		all[metricFiles] = namesWithin(f.Files)
	}
	if f.Lines > 0 {
		all[metricLines] = strconv.Itoa(f.Lines)
	}
	if f.Check != "" && len(f.Check) <= governsBytesMax {
		all[metricCheck] = f.Check
	}
	return all
}

// namesWithin is a JSON list of names that fits into a metric. If it is cut, it ends with how many are left out.
func namesWithin(names []string) string {
	names = slices.Clone(names)
	for i := range names {
		names[i] = strings.ToValidUTF8(names[i], "\uFFFD")
	}
	text, _ := json.Marshal(names) // texts can be encoded
	for cut := len(names); len(text) > governsBytesMax && cut > 0; {
		cut--
		text, _ = json.Marshal(append(slices.Clone(names[:cut]), fmt.Sprintf("and %d more", len(names)-cut)))
	}
	return string(text)
}

// ParseFailure reads what Metrics wrote. metric returns the value of a metric.
func ParseFailure(metric func(name string) string) Failure {
	f := Failure{Kind: metric(metricFailed), Check: metric(metricCheck)}
	if f.Kind == "" {
		return Failure{}
	}
	f.Lines, _ = strconv.Atoi(metric(metricLines)) // without a number it is not known
	if names := metric(metricFiles); names != "" && json.Unmarshal([]byte(names), &f.Files) != nil {
		f.Files = []string{names}
	}
	return f
}

// Sentence says for a person what a failure was that the task's own work can end; empty: it is no such failure.
func (f Failure) Sentence(base string) string {
	switch f.Kind {
	case FailedConflict:
		lines := map[bool]string{true: " (1 line)"}[f.Lines == 1]
		if f.Lines > 1 {
			lines = fmt.Sprintf(" (%d lines)", f.Lines)
		}
		return fmt.Sprintf("did not land: conflicts with %s in %s%s", base, cmp.Or(strings.Join(f.Files, ", "), "some files"), lines)
	case FailedChecks:
		check := "a check"
		if f.Check != "" {
			check = "check `" + f.Check + "`"
		}
		return fmt.Sprintf("did not land: %s failed on the files merged with %s", check, base)
	default:
		return ""
	}
}
