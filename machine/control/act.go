package control

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// noteBytesMax keeps a note readable in a file that a person opens.
const noteBytesMax = 2000

// act carries one act of a rule out, on the copy of the value that the change holds.
func (c *Control) act(act Act, ch *Change, in Input, now Now) {
	v := &ch.Value
	switch act {
	case TakeDesired:
		c.takeDesired(v, in, now)
	case NoteOvertaken:
		wish := c.desiredOf(in, now)
		wish.N = 0 // it counts for nobody
		ch.Overtaken = &wish
	case RestDesired:
		v.Desired = Desired{State: WordPause, By: "agent", Note: restNote(c.State, in), N: c.Desired.N + 1, Rested: true}
		v.Extra = ""
	case SpendOneShot:
		if c.begun() {
			v.Desired = Desired{State: WordPause, By: "agent", Note: c.word() + " was begun by a foreign loop that is no longer asked; how it ended is not known", N: c.Desired.N + 1}
			v.Took = v.Desired.N
		}
	case SpendDesired:
		v.Desired = Desired{State: WordPause, By: "agent", Note: cut(c.spendNote(ch, in, now)), N: v.Desired.N + 1}
		v.Took = v.Desired.N
	case OpenSession:
		c.open(ch, Work)
	case OpenCleanup:
		c.open(ch, Cleanup)
	case OpenProgram:
		ch.Open = Program
		v.Running = true
	case EndSession:
		ch.End = v.Limit
	case NoteLimit:
		v.Limit = in.(LimitHit).Limit
	case CountSession:
		if ended := in.(Ended); ended.Kind == Work && ended.Outcome == OK {
			v.SinceCleanup++
		}
	case CountCleanup:
		v.SinceCleanup = 0
	case CountFailure:
		c.countFailure(v, in.(Ended))
	case ForgetFailures:
		v.Failures = 0
	case StartBackoff:
		v.RetryAt = now.At.UTC().Add(c.Policy.backoff(v.Failures))
	case TakeExtra:
		if file, ok := in.(FileRead); ok {
			v.Extra = file.Extra
		}
	case TakeReport:
		takeReport(v, in, now)
	case Rewrite: // take stamps the write
	default:
		panic("control: no such act: " + string(act))
	}
}

func (c *Control) open(ch *Change, kind Kind) {
	ch.Open = kind
	if c.State != Foreign && ch.Value.Desired.N > c.Took {
		ch.Value.Failures = 0 // a newer wish begins a row of its own
	}
	ch.Value.Took = ch.Value.Desired.N
	ch.Value.Limit = ""
}

// takeDesired remembers, of a command of ours to a foreign loop, what it replaces: a loop that
// had read the file before writes that back.
func (c *Control) takeDesired(v *Value, in Input, now Now) {
	v.Desired = c.desiredOf(in, now)
	v.Before = Desired{}
	switch in := in.(type) {
	case FileRead:
		v.Extra = in.Extra
		if c.State == Foreign && in.By == "agent" && in.Desired == c.Desired.State && c.Desired.N == c.Took {
			v.Took = v.Desired.N // the loop's own remark on what it is at is no command to do it again
		}
	default:
		if c.State == Foreign {
			v.Before = c.Desired
		}
	}
}

// desiredOf is the wish that an input carries. Who wrote the file is not ours to correct.
func (c *Control) desiredOf(in Input, now Now) Desired {
	w := Desired{N: c.Desired.N + 1, At: now.At.UTC()}
	switch in := in.(type) {
	case Commanded:
		w.State, w.By, w.Note = in.Desired, cut(in.By), cut(in.Note)
	case FileRead:
		w.State, w.By, w.Note = in.Desired, cut(in.By), cut(in.Note)
		if believable(in.Stamp, now.At) && !in.Stamp.IsZero() {
			w.At = in.Stamp.UTC()
		}
		if in.Note == heldNote(c.Desired.State) {
			w.Note = c.Desired.Note // our own words about a hold, which whoever wrote the file left standing
		}
	default:
		panic(fmt.Sprintf("control: no wish in a %T", in))
	}
	if _, known := wanted[w.State]; !known {
		w.Unknown = true
		w.State = cut(w.State)
		w.Note = cut(fmt.Sprintf("unknown desired_state %q, treated as pause", w.State))
	}
	return w
}

