package runstate

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// Limits of a review. More findings than these do not help the agent that has to fix them.
const (
	findingsMax     = 100 // of one answer
	findingsOpenMax = 200 // of a task
	findingBytesMax = 4000
	findingPathMax  = 1024
	findingLineMax  = 10_000_000
	idleRoundsMax   = 2 // consecutive rounds without progress; then a person decides
	reviewRoundsMax = 15
)

// Severities of a finding.
const (
	Must   = "must"   // it goes back to the agent
	Should = "should" // it is shown to the person
)

var findingID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$`)

// Finding is one thing that a reviewer found.
type Finding struct {
	ID       string `json:"id"`
	File     string `json:"file,omitempty"` // relative to the repository; empty: it concerns no file
	Line     int    `json:"line,omitempty"` // from 1; 0: the whole file
	Text     string `json:"text"`
	Severity string `json:"severity"`
}

// String is one line about a finding.
func (f Finding) String() string {
	where := f.File
	if f.Line > 0 {
		where += fmt.Sprintf(":%d", f.Line)
	}
	if where != "" {
		where += ": "
	}
	return fmt.Sprintf("%s (%s) %s%s", f.ID, f.Severity, where, strings.Join(strings.Fields(f.Text), " "))
}

// ReviewAnswer is what a reviewer answers: new or changed findings, and the ids of those that are resolved.
type ReviewAnswer struct {
	Findings []Finding   `json:"findings"`
	Resolved []string    `json:"resolved"`
	Report   *StepReport `json:"-"` // if the answer is a whole report with findings in it

	Rest map[string]jsontext.Value `json:",unknown"` // other fields
}

// ReadReview reads a reviewer's answer from the file of its report, as ReadReport.
func ReadReview(path string, of ReportFor) (ReviewAnswer, error) {
	b, moved, err := readForeign(path, reportBytesMax)
	if err != nil {
		return ReviewAnswer{}, err
	}
	answer, err := ParseReview(path, b, of)
	return answer, stillMoving(err, moved)
}

// ParseReview parses a reviewer's answer: an object with "findings" and "resolved", which may also be a whole report.
// The error is a *ReportFault.
func ParseReview(name string, b []byte, of ReportFor) (ReviewAnswer, error) {
	var a ReviewAnswer
	content := file.Content{File: name, Text: file.Unmarked(b)}
	if err := content.Decode(reportBytesMax, &a); err != nil {
		return ReviewAnswer{}, reportFault(err)
	}
	if slices.ContainsFunc(reportFields, func(field string) bool { return a.Rest[field] != nil }) {
		report, err := ParseReport(name, b, of)
		if err != nil {
			return ReviewAnswer{}, err
		}
		a.Report = &report
		if report.Failed {
			return ReviewAnswer{Report: a.Report}, nil // it could not review
		}
	}
	if where, fault := a.fault(); fault != "" {
		return ReviewAnswer{}, reportFault(content.Wrong(where, fault))
	}
	return a, nil
}

// fault puts the findings in order and says what is wrong with an answer, and where; empty: nothing.
func (a *ReviewAnswer) fault() (where jsontext.Pointer, fault string) {
	switch {
	case a.Findings == nil:
		return "/findings", "is missing"
	case len(a.Findings) > findingsMax:
		return "/findings", fmt.Sprintf("has %d entries, %d at most; name the most important ones", len(a.Findings), findingsMax)
	}
	seen := map[string]bool{}
	for i := range a.Findings {
		one := &a.Findings[i]
		one.Text, one.Severity = strings.TrimSpace(one.Text), cmp.Or(strings.ToLower(one.Severity), Must)
		fault := one.fault()
		if seen[one.ID] {
			fault = fmt.Sprintf("has the id %q, as another one", one.ID)
		}
		if fault != "" {
			return jsontext.Pointer("/findings").AppendToken(strconv.Itoa(i)), fault
		}
		seen[one.ID] = true
	}
	resolved := map[string]bool{}
	for _, id := range a.Resolved {
		switch {
		case resolved[id]:
			return "", fmt.Sprintf("resolved names %q twice", clip.Text(id, quoteMax))
		case seen[id]:
			return "", fmt.Sprintf("finding %q is both open and resolved", clip.Text(id, quoteMax))
		}
		resolved[id] = true
	}
	return "", ""
}

// fault says what is wrong with a finding; empty: nothing.
func (f Finding) fault() string {
	switch {
	case !findingID.MatchString(f.ID):
		return fmt.Sprintf("has no valid id: %q; write letters and digits, such as F1", clip.Text(f.ID, quoteMax))
	case f.File != "" && (len(f.File) > findingPathMax || !filepath.IsLocal(f.File) || strings.ContainsFunc(f.File, isControl)):
		return fmt.Sprintf("names %q, which is no file of the repository", clip.Text(f.File, quoteMax))
	case f.Line > findingLineMax:
		return fmt.Sprintf("names line %d", f.Line)
	case f.Text == "" || len(f.Text) > findingBytesMax:
		return fmt.Sprintf("needs a text of 1 to %d bytes", findingBytesMax)
	case f.Severity != Must && f.Severity != Should:
		return fmt.Sprintf("has the severity %q; write must or should", clip.Text(f.Severity, quoteMax))
	}
	return ""
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// Review is what is known of the reviews of a task. It is kept in the run's folder.
type Review struct {
	Session  string    `json:"session"` // of the last answer that counts
	Rounds   int       `json:"rounds"`
	Idle     int       `json:"idle"`     // consecutive rounds that resolved nothing
	Stagnant bool      `json:"stagnant"` // the last round ended the loop, although findings are open
	Open     []Finding `json:"open"`
	Next     int       `json:"next"` // number for the id of the next finding
}

// Take adds an answer. An answer of the same session counts once.
func (r Review) Take(session string, a ReviewAnswer) (Review, error) {
	if session == r.Session {
		return r, nil
	}
	before := r.musts()
	open := slices.Clone(r.Open)
	progress := false
	for _, id := range a.Resolved {
		i := slices.IndexFunc(open, func(f Finding) bool { return f.ID == id })
		if i < 0 {
			return r, fmt.Errorf("resolved names %q, which is not an open finding", clip.Text(id, quoteMax))
		}
		progress = progress || open[i].Severity == Must
		open = slices.Delete(open, i, i+1)
	}
	for _, f := range a.Findings {
		if i := slices.IndexFunc(open, func(o Finding) bool { return o.ID == f.ID }); i >= 0 {
			open[i] = f
		} else {
			open = append(open, f)
		}
	}
	if len(open) > findingsOpenMax {
		return r, fmt.Errorf("%d findings would be open, %d at most; resolve some, or name the most important ones", len(open),
			findingsOpenMax)
	}
	now := Review{Session: session, Rounds: r.Rounds + 1, Open: open, Next: r.Next + len(a.Findings)}
	if !r.SendsBack() { // the first one, or a person has asked for changes since
		now.Rounds = 1
	} else if !progress && now.musts() >= before {
		now.Idle = r.Idle + 1
	}
	now.Stagnant = now.musts() > 0 && (now.Idle >= idleRoundsMax || now.Rounds >= reviewRoundsMax)
	return now, nil
}

// musts counts the open findings that go back to the agent.
func (r Review) musts() (n int) {
	for _, f := range r.Open {
		if f.Severity == Must {
			n++
		}
	}
	return n
}

// SendsBack reports whether the task goes back to its agent.
func (r Review) SendsBack() bool { return r.musts() > 0 && !r.Stagnant }

// Words tell the agent what is open.
func (r Review) Words() string {
	var b strings.Builder
	fmt.Fprintf(&b, "A reviewer has looked at your changes. Fix every finding marked %q; those marked %q are for you to judge.\n", Must,
		Should)
	for _, f := range r.Open {
		fmt.Fprintf(&b, "\n%s", f)
	}
	return b.String()
}

// Lines tell the person what the reviews came to.
func (r Review) Lines() []string {
	rounds := fmt.Sprintf("%d rounds", r.Rounds)
	if r.Rounds == 1 {
		rounds = "1 round"
	}
	said := "review: no finding is open"
	switch {
	case r.Stagnant:
		said = fmt.Sprintf("review: stagnation after %s: these findings stay open, and you decide", rounds)
	case len(r.Open) > 0:
		said = "review: nothing has to be fixed; open suggestions:"
	}
	lines := []string{said}
	for _, f := range r.Open {
		lines = append(lines, "  "+f.String())
	}
	return lines
}

// LoadReview reads what is known of the reviews of a task; nothing if there is no file yet.
func LoadReview(path string) (r Review, err error) {
	if err := file.LoadJSON(path, &r); err != nil {
		return Review{}, fmt.Errorf("find what earlier reviews found: %w", err)
	}
	return r, nil
}

// Save writes the file anew.
func (r Review) Save(path string) error { return file.StoreJSON(path, r) }
