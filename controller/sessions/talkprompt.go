package sessions

import (
	"errors"
)

// ErrNotAsked means that the prompt that a session was opened for is no longer due.
var ErrNotAsked = errors.New("the prompt for the session is no longer due")
