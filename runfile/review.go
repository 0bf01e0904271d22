package runfile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/lazy"
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

var findingID = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$`)

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
func ParseReview(name string, b []byte, of ReportFor) (a ReviewAnswer, err error) {
	r, fields, err := openReport(name, b, reportBytesMax)
	if err != nil {
		return a, err
	}
	for _, f := range fields {
		switch {
		case f.Name == "findings":
			a.Findings = r.findings(f)
		case f.Name == "resolved" && string(f.Raw) != "null":
			a.Resolved = r.Texts(f, "")
		case slices.Contains(reportFields, f.Name) && a.Report == nil:
			report, err := ParseReport(name, b, of)
			if err != nil {
				return ReviewAnswer{}, err
			}
			a.Report = &report
		}
	}
	if a.Report != nil && a.Report.Failed {
		return ReviewAnswer{Report: a.Report}, nil // it could not review
	}
	r.Needs(fields, "findings", "")
	for i, id := range a.Resolved {
		switch {
		case slices.Contains(a.Resolved[:i], id):
			r.Wrong(file.Placed{}, "", fmt.Sprintf("resolved names %q twice", clip.Text(id, quoteMax)))
		case slices.ContainsFunc(a.Findings, func(f Finding) bool { return f.ID == id }):
			r.Wrong(file.Placed{}, "", fmt.Sprintf("finding %q is both open and resolved", clip.Text(id, quoteMax)))
		}
	}
	if r.Fault != nil {
		return ReviewAnswer{}, r.reportFault()
	}
	return a, nil
}

// findings reads the list of findings.
func (r *jsonReader) findings(f file.Placed) []Finding {
	items := r.Items(f, "")
	if len(items) > findingsMax {
		r.Wrong(f, "", fmt.Sprintf("has %d entries, %d at most; name the most important ones", len(items), findingsMax))
		return nil
	}
	all := make([]Finding, 0, len(items))
	for i, item := range items {
		under := fmt.Sprintf("findings[%d].", i)
		one := Finding{Severity: Must}
		place := file.Placed{Field: file.Field{Raw: item}, At: f.At}
		fields := r.Fields(place, "")
		for _, part := range fields {
			switch part.Name {
			case "id":
				one.ID = r.Text(part, under)
			case "file":
				if text := r.TextOrNil(part, under); text != nil {
					one.File = *text
				}
			case "line":
				if string(part.Raw) != "null" {
					one.Line = r.Count(part, under)
				}
			case "text":
				one.Text = strings.TrimSpace(r.Text(part, under))
			case "severity":
				one.Severity = strings.ToLower(r.Text(part, under))
			}
		}
		fault := one.fault()
		if slices.ContainsFunc(all, func(other Finding) bool { return other.ID == one.ID }) {
			fault = fmt.Sprintf("has the id %q, as another one", one.ID)
		}
		if fault != "" {
			r.Wrong(place, "", fmt.Sprintf("findings[%d] %s", i, fault))
		}
		all = append(all, one)
	}
	return all
}

// fault says what is wrong with a finding; empty: nothing.
func (f Finding) fault() string {
	switch {
	case !findingID().MatchString(f.ID):
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
		return r, fmt.Errorf("%d findings would be open, %d at most; resolve some, or name the most important ones", len(open), findingsOpenMax)
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
	fmt.Fprintf(&b, "A reviewer has looked at your changes. Fix every finding marked %q; those marked %q are for you to judge.\n", Must, Should)
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
