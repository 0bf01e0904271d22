package codex

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

const (
	// versionPatience is how long codex may take to say which version it is. It is only told: without it,
	// the session goes on.
	versionPatience = 5 * time.Second

	// endPatience is how long codex may go on after it has said that an answer is over.
	endPatience = 10 * time.Second
)

// errand is what a process was started for.
type errand int

const (
	idle    errand = iota // there is none
	version               // it says which version it is
	answer                // it answers a prompt
)

// game is one session under way.
type game struct {
	stage *adapter.Stage
	child *adapter.Child
	told  adapter.Told
	*hearing

	does     errand
	listened int64        // what the last listening event said; -1: none was told since the last answer
	last     *driver.Stop // how the last answer ended
	timer    *time.Timer
}

// Play holds a session with codex: a process for its version, and one for each prompt.
func (Driver) Play(ctx context.Context, part adapter.Part, stage *adapter.Stage) driver.Stop {
	g := &game{stage: stage, hearing: newHearing(stage.Out, part), listened: -1, timer: time.NewTimer(versionPatience)}
	defer g.timer.Stop()
	if part.Resume != "" {
		g.used, g.known = usedBefore(stage.Env, part.Resume)
	}
	if err := g.start(version, adapter.Command{Argv: append(slices.Clone(part.Command), "--version")}, ""); err != nil {
		return driver.Stop{Reason: reasonFailed, Detail: err.Error()}
	}
	for {
		orders, lines := stage.Orders, (<-chan adapter.Line)(nil)
		if g.told.Full() || g.told.Closed() {
			orders = nil
		}
		if g.child != nil {
			lines = g.child.Lines()
		}
		select {
		case o, ok := <-orders:
			g.told.Take(o, ok)
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
			g.ended() // it is ended: what it was started for is done, or will not be
		case <-stage.Stop:
			return driver.Stop{Reason: reasonTerminated}
		case <-ctx.Done():
			return driver.Stop{Reason: reasonTerminated}
		}
		if stop := g.next(); stop != nil {
			return g.withDenied(*stop)
		}
	}
}

// start starts a process for an errand and gives it its whole input.
func (g *game) start(does errand, c adapter.Command, input string) error {
	child, err := g.stage.Start(c)
	if err != nil {
		return err
	}
	g.child, g.does = child, does
	if input != "" {
		_ = child.Write([]byte(strings.TrimSuffix(input, "\n") + "\n")) // that it takes none is told by its end
	}
	child.CloseInput()
	return nil
}

// cancel ends what is under way: codex knows no other way to be told than a signal.
func (g *game) cancel() driver.Stop {
	if g.child != nil {
		g.child.End()
	}
	g.out.Hush()
	return driver.Stop{Reason: reasonCancelled}
}

func (g *game) hear(l adapter.Line) {
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

// ended is when a process has ended, or has to: the judgement on its errand.
func (g *game) ended() {
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
	g.out.Hush()
	if !g.finished {
		g.unfinished(how)
	}
	g.last = &g.stop
}

// unfinished judges a process that has ended and did not say the end of its answer. What it printed as
// errors is noise for the most part, and is not searched for anything but what it says where a
// thread is not there.
func (g *game) unfinished(how adapter.Ended) {
	switch {
	case g.trouble != "":
		g.failed(g.trouble)
	case resumeWords().MatchString(how.LastWords):
		g.stop = driver.Stop{Reason: driver.ReasonNotResumed, Detail: how.String()}
	default:
		g.stop = driver.Stop{Reason: driver.ReasonDied, Detail: "it did not say the end of its answer: " + how.String()}
	}
}

// next gives the next prompt to a new process, or says that we wait for one, or that all is over.
func (g *game) next() *driver.Stop {
	if g.child != nil {
		return nil
	}
	if g.last != nil && !g.last.OK {
		return g.last
	}
	if text, ok := g.told.Next(); ok {
		g.begin()
		g.listened, g.last = -1, nil
		if err := g.start(answer, command(g.part, cmp.Or(g.named.ID, g.part.Resume)), text); err != nil {
			return &driver.Stop{Reason: reasonFailed, Detail: err.Error()}
		}
		return nil
	}
	switch {
	case g.last != nil && !g.part.Talks(), g.told.Over():
		return &driver.Stop{OK: true, Reason: reasonCompleted}
	case g.listened != g.told.Answered() && g.told.Answered() > 0: // the first order may be on its way
		g.listened = g.told.Answered()
		g.out.Tell(speech.Event{Type: driver.Listening, Input: g.listened})
	}
	return nil
}
