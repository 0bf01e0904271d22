package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/clip"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/runstate"
)

// Problem is an error answer (RFC 9457).
type Problem struct {
	Title   string   `json:"title" doc:"The kind of problem"`
	Status  int      `json:"status" doc:"The HTTP status"`
	Detail  string   `json:"detail" doc:"What happened, and what to do"`
	Refusal *Refusal `json:"refusal,omitempty" doc:"With status 409: what the state does not allow, and what it allows"`
	Known   []string `json:"known,omitempty" doc:"With status 404: the known names"`
	Errors  []Fault  `json:"errors,omitempty" doc:"Every fault of an invalid request"`
}

// Fault is one fault of a request.
type Fault struct {
	Message  string `json:"message"`
	Location string `json:"location,omitempty" example:"query.after" doc:"path, query, header or body, and the position in it"`
	Value    any    `json:"value,omitempty" doc:"The value, shortened"`
}

func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns Retry-After if a retry makes sense.
func (p *Problem) GetHeaders() http.Header {
	if p.Status != http.StatusServiceUnavailable && p.Status != http.StatusTooManyRequests {
		return nil
	}
	return http.Header{"Retry-After": {RetrySeconds}}
}

// ContentType is that of RFC 9457.
func (p *Problem) ContentType(string) string { return ProblemType }

const (
	ProblemType   = "application/problem+json"
	fileFaultsMax = 1000 // of one file; a person fixes them together
	ValueCharsMax = 120  // of a value from the request that an answer repeats
	RetrySeconds  = "1"  // for the Retry-After header
)

// NewProblem makes a problem (RFC 9457) with a formatted detail.
func NewProblem(status int, format string, args ...any) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// ProblemOf turns an error into a problem: a refusal, or a failure.
func ProblemOf(err error) *Problem {
	var (
		known   *Problem
		refusal *table.Refusal
		unknown *team.Unknown
		faults  *runstate.FileFaults
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refusal):
		p := NewProblem(http.StatusConflict, "%s", refusal)
		p.Title, p.Refusal = "Refused", refusalOf(refusal)
		return p
	case errors.As(err, &unknown):
		p := NewProblem(http.StatusNotFound, "%s", unknown)
		p.Known = unknown.Known
		return p
	case errors.As(err, &faults):
		return faulty(faults.List)
	case errors.Is(err, loop.ErrClosed):
		return NewProblem(http.StatusServiceUnavailable, "%s", err)
	case errors.Is(err, context.DeadlineExceeded):
		return NewProblem(http.StatusGatewayTimeout,
			"fairlead did not answer within %s; it may still carry out the request: check with `fairlead ps`", AnswerMax)
	case errors.Is(err, context.Canceled):
		return NewProblem(http.StatusServiceUnavailable, "the request was cancelled before it was answered")
	default:
		return NewProblem(http.StatusInternalServerError, "%s", err)
	}
}

// faulty is the problem for an invalid file: it lists every fault with its position.
func faulty(list []runstate.FileFault) *Problem {
	p := NewProblem(http.StatusUnprocessableEntity, "the file is invalid")
	for i, f := range list {
		if i == fileFaultsMax {
			p.Errors = append(p.Errors, Fault{Message: fmt.Sprintf("and %d more", len(list)-i)})
			break
		}
		at, words := Shorten(f.File), f.Text
		if f.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d", at, f.Line, f.Column)
		}
		if f.Path != "" {
			words = f.Path + ": " + words
		}
		p.Errors = append(p.Errors, Fault{Message: words, Location: at})
	}
	if len(p.Errors) > 0 {
		p.Detail = p.Errors[0].Location + ": " + p.Errors[0].Message
		if more := len(list) - 1; more > 0 {
			p.Detail += fmt.Sprintf(", and %d more", more)
		}
	}
	return p
}

// Write sends the problem, from a handler that has sent nothing yet.
func (p *Problem) Write(w http.ResponseWriter) {
	body := Encode(p)
	h := w.Header()
	h.Set("Content-Type", ProblemType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	maps.Copy(h, p.GetHeaders())
	w.WriteHeader(p.Status)
	w.Write(body)
}

// Shorten shortens text from a request, and replaces characters that could be harmful where it is
// shown.
func Shorten(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
	return clip.Runes(s, ValueCharsMax)
}
