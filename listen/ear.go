package listen

import (
	"context"
	"io"
	"time"

	"github.com/fairlead-dev/fairlead/controller/channels"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/team"
)

// reportEvery bounds how often an agent's usage becomes a change: one that reports every
// token must not fill the journal. A limit is noticed so much later at most.
const ReportEvery = 200 * time.Millisecond

// ear listens to one session and turns what decisions depend on into reports.
type Ear struct {
	e       *Listener
	m       *sessions.Slot
	s       team.Session // its Offset is how far the journal knows
	proc    seam.Process
	stop    *driver.Stop // its last terminal event
	letting bool         // it was told that it may go
	Pending team.SessionReported
	dirty   bool     // there is something in pending
	talk    *talkEar // of a session that is told things
	lead    *leadEar // of one whose markers count: it leads the team, or works for a session folder
	work    *workEar // of one that works for a session folder

	also  []team.Event    // of the report that is being made: what it asks, and what its conversation is called
	asks  []driver.Ask    // the questions among them
	limit *team.RateLimit // what its provider said last
	anew  bool            // it was said that it goes on with nothing
	past  pastRules       // what it did without asking

	stray   []team.Event // of the report that is being made: what counts only where the lead says it
	strayed int          // so many, since we listen
	midway  bool         // the last words go on in the same line
}

// heard is one thing that comes from the output: a fact, or that nothing more is there now.
type heard struct {
	fact  driver.Fact
	quiet bool
}

// listen hears a session to the end of its output, from the last report that is in the
// journal. Output that cannot be read is tried again: the agent goes on talking. The error
// means that we stop.
func (l *Ear) listen(ctx context.Context) error {
	l.limit = l.s.RateLimit
	if s := l.s.Stop; s != nil {
		l.stop = &driver.Stop{OK: s.OK, Reason: s.Reason, Detail: s.Detail}
		l.letGo()
	}
	warned := false
	for pause := loop.RetryFirst; ; pause = min(2*pause, loop.RetryMax) {
		over := sessions.IsDone(l.proc) // asked first: what it said before its end is then all there
		broken, err := l.hear(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if broken == nil {
			return nil
		}
		if !warned {
			warned = true
			l.e.log.Error("a session's output cannot be read; it is tried again until it ends", "session", l.s.ID, "error", broken)
		}
		if over {
			return nil
		}
		if !loop.Rest(ctx, pause) {
			return ctx.Err()
		}
	}
}

// hear reads on until the output ends (nil) or cannot be read (broken). The error means
// that we stop.
//
// A report names a place in the output, and facts of one line may all carry the place where
// it begins: in the middle of a line a report would be lost or counted twice. So it is made
// when the driver asks for more output, since then it has told everything that it has.
func (l *Ear) hear(ctx context.Context) (broken, err error) {
	reading, cancel := context.WithCancel(ctx)
	said, over := make(chan heard), make(chan error, 1)
	go func() {
		defer close(said)
		over <- l.read(reading, said)
	}()
	defer func() {
		cancel()
		for range said { // until the reader is gone
		}
	}()
	l.fresh()
	if l.lead != nil {
		l.lead = l.lead.anew() // what was held is read once more
	}
	var due <-chan time.Time
	late, quiet, tries := false, false, 0
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-due:
			due, late = nil, true
		case h, more := <-said:
			if !more {
				return l.last(ctx, over)
			}
			quiet = h.quiet
			some, urgent, err := l.takes(ctx, h)
			if err != nil {
				return nil, err
			}
			late = late || urgent
			if some && due == nil {
				due = time.After(l.every())
			}
		}
		if !late || !quiet {
			continue
		}
		if tries++; l.talk.midWord() && tries < channels.WordTries { // more of it is on its way
			due, late = time.After(l.every()), false
			continue
		}
		if err := l.report(ctx); err != nil {
			return nil, err
		}
		due, late, tries = nil, false, 0
	}
}

// last hears what is left when no more will come.
func (l *Ear) last(ctx context.Context, over <-chan error) (broken, err error) {
	broken = <-over
	if l.lead != nil {
		if broken != nil {
			return broken, l.report(ctx) // what was held is heard again
		}
		if _, _, err := l.hearsAll(ctx, l.lead.whole(true)); err != nil {
			return nil, err
		}
	}
	return broken, l.report(ctx)
}

