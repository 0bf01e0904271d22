package listen

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// ReportEvery is the shortest time between two usage reports of an agent. It keeps an agent that
// reports every token from filling the journal. A limit is detected at most this much later.
const ReportEvery = 200 * time.Millisecond

// SessionListener follows one session and reports the output that decisions depend on.
type SessionListener struct {
	e       *Listener
	m       *sessions.Slot
	s       team.Session // its Offset is the output offset in the journal
	proc    sessionhost.Process
	stop    *driver.Stop // its last terminal event
	letting bool         // the process was told that it may exit
	Pending team.SessionReported
	dirty   bool              // pending has unreported content
	channel *channelListener  // nil unless the session can receive messages
	lead    *leadListener     // nil unless its markers count: a session of the crew's lead or of a dispatch folder
	crew    *crewListener     // nil unless this is an ordinary session of the crew's lead
	work    *dispatchListener // nil unless the session works for a dispatch folder

	also  []team.Event    // more events of the current report: questions and the conversation's id
	asks  []driver.Ask    // the questions in also
	limit *team.RateLimit // the last rate limit that the provider reported
	away  awayProvider    // what the program reported last about a provider that does not answer
	anew  bool            // the session reported that it continues with an empty conversation
	past  pastRules       // calls that it made without asking

	called  bool // it has called a tool, or asked to, since the listener started
	tooMany bool // it has asked above its rate, which was logged

	stray   []team.Event // markers of the current report, outside of channels
	strayed int          // ignored markers since the listener started
	midway  bool         // the last text ended in the middle of a line
}

// heard is one item from the output: a fact, or a mark that no more output is available now.
type heard struct {
	fact  driver.Fact
	quiet bool
}

// listen follows a session to the end of its output, from the last report in the journal. A failed
// read is retried, because the agent continues to write. An error means that Fairlead is stopping.
func (l *SessionListener) listen(ctx context.Context) error {
	l.limit = l.s.RateLimit
	l.away.stands(l.s.Provider)
	if s := l.s.Stop; s != nil {
		l.stop = &driver.Stop{OK: s.OK, Reason: s.Reason, Detail: s.Detail}
		l.letGo()
	}
	warned := false
	for again := loop.Retry(); ; {
		over := sessions.IsDone(l.proc) // checked first: after the end the output is complete
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
		if !again.Rest(ctx) {
			return ctx.Err()
		}
	}
}

