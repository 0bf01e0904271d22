package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// Part describes the agent and the session that is played.
type Part struct {
	Name    string // of the agent
	Session string // coder-17; the number at its end selects the script's session
	Kind    driver.Kind
	Attempt int // number of the attempt at the same work, from 1
	Prompt  string

	taken int64 // bytes of input up to the prompt
}

// Stage is the environment of a play: where events go, where orders come from, and where commands run.
type Stage struct {
	Out    io.Writer           // one Write per event
	Orders <-chan speech.Order // nil: there are no orders; closed: no more will come; not read after Play has returned
	Stop   <-chan struct{}     // closed: finish the current step quickly and stop; nil: never
	Dir    string              // folder of the commands; empty: the current one
}

// End describes how a play ended, like the end of a process.
type End struct {
	Stop   *driver.Stop // as reported; nil after a crash, or if ctx was done
	Code   int          // exit code; -1 if Signal ended it
	Signal string
}

// The exit codes of a play that did not complete.
const (
	CodeFailed     = 1   // a step failed; `fail` may set another code
	CodeFaulty     = 2   // faulty script or command line
	CodeCancelled  = 130 // by an order
	CodeTerminated = 143 // by SIGTERM
)

const (
	stopGrace   = 5 * time.Second // for a running command when the play is asked to stop
	promptsMax  = 1000            // unread prompts; further ones are refused with a fault
	cleanupIdle = "nothing to tidy"
)

// Play plays one session of a script. It returns when the session has ended, when an order or Stop
// ended it, or when ctx is done. The last case is like SIGKILL: there is no terminal event. All its
// goroutines end before it returns.
func Play(ctx context.Context, program *Program, part Part, stage Stage) End {
	n := number(part.Session)
	p := &player{
		ctx: ctx, stage: stage, part: part, program: program, n: n,
		out:     speech.NewWriter(stage.Out),
		answers: make(map[string]string), taken: part.taken, prompt: part.Prompt,
	}
	if part.Prompt != "" {
		p.prompts = append(p.prompts, prompt{text: part.Prompt})
	}
	return p.end(p.steps(p.choose()))
}

// player is the state of a play. One goroutine owns it.
type player struct {
	ctx     context.Context
	stage   Stage
	part    Part
	program *Program
	out     *speech.Writer
	n       int // the session's number

	prompt string // the last one read; untrusted
	answer string // to the last question; untrusted

	prompts       []prompt          // not read yet
	taken         int64             // bytes of input that were read
	answers       map[string]string // by question
	asked         int
	noMorePrompts bool // the orders were closed
}

// prompt is a prompt that a step can read. steer is the ID of its text_read event, if it needs one.
type prompt struct{ text, steer string }

// What ends a play before its last step. They come up through every step.
var (
	errGone          = errors.New("killed")
	errCancelled     = errors.New("cancelled")
	errTerminated    = errors.New("asked to stop")
	errNoMorePrompts = errors.New("no more prompts will come") // it waits for a prompt that will not come: it has done everything asked
)

// failed is the error of the step fail.
type failed struct {
	text string
	code int
}

func (f failed) Error() string { return f.text }

// number returns the number at the end of a session's ID, or 1.
func number(session string) int {
	digits := session[strings.LastIndexByte(session, '-')+1:]
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 {
		return 1
	}
	return n
}

func (p *player) choose() []Step {
	switch {
	case p.part.Kind == driver.Cleanup && len(p.program.Cleanup) == 0:
		return []Step{{Verb: "say", Text: cleanupIdle}}
	case p.part.Kind == driver.Cleanup:
		return p.program.Cleanup
	}
	if steps := p.program.prompted(p.part.Kind); len(steps) > 0 {
		return steps
	}
	return p.program.Sessions[(p.n-1)%len(p.program.Sessions)].Steps
}

// end reports the terminal event for the way in which the steps ended.
func (p *player) end(err error) End {
	var f failed
	stop, code := driver.Stop{}, 0
	switch {
	case errors.Is(err, errGone):
		return End{Code: -1, Signal: "SIGKILL"}
	case errors.Is(err, errNoMorePrompts):
		stop = driver.Stop{OK: true, Reason: "completed", Detail: "no more prompts"}
	case err == nil:
		stop = driver.Stop{OK: true, Reason: "completed"}
		if len(p.prompts) > 0 && p.hasUnreadPrompt() {
			stop.Detail = fmt.Sprintf("%d prompts were not read; the script has no expect_prompt for them", len(p.prompts))
		}
	case errors.Is(err, errCancelled):
		stop, code = driver.Stop{Reason: "cancelled", Detail: "cancelled by an order"}, CodeCancelled
	case errors.Is(err, errTerminated):
		stop, code = driver.Stop{Reason: "terminated", Detail: "asked to stop by a signal"}, CodeTerminated
	case errors.As(err, &f):
		stop, code = driver.Stop{Reason: "failed", Detail: f.text}, f.code
	default:
		stop, code = driver.Stop{Reason: "failed", Detail: err.Error()}, CodeFailed
	}
	p.out.Tell(speech.Ended(stop))
	if p.out.Broken() != nil {
		return End{Code: CodeFailed}
	}
	return End{Stop: &stop, Code: code}
}

