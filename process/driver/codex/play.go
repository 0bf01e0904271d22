package codex

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

const (
	// versionPatience is the time limit for codex to print its version. The version is only shown:
	// without it, the session continues.
	versionPatience = 5 * time.Second

	// endPatience is how long codex may keep running after it has reported the end of an answer.
	endPatience = 10 * time.Second
)

// purpose says what a process was started for.
type purpose int

const (
	idle    purpose = iota // no process
	version                // prints the version
	answer                 // answers a prompt
)

// runningSession is a running session.
type runningSession struct {
	stage *adapter.Stage
	child *adapter.Child
	queue adapter.PromptQueue
	*translator

	does     purpose
	listened int64        // value of the last listening event; -1: none since the last answer
	last     *driver.Stop // end of the last answer
	timer    *time.Timer
}

// Play runs a session with codex: one process for its version, and one for each prompt.
func (Driver) Play(ctx context.Context, part adapter.Part, stage *adapter.Stage) driver.Stop {
	g := &runningSession{stage: stage, translator: newHearing(stage.Out, part), listened: -1, timer: time.NewTimer(versionPatience)}
	defer g.timer.Stop()
	g.model = func(thread string) string { return modelOf(stage.Env, thread) }
	if part.Resume != "" {
		g.used, g.known = usedBefore(stage.Env, part.Resume)
	}
	if err := g.start(version, adapter.Command{Argv: append(slices.Clone(part.Command), "--version")}, ""); err != nil {
		return driver.Stop{Reason: adapter.ReasonFailed, Detail: err.Error()}
	}
	for {
		orders, lines := stage.Orders, (<-chan adapter.Line)(nil)
		if g.queue.Full() || g.queue.Closed() {
			orders = nil
		}
		if g.child != nil {
			lines = g.child.Lines()
		}
		select {
		case o, ok := <-orders:
			g.queue.Take(o, ok)
			if ok && o.Type == speech.OrderCancel {
				return g.cancel()
			}
		case l, ok := <-lines:
			if ok {
				g.hear(l)
			} else {
				g.ended()
			}
		case <-g.timer.C:
			g.ended() // end the process: its purpose is achieved or cannot be
		case <-stage.Stop:
			return driver.Stop{Reason: adapter.ReasonTerminated}
		case <-ctx.Done():
			return driver.Stop{Reason: adapter.ReasonTerminated}
		}
		if stop := g.next(); stop != nil {
			stop.Detail = adapter.WithDenied(stop.Detail, g.denied)
			return *stop
		}
	}
}

// start starts a process and writes its whole input.
func (g *runningSession) start(does purpose, c adapter.Command, input string) error {
	child, err := g.stage.Start(c)
	if err != nil {
		return err
	}
	g.child, g.does = child, does
	if input != "" {
		_ = child.Write([]byte(strings.TrimSuffix(input, "\n") + "\n")) // a write error shows in how the process ends
	}
	child.CloseInput()
	return nil
}

// cancel ends the current answer. codex can only be stopped by a signal.
func (g *runningSession) cancel() driver.Stop {
	if g.child != nil {
		g.child.End()
	}
	g.Out.EndMessage()
	return driver.Stop{Reason: adapter.ReasonCancelled}
}

func (g *runningSession) hear(l adapter.Line) {
	switch g.does {
	case version:
		if number := adapter.VersionIn(string(l.Bytes)); number != "" && g.named.Program == "" {
			g.name(driver.Conversed{Program: "codex " + number})
		}
	case answer:
		raw := g.child.Heard(l)
		if raw == nil {
			return
		}
		if g.line(raw); g.finished {
			g.timer.Reset(endPatience)
		}
	}
}

// ended handles the end of a process, or ends it, and evaluates its result.
func (g *runningSession) ended() {
	if g.child == nil {
		return
	}
	how := g.child.End()
	does := g.does
	g.child, g.does = nil, idle
	g.timer.Stop()
	if does != answer {
		return
	}
	g.Out.EndMessage()
	if !g.finished {
		g.unfinished(how)
	}
	g.last = &g.stop
}

// unfinished handles a process that ended without reporting the end of its answer. Its error output
// is mostly noise; only the message for an unknown thread is looked for.
func (g *runningSession) unfinished(how adapter.Ended) {
	switch {
	case g.lastError != "":
		g.failed(g.lastError)
	case resumeWords.MatchString(how.LastWords):
		g.stop = driver.Stop{Reason: session.ReasonNotResumed, Detail: how.String()}
	default:
		g.stop = driver.Stop{Reason: session.ReasonDied, Detail: "it did not report the end of its answer: " + how.String()}
	}
}

// next starts a process for the next prompt, or reports that the session waits for one, or ends the
// session.
func (g *runningSession) next() *driver.Stop {
	if g.child != nil {
		return nil
	}
	if g.last != nil && !g.last.OK {
		return g.last
	}
	if text, ok := g.queue.Next(); ok {
		g.begin()
		g.listened, g.last = -1, nil
		if err := g.start(answer, command(g.part, cmp.Or(g.named.ID, g.part.Resume), g.queue.Images()), text); err != nil {
			return &driver.Stop{Reason: adapter.ReasonFailed, Detail: err.Error()}
		}
		return nil
	}
	switch {
	case g.last != nil && !g.part.TakesPrompts(), g.queue.Over():
		return &driver.Stop{OK: true, Reason: adapter.ReasonCompleted, Alone: g.heard.Alone()}
	case g.listened != g.queue.Answered() && g.queue.Answered() > 0: // the first order may still be on its way
		g.listened = g.queue.Answered()
		g.Out.Tell(driver.Fact{Kind: driver.Listening, Input: g.listened})
	}
	return nil
}