// hear reads until the output ends (nil) or cannot be read (broken). An error means that Fairlead is
// stopping.
//
// A report names an offset in the output, and all facts of one line may carry the offset of its
// start. A report in the middle of a line would lose facts or count them twice. hear therefore
// reports when the driver asks for more output, because the driver has then emitted every fact.
func (l *SessionListener) hear(ctx context.Context) (broken, err error) {
	reading, cancel := context.WithCancel(ctx)
	said, over := make(chan heard), make(chan error, 1)
	go func() {
		defer close(said)
		over <- l.read(reading, said)
	}()
	defer func() {
		cancel()
		for range said { // until the reader has stopped
		}
	}()
	l.fresh()
	if l.lead != nil {
		l.lead = l.lead.anew() // buffered facts are read again
	}
	var due, opens <-chan time.Time
	var opensAt time.Time
	late, quiet, tries := false, false, 0
	for {
		if at := l.away.opensAt; !at.Equal(opensAt) {
			if opensAt, opens = at, nil; !at.IsZero() {
				opens = time.After(time.Until(at))
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-opens:
			opensAt = time.Time{}
			late = l.tellProvider(l.away.due(time.Now())) || late
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
			if wait := l.channel.holds(); wait > 0 && some {
				due, late = time.After(wait), false // the message may end here
			}
		}
		if !late || !quiet {
			continue
		}
		if tries++; l.channel.midWord() && tries < turns.WordTries { // the rest of the word is on its way
			due, late = time.After(l.every()), false
			continue
		}
		if err := l.report(ctx); err != nil {
			return nil, err
		}
		due, late, tries = nil, false, 0
	}
}

// last handles the buffered rest after the output has ended.
func (l *SessionListener) last(ctx context.Context, over <-chan error) (broken, err error) {
	broken = <-over
	if l.channel != nil && broken == nil {
		l.channel.final = true
		l.dirty = l.dirty || len(l.channel.tail) > 0
	}
	if l.lead != nil {
		if broken != nil {
			return broken, l.report(ctx) // buffered facts are read again
		}
		if _, _, err := l.hearsAll(ctx, l.lead.whole(true)); err != nil {
			return nil, err
		}
	}
	return broken, l.report(ctx)
}

// read runs the driver's parser on the output.
func (l *SessionListener) read(ctx context.Context, said chan<- heard) error {
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

// report appends the pending events to the journal. It is not an error if the session has ended.
func (l *SessionListener) report(ctx context.Context) error {
	defer l.letGo()
	if !l.dirty {
		return nil
	}
	var err error
	switch {
	case l.channel != nil:
		err = l.reportAnswer(ctx)
	case len(l.stray)+len(l.also) > 0:
		err = l.reportWith(ctx, append(l.also, l.stray...))
	default:
		_, err = l.e.sessions.SubmitOf(ctx, turns.ByAgent(l.m.Conf.Name), l.m, l.Pending)
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
func (l *SessionListener) fresh() {
	l.Pending, l.dirty, l.stray, l.also, l.asks = team.SessionReported{Session: l.s.ID}, false, nil, nil, nil
	l.channel.fresh()
	l.crew.fresh()
}

// every is the longest time that a fact may wait for its report.
func (l *SessionListener) every() time.Duration {
	if l.channel != nil {
		return turns.TalkEvery
	}
	return ReportEvery
}

// letGo tells a session with a terminal event to exit, once.
func (l *SessionListener) letGo() {
	if l.stop == nil || l.letting {
		return
	}
	l.letting = true
	l.e.loop.Go(func(ctx context.Context) { l.e.sessions.CloseInput(ctx, l.m, l.s.ID, l.proc) })
}

// hears calls note. Output belongs to the latest message that the session received, so no other
// message is sent while hears runs.
func (l *SessionListener) hears(ctx context.Context, fact HeldFact) (some bool, err error) {
	if l.channel != nil {
		if err := l.channel.v.WriteLock.Lock(ctx); err != nil {
			return false, err
		}
		defer l.channel.v.WriteLock.Unlock()
	}
	asked, err := l.noteQuestion(ctx, &fact)
	if err != nil {
		return false, err
	}
	done := l.work.note(ctx, fact) || asked
	l.dirty = l.dirty || done
	return l.Note(fact) || done, nil
}

// Note adds a fact to the next report if decisions depend on it.
func (l *SessionListener) Note(fact HeldFact) bool {
	pending := &l.Pending
	pending.Offset = max(pending.Offset, fact.Offset) // also for the end of a line without a fact
	said := l.channel.note(fact, pending)
	switch {
	case l.crew != nil:
		for _, piece := range fact.pieces {
			if piece.Marker != nil {
				l.crew.counts()
				l.stray, said = l.crew.hears(piece.Marker, l.stray), true
			}
		}
	case l.lead == nil && l.strays(fact.Fact):
		said = true
	}
	said = l.tellProvider(l.away.hears(fact.Fact, time.Now())) || said
	l.dirty = l.dirty || said
	switch fact.Kind {
	case driver.ToolCalled, driver.PermissionAsked:
		l.called = true
		return said
	case driver.UsageReported:
		pending.Usage.InputTokens = min(pending.Usage.InputTokens+clamp(fact.Usage.InputTokens), sessions.TokensSumMax)
		pending.Usage.OutputTokens = min(pending.Usage.OutputTokens+clamp(fact.Usage.OutputTokens), sessions.TokensSumMax)
		if cost := fact.Usage.CostUSD; cost > 0 { // false for NaN
			pending.Usage.CostUSD += min(cost, sessions.CostReportMax)
		}
		pending.Models = team.ReportModel(pending.Models, change.Usage{
			Model: fact.Usage.Model, InputTokens: clamp(fact.Usage.InputTokens), OutputTokens: clamp(fact.Usage.OutputTokens),
			CostUSD: min(max(fact.Usage.CostUSD, 0), sessions.CostReportMax),
		})
		pending.Context = cmp.Or(fact.Context, pending.Context)
	case driver.Stopped:
		l.stop = fact.Stop
		pending.Stop = &team.Stop{
			OK: fact.Stop.OK, Reason: clip.Text(fact.Stop.Reason, sessions.TextBytesMax),
			Detail:         clip.Text(fact.Stop.Detail, sessions.TextBytesMax),
			ContextPercent: fact.Context, Alone: aloneSum(fact.Stop.Alone), Called: l.called,
		}
		pending.Context = cmp.Or(fact.Context, pending.Context)
	default:
		return said
	}
	l.dirty = true
	return true
}

// tellProvider adds what the program says about its provider to the next report; nil: nothing.
func (l *SessionListener) tellProvider(p *team.Provider) bool {
	if p == nil {
		return false
	}
	l.Pending.Provider, l.Pending.Offset, l.dirty = p, max(l.Pending.Offset, l.s.Offset), true
	return true
}

func clamp(tokens int64) int64 { return min(max(tokens, 0), sessions.TokensReportMax) }

// tap is a reader that reports when more output is requested.
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
