package sessions

import (
	"errors"
)

// errNotAsked says that what a session was to be started with is not to be told any more.
var ErrNotAsked = errors.New("what it was to be told is over")
