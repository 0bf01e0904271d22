package runstate

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	reportBytesMax = 16 << 20 // lists of 100,000 files fit; what is larger is no report. Between markers it is 1 MiB
	whyLines       = 3        // number of log lines that are used if a report gives no reason, as in the seed's tool
	quoteMax       = 40       // bytes of a report that a fault quotes
)

// ReportFor says which step a report must be about.
type ReportFor struct {
	RunID, StepID string
	Schema        *Schema // an additional schema (--schema); nil: none
	Repo          string  // the folder that artifacts are relative to; empty: they stay as reported
	Main          string  // the repository, if Repo is another checkout of it
}

// StepReport is a step's report (SPEC Workflow). The embedded Report is what the machine decides by.
type StepReport struct {
	Status  string  // COMPLETED or FAILED, whichever synonym was used
	CostUSD float64 // the metric cost_usd or total_cost_usd; 0: not reported
	Warning string  // which artifacts are outside of the repository; it is in Logs, too
	workflow.Report
}

// reportFile is a report as it is written. What an agent writes in many ways has a type of its own.
type reportFile struct {
	Schema    schemaName `json:"schema"`
	RunID     string     `json:"run_id"`
	StepID    string     `json:"step_id"`
	Agent     filled     `json:"agent"`
	Status    status     `json:"status"`
	StartedAt filled     `json:"started_at"`
	EndedAt   filled     `json:"ended_at"`
	Artifacts []string   `json:"artifacts"`
	Metrics   measures   `json:"metrics"`
	Logs      lines      `json:"logs"`
	Next      lines      `json:"next_suggested_steps"`
	Gate      gate       `json:"gate_failure"`
	Again     int        `json:"again_in_seconds"` // 0: it is done
}

// ReportFault says why content is not a report, an answer or a gate-state file.
type ReportFault struct {
	File       string // as the caller named it
	Line       int    // from 1; 0: it concerns the whole file
	Text       string // what is wrong, with a quotation
	Unfinished bool   // the content breaks off or changed during the read, so it may still be being written
}

func (f *ReportFault) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

// The synonyms of a status, in any case (SPEC Workflow).
var (
	doneWords   = []string{"completed", "complete", "success", "succeeded", "ok", "done", "passed", "pass"}
	failedWords = []string{"failed", "fail", "failure", "error"}
)

var reportFields = []string{"schema", "run_id", "step_id", "agent", "status", "started_at", "ended_at"}

// ReadReport reads a report's file. It follows no link and does not block on a pipe, because the agent owns
// the folder. The error is a *ReportFault, or wraps fs.ErrNotExist.
func ReadReport(path string, of ReportFor) (StepReport, error) {
	return readFile(path, reportBytesMax, func(b []byte) (StepReport, error) { return ParseReport(path, b, of) })
}

// readFile reads and parses a file that another program writes. A fault of one that changed during the read is marked.
func readFile[T any](path string, most int, parse func(b []byte) (T, error)) (said T, err error) {
	b, moved, err := readForeign(path, most)
	if err != nil {
		return said, err
	}
	said, err = parse(b)
	if fault, is := errors.AsType[*ReportFault](err); is && moved {
		fault.Unfinished = true
	}
	return said, err
}

// readForeign reads at most most+1 bytes of a regular file that another program writes. moved means that it
// changed during the read.
func readForeign(path string, most int) (b []byte, moved bool, err error) {
	folder, name := filepath.Split(path)
	dir, _, err := file.OpenFolder(filepath.Clean(folder))
	if err != nil {
		return nil, false, foreignFault(path, err)
	}
	defer file.CloseFolder(dir)
	is, err := file.Read(dir, name, int64(most))
	if err != nil {
		return nil, false, foreignFault(path, err)
	}
	return is.Bytes, is.Moved, nil
}

// foreignFault distinguishes a file that cannot be a report from a read error.
func foreignFault(path string, err error) error {
	if no, ok := errors.AsType[*file.Unreadable](err); ok {
		return &ReportFault{File: path, Text: no.Fault}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s: %w", path, fs.ErrNotExist)
	}
	return fmt.Errorf("read %s: %w", path, err)
}

