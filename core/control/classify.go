package control

import (
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/core/table"
)

// wanted names the event of a new desired state.
var wanted = map[string]Event{
	WordContinuous: WantedContinuous,
	WordRunOnce:    WantedRunOnce,
	WordRunCleanup: WantedRunCleanup,
	WordPause:      WantedPause,
}

// due names the event of a desired state that was set earlier.
var due = map[string]Event{
	WordContinuous: DueContinuous,
	WordRunOnce:    DueRunOnce,
	WordRunCleanup: DueRunCleanup,
}

// newer names the event of a desired state that was set during a one-shot.
var newer = map[string]Event{
	WordContinuous: NewerContinuous,
	WordRunOnce:    NewerRunOnce,
	WordRunCleanup: NewerRunCleanup,
}

// classify returns the events that an input stands for. It is the only place that looks at the
// data on which a decision depends.
func (c *Control) classify(in Input, now Now) ([]Event, error) {
	switch in := in.(type) {
	case Commanded:
		return c.commanded(in, now)
	case observation:
		return c.fileLooked(in, now), nil
	case Started:
		return c.resume(now), nil
	case Released:
		if c.State == Foreign && c.Wants() {
			return append(one(HoldLifted), c.resume(now)...), nil
		}
		return c.resume(now), nil
	case Held:
		if c.State == BackingOff || (c.State == Foreign && c.Wants()) {
			return one(HoldSet), nil
		}
		return nil, nil
	case Stopping:
		if c.State == BackingOff {
			return one(StopAsked), nil
		}
		return nil, nil
	case Adopted:
		return one(SessionAdopted), nil
	case LimitHit:
		if c.Limit != "" || c.State == Resting || c.State == Absent || (c.State == Foreign && !c.Wants()) {
			return nil, nil
		}
		return one(LimitReached), nil
	case Elapsed:
		return c.elapsed(in, now), nil
	case Ended:
		return one(c.ended(in, now)), nil
	default:
		panic(fmt.Sprintf("control: unknown input: %T", in))
	}
}

func one(e Event) []Event { return []Event{e} }

// commanded is a desired state set through the API, which can be refused; one in the file cannot.
func (c *Control) commanded(in Commanded, now Now) ([]Event, error) {
	event, known := wanted[in.Desired]
	if !known {
		return nil, c.refuse(WantedUnknown, "C13",
			fmt.Sprintf("%q is no state; take one of continuous, pause, run_once, run_cleanup", in.Desired))
	}
	if c.State == Absent {
		return nil, &table.Refusal{
			Subject: c.Name, Event: string(event), State: string(c.State), Row: "C15",
			Reason: "its agent_state.json could not be read yet; `fairlead why " + c.Name +
				"` says why, and orders are taken once it can be read",
		}
	}
	if in.By == "agent" && in.Desired != WordPause && c.Desired.Lock != Unlocked {
		return nil, &table.Refusal{
			Subject: c.Name, Event: string(event), State: string(c.State), Row: "X10",
			Reason: "a person paused it, and no agent lifts a person's pause; ask the person who runs this team",
		}
	}
	if now.OverLimit != "" && in.Desired != WordPause {
		return nil, c.refuse(event, "C17", now.OverLimit+" is reached; raise it in fairlead.yaml, or wait for the next day (UTC)")
	}
	return one(c.wantedEvent(in.Desired, now, true)), nil
}

// wantedEvent returns the event of a new desired state, given what may delay it.
func (c *Control) wantedEvent(word string, now Now, again bool) Event {
	event, known := wanted[word]
	switch {
	case !known:
		return WantedUnknown
	case word == WordPause:
		return WantedPause
	case again && c.State == RunOnce && word == WordRunOnce, again && c.State == RunCleanup && word == WordRunCleanup:
		return WantedAgain
	case now.Stopping:
		return WantedStopping
	case now.Held:
		return WantedHeld
	case now.OverLimit != "":
		return WantedOverLimit
	default:
		return event
	}
}

// observation is an input about the file.
type observation interface {
	Input
	looked(c *Control, now Now) []Event
}

// fileLooked classifies an observation of the file. If the configuration made the agent foreign,
// that event comes first: otherwise Fairlead's rules would overwrite the file.
func (c *Control) fileLooked(in observation, now Now) []Event {
	if c.becomesForeign() {
		next := *c
		next.State = Foreign
		return append(one(MadeForeign), in.looked(&next, now)...)
	}
	return in.looked(c, now)
}

