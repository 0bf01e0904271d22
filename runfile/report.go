package runfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

const (
	reportBytesMax = 1 << 20 // as between markers; larger results belong into artifacts
	whyLines       = 3       // number of log lines that are used if a report gives no reason, as in the seed's tool
	quoteMax       = 40      // bytes of a report that a fault quotes
)

// ReportFor says which step a report must be about.
type ReportFor struct {
	RunID, StepID string
	Schema        *Schema // an additional schema (--schema); nil: none
}

// StepReport is a step's report (SPEC Workflow). The embedded Report is what the machine decides by.
type StepReport struct {
	Schema, RunID, StepID, Agent string
	Status                       string // COMPLETED or FAILED, whichever synonym was used
	StartedAt, EndedAt           string // as written
	NextSuggestedSteps           []string
	CostUSD                      float64 // the metric cost_usd or total_cost_usd; 0: not reported
	workflow.Report
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
	b, moved, err := readForeign(path, reportBytesMax)
	if err != nil {
		return StepReport{}, err
	}
	report, err := ParseReport(path, b, of)
	return report, stillMoving(err, moved)
}

// stillMoving marks a fault of a file that changed during the read.
func stillMoving(err error, moved bool) error {
	var fault *ReportFault
	if moved && errors.As(err, &fault) {
		fault.Unfinished = true
	}
	return err
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
	handle, err := file.Open(dir, name)
	if err != nil {
		return nil, false, foreignFault(path, err)
	}
	defer func() { _ = handle.Close() }()
	before, err := file.Stat(handle)
	if err != nil {
		return nil, false, foreignFault(path, err)
	}
	b, err = io.ReadAll(io.LimitReader(handle, int64(most)+1))
	if err != nil {
		return nil, false, foreignFault(path, err)
	}
	after, err := file.Stat(handle)
	if err != nil {
		return nil, false, foreignFault(path, err)
	}
	return b, before.ID != after.ID, nil
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
	r, fields, err := openReport(name, b, reportBytesMax)
	if err != nil {
		return StepReport{}, err
	}
	if of.Schema != nil {
		if err := of.Schema.Check(b); err != nil {
			return StepReport{}, &ReportFault{File: name, Line: 1, Text: "it does not fit the schema: " + err.Error()}
		}
	}
	r.required(fields)
	var s StepReport
	for _, f := range fields {
		switch f.Name {
		case "schema":
			s.Schema = r.scalar(f)
		case "run_id":
			s.RunID = r.is(f, of.RunID, "run")
		case "step_id":
			s.StepID = r.is(f, of.StepID, "step")
		case "agent":
			s.Agent = r.filled(f)
		case "status":
			s.Status = r.status(f)
		case "started_at":
			s.StartedAt = r.filled(f)
		case "ended_at":
			s.EndedAt = r.filled(f)
		case "artifacts":
			s.Artifacts = r.artifacts(f)
		case "metrics":
			s.Metrics = r.measures(f)
		case "logs":
			s.Logs = r.lines(f)
		case "next_suggested_steps":
			s.NextSuggestedSteps = r.lines(f)
		case "gate_failure":
			s.GateFailed, s.Why = r.gate(f)
		case "again_in_seconds":
			s.Again = r.again(f)
		}
	}
	if r.Fault != nil {
		return StepReport{}, r.reportFault()
	}
	s.Failed = s.Status == StepFailed
	if s.Why == "" && (s.Failed || s.GateFailed) {
		s.Why = strings.Join(s.Logs[max(0, len(s.Logs)-whyLines):], "; ")
	}
	s.CostUSD = cost(s.Metrics)
	return s, nil
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

// jsonReader reads a file whose faults quote the content.
type jsonReader struct{ file.JSONReader }

// openReport parses the object and distinguishes incomplete content from wrong content.
func openReport(name string, b []byte, most int) (*jsonReader, []file.Placed, error) {
	r := &jsonReader{file.JSONReader{File: name, Whole: b}}
	fields, err := r.Object(b, most)
	if err == nil {
		return r, fields, nil
	}
	fault := r.reportFault()
	var syntax *json.SyntaxError
	switch at := int64(file.FirstInvalid(b)); {
	case len(b) > most:
	case len(bytes.TrimSpace(b)) == 0:
		fault.Unfinished = true
	case !utf8.Valid(b):
		fault.Unfinished = at >= int64(len(b))-utf8.UTFMax && !utf8.FullRune(b[at:])
	case errors.As(json.Unmarshal(b, new(json.RawMessage)), &syntax):
		fault.Unfinished = syntax.Offset >= int64(len(b)) && syntax.Error() == "unexpected end of JSON input"
		fault.Text = "no JSON: " + syntax.Error() + r.near(syntax.Offset)
	}
	return nil, nil, fault
}

// near quotes the text before an offset.
func (r *jsonReader) near(at int64) string {
	at = min(at, int64(len(r.Whole)))
	from := max(0, at-quoteMax)
	for from < at && !utf8.RuneStart(r.Whole[from]) {
		from++
	}
	return fmt.Sprintf(", behind %q", r.Whole[from:at])
}

// reportFault returns the first fault as a *ReportFault.
func (r *jsonReader) reportFault() *ReportFault {
	var fault *file.JSONFault
	if !errors.As(r.Fault, &fault) {
		panic("runfile: a reader failed without a fault")
	}
	text := fault.Fault
	if fault.Path != "" {
		text = fault.Path + " " + text
	}
	return &ReportFault{File: r.File, Line: fault.Line, Text: text}
}

// required reports all missing fields at once.
func (r *jsonReader) required(fields []file.Placed) {
	var missing []string
	for _, name := range reportFields {
		if !slices.ContainsFunc(fields, func(f file.Placed) bool { return f.Name == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		r.Wrong(file.Placed{}, "", "missing: "+strings.Join(missing, ", ")+"; a report has "+strings.Join(reportFields, ", "))
	}
}

// filled reads a text that must not be a placeholder.
func (r *jsonReader) filled(f file.Placed) string {
	text := r.Text(f, "")
	switch {
	case r.Fault != nil:
	case strings.TrimSpace(text) == "":
		r.Wrong(f, "", "is empty")
	case placeholder(text):
		r.Wrong(f, "", fmt.Sprintf("is %q, which is a placeholder; write what it really is", clip.Text(text, quoteMax)))
	}
	return text
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

// scalar reads a text, or a number as written: a schema may be called 1.
func (r *jsonReader) scalar(f file.Placed) string {
	if c := f.Raw[0]; c >= '0' && c <= '9' {
		return string(f.Raw)
	}
	return r.filled(f)
}

// is reads an id that must have a certain value.
func (r *jsonReader) is(f file.Placed, want, what string) string {
	if f.Raw[0] == '"' && plainText(f.Raw) == want {
		return want // a step may have a name that looks like a placeholder
	}
	got := r.filled(f)
	if r.Fault == nil && got != want {
		r.Wrong(f, "", fmt.Sprintf("is %q, and this is %s %q", clip.Text(got, quoteMax), what, want))
	}
	return got
}

func (r *jsonReader) status(f file.Placed) string {
	word := strings.ToLower(strings.TrimSpace(r.filled(f)))
	switch {
	case r.Fault != nil:
	case slices.Contains(doneWords, word):
		return StepCompleted
	case slices.Contains(failedWords, word):
		return StepFailed
	default:
		r.Wrong(f, "", fmt.Sprintf("is %q; write COMPLETED or FAILED", clip.Text(word, quoteMax)))
	}
	return ""
}

func (r *jsonReader) artifacts(f file.Placed) []string {
	if string(f.Raw) == "null" {
		return nil
	}
	list := r.Texts(f, "")
	for i, path := range list {
		if strings.TrimSpace(path) == "" || strings.ContainsRune(path, 0) || placeholder(path) {
			r.Wrong(f, "", fmt.Sprintf("names %q, its %d., which is no path", clip.Text(path, quoteMax), i+1))
		}
	}
	return list
}

// measures reads every value as text, as the seed stores them.
func (r *jsonReader) measures(f file.Placed) []workflow.Metric {
	if string(f.Raw) == "null" {
		return nil
	}
	var list []workflow.Metric
	for _, one := range r.Fields(f, "") {
		value := plainText(one.Raw)
		if placeholder(value) {
			r.Wrong(one, f.Name+".", fmt.Sprintf("is %q, which is a placeholder; measure it, or leave it out", clip.Text(value, quoteMax)))
		}
		list = append(list, workflow.Metric{Name: one.Name, Value: value})
	}
	return list
}

// lines reads a list of texts. A single text is a list of one, and other values are kept as JSON.
func (r *jsonReader) lines(f file.Placed) []string {
	switch {
	case string(f.Raw) == "null":
		return nil
	}
	items := []json.RawMessage{f.Raw} // a single text
	if f.Raw[0] != '"' {
		items = r.Items(f, "")
	}
	var list []string
	for _, item := range items {
		text := plainText(item)
		if placeholder(text) && strings.ContainsAny(text, " _") { // <div> may be a log line, <what you did> is a placeholder
			r.Wrong(f, "", fmt.Sprintf("has %q, which is a placeholder; write what was done", clip.Text(text, quoteMax)))
		}
		list = append(list, text)
	}
	return list
}

// gate reads true, false or the reason as text.
func (r *jsonReader) gate(f file.Placed) (failed bool, why string) {
	switch string(f.Raw) {
	case "true":
		return true, ""
	case "false", "null":
		return false, ""
	}
	if f.Raw[0] != '"' {
		r.Wrong(f, "", "is neither true nor false, nor a text")
		return false, ""
	}
	text := strings.TrimSpace(r.Text(f, ""))
	if placeholder(text) {
		r.Wrong(f, "", fmt.Sprintf("is %q, which is a placeholder; write true, false or the reason", clip.Text(text, quoteMax)))
	}
	switch strings.ToLower(text) {
	case "true", "yes":
		return true, ""
	case "", "false", "no", "none":
		return false, ""
	}
	return true, text
}

// again reads in how many seconds the step wants to be run again; null and 0: it is done.
func (r *jsonReader) again(f file.Placed) time.Duration {
	if string(f.Raw) == "null" {
		return 0
	}
	n := r.Count(f, "")
	if wait := time.Duration(n) * time.Second; r.Fault == nil && n > 0 && (n > int(workflow.AgainMax/time.Second) || wait < workflow.AgainLeast) {
		r.Wrong(f, "", fmt.Sprintf("is %d; take a number of seconds from %d to %d", n, workflow.AgainLeast/time.Second, workflow.AgainMax/time.Second))
		return 0
	}
	return time.Duration(min(n, int(workflow.AgainMax/time.Second))) * time.Second
}

// plainText returns a text without quotes, and any other JSON value on one line.
func plainText(raw json.RawMessage) string {
	var text string
	if raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return text
	}
	var flat bytes.Buffer
	if err := json.Compact(&flat, raw); err != nil {
		panic("runfile: a value that was read does not compact: " + err.Error())
	}
	return flat.String()
}
