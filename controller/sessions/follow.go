package sessions

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/controller/seam"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/team"
)

// notResumed says whether a session came to nothing since its conversation could not be gone on with. One
// that began anew cannot have: it would be started again for ever, and no failure be counted.
func NotResumed(s team.Session, stop *driver.Stop) bool {
	return stop != nil && !stop.OK && (stop.Reason == driver.ReasonNotResumed || stop.Reason == driver.ReasonHeldElsewhere) && s.Launch != nil && s.Launch.Resume != ""
}

func NotResumedWords(launch *team.LaunchRecord) string {
	id := "that it was to go on with"
	if launch != nil && launch.Resume != "" {
		id = launch.Resume
	}
	return "its program does not know the conversation " + id + " any more; a new one is begun"
}

// joined puts sentences beside each other that are there.
func Joined(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), "; ")
}

const (
	OneDenied  = "1 call was denied: "
	SomeDenied = " calls were denied: "
)

func DeniedOf(s *team.Session) string {
	if s.Denied == 0 {
		return ""
	}
	text := OneDenied
	if s.Denied > 1 {
		text = strconv.Itoa(s.Denied) + SomeDenied
	}
	text += strings.Join(s.DeniedWhat, "; ")
	if more := s.Denied - len(s.DeniedWhat); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// letGo closes a conversation that has said its last word. A program that stays all the
// same is ended after its grace: some ignore the end of their input.
func (e *Controller) LetGo(ctx context.Context, m *Slot, id string, proc seam.Process) {
	e.closeInput(ctx, m, id, proc, m.Conf.Grace)
}

func (e *Controller) closeInput(ctx context.Context, m *Slot, id string, proc seam.Process, patience time.Duration) {
	// An agent that takes no input, or is gone, has nothing to close.
	_ = proc.CloseInput(ctx)
	grace := time.NewTimer(patience)
	defer grace.Stop()
	select {
	case <-proc.Done():
	case <-ctx.Done():
	case <-grace.C:
		e.End(ctx, m, id, m.Conf.Grace)
	}
}
