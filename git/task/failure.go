package task

import (
	"errors"

	state "github.com/fairlead-dev/fairlead/core/task"
)

// Failure says why a task did not land.
type Failure = state.Failure

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
		return Failure{Kind: state.FailedConflict, Files: conflict.Files, Lines: conflict.Lines}
	}
	if failed, is := errors.AsType[*CheckFailed](err); is {
		return Failure{Kind: state.FailedChecks, Check: failed.Command}
	}
	if errors.As(err, new(*Again)) {
		return Failure{Kind: state.FailedMoved}
	}
	return Failure{}
}

// AsksAgain is why a person is asked again after an error of Land; empty: the error is for a person to end first.
func AsksAgain(err error, base string) string {
	if again, is := errors.AsType[*Again](err); is {
		return again.Why
	}
	if errors.As(err, new(*Conflict)) || errors.As(err, new(*CheckFailed)) {
		return FailureOf(err).Sentence(base)
	}
	return ""
}
