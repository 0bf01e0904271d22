package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

// Part is who plays, and what for.
type Part struct {
	Name    string // of the agent
	Session string // coder-17; the number at its end says which session of the script it is
	Kind    driver.Kind
	Attempt int // which try of the same work this is, from 1
	Prompt  string

	taken int64 // bytes of input that brought the prompt
}

// Stage is what surrounds a play: who listens, who gives orders, and the world in
// which the steps have their effects.
type Stage struct {
	Out    io.Writer       // one Write an event
	Orders <-chan Order    // nil: nobody gives any; closed: nobody will any more; not read once Play has returned
	Stop   <-chan struct{} // closed: finish the step that is under way, quickly, and stop; nil: never
	World  World

	Outputs World  // where files go whose names begin with {outputs}/; nil: there is no such folder
	Folder  string // its path, as it is shown
}

// End is how a play ended, as a process would have ended.
type End struct {
	Stop   *driver.Stop // as it was told; nil where none was: a crash, or ctx was done
	Code   int          // exit code; -1 where Signal ended it
	Signal string
}

// The exit codes of a play that did not come to its end.
const (
	CodeFailed     = 1   // a step failed; `fail` may give its own
	CodeFaulty     = 2   // the script or the command line has faults
	CodeCancelled  = 130 // by an order
	CodeTerminated = 143 // by SIGTERM
)

const (
	stopGrace   = 5 * time.Second // for a command that runs when the play is asked to stop
	promptsMax  = 1000            // that wait to be read; more are refused, aloud
	cleanupIdle = "nothing to tidy"
)

// Play plays one session of a script. It returns when the session is over, an
// order or Stop ended it, or ctx is done; the last is like SIGKILL: no terminal
// event is told. It starts no goroutine that outlives it.
func Play(ctx context.Context, program *Program, part Part, stage Stage) End {
	n := number(part.Session)
	p := &player{
		ctx: ctx, stage: stage, part: part, program: program, n: n,
		voice:   speech.NewWriter(stage.Out),
		answers: make(map[string]string), taken: part.taken,
		vars: map[string]string{
			varName: part.Name, varSession: part.Session, varN: strconv.Itoa(n), varKind: string(part.Kind),
			varAttempt: strconv.Itoa(part.Attempt), varRound: "1", varPrompt: part.Prompt, varAnswer: "", varOutputs: stage.Folder,
		},
		// The same session of the same script draws the same lots, whenever it is played.
		draw: rand.New(rand.NewPCG(program.Seed, uint64(n)<<16|uint64(part.Attempt)&0xffff)),
	}
	if part.Prompt != "" {
		p.prompts = append(p.prompts, part.Prompt)
	}
	return p.end(p.steps(p.choose()))
}

// player is a play under way. One goroutine owns it.
type player struct {
	ctx     context.Context
	stage   Stage
	part    Part
	program *Program
	voice   *speech.Writer
	vars    map[string]string
	draw    *rand.Rand
	n       int

	prompts []string          // not read yet
	taken   int64             // bytes of input that were read, for those who wrote them
	answers map[string]string // by question
	asked   int
	hurried bool // Stop was seen
	letGo   bool // the orders were closed
}

// What ends a play before its last step. They come up through every step.
var (
	errGone       = errors.New("killed")
	errCancelled  = errors.New("cancelled")
	errTerminated = errors.New("asked to stop")
	errLetGo      = errors.New("let go") // it waits for a prompt, and nobody will give one: it has done all that was asked
)

// failed is the step fail; crashed is the step crash where the world survives it.
type (
	failed struct {
		text string
		code int
	}
	crashed struct{ signal string }
)

func (f failed) Error() string  { return f.text }
func (c crashed) Error() string { return "crashed by " + c.signal }

// number is the number at the end of a session's id, or 1.
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
		return []Step{{Verb: "say", Text: cleanupIdle, Chance: 1}}
	case p.part.Kind == driver.Cleanup:
		return p.program.Cleanup
	}
	if steps := p.program.talk(p.part.Kind); len(steps) > 0 {
		return steps
	}
	return p.program.pick(p.n, p.draw.IntN).Steps
}

