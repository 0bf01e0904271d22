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
	queueMax    = 256              // waiting notices; more open questions than this are read in the inbox
	rememberMax = 4096             // remembered questions; an older one is notified again
	triesMax    = 4                // then the notice is dropped; with the waits below that takes most of a minute
	tryMax      = 10 * time.Second // for one try; a working webhook answers within a second
	waitFirst   = time.Second      // before the second try; each further wait is four times as long
	closeMax    = 3 * time.Second  // for tries that are under way when the daemon stops
)

// Notice says that something waits for a person.
type Notice struct {
	Kind            string    `json:"kind"` // step: a step of a run waits for an answer; permission, question, resume: an agent asks
	Run             string    `json:"run_id"`
	Step            string    `json:"step_id"`
	Workflow        string    `json:"workflow_name"`
	Why             string    `json:"why"`
	Since           time.Time `json:"since"`             // UTC
	ManualInputPath string    `json:"manual_input_path"` // where an answer can be put as a JSON file
	Agent           string    `json:"agent,omitempty"`   // the agent that asks; empty for a step
}

// question identifies what a notice is about; each question is notified once.
type question struct {
	run, step, agent string
	why              string // identifies an agent's question, because two of them may have the same time
	since            time.Time
}

// Options say how to notify. The zero value sends nothing.
type Options struct {
	// Webhook returns the http or https address to post to; nil: none. It is a function, so that printing the
	// options does not print the secret.
	Webhook func() (string, error)
	Desktop bool         // a notification on the screen of the user who started Fairlead
	Log     *slog.Logger // for failed deliveries; nil: slog.Default
}

// face is a way to reach a person.
type face interface {
	name() string // for logs
	// tell tries once. Its error is a *trouble, which may be logged.
	tell(ctx context.Context, n Notice) error
}

// trouble is the reason of a failed try. Its text is fixed: nothing in it comes from the address or from the
// server's answer.
type trouble struct {
	cause  string
	wayOut string
	again  bool          // whether to retry
	wait   time.Duration // requested by the server; 0: none
}

func (t *trouble) Error() string { return t.cause + "; " + t.wayOut }

// Teller sends notices. Make it with Open; all methods may be called concurrently.
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
	order  []question // keys of told, oldest first
}

// desk is one face with its queue.
type desk struct {
	face
	queue chan Notice

	full  bool            // the full queue was logged, and nothing was delivered since; guarded by Teller.mu
	said  map[string]bool // reasons that were logged since the last delivery; used only by its goroutine
	given int             // notices that were dropped at the end
}

// Open starts a Teller for the configured ways. Its error does not hold the address. The caller must close
// the Teller.
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

// Tell queues a notice and returns at once. A question that was notified already is not notified again,
// unless it has no time, because then it cannot be recognised. If a queue is full, the notice is dropped for
// that way, which is logged once.
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

// Close accepts no further notices, tries the waiting ones once more for at most a few seconds, and
// logs how many were dropped. After it returns, no goroutine of the Teller runs.
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
				"way out", "the next daemon notifies again of every open question")
		}
	}
	return nil
}

// serve delivers the notices of one face in order.
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
			t.log.Warn("a notice could not be delivered; this is logged once for each cause", "to", d.name(), "why", why.cause, "way out", why.wayOut)
		}
	}
}

// deliver tries until it succeeds, retrying is pointless, or the Teller closes.
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
		case <-t.closing: // one last try, now
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
