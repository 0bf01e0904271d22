package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// BodyMax is the length of a JSON body in bytes: a prompt has 1 MiB at most, in base64.
const BodyMax = 8 << 20

// Code says what kind of an error a Problem is.
type Code string

const (
	AlreadyStarted Code = "already_started"
	CannotStart    Code = "cannot_start"
	Fenced         Code = "fenced"
	OtherProtocol  Code = "other_protocol" // the session goes on beside a shim that this version does not adopt
	NoInput        Code = "no_input"
	NotHere        Code = "not_here"    // the session, the tree or the file
	BadRequest     Code = "bad_request" // a fault of the other side's program
	Refused        Code = "refused"     // by the team, for good
	Busy           Code = "busy"        // a limit is reached; the same request may succeed later
	Failed         Code = "failed"
)

// Problem is an error in an answer.
type Problem struct {
	Code Code   `json:"code"`
	Why  string `json:"why"`
}

func (p *Problem) Error() string { return p.Why }

// Is makes a Problem the error of other packages that it was made of.
func (p *Problem) Is(err error) bool {
	return p.Code == NoInput && err == driver.ErrNoInput || p.Code == NotHere && err == fs.ErrNotExist
}

// Unconfirmed is the answer of a leader that another one may have replaced.
func Unconfirmed() *Problem {
	return &Problem{Busy, "most of the engine hosts do not answer this leader now, so another one may lead"}
}

var status = map[Code]int{
	AlreadyStarted: http.StatusConflict, CannotStart: http.StatusUnprocessableEntity, Fenced: http.StatusForbidden,
	OtherProtocol: http.StatusConflict, NoInput: http.StatusGone,
	NotHere: http.StatusNotFound, Refused: http.StatusForbidden, BadRequest: http.StatusBadRequest, Busy: http.StatusTooManyRequests,
	Failed: http.StatusInternalServerError,
}

// problemOf finds the code of an error.
func problemOf(err error) *Problem {
	var is *Problem
	var started *spawn.AlreadyStarted
	var cannot *spawn.CannotStart
	var fenced *sessionhost.Fenced
	var other *sessionhost.NotAdopted
	switch {
	case errors.As(err, &is):
		return is
	case errors.As(err, &started):
		return &Problem{AlreadyStarted, started.Session}
	case errors.As(err, &cannot):
		return &Problem{CannotStart, cannot.Why}
	case errors.As(err, &fenced):
		return &Problem{Fenced, fenced.Why}
	case errors.As(err, &other):
		return &Problem{OtherProtocol, other.Why}
	case errors.Is(err, driver.ErrNoInput):
		return &Problem{NoInput, err.Error()}
	}
	return &Problem{Failed, err.Error()}
}

// failure is the error from which a Problem was made.
func (p *Problem) failure() error {
	switch p.Code {
	case AlreadyStarted:
		return &spawn.AlreadyStarted{Session: p.Why}
	case CannotStart:
		return &spawn.CannotStart{Why: p.Why}
	case Fenced:
		return &sessionhost.Fenced{Why: p.Why}
	}
	return p
}

// Fail answers a request with an error.
func Fail(w http.ResponseWriter, err error) {
	p := problemOf(err)
	code, known := status[p.Code]
	if !known {
		code = http.StatusInternalServerError
	}
	text, _ := json.Marshal(p) // two strings
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

// Answer answers a request with a value.
func Answer(w http.ResponseWriter, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		Fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// ReadRequest decodes the body of a request.
func ReadRequest(r *http.Request, into any) error {
	return Read(r.Body, into)
}

// ReadAnswer decodes the body of an answer.
func ReadAnswer(answer *http.Response, into any) error {
	return Read(answer.Body, into)
}

// Read decodes one JSON value, without unknown fields and without anything behind it.
func Read(body io.Reader, into any) error {
	text, err := io.ReadAll(io.LimitReader(body, BodyMax+1))
	if err != nil {
		return err
	}
	if len(text) > BodyMax {
		return &Problem{BadRequest, fmt.Sprintf("the body is longer than %d bytes", BodyMax)}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &Problem{BadRequest, "the body cannot be read: " + err.Error()}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &Problem{BadRequest, "the body has more than one JSON value"}
	}
	return nil
}

// Check returns the error that an answer says; nil: it has none. It closes the body of an answer with an error. If the
// connection broke before the error was read, the result is that of the connection.
func Check(answer *http.Response) error {
	if answer.StatusCode/100 == 2 {
		return nil
	}
	defer answer.Body.Close()
	var p Problem
	err := Read(answer.Body, &p)
	if _, answered := errors.AsType[*Problem](err); err != nil && !answered {
		return err
	}
	if err != nil || p.Code == "" {
		return &Problem{Failed, "the other host answered " + answer.Status}
	}
	return p.failure()
}