// hasUnreadPrompt reports whether an unread prompt came after the first one, which is in {prompt} anyway.
func (p *player) hasUnreadPrompt() bool {
	if p.prompts[0].text == p.part.Prompt {
		p.prompts = p.prompts[1:]
	}
	return len(p.prompts) > 0
}

// steps plays a list of steps, and reads pending orders after each.
func (p *player) steps(list []Step) error {
	for i := 0; i < len(list); i++ {
		s := &list[i]
		if s.Verb == "again" {
			i = lastWait(list[:i]) - 1
		} else if err := p.step(s); err != nil {
			return p.placed(s, err)
		}
		if err := p.lookUp(); err != nil {
			return err
		}
	}
	return nil
}

// lastWait is the index of the last step that reads a prompt; -1: no step does.
func lastWait(list []Step) int {
	for i, s := range slices.Backward(list) {
		if s.Verb == "expect_prompt" {
			return i
		}
	}
	return -1
}

// placed adds the position in the script to an error. Errors that mark the end of a play are not
// changed.
func (p *player) placed(s *Step, err error) error {
	switch {
	case errors.Is(err, errGone), errors.Is(err, errCancelled), errors.Is(err, errTerminated),
		errors.Is(err, errNoMorePrompts), errors.As(err, new(failed)):
		return err
	}
	return fmt.Errorf("%s:%d:%d: %s: %w", p.program.File, s.Line, s.Column, s.Verb, err)
}

// lookUp handles the pending orders without blocking.
func (p *player) lookUp() error {
	if err := p.out.Broken(); err != nil {
		return errGone
	}
	for {
		select {
		case <-p.ctx.Done():
			return errGone
		case o, ok := <-p.stage.Orders:
			if err := p.take(o, ok); err != nil {
				return err
			}
		case <-p.stage.Stop:
			return errTerminated
		default:
			return nil
		}
	}
}

// rest waits for a duration. An order or Stop may end the wait.
func (p *player) rest(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	return p.await(nil, nil, d)
}

// await waits until an order makes ready true or done is closed, which may be nil, at most for a limit; 0: without one.
// Stop and cancel end it with their error.
func (p *player) await(ready func() bool, done <-chan struct{}, limit time.Duration) error {
	var timer <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		timer = t.C
	}
	for {
		if ready != nil && ready() {
			return nil
		}
		select {
		case <-p.ctx.Done():
			return errGone
		case <-done:
			return nil
		case <-timer:
			return nil
		case o, ok := <-p.stage.Orders:
			if err := p.take(o, ok); err != nil {
				return err
			}
		case <-p.stage.Stop:
			return errTerminated
		}
	}
}

// take handles one order.
func (p *player) take(o speech.Order, ok bool) error {
	if !ok {
		p.stage.Orders, p.noMorePrompts = nil, true // no more orders: a step that waits for an answer now waits for Stop
		return nil
	}
	p.taken = max(p.taken, o.End)
	switch o.Type {
	case speech.OrderCancel:
		return errCancelled
	case speech.OrderAnswer:
		p.answers[o.ID] = o.Option
	case speech.OrderStart, speech.OrderPrompt, speech.OrderSteer:
		if len(p.prompts) >= promptsMax {
			p.out.Tell(driver.Fact{
				Kind: driver.Faulted,
				Text: fmt.Sprintf("a prompt was dropped: %d are not read yet", promptsMax),
			})
			return nil
		}
		next := prompt{text: o.Text}
		if o.Type == speech.OrderSteer {
			next.steer = o.ID
		}
		p.prompts = append(p.prompts, next)
	}
	return nil
}

// text replaces the names in a text of the script.
func (p *player) text(s string) string {
	return strings.NewReplacer(
		"{name}", p.part.Name, "{session}", p.part.Session, "{n}", strconv.Itoa(p.n), "{kind}", string(p.part.Kind),
		"{attempt}", strconv.Itoa(p.part.Attempt), "{prompt}", p.prompt, "{answer}", p.answer,
	).Replace(s)
}

// env is the environment of the script's commands: untrusted text reaches them only here and on their input.
func (p *player) env() []string {
	return append(os.Environ(),
		"NAME="+p.part.Name, "SESSION="+p.part.Session, "N="+strconv.Itoa(p.n), "KIND="+string(p.part.Kind),
		"ATTEMPT="+strconv.Itoa(p.part.Attempt), "PROMPT="+envText(p.prompt), "ANSWER="+envText(p.answer),
	)
}

// envText limits the size of one variable: Linux allows 128 KiB each.
func envText(s string) string {
	return strings.ReplaceAll(speech.CutText(s), "\x00", "")
}