// ParseReport parses a report: the content of its file, or of the markers. The error is a *ReportFault.
func ParseReport(name string, b []byte, of ReportFor) (StepReport, error) {
	var f reportFile
	content := file.Content{File: name, Text: file.Unmarked(b)}
	if err := content.Decode(reportBytesMax, &f); err != nil {
		return StepReport{}, reportFault(err)
	}
	if of.Schema != nil {
		if err := of.Schema.Check(b); err != nil {
			return StepReport{}, &ReportFault{File: name, Line: 1, Text: "it does not fit the schema: " + err.Error()}
		}
	}
	if where, fault := f.fault(of); fault != "" {
		return StepReport{}, reportFault(content.Wrong(where, fault))
	}
	s := StepReport{Status: string(f.Status), CostUSD: cost(f.Metrics), Report: workflow.Report{
		Failed: f.Status == StepFailed, GateFailed: f.Gate.failed, Why: f.Gate.why, Again: time.Duration(f.Again) * time.Second,
		Facts: workflow.Facts{Artifacts: f.Artifacts, Metrics: f.Metrics, Logs: f.Logs},
	}}
	if s.Why == "" && s.Fails() {
		s.Why = strings.Join(s.Logs[max(0, len(s.Logs)-whyLines):], "; ")
	}
	s.place(of)
	return s, nil
}

// fault says what is wrong with a report whose fields can be read, and where; empty: nothing.
func (f *reportFile) fault(of ReportFor) (where jsontext.Pointer, fault string) {
	given := []string{string(f.Schema), f.RunID, f.StepID, string(f.Agent), string(f.Status), string(f.StartedAt), string(f.EndedAt)}
	var missing []string
	for i, name := range reportFields {
		if given[i] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return "", "missing: " + strings.Join(missing, ", ") + "; a report has " + strings.Join(reportFields, ", ")
	}
	if f.RunID != of.RunID { // a run may have a name that looks like a placeholder
		return "/run_id", isAnother(f.RunID, "run", of.RunID)
	}
	if f.StepID != of.StepID {
		return "/step_id", isAnother(f.StepID, "step", of.StepID)
	}
	for i, path := range f.Artifacts {
		if strings.TrimSpace(path) == "" || strings.ContainsRune(path, 0) || placeholder(path) {
			return "/artifacts", fmt.Sprintf("names %q, its %d., which is no path", clip.Text(path, quoteMax), i+1)
		}
	}
	most, least := int(workflow.AgainMax/time.Second), int(workflow.AgainLeast/time.Second)
	if f.Again > most || f.Again > 0 && f.Again < least {
		return "/again_in_seconds", fmt.Sprintf("is %d; take a number of seconds from %d to %d", f.Again, least, most)
	}
	return "", ""
}

// isAnother says that an id is not the expected one.
func isAnother(got, what, want string) string {
	if fault := unfilled(got); fault != "" {
		return fault
	}
	return fmt.Sprintf("is %q, and this is %s %q", clip.Text(got, quoteMax), what, want)
}

// outsideShown is how many artifacts outside of the repository a warning names.
const outsideShown = 3

// place makes absolute artifacts of the repository relative to it. Those outside stay, with a warning. What an agent names is not
// opened, so that it cannot make the reader wait.
func (s *StepReport) place(of ReportFor) {
	if of.Repo == "" {
		return
	}
	var outside []string
	for i, path := range s.Artifacts {
		whole := path
		if !filepath.IsAbs(path) {
			whole = filepath.Join(of.Repo, path)
		}
		rel, inside := below(of.Repo, whole)
		_, known := below(of.Main, whole)
		switch {
		case inside && filepath.IsAbs(path):
			s.Artifacts[i] = rel
		case !inside && !known:
			outside = append(outside, strconv.Quote(clip.Text(path, 100)))
		}
	}
	if n := len(outside); n > 0 {
		more := ""
		if n > outsideShown {
			more = fmt.Sprintf(" and %d more", n-outsideShown)
		}
		s.Warning = "the report names artifacts outside of the repository: " + strings.Join(outside[:min(n, outsideShown)], ", ") + more
		s.Logs = append(s.Logs, "warning: "+s.Warning)
	}
}

// below is a path relative to a folder that it is in.
func below(dir, path string) (rel string, inside bool) {
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// cost returns what a step cost in US dollars. A value that is not a number counts as 0.
func cost(metrics []workflow.Metric) float64 {
	for _, name := range []string{"cost_usd", "total_cost_usd"} {
		for _, m := range metrics {
			usd, err := strconv.ParseFloat(m.Value, 64)
			if m.Name == name && err == nil && usd >= 0 && usd < 1e9 {
				return usd
			}
		}
	}
	return 0
}

// reportFault is a fault of the content as a *ReportFault.
func reportFault(err error) error {
	fault, is := errors.AsType[*file.JSONFault](err)
	if !is {
		return err
	}
	return &ReportFault{
		File: fault.File, Line: fault.Line, Text: strings.TrimSpace(fault.Path + " " + fault.Fault),
		Unfinished: fault.Unfinished,
	}
}

// filled is a text that must not be a placeholder.
type filled string

func (f *filled) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var text string
	if err := json.UnmarshalDecode(d, &text); err != nil {
		return err
	}
	*f = filled(text)
	if fault := unfilled(text); fault != "" {
		return file.BadValue("%s", fault)
	}
	return nil
}

