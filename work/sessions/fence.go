package sessions

import (
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// Fenced reports whether err says that another daemon has taken over the sessions. It stops the
// loop in that case.
func (c *Controller) Fenced(err error) bool {
	if !errors.As(err, new(*sessionhost.Fenced)) {
		return false
	}
	c.loop.Fail(TakenOver(err))
	return true
}

// TakenOver is why this daemon stops: a shim obeys another one.
func TakenOver(err error) error {
	return fmt.Errorf("another fairlead daemon has taken over the agents: %w; this daemon stops and no longer controls them", err)
}

// SetSilent records why the shim of a session does not answer, or is not adopted. A nil err removes the record.
func (c *Controller) SetSilent(session string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.silent, session)
		return
	}
	c.silent[session] = err
}

// Silence is why a session's shim does not answer, or is not adopted (*sessionhost.NotAdopted). It is nil for another one.
func (c *Controller) Silence(session string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent[session]
}
