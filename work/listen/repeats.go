package listen

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// aloneSum is the hash of a session's text in which nothing else shows that a model has answered. A text
// with a marker, such as a pass, is an answer; its hash is empty.
func aloneSum(text string) string {
	var scan marker.Scanner
	for _, piece := range append(scan.Write([]byte(text+"\n")), scan.Flush()...) {
		if piece.Marker != nil {
			return ""
		}
	}
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// repeats reports whether a session that has ended repeats the agent's sessions before it.
func (e *Listener) repeats(ctx context.Context, m *sessions.Slot, id string) (again bool, err error) {
	now := e.loop.Now()
	err = e.loop.View(ctx, func(t *team.Team) {
		a := t.Agents[m.Conf.Name]
		if a == nil || m.Run != "" {
			return
		}
		if s := a.Open(id); s != nil && s.Stop != nil && s.Stop.OK {
			again = a.RepeatsAnswer(s.Stop.Alone, now)
		}
	})
	return again, err
}

// judgeAgain makes a failure of a session that repeats those before.
func (e *Listener) judgeAgain(ctx context.Context, hearing *SessionListener, what *team.SessionEnded) error {
	again, err := e.repeats(ctx, hearing.m, hearing.s.ID)
	if err != nil || !again || what.Outcome != control.OK {
		return err
	}
	what.Outcome, what.Reason = control.Failed, session.ReasonSameAnswer
	what.Why = "several sessions gave the same text within seconds, without a tool call or usage; start the program once by hand to see what its provider says"
	if hearing.stop != nil && hearing.stop.Alone != "" {
		what.Why += "; the text: " + clip.Text(loop.FirstLine(hearing.stop.Alone), QuoteBytesMax)
	}
	return nil
}