func (in FileRead) looked(c *Control, now Now) []Event { return c.fileRead(in, now) }

func (in FileBroken) looked(*Control, Now) []Event {
	if in.Torn {
		return one(FileTorn)
	}
	return one(FileMalformed)
}

func (FileGone) looked(c *Control, _ Now) []Event {
	if c.State == Foreign && c.Reported == "" {
		return nil
	}
	return one(FileMissing)
}

// overtaken reports whether a file holds a desired state that is older than the current one: it was written before the
// current one was in the file, and its author or Fairlead has decided since.
func (c *Control) overtaken(in FileRead) bool {
	return (in.Swapped || in.Unwritten) && !in.Stamp.IsZero() && in.Stamp.Before(c.Desired.At)
}

func (c *Control) becomesForeign() bool {
	return c.Policy.Foreign && (c.State == Resting || c.State == Absent || c.State == BackingOff)
}

// fileRead compares what another program wrote with the expected content.
//
// A different desired_state is a new desired state. The same word with a newer timestamp is one
// too (C19), unless the writer only changed current_state (C22) or an unknown field (X7). Taking
// such a write for a new desired state would repeat a one-shot forever.
func (c *Control) fileRead(in FileRead, now Now) []Event {
	switch {
	case c.State == Foreign && in.Swapped && c.overtaken(in):
		return append(c.reported(in), DesiredOvertaken) // its current_state was still true, and only this path reports it
	case c.State != Foreign && c.overtaken(in) && !in.Swapped && in.Extra != c.Extra:
		return []Event{DesiredOvertaken, ExtraWritten} // the file that is about to be replaced has fields that no other one has
	case c.State != Foreign && c.overtaken(in):
		return one(DesiredOvertaken)
	case c.mayNotLift(in):
		return one(PauseStands)
	case c.State == Foreign && now.InSession && c.Desired.Lock != Unlocked && c.raises(in.Desired):
		if now.Asked {
			return nil // the file differs, so it is written again in any case
		}
		return one(RaiseAsked)
	case c.State == Foreign:
		return c.foreignRead(in, now)
	}
	if c.State == Absent {
		return one(FileFound)
	}
	was := c.File(now.Held)
	later := in.Stamp.After(c.Stamp)
	resigned := in.By != was.By || in.Note != was.Note
	onlyExtra := in.Extra != was.Extra && in.Extra != "" && !resigned
	again := resigned || (in.Current == was.Current && !onlyExtra)
	if in.Desired != was.Desired || (later && again) || (resigned && !c.atOneShot(in.Desired)) {
		switch event := c.wantedEvent(in.Desired, now, later); {
		case !c.raises(in.Desired) || !now.InSession:
			return one(event)
		case c.State == BackingOff && in.Desired == c.Desired.State:
			return one(CurrentContradicted) // it repeats what is in force, and a session does not end the back-off
		case now.Asked:
			return nil // the file differs, so it is written again in any case
		default:
			return one(RaiseAsked)
		}
	}
	if in.Current != was.Current {
		return one(CurrentContradicted)
	}
	if in.Extra != was.Extra {
		return one(ExtraWritten)
	}
	return one(FileSeen)
}

// raises reports whether a desired state asks for more than the current one does. A back-off ends with any of them.
func (c *Control) raises(word string) bool {
	_, known := wanted[word]
	return known && word != WordPause && (c.word() != WordContinuous || c.State == BackingOff)
}

// mayNotLift reports whether a file asks to start an agent whose pause it may not lift. An unknown word
// is a pause.
func (c *Control) mayNotLift(in FileRead) bool {
	_, known := wanted[in.Desired]
	return known && in.Desired != WordPause &&
		(c.Desired.Lock == LockedByOrder || c.Desired.Lock == LockedByFile && in.By == "agent")
}

// atOneShot reports whether the one-shot of this name is running. A second run of it requires a
// newer timestamp (C19).
func (c *Control) atOneShot(word string) bool {
	return (c.State == RunOnce || c.State == RunCleanup) && word == c.Current()
}

