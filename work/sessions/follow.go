package sessions

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/work/sessionhost"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// NotResumed reports whether a session ended because its conversation could not be resumed. A
// session that began a new conversation never counts, or it would be restarted forever without
// counting a failure.
func NotResumed(s team.Session, stop *driver.Stop) bool {
	return stop != nil && !stop.OK && (stop.Reason == session.ReasonNotResumed || stop.Reason == session.ReasonProcessConflict) &&
		s.Launch != nil && s.Launch.Resume != ""
}

// NotResumedWords says that a program has lost its conversation and a new one begins.
func NotResumedWords(launch *team.LaunchRecord) string {
	id := "that it should have resumed"
	if launch != nil && launch.Resume != "" {
		id = launch.Resume
	}
	return "its program no longer knows the conversation " + id + "; Fairlead starts a new one"
}

// Joined joins the sentences that are not empty.
func Joined(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), "; ")
}

const (
	oneDenied  = "1 call was denied: "
	someDenied = " calls were denied: "
)

// DeniedOf says what a session was denied, or "".
func DeniedOf(s *team.Session) string {
	if s.Denied == 0 {
		return ""
	}
	text := oneDenied
	if s.Denied > 1 {
		text = strconv.Itoa(s.Denied) + someDenied
	}
	text += strings.Join(s.DeniedWhat, "; ")
	if more := s.Denied - len(s.DeniedWhat); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// CloseInput closes the input of a session that has no more to do. Some programs ignore the end of their
// input, so a program that stays is ended after its grace.
func (c *Controller) CloseInput(ctx context.Context, m *Slot, id string, proc sessionhost.Process) {
	c.closeInput(ctx, m, id, proc, m.Conf.Grace)
}

func (c *Controller) closeInput(ctx context.Context, m *Slot, id string, proc sessionhost.Process, patience time.Duration) {
	// Fails if the agent accepts no input or has exited: there is nothing to close.
	_ = proc.CloseInput(ctx)
	grace := time.NewTimer(patience)
	defer grace.Stop()
	select {
	case <-proc.Done():
	case <-ctx.Done():
	case <-grace.C:
		c.End(ctx, m, id, m.Conf.Grace)
	}
}