// end tells the terminal event that belongs to how the steps ended.
func (p *player) end(err error) End {
	var f failed
	var c crashed
	stop, code := driver.Stop{}, 0
	switch {
	case errors.Is(err, errGone):
		return End{Code: -1, Signal: "SIGKILL"}
	case errors.As(err, &c):
		return End{Code: -1, Signal: c.signal}
	case errors.Is(err, errLetGo):
		stop = driver.Stop{OK: true, Reason: "completed", Detail: "nobody said any more"}
	case err == nil:
		stop = driver.Stop{OK: true, Reason: "completed"}
		if len(p.prompts) > 0 && p.heardMore() {
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
	p.voice.Tell(event{Type: driver.Stopped, OK: &stop.OK, Reason: stop.Reason, Detail: stop.Detail})
	if p.voice.Broken() != nil {
		return End{Code: CodeFailed}
	}
	return End{Stop: &stop, Code: code}
}

// heardMore says whether a prompt that was not read came after the first one: the
// first is in {prompt} anyway.
func (p *player) heardMore() bool {
	if p.prompts[0] == p.part.Prompt {
		p.prompts = p.prompts[1:]
	}
	return len(p.prompts) > 0
}

// steps plays a list, and looks up after each step.
func (p *player) steps(list []Step) error {
	for i := range list {
		s := &list[i]
		if !p.wanted(s) {
			continue
		}
		if err := p.step(s); err != nil {
			return p.placed(s, err)
		}
		if err := p.lookUp(); err != nil {
			return err
		}
		if p.program.Pace > 0 && i < len(list)-1 {
			if err := p.rest(p.program.Pace); err != nil {
				return err
			}
		}
	}
	return nil
}

// wanted asks the guards. A lot is drawn whatever the other guard says, so that a
// guard which is taken away does not change what the rest of the script does.
func (p *player) wanted(s *Step) bool {
	lucky := s.Chance >= 1 || p.draw.Float64() < s.Chance
	return lucky && (s.Every == 0 || p.n%s.Every == 0)
}

// placed says where in the script an error happened; how a play ends needs no place.
func (p *player) placed(s *Step, err error) error {
	var f failed
	var c crashed
	var at placedError
	switch {
	case errors.Is(err, errGone), errors.Is(err, errCancelled), errors.Is(err, errTerminated),
		errors.As(err, &f), errors.As(err, &c), errors.As(err, &at):
		return err
	}
	return placedError{fmt.Errorf("%s:%d:%d: %s: %w", p.program.File, s.Line, s.Column, s.Verb, err)}
}

type placedError struct{ error }

func (e placedError) Unwrap() error { return e.error }

// lookUp takes the orders that wait, without waiting for any.
func (p *player) lookUp() error {
	if err := p.voice.Broken(); err != nil {
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
			p.hurried = true
			return errTerminated
		default:
			return nil
		}
	}
}

// rest waits for some time; an order or Stop may end it before.
func (p *player) rest(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	return p.await(nil, nil, timer.C)
}

// await waits until an order made something ready, done is closed or the timer
// fires; each may be nil. Stop and cancel end it with their error.
func (p *player) await(ready func() bool, done <-chan struct{}, timer <-chan time.Time) error {
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
			p.hurried = true
			return errTerminated
		}
	}
}

// take understands one order.
func (p *player) take(o Order, ok bool) error {
	if !ok {
		p.stage.Orders, p.letGo = nil, true // nobody speaks any more: what waits for an answer waits for Stop
		return nil
	}
	p.taken = max(p.taken, o.End)
	switch o.Type {
	case OrderCancel:
		return errCancelled
	case OrderAnswer:
		p.answers[o.ID] = o.Option
	case OrderStart, OrderPrompt:
		if len(p.prompts) >= promptsMax {
			p.voice.Tell(event{
				Type: driver.Faulted,
				Text: fmt.Sprintf("a prompt was not taken: %d wait to be read", promptsMax),
			})
			return nil
		}
		p.prompts = append(p.prompts, o.Text)
	}
	return nil
}

// text is a text of the script with its names filled in.
func (p *player) text(s string) string {
	p.vars[varTime] = time.Now().UTC().Format(time.RFC3339)
	return fill(s, p.vars)
}

// env is what a command of the script is given: somebody else's words come to it
// this way only.
func (p *player) env() []string {
	return []string{
		"NAME=" + p.part.Name, "SESSION=" + p.part.Session, "N=" + p.vars[varN], "KIND=" + string(p.part.Kind),
		"PROMPT=" + envText(p.vars[varPrompt]), "ANSWER=" + envText(p.vars[varAnswer]),
	}
}

// envText fits one variable of an environment: Linux takes 128 KiB of each.
func envText(s string) string {
	return strings.ReplaceAll(speech.CutText(s), "\x00", "")
}
