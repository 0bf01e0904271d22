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

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/runfile"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/team"
)

// Problem is an answer that is not what was asked for (RFC 9457).
type Problem struct {
	Title   string   `json:"title" doc:"What kind of problem it is"`
	Status  int      `json:"status" doc:"The HTTP status"`
	Detail  string   `json:"detail" doc:"What happened, and what to do"`
	Refusal *Refusal `json:"refusal,omitempty" doc:"With status 409: what the state does not allow, and what it would"`
	Known   []string `json:"known,omitempty" doc:"With status 404: the names that there are"`
	Errors  []Fault  `json:"errors,omitempty" doc:"Every fault of a request that cannot be understood"`
}

// Fault is one thing that is wrong with a request.
type Fault struct {
	Message  string `json:"message"`
	Location string `json:"location,omitempty" example:"query.after" doc:"path, query, header or body, and where in it"`
	Value    any    `json:"value,omitempty" doc:"What stood there, shortened"`
}

func (p *Problem) Error() string { return p.Detail }

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders says when asking again makes sense.
func (p *Problem) GetHeaders() http.Header {
	if p.Status != http.StatusServiceUnavailable && p.Status != http.StatusTooManyRequests {
		return nil
	}
	return http.Header{"Retry-After": {retrySeconds}}
}

// ContentType is that of RFC 9457.
func (p *Problem) ContentType(string) string { return problemType }

const (
	problemType   = "application/problem+json"
	fileFaultsMax = 1000 // of one file; somebody mends them all at once
	faultsMax     = 32   // of one request; more of them teach nobody more
	faultChars    = 120  // of a value that is shown back; it comes from whoever asks
	retrySeconds  = "1"  // after which asking again makes sense
)

func problem(status int, format string, args ...any) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// problemOf tells an answer from a failure.
func problemOf(err error) *Problem {
	var (
		known   *Problem
		refusal *machine.Refusal
		unknown *team.Unknown
		faults  *runfile.FileFaults
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refusal):
		p := problem(http.StatusConflict, "%s", refusal)
		p.Title, p.Refusal = "Refused", refusalOf(refusal)
		return p
	case errors.As(err, &unknown):
		p := problem(http.StatusNotFound, "%s", unknown)
		p.Known = unknown.Known
		return p
	case errors.As(err, &faults):
		return faulty(faults.List)
	case errors.Is(err, loop.ErrClosed):
		return problem(http.StatusServiceUnavailable, "%s", err)
	case errors.Is(err, context.DeadlineExceeded):
		return problem(http.StatusGatewayTimeout, "fairlead did not answer within %s; look at `fairlead ps`, it may still do what was asked", answerMax)
	case errors.Is(err, context.Canceled):
		return problem(http.StatusServiceUnavailable, "the request was given up before it was answered")
	default:
		return problem(http.StatusInternalServerError, "%s", err)
	}
}

// faulty is a file that cannot be worked with: every fault, at its place.
func faulty(list []runfile.FileFault) *Problem {
	p := problem(http.StatusUnprocessableEntity, "the file cannot be worked with")
	for i, f := range list {
		if i == fileFaultsMax {
			p.Errors = append(p.Errors, Fault{Message: fmt.Sprintf("and %d more", len(list)-i)})
			break
		}
		at, words := shorten(f.File), f.Text
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

// write sends the problem, from a handler that has sent nothing yet.
func (p *Problem) write(w http.ResponseWriter) {
	body := encode(p)
	h := w.Header()
	h.Set("Content-Type", problemType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	maps.Copy(h, p.GetHeaders())
	w.WriteHeader(p.Status)
	w.Write(body)
}

// inOurWords makes a Problem of what huma found wrong with a request, and shortens what it
// shows back. It is a huma.Transformer.
func inOurWords(_ huma.Context, _ string, v any) (any, error) {
	found, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := &Problem{Title: found.Title, Status: found.Status, Detail: found.Detail}
	for i, e := range found.Errors {
		if i == faultsMax {
			p.Errors = append(p.Errors, Fault{Message: fmt.Sprintf("and %d more", len(found.Errors)-i)})
			break
		}
		p.Errors = append(p.Errors, Fault{Message: shorten(e.Message), Location: shorten(e.Location), Value: shown(e.Value)})
	}
	if len(p.Errors) > 0 {
		p.Detail = fmt.Sprintf("%s: %s", p.Detail, p.Errors[0].Message)
		if at := p.Errors[0].Location; at != "" {
			p.Detail += " (" + at + ")"
		}
		if more := len(found.Errors) - 1; more > 0 {
			p.Detail += fmt.Sprintf(", and %d more", more)
		}
	}
	return p, nil
}

// shown is a value that is small enough to be shown back.
func shown(v any) any {
	switch v := v.(type) {
	case nil, bool, float64, int64, uint64:
		return v
	case string:
		return shorten(v)
	default:
		return shorten(fmt.Sprint(v))
	}
}

// shorten keeps what whoever asks has written small, and harmless wherever it is shown.
func shorten(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
	n := 0
	for i := range s {
		if n == faultChars {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
