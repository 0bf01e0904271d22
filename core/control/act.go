package control

import (
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/internal/backoff"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// noteBytesMax limits a note, because people read the file.
const noteBytesMax = 2000

// buriedMax is how many writes over an order are corrected at once; then a person should look.
const buriedMax = 20

// act applies one act of a row to the copy of the value in the body of the change.
func (c *Control) act(act Act, event Event, body *Body, in Input, now Now) {
	v := &body.Value
	switch act {
	case TakeDesired:
		c.takeDesired(v, in, now)
		v.GaveUp = time.Time{}
		if event == DesiredSpent {
			v.Desired.Lock = Unlocked // the one-shot ended in a way that a foreign loop reports
		}
	case NoteOvertaken:
		overtaken := c.desiredOf(in, now)
		overtaken.N = 0 // not a numbered desired state
		body.Overtaken = &overtaken
	case RestDesired:
		v.Desired = Desired{
			State: WordPause, By: ByFairlead, Note: restNote(c.State, in), N: c.Desired.N + 1, Rested: true,
			Lock: c.Desired.Lock,
		}
		v.GaveUp = time.Time{}
		v.Extra = ""
	case SpendOneShot:
		if c.begun() {
			v.Desired = Desired{
				State: WordPause, By: ByFairlead,
				Note: c.word() + " was begun by a foreign loop that is no longer asked; how it ended is not known", N: c.Desired.N + 1,
			}
			v.Acked = v.Desired.N
		}
	case SpendDesired:
		v.Desired = Desired{State: WordPause, By: ByFairlead, Note: cut(c.spendNote(event, v, in, now)), N: v.Desired.N + 1}
		v.Acked = v.Desired.N
	case OpenSession, OpenCleanup:
		c.open(v)
	case OpenProgram:
		v.Running = true
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
		v.RetryAt = now.At.UTC().Add(backoff.After(c.Policy.BackoffFirst, c.Policy.BackoffMax, v.Failures))
	case TakeExtra:
		if file, ok := in.(FileRead); ok {
			v.Extra = file.Extra
		}
	case TakeReport:
		takeReport(v, in, now)
		if file, ok := in.(FileRead); ok && event == CommandBuried {
			v.mayComeBack(Desired{State: file.Desired, By: cut(file.By), Note: cut(file.Note), N: v.Desired.N}) // the loop may have read it
			v.Buried = min(v.Buried+1, buriedMax)
		}
	case GiveUp:
		v.GaveUp = now.At.UTC()
	case EndSession: // Ends says so
	case Rewrite: // TakeDesired sets the timestamp
	default:
		panic("control: unknown act: " + string(act))
	}
}

func (c *Control) open(v *Value) {
	if c.State != Foreign && v.Desired.N > c.Acked {
		v.Failures = 0 // a newer desired state starts a new count
	}
	v.Acked, v.Limit = v.Desired.N, ""
}

// takeDesired sets the desired state. For a command to a foreign loop it also keeps the replaced
// one, because a loop that read the file earlier writes that one back.
func (c *Control) takeDesired(v *Value, in Input, now Now) {
	v.Desired = c.desiredOf(in, now)
	v.Before, v.Earlier, v.Buried = nil, nil, 0
	switch in := in.(type) {
	case FileRead:
		v.Extra = in.Extra
		if c.Desired.N != c.Acked || in.Desired != c.Desired.State {
			return
		}
		if c.State == Foreign && in.By == "agent" || c.State != Foreign && now.InSession {
			v.Acked = v.Desired.N // what the loop or the session says about its current work is not a new command: failures count on
		}
	default:
		if c.State == Foreign {
			replaced := c.Desired
			if replaced.N == 0 { // no desired state was ever set: the loop reads a pause
				replaced = Desired{State: WordPause, N: 1}
			}
			if c.Desired.N > c.Acked { // the loop may not have read the replaced one either
				v.Before, v.Earlier = c.Before, c.Earlier
			}
			v.mayComeBack(replaced)
		}
	}
}

// mayComeBack records a desired state that a foreign loop may write back although a newer one
// applies. The oldest of too many is dropped.
func (v *Value) mayComeBack(d Desired) {
	var earlier Replaced
	n := 0
	for o := range v.replaced {
		if same := o.State == d.State && o.By == d.By && o.Note == d.Note; !same && n < len(earlier) {
			earlier[n] = *o
			n++
		}
	}
	if v.Before, v.Earlier = &d, nil; n > 0 {
		v.Earlier = &earlier
	}
}

// replaced yields the desired states that a foreign loop may still write back, the newest first.
func (v *Value) replaced(yield func(*Desired) bool) {
	if v.Before == nil || !yield(v.Before) || v.Earlier == nil {
		return
	}
	for i := range v.Earlier {
		if o := &v.Earlier[i]; o.N != 0 && !yield(o) {
			return
		}
	}
}

// desiredOf returns the desired state in an input. The author of the file is taken as given.
func (c *Control) desiredOf(in Input, now Now) Desired {
	w := Desired{N: c.Desired.N + 1, At: now.At.UTC()}
	switch in := in.(type) {
	case Commanded:
		w.State, w.By, w.Note = in.Desired, cut(in.By), cut(in.Note)
	case FileRead:
		w.State, w.By, w.Note, w.File = in.Desired, cut(in.By), cut(in.Note), true
		if believable(in.Stamp, now.At) && !in.Stamp.IsZero() {
			w.At = in.Stamp.UTC()
		}
		if in.Note == heldNote(c.Desired.State) {
			w.Note = c.Desired.Note // Fairlead's own note about a hold, which the file's author left unchanged
		}
	default:
		panic(fmt.Sprintf("control: no desired state in a %T", in))
	}
	if _, known := wanted[w.State]; !known {
		w.Unknown = true
		w.State = cut(w.State)
		w.Note = cut(fmt.Sprintf("unknown desired_state %q, treated as pause", w.State))
	}
	w.Lock = c.lock(in, w)
	return w
}

// lock returns who may lift a desired state. A pause that replaces a pause is never easier to lift,
// unless a person's order replaces it.
func (c *Control) lock(in Input, w Desired) Lock {
	if w.State != WordPause && !w.Unknown {
		return Unlocked
	}
	_, ordered := in.(Commanded)
	switch {
	case ordered && w.By == "human":
		return LockedByOrder
	case c.Desired.Lock == Unlocked && w.By == "human":
		return LockedByFile
	default:
		return c.Desired.Lock
	}
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

// spendNote returns why a desired state ended. Text from the agent comes last and is cut.
func (c *Control) spendNote(event Event, v *Value, in Input, now Now) string {
	word := c.Current()
	switch event {
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
		if v.Failures == 1 {
			return "the session failed: " + in.(Ended).Why
		}
		return fmt.Sprintf("%d sessions failed in a row, the last one: %s", v.Failures, in.(Ended).Why)
	default:
		return "limit reached: " + limitOf(v, c, now)
	}
}

func limitOf(v *Value, c *Control, now Now) string {
	for _, limit := range []string{v.Limit, c.Limit, now.OverLimit} {
		if limit != "" {
			return limit
		}
	}
	panic("control: a desired state ends at a limit without a name")
}

// countFailure counts consecutive failures. A newer desired state resets the count; so does a
// foreign program that ran long enough to count as working.
func (c *Control) countFailure(v *Value, ended Ended) {
	if c.State == Foreign {
		v.Running = false
		if ended.Ran >= c.Policy.BackoffMax {
			v.Failures = 0
		}
		if ended.Outcome == Cancelled || ended.Outcome == Withdrawn {
			return // ended by order: not a failure
		}
	}
	if c.State != Foreign && c.Desired.N > c.Acked {
		v.Failures = 0
		v.Acked = v.Desired.N
	}
	v.Failures++
}

// takeReport records the state that the foreign loop wrote. If the loop works on the newest desired
// state, it has read it; if it works on another one, it has not.
func takeReport(v *Value, in Input, now Now) {
	file, ok := in.(FileRead)
	if _, broken := in.(FileBroken); broken {
		return // Fairlead writes its last report into the new file
	}
	if !ok {
		v.Reported = "" // the file was removed, so nothing is reported
		return
	}
	couldRead := !file.Unwritten && !file.Swapped
	if current := cut(file.Current); couldRead && current != v.Reported && current == v.word() {
		v.Acked = v.Desired.N
	}
	if v.Acked == v.Desired.N {
		v.Buried = 0
	}
	v.Reported, v.Extra = cut(file.Current), file.Extra
	if stamp := file.Stamp.UTC().Truncate(time.Millisecond); stamp.After(v.Stamp) && believable(stamp, now.At) {
		v.Stamp = stamp
	}
}

// cut limits a text from outside to the size that the journal keeps.
func cut(s string) string { return clip.Text(s, noteBytesMax) }
