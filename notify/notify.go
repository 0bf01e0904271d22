package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	queueMax    = 256              // notices that wait; a fan-out that asks more questions at once has an inbox to be read
	rememberMax = 4096             // questions told of; an older one that comes up again is told again
	triesMax    = 4                // then it is given up: with the waits below that is most of a minute
	tryMax      = 10 * time.Second // one try; a webhook that is well answers in less than one
	waitFirst   = time.Second      // before the second try; each further wait is four times as long
	closeMax    = 3 * time.Second  // for what is under way when the daemon ends: nobody waits longer for a prompt
)

// Notice says that a person is waited for.
type Notice struct {
	Kind            string    `json:"kind"` // step: a step of a run waits for an answer; permission, question, resume: an agent asks
	Run             string    `json:"run_id"`
	Step            string    `json:"step_id"`
	Workflow        string    `json:"workflow_name"`
	Why             string    `json:"why"`
	Since           time.Time `json:"since"`             // UTC
	ManualInputPath string    `json:"manual_input_path"` // an answer can also be put there, as a JSON file
	Agent           string    `json:"agent,omitempty"`   // who asks; empty of a step
}

// question is what a notice is about; the same question is told of once.
type question struct {
	run, step, agent string
	why              string // names an agent's question: two of them may have one time
	since            time.Time
}

// Options say who is told. The zero value tells nobody.
type Options struct {
	// Webhook gives the http or https address that is posted to. It is a function, so that
	// whoever prints the options does not print a secret. Nil: none.
	Webhook func() (string, error)
	Desktop bool         // a notice on the screen of whoever started us
	Log     *slog.Logger // of what could not be delivered; nil: slog.Default
}

// face is a way to reach a person.
type face interface {
	name() string // as logs may show it
	// tell tries once. Its error is a *trouble: what it says may be logged.
	tell(ctx context.Context, n Notice) error
}

// trouble is why a try failed, in words of ours alone: nothing of it comes from the address,
// nor from whoever answered there.
type trouble struct {
	cause  string
	wayOut string
	again  bool          // another try may go better
	wait   time.Duration // that was asked for before it; 0: none was
}

func (t *trouble) Error() string { return t.cause + "; " + t.wayOut }

// Teller tells people. Make it with Open; it is safe for use by many goroutines.
type Teller struct {
	log     *slog.Logger
	desks   []*desk
	ctx     context.Context // of the tries
	cancel  context.CancelFunc
	closing chan struct{}
	done    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	told   map[question]bool
	order  []question // of told, the oldest first
}

// desk is one face with what waits for it.
type desk struct {
	face
	queue chan Notice

	full  bool            // has said that its queue is full, and nothing was delivered since; under Teller.mu
	said  map[string]bool // causes that were logged since it last worked; its goroutine's own
	given int             // notices that were given up at the end
}

// Open makes a teller of what is configured. Its error does not hold the address. Close it.
func Open(o Options) (*Teller, error) {
	var faces []face
	if o.Webhook != nil {
		address, err := o.Webhook()
		if err != nil {
			return nil, fmt.Errorf("find out where notices go: %w", err)
		}
		hook, err := newWebhook(address)
		if err != nil {
			return nil, err
		}
		faces = append(faces, hook)
	}
	if o.Desktop {
		faces = append(faces, newDesktop())
	}
	return open(faces, o.Log), nil
}

func open(faces []face, log *slog.Logger) *Teller {
	if log == nil {
		log = slog.Default()
	}
	t := &Teller{log: log, closing: make(chan struct{}), told: map[question]bool{}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	for _, f := range faces {
		d := &desk{face: f, queue: make(chan Notice, queueMax), said: map[string]bool{}}
		t.desks = append(t.desks, d)
		t.done.Go(func() { t.serve(d) })
	}
	return t
}

// Tell has a notice delivered, beside the caller, who never waits. A question that was told
// of already is not told again; where it cannot be known whether it was (it has no time), it
// is. When a queue is full the notice is dropped there, and that is logged once.
func (t *Teller) Tell(n Notice) {
	n = clean(n)
	q := question{n.Run, n.Step, n.Agent, n.Why, n.Since}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.told[q] {
		return
	}
	taken := len(t.desks) == 0
	for _, d := range t.desks {
		select {
		case d.queue <- n:
			taken = true
		default:
			if !d.full {
				d.full = true
				t.log.Warn("too many notices wait to be delivered; further ones are dropped", "to", d.name(), "most", queueMax,
					"way out", "look into the inbox: every question is there")
			}
		}
	}
	if taken && !n.Since.IsZero() {
		t.remember(q)
	}
}

func (t *Teller) remember(q question) {
	t.told[q] = true
	t.order = append(t.order, q)
	if len(t.order) > rememberMax {
		delete(t.told, t.order[0])
		t.order = t.order[1:]
	}
}

// Close takes no more notices, gives those that wait a last try and at most a few seconds,
// and logs how many were given up. When it returns nothing of the teller runs any more.
func (t *Teller) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		t.done.Wait()
		return nil
	}
	t.closed = true
	close(t.closing)
	for _, d := range t.desks {
		close(d.queue)
	}
	t.mu.Unlock()
	late := time.AfterFunc(closeMax, t.cancel)
	t.done.Wait()
	late.Stop()
	t.cancel()
	for _, d := range t.desks {
		if d.given > 0 {
			t.log.Warn("notices were not delivered before the end", "to", d.name(), "notices", d.given,
				"way out", "the next daemon tells of every question that is still open")
		}
	}
	return nil
}

// serve delivers what waits for one face, in order.
func (t *Teller) serve(d *desk) {
	for n := range d.queue {
		if t.ctx.Err() != nil {
			d.given++
			continue
		}
		err := t.deliver(d, n)
		var why *trouble
		switch {
		case err == nil:
			clear(d.said)
			t.mu.Lock()
			d.full = false
			t.mu.Unlock()
		case t.ctx.Err() != nil:
			d.given++
		case !errors.As(err, &why):
			panic("notify: a face failed without saying why: " + err.Error())
		case !d.said[why.cause]:
			d.said[why.cause] = true
			t.log.Warn("a notice that somebody is waited for was given up; this is said once", "to", d.name(), "why", why.cause, "way out", why.wayOut)
		}
	}
}

// deliver tries until it worked, until nothing more can come of it, or until we end.
func (t *Teller) deliver(d *desk, n Notice) error {
	wait := waitFirst
	for try := 1; ; try++ {
		last := try == triesMax || t.isClosing()
		err := t.try(d, n)
		var why *trouble
		if err == nil || last || !errors.As(err, &why) || !why.again {
			return err
		}
		pause := time.NewTimer(max(wait, why.wait))
		select {
		case <-pause.C:
		case <-t.closing: // one try more, now
		}
		pause.Stop()
		wait *= 4
	}
}

func (t *Teller) try(d *desk, n Notice) error {
	ctx, cancel := context.WithTimeout(t.ctx, tryMax)
	defer cancel()
	return d.tell(ctx, n)
}

func (t *Teller) isClosing() bool {
	select {
	case <-t.closing:
		return true
	default:
		return false
	}
}