// foreignRead is a write of a foreign loop. It may report its state, and it may end a one-shot
// over a command that it has not read yet.
func (c *Control) foreignRead(in FileRead, now Now) []Event {
	was := c.File(now.Held)
	later := in.Stamp.After(c.Stamp)
	if in.First && in.Desired != was.Desired && !c.Stamp.IsZero() && !later {
		return one(CommandUnwritten)
	}
	ownEnd := in.Desired == WordPause && in.Current == WordPause && (c.Reported == WordRunOnce || c.Reported == WordRunCleanup)
	if ownEnd && c.Wants() && c.Desired.N > c.Acked {
		return one(CommandBuried)
	}
	if ownEnd && c.Wants() {
		return one(DesiredSpent)
	}
	if c.unread(in, now) {
		if c.Overwritten() && cut(in.Current) == c.Reported && in.Extra == c.Extra && now.At.Before(c.Stamp.Add(rewriteEvery)) {
			return nil // the file differs, so it is written again in any case
		}
		return one(CommandBuried)
	}
	if in.Desired != was.Desired && c.overtaken(in) {
		return append(c.reported(in), DesiredOvertaken)
	}
	if in.Desired != was.Desired || in.By != was.By || in.Note != was.Note {
		event := c.wantedEvent(in.Desired, now, false)
		if event == WantedStopping && now.Held {
			event = WantedHeld // both rows: its file must also show the hold
		}
		switch event {
		case WantedHeld, WantedOverLimit, WantedUnknown:
			return append(c.reported(in), event)
		default:
			return one(FileFound)
		}
	}
	return c.reported(in)
}

// staleWriteMax is how long after Fairlead's write a foreign loop may still write back older
// content. A loop takes milliseconds between its read and its write, and up to seconds on a busy
// machine. A person who repeats the previous command takes longer.
const staleWriteMax = 3 * time.Second

// rewriteEvery is how often a loop that keeps writing over an order is recorded. The file is corrected as often.
const rewriteEvery = time.Second

// unread reports whether a foreign loop wrote without having read Fairlead's last write, so its desired_state is no order. Before
// its write it read a pause of a hold, or one of the desired states that the newest one replaced: it writes that one back, or the
// pause that ends it. Neither setBy nor the time decides: some loops sign every report, and a slow one writes late.
//
// A person can write the same words. These are a person's: a note that is in none of the contents that the loop could read, and
// any word for a desired state that was not replaced. The loop has read the newest desired state if it works on it, or repeats
// its note.
func (c *Control) unread(in FileRead, now Now) bool {
	current := cut(in.Current)
	ends := in.Desired == WordPause && in.Current == WordPause && c.replacedOneShot()
	switch {
	case c.Wants() && now.Held && c.Desired.saidBy(in):
		return true
	case c.Wants() && !now.Held && in.Desired == WordPause && in.Note == heldNote(c.Desired.State):
		return true
	case c.Desired.N <= c.Acked || !ends && !c.wroteBack(func(d *Desired) bool { return d.State == in.Desired }):
		return false
	case current != c.Reported && current == c.word():
		return false // it works on the newest
	}
	note := cut(in.Note)
	old := c.wroteBack(func(d *Desired) bool { return d.Note == note })
	switch {
	case !old && note != "" && note == c.Desired.Note:
		return ends
	case !old && in.By != "agent" && (note != "" || current == ""):
		return false // a person's words, or no report
	case in.By == "agent" || ends || in.First || in.Unwritten || in.Swapped || current != c.Reported:
		return true
	default: // the words of a loop that leaves setBy as it is; a person who repeats the last order takes longer
		return in.Stamp.Before(c.Stamp.Add(staleWriteMax))
	}
}

// wroteBack reports whether one of the desired states that the current one replaced, before the loop was seen to read it, is so.
func (c *Control) wroteBack(is func(*Desired) bool) bool {
	for d := range c.replaced {
		if is(d) {
			return true
		}
	}
	return false
}

// replacedOneShot reports whether the loop may end a one-shot that the current desired state replaced.
func (c *Control) replacedOneShot() bool {
	return c.wroteBack(func(d *Desired) bool { return d.State == WordRunOnce || d.State == WordRunCleanup })
}

// saidBy reports whether a file contains this desired state.
func (w Desired) saidBy(in FileRead) bool {
	return in.Desired == w.State && cut(in.By) == w.By && cut(in.Note) == w.Note
}

// reported is a change of current_state only. The timestamp alone is no news: it changes with
// every iteration of the loop.
func (c *Control) reported(in FileRead) []Event {
	if cut(in.Current) != c.Reported {
		return one(Reported)
	}
	if in.Extra != c.Extra {
		return one(ExtraWritten)
	}
	return nil
}

