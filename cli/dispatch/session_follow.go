package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// sessionLook is how often a command that waits for an answer checks the session's folder. The
// folder has the complete state, with a daemon and without.
const sessionLook = 30 * time.Millisecond

// sessionWait shows what happens to an input until it is answered. from is the position in the
// history at which it begins.
func sessionWait(ctx context.Context, a *cli.App, found dispatchfolder.Found, from int64, done moved) error {
	n := done.After.Made
	shown, failed := 0, false
	for {
		lines, next, err := found.Folder.Lines(from)
		if err != nil {
			return err
		}
		for _, l := range lines {
			ch := l.Change
			if ch.Event == dispatch.EndAsked {
				return &cli.Coded{Code: cli.ExitFailed, Err: fmt.Errorf("the session was ended before %s was answered", dispatch.ConversationID(n))}
			}
			if ch.Body.Conversation != n {
				continue
			}
			if arrow := arrowOf(ch); arrow != "" && shown > 0 {
				done.Transitions = append(done.Transitions, arrow)
			}
			failed = ch.Trigger == "task failed" || failed && ch.Event != dispatch.RoundOver
			if over := ch.Body.Summary; over != nil {
				return answered(a, found, done, ch, failed)
			}
			if !a.JSON {
				PrintMove(a, ch)
			}
			shown++
		}
		from = next
		if err := cli.Pause(ctx, sessionLook); err != nil {
			return err
		}
	}
}

// answered shows how a conversation ended.
func answered(a *cli.App, found dispatchfolder.Found, done moved, ch dispatch.Change, failed bool) error {
	is, err := found.Folder.Session()
	if err != nil {
		return err
	}
	done.State, done.Waiting, done.Summary, done.Files = is.State(), len(is.Waiting), ch.Body.Summary.Text, ch.Body.Summary.Files
	if done.Answer, err = found.Folder.Answer(ch.Body.Conversation); err != nil {
		return err
	}
	if a.JSON {
		if err := a.PrintJSON(done); err != nil {
			return err
		}
	} else if ch.Event != dispatch.Interrupted {
		fmt.Fprintf(a.Out, "[State: %s] [Conv: %03d] %s\n", dispatch.Display(ch.To), ch.Body.Conversation, cli.Plain(done.Answer))
	}
	switch {
	case ch.Event == dispatch.Interrupted:
		return fmt.Errorf("%s has no answer: %s", done.Conversation, cli.Line(ch.Body.Summary.Text, cli.ErrorWidth))
	case failed && is.Lead == "":
		return fmt.Errorf("the task of %s failed; what its agent said is above", done.Conversation)
	}
	return nil
}