func restNote(state State, in Input) string {
	if broken, ok := in.(FileBroken); ok {
		return cut(fmt.Sprintf("agent_state.json was malformed (%s); kept as %s", broken.Fault, broken.KeptAs))
	}
	if state == Absent {
		return "no agent_state.json: created"
	}
	return "agent_state.json was deleted: written anew"
}

// spendNote says why a wish is over. What an agent said of itself comes last, and cut.
func (c *Control) spendNote(ch *Change, in Input, now Now) string {
	word := c.Current()
	switch ch.Trigger {
	case OneShotEnded:
		if ended := in.(Ended); ended.Outcome == Cancelled {
			return word + " was ended: " + ended.Why
		}
		return word + " is done"
	case OneShotFailed:
		return word + " failed: " + in.(Ended).Why
	case OneShotLost:
		return word + " was interrupted; how it ended is not known: " + in.(Ended).Why
	case FailedForGood:
		if ch.Value.Failures == 1 {
			return "the session failed: " + in.(Ended).Why
		}
		return fmt.Sprintf("%d sessions failed in a row, the last one: %s", ch.Value.Failures, in.(Ended).Why)
	default:
		return "limit reached: " + limitOf(ch, c, now)
	}
}

func limitOf(ch *Change, c *Control, now Now) string {
	for _, limit := range []string{ch.Value.Limit, c.Limit, now.OverLimit} {
		if limit != "" {
			return limit
		}
	}
	panic("control: a wish is spent on a limit that nobody named")
}

// countFailure counts failures in a row. A newer wish begins a row of its own, and a
// foreign program that ran for a while has shown that it can.
func (c *Control) countFailure(v *Value, ended Ended) {
	if c.State == Foreign {
		v.Running = false
		if ended.Ran >= c.Policy.BackoffMax {
			v.Failures = 0
		}
		if ended.Outcome == Cancelled || ended.Outcome == Withdrawn {
			return // ended by order, so it has not failed
		}
	}
	if c.State != Foreign && c.Desired.N > c.Took {
		v.Failures = 0
		v.Took = v.Desired.N
	}
	v.Failures++
}

// backoff doubles from the first to the longest wait; failures counts from 1.
func (p Policy) backoff(failures int) time.Duration {
	wait := p.BackoffFirst
	for range failures - 1 {
		if wait *= 2; wait >= p.BackoffMax {
			return p.BackoffMax
		}
	}
	return min(wait, p.BackoffMax)
}

// takeReport takes the foreign half in. Its going to work on what is wanted shows that it
// has read the newest wish; its going to work on something else shows that it has not.
func takeReport(v *Value, in Input, now Now) {
	file, ok := in.(FileRead)
	if _, broken := in.(FileBroken); broken {
		return // what it said last is written into the file that takes its place
	}
	if !ok {
		v.Reported = "" // the file is gone: it says nothing
		return
	}
	if current := cut(file.Current); current != v.Reported && current == v.word() {
		v.Took = v.Desired.N
	}
	v.Reported, v.Extra = cut(file.Current), file.Extra
	if stamp := file.Stamp.UTC().Truncate(time.Millisecond); stamp.After(v.Stamp) && believable(stamp, now.At) {
		v.Stamp = stamp
	}
}

// cut shortens a text that others wrote, at a whole character. What is no UTF-8 is replaced:
// the journal could not hold it, and a replay would differ.
func cut(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= noteBytesMax {
		return s
	}
	end := noteBytesMax
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