// resume acts on the current desired state, at the daemon's start and at the end of a hold.
func (c *Control) resume(now Now) []Event {
	switch {
	case c.becomesForeign():
		next := *c
		next.State = Foreign
		return append(one(MadeForeign), next.resume(now)...)
	case !c.Policy.Foreign && c.State == Foreign && !c.Running:
		next := *c
		next.State = Resting
		if next.begun() {
			return one(MadeOurs)
		}
		return append(one(MadeOurs), next.resume(now)...)
	case now.Held || now.Stopping:
		return nil
	case c.programDue() && now.OverLimit != "":
		return one(ProgramPostponed)
	case c.programDue():
		return one(ProgramDue)
	case c.State != Resting || !c.Wants():
		return nil
	case now.OverLimit != "":
		return one(DueOverLimit)
	default:
		return one(due[c.word()])
	}
}

// elapsed ignores a timer whose deadline is no longer current.
func (c *Control) elapsed(in Elapsed, now Now) []Event {
	switch {
	case c.Retry().IsZero() || !in.RetryAt.Equal(c.Retry()) || now.Held || now.Stopping:
		return nil
	case c.State == Foreign && now.OverLimit != "":
		return one(ProgramPostponed)
	case c.State == Foreign:
		return one(ProgramDue)
	case now.OverLimit != "":
		return one(DueOverLimit)
	default:
		return one(BackoffElapsed)
	}
}

// ended returns the event of a session's end, given the desired state and what forbids it.
func (c *Control) ended(in Ended, now Now) Event {
	if c.State == Foreign {
		return ProgramEnded
	}
	isNewer := c.Desired.N > c.Acked
	if c.word() == WordPause {
		// The newest desired state applies as written.
		return c.endedAtPause()
	}
	if now.OverLimit != "" || (c.Limit != "" && !isNewer) {
		return EndedLimited
	}
	if c.Policy.Foreign {
		now.Stopping = true // the configuration made the agent foreign: this was the last session of Fairlead's loop
	}
	if c.State == Continuous {
		return c.continuousEnded(in, now, isNewer)
	}
	return c.oneShotEnded(in, now, isNewer)
}

func (c *Control) endedAtPause() Event {
	switch {
	case c.Desired.Rested:
		return EndedRested
	case c.State == Continuous && c.Desired.Unknown:
		return EndedDesiredUnknown
	case c.State == Continuous:
		return EndedDesiredPause
	case c.Desired.Unknown:
		return NewerUnknown
	default:
		return NewerPause
	}
}

func (c *Control) continuousEnded(in Ended, now Now, isNewer bool) Event {
	word := c.word()
	failed := in.Outcome == Failed || in.Outcome == CannotStart || (in.Outcome == Lost && !in.AtStart)
	switch {
	case now.Stopping:
		return EndedStopping
	case now.Held:
		return EndedHeld
	case word == WordRunOnce:
		return EndedDesiredRunOnce
	case word == WordRunCleanup:
		return EndedDesiredRunCleanup
	case in.Outcome == RateLimited:
		return ProviderWaits
	case in.Outcome == Anew:
		return ConversationLost
	case failed && (in.ForGood || c.Failures+1 >= c.Policy.FailuresMax) && !isNewer:
		return FailedForGood
	case failed:
		return FailedBackingOff
	case in.Outcome == Lost:
		return LostGoOn
	case in.Outcome == OK && in.Kind == Work && c.Policy.CleanupEvery > 0 && c.SinceCleanup+1 >= c.Policy.CleanupEvery:
		return EndedCleanupDue
	default:
		return EndedGoOn
	}
}

func (c *Control) oneShotEnded(in Ended, now Now, isNewer bool) Event {
	own := WordRunOnce
	if c.State == RunCleanup {
		own = WordRunCleanup
	}
	owing := isNewer || in.Outcome == Withdrawn || in.Outcome == RateLimited || in.Outcome == Anew
	switch {
	case owing && now.Stopping:
		return EndedStopping
	case owing && now.Held:
		return EndedHeld
	case isNewer && c.word() == own:
		return OneShotAgain
	case isNewer:
		return newer[c.word()]
	case in.Outcome == Withdrawn:
		return OneShotStillOwing
	case in.Outcome == RateLimited:
		return ProviderWaits
	case in.Outcome == Anew:
		return ConversationLost
	case in.Outcome == Failed || in.Outcome == CannotStart:
		return OneShotFailed
	case in.Outcome == Lost:
		return OneShotLost
	default:
		return OneShotEnded
	}
}
