package spawn

// AlreadyStarted refuses a second start of a session. The state of the first is read when the session is adopted.
type AlreadyStarted struct{ Session string }

func (a *AlreadyStarted) Error() string { return "session " + a.Session + " was started before" }

// CannotStart means that the command could not be executed, and why. No agent ran, and none ever will in this session.
type CannotStart struct{ Why string }

func (c *CannotStart) Error() string { return c.Why }