// unfilled says why a text is not the value of a field; empty: it is one.
func unfilled(text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return "is empty"
	case placeholder(text):
		return fmt.Sprintf("is %q, which is a placeholder; write what it really is", clip.Text(text, quoteMax))
	}
	return ""
}

// placeholder reports whether a text was left as it was in a template.
func placeholder(text string) bool {
	text = strings.TrimSpace(text)
	if len(text) > 2 && text[0] == '<' && text[len(text)-1] == '>' && !strings.ContainsAny(text[1:len(text)-1], "<>") {
		return true
	}
	text = strings.ToLower(text)
	if slices.Contains([]string{"tbd", "...", "…", "placeholder", "<>"}, text) {
		return true
	}
	text = strings.Trim(text, "<>[]{}()\"'`*_ \t")
	return slices.ContainsFunc(unfilledWords, func(words string) bool {
		rest, begins := strings.CutPrefix(text, words)
		return begins && (rest == "" || strings.ContainsRune(".,;:!", rune(rest[0]))) // "…, e.g., docs/plan.md"
	})
}

// unfilledWords are the words in the place of values that the templates of seed 004's tool have. Agents hand them
// back, with or without the template's brackets.
var unfilledWords = []string{
	"list of created file paths", "relative path to each created file", "relative path to the artifact you produced",
	"replace with actual artifact", "replace with relative path for each artifact", "replace with the relative path to each artifact",
	"summary of what you accomplished", "concise summary of work performed", "concise bullet summarizing work",
	"replace with actual log entry", "replace with a concise summary", "replace with a short summary of what you accomplished",
	"replace with utc timestamp when you finish", "insert completion timestamp",
}

// schemaName is a text, or a number as written: a schema may be called 1.
type schemaName filled

func (n *schemaName) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != '0' {
		return (*filled)(n).UnmarshalJSONFrom(d)
	}
	number, err := d.ReadValue()
	*n = schemaName(number)
	return err
}

// status is StepCompleted or StepFailed, whichever synonym was written.
type status filled

func (s *status) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if err := (*filled)(s).UnmarshalJSONFrom(d); err != nil {
		return err
	}
	switch word := strings.ToLower(strings.TrimSpace(string(*s))); {
	case slices.Contains(doneWords, word):
		*s = StepCompleted
	case slices.Contains(failedWords, word):
		*s = StepFailed
	default:
		return file.BadValue("is %q; write COMPLETED or FAILED", clip.Text(word, quoteMax))
	}
	return nil
}

// measures are metrics whose values may be of any kind. Every value is kept as text, as the seed stores them.
type measures []workflow.Metric

func (m *measures) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == 'n' {
		return d.SkipValue()
	}
	return file.EachMember(d, func(name string) error {
		raw, err := d.ReadValue()
		if err != nil {
			return err
		}
		value := plainText(raw)
		if placeholder(value) {
			return file.BadValue("is %q, which is a placeholder; measure it, or leave it out", clip.Text(value, quoteMax))
		}
		*m = append(*m, workflow.Metric{Name: name, Value: value})
		return nil
	})
}

// lines are a list of texts. A single text is a list of one, and other values are kept as JSON.
type lines []string

func (l *lines) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var items []jsontext.Value
	var err error
	if d.PeekKind() == '"' {
		var one jsontext.Value
		one, err = d.ReadValue()
		items = append(items, one)
	} else {
		err = json.UnmarshalDecode(d, &items)
	}
	for _, item := range items {
		text := plainText(item)
		if placeholder(text) && strings.ContainsAny(text, " _") { // <div> may be a log line, <what you did> is a placeholder
			return file.BadValue("has %q, which is a placeholder; write what was done", clip.Text(text, quoteMax))
		}
		*l = append(*l, text)
	}
	return err
}

// gate is true, false or the reason as text.
type gate struct {
	failed bool
	why    string
}

func (g *gate) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	text := strings.TrimSpace(plainText(value))
	switch {
	case !strings.ContainsRune(`"tfn`, rune(value.Kind())):
		return file.BadValue("is neither true nor false, nor a text")
	case placeholder(text):
		return file.BadValue("is %q, which is a placeholder; write true, false or the reason", clip.Text(text, quoteMax))
	}
	switch strings.ToLower(text) {
	case "true", "yes":
		g.failed = true
	case "", "false", "no", "none", "null":
	default:
		g.failed, g.why = true, text
	}
	return nil
}

// plainText returns a text without quotes, and any other JSON value on one line.
func plainText(value jsontext.Value) string {
	if value.Kind() == '"' {
		text, _ := jsontext.AppendUnquote(nil, value) // half of a surrogate pair is U+FFFD
		return string(text)
	}
	flat := value.Clone()
	compact(&flat)
	return string(flat)
}
