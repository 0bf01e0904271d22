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
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/workflow"
)

const (
	reportBytesMax = 1 << 20 // as between markers; what is larger belongs into artifacts
	whyLines       = 3       // of the logs, where a report gives no reason: as the seed's tool does
	quoteMax       = 40      // bytes of a report that a fault quotes
)

// ReportFor is what a report has to be about.
type ReportFor struct {
	RunID, StepID string
	Schema        *Schema // what it has to fit (--schema); nil: nothing more
}

// StepReport is what a step said of itself (SPEC Workflow). What decides is the embedded Report.
type StepReport struct {
	Schema, RunID, StepID, Agent string
	Status                       string // COMPLETED or FAILED, whatever word was used
	StartedAt, EndedAt           string // as written
	NextSuggestedSteps           []string
	CostUSD                      float64 // the metric cost_usd or total_cost_usd; 0: it does not say
	workflow.Report
}

// ReportFault says why bytes are no report, no answer or no gate-state file.
type ReportFault struct {
	File       string // as it was named
	Line       int    // from 1; 0: it is about the file as a whole
	Text       string // in words, with a quotation
	Unfinished bool   // it breaks off at its end, or moved while it was read: whoever writes it may not be done
}

func (f *ReportFault) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

// The words for a status, without regard to case (SPEC Workflow).
var (
	doneWords   = []string{"completed", "complete", "success", "succeeded", "ok", "done", "passed", "pass"}
	failedWords = []string{"failed", "fail", "failure", "error"}
)

var reportFields = []string{"schema", "run_id", "step_id", "agent", "status", "started_at", "ended_at"}

// ReadReport reads a report's file. It follows no link and waits for no pipe: the folder is the
// agent's. The error is a *ReportFault, or wraps fs.ErrNotExist where there is no file.
func ReadReport(path string, of ReportFor) (StepReport, error) {
	b, moved, err := readForeign(path, reportBytesMax)
	if err != nil {
		return StepReport{}, err
	}
	report, err := ParseReport(path, b, of)
	return report, stillMoving(err, moved)
}

// stillMoving marks a fault of a file that was written while it was read.
func stillMoving(err error, moved bool) error {
	var fault *ReportFault
	if moved && errors.As(err, &fault) {
		fault.Unfinished = true
	}
	return err
}

// readForeign reads a plain file that somebody else writes, one byte more than most at the
// most; moved says that it changed meanwhile.
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

// foreignFault tells a file that cannot be a report from one that cannot be read.
func foreignFault(path string, err error) error {
	var no *file.Unreadable
	if errors.As(err, &no) {
		return &ReportFault{File: path, Text: no.Fault}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s: %w", path, fs.ErrNotExist)
	}
	return fmt.Errorf("read %s: %w", path, err)
}

// ParseReport reads a report: the bytes of its file, or what stood between the markers. The error
// is a *ReportFault.
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

// cost finds what a step has cost, in US dollars. What is no number is none.
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

// jsonReader reads a file whose faults are quoted.
type jsonReader struct{ file.JSONReader }

// openReport takes the bytes of a file apart, and tells one that breaks off from one that is wrong.
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

// near quotes what stands before a place.
func (r *jsonReader) near(at int64) string {
	at = min(at, int64(len(r.Whole)))
	from := max(0, at-quoteMax)
	for from < at && !utf8.RuneStart(r.Whole[from]) {
		from++
	}
	return fmt.Sprintf(", behind %q", r.Whole[from:at])
}

// reportFault is the first fault in the words for reports.
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

// required names all fields that are missing at once.
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

// filled is a text that is there and is no placeholder.
func (r *jsonReader) filled(f file.Placed) string {
	text := r.Text(f, "")
	switch {
	case r.Fault != nil:
	case strings.TrimSpace(text) == "":
		r.Wrong(f, "", "is empty")
	case placeholder(text):
		r.Wrong(f, "", fmt.Sprintf("is %q, which is a placeholder; write what it really is", shorten(text, quoteMax)))
	}
	return text
}

// placeholder says whether a text was left as a template had it.
func placeholder(text string) bool {
	text = strings.TrimSpace(text)
	if len(text) > 2 && text[0] == '<' && text[len(text)-1] == '>' && !strings.ContainsAny(text[1:len(text)-1], "<>") {
		return true
	}
	return slices.Contains([]string{"tbd", "...", "…", "placeholder", "<>"}, strings.ToLower(text))
}

// scalar is a text, or a number as it was written: a schema may be called 1.
func (r *jsonReader) scalar(f file.Placed) string {
	if c := f.Raw[0]; c >= '0' && c <= '9' {
		return string(f.Raw)
	}
	return r.filled(f)
}

// is reads an id that has to be a certain one.
func (r *jsonReader) is(f file.Placed, want, what string) string {
	if f.Raw[0] == '"' && plainText(f.Raw) == want {
		return want // also where a step is called tbd
	}
	got := r.filled(f)
	if r.Fault == nil && got != want {
		r.Wrong(f, "", fmt.Sprintf("is %q, and this is %s %q", shorten(got, quoteMax), what, want))
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
		r.Wrong(f, "", fmt.Sprintf("is %q; write COMPLETED or FAILED", shorten(word, quoteMax)))
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
			r.Wrong(f, "", fmt.Sprintf("names %q, its %d., which is no path", shorten(path, quoteMax), i+1))
		}
	}
	return list
}

// measures takes every value as text, as the seed keeps them.
func (r *jsonReader) measures(f file.Placed) []workflow.Metric {
	if string(f.Raw) == "null" {
		return nil
	}
	var list []workflow.Metric
	for _, one := range r.Fields(f, "") {
		value := plainText(one.Raw)
		if placeholder(value) {
			r.Wrong(one, f.Name+".", fmt.Sprintf("is %q, which is a placeholder; measure it, or leave it out", shorten(value, quoteMax)))
		}
		list = append(list, workflow.Metric{Name: one.Name, Value: value})
	}
	return list
}

// lines is a list of texts; a single text is a list of one, and what is no text is kept as JSON.
func (r *jsonReader) lines(f file.Placed) []string {
	switch {
	case string(f.Raw) == "null":
		return nil
	case f.Raw[0] == '"':
		return []string{r.Text(f, "")}
	}
	var list []string
	for _, item := range r.Items(f, "") {
		text := plainText(item)
		if placeholder(text) && strings.ContainsAny(text, " _") { // <div> may be a line, <what you did> is not
			r.Wrong(f, "", fmt.Sprintf("has %q, which is a placeholder; write what was done", shorten(text, quoteMax)))
		}
		list = append(list, text)
	}
	return list
}

// gate is true or false, or the reason in words.
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
		r.Wrong(f, "", fmt.Sprintf("is %q, which is a placeholder; write true, false or the reason", shorten(text, quoteMax)))
	}
	switch strings.ToLower(text) {
	case "true", "yes":
		return true, ""
	case "", "false", "no", "none":
		return false, ""
	}
	return true, text
}

// plainText is a JSON value as text: a text without its quotes, all else as JSON in one line.
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