// read lets the driver say what it understands.
func (l *Ear) read(ctx context.Context, said chan<- heard) error {
	say := func(h heard) bool {
		select {
		case said <- h:
			return true
		case <-ctx.Done():
			return false
		}
	}
	wire := tap{Wire: l.proc, quiet: func() { say(heard{quiet: true}) }}
	for fact, err := range l.m.Driver.Converse(sessions.Known(*l.m.Conf), sessions.SessionFor(l.m, l.s), wire).Facts(ctx, l.s.Offset) {
		if err != nil {
			return err
		}
		if !say(heard{fact: fact}) {
			return ctx.Err()
		}
	}
	return nil
}

// report has what was heard put into the journal. That the session is over is no error.
func (l *Ear) report(ctx context.Context) error {
	defer l.letGo()
	if !l.dirty {
		return nil
	}
	var err error
	switch {
	case l.talk != nil:
		err = l.reportTalk(ctx)
	case len(l.stray)+len(l.also) > 0:
		err = l.reportWith(ctx, append(l.also, l.stray...))
	default:
		_, err = l.e.sessions.SubmitOf(ctx, channels.ByAgent(l.m.Conf.Name), l.m, l.Pending)
	}
	if err != nil && !loop.IsAnswer(err) {
		return err
	}
	l.s.Offset = max(l.s.Offset, l.Pending.Offset)
	asks := l.asks
	l.fresh()
	l.unheard(ctx, asks)
	return nil
}

// fresh begins a report.
func (l *Ear) fresh() {
	l.Pending, l.dirty, l.stray, l.also, l.asks = team.SessionReported{Session: l.s.ID}, false, nil, nil, nil
	l.talk.fresh()
}

// every is how long something that was heard may wait for its report.
func (l *Ear) every() time.Duration {
	if l.talk != nil {
		return channels.TalkEvery
	}
	return ReportEvery
}

// letGo lets a session go whose terminal event is known, once.
func (l *Ear) letGo() {
	if l.stop == nil || l.letting {
		return
	}
	l.letting = true
	l.e.Go(func(ctx context.Context) { l.e.sessions.LetGo(ctx, l.m, l.s.ID, l.proc) })
}

// hears is note. What a session says that is told things belongs to what it was told last, so
// nobody tells it something else meanwhile.
func (l *Ear) hears(ctx context.Context, fact HeldFact) (some bool, err error) {
	if l.talk != nil {
		if err := l.talk.v.WriteLock.Lock(ctx); err != nil {
			return false, err
		}
		defer l.talk.v.WriteLock.Unlock()
	}
	asked, err := l.noteQuestion(ctx, &fact)
	if err != nil {
		return false, err
	}
	done := l.work.note(ctx, fact) || asked
	l.dirty = l.dirty || done
	return l.Note(fact) || done, nil
}

// note adds a fact to the next report, where decisions depend on it.
func (l *Ear) Note(fact HeldFact) bool {
	pending := &l.Pending
	pending.Offset = max(pending.Offset, fact.Offset) // also of a line's end that says nothing more to us
	said := l.talk.note(fact, pending)
	if l.lead == nil && l.strays(fact.Fact) {
		said = true
	}
	l.dirty = l.dirty || said
	switch fact.Kind {
	case driver.UsageReported:
		pending.Usage.InputTokens = min(pending.Usage.InputTokens+clamp(fact.Usage.InputTokens), sessions.TokensSumMax)
		pending.Usage.OutputTokens = min(pending.Usage.OutputTokens+clamp(fact.Usage.OutputTokens), sessions.TokensSumMax)
		if cost := fact.Usage.CostUSD; cost > 0 { // NaN is not
			pending.Usage.CostUSD += min(cost, sessions.CostReportMax)
		}
	case driver.Stopped:
		l.stop = &fact.Stop
		pending.Stop = &team.Stop{OK: fact.Stop.OK, Reason: loop.CutText(fact.Stop.Reason, sessions.TextBytesMax), Detail: loop.CutText(fact.Stop.Detail, sessions.TextBytesMax)}
	default:
		return said
	}
	l.dirty = true
	return true
}

func clamp(tokens int64) int64 { return min(max(tokens, 0), sessions.TokensReportMax) }

// tap is a wire that says when its reader asks for more.
type tap struct {
	driver.Wire
	quiet func()
}

func (t tap) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	out, err := t.Wire.Output(ctx, offset)
	if err != nil {
		return nil, err
	}
	return tapReader{out, t.quiet}, nil
}

type tapReader struct {
	io.ReadCloser
	quiet func()
}

func (r tapReader) Read(b []byte) (int, error) {
	r.quiet()
	return r.ReadCloser.Read(b)
}
