package control

import "github.com/fairlead-dev/fairlead/machine"

// State is where one agent's control stands. It says what current_state is: resting is
// pause, backing_off is continuous, foreign is whatever the foreign loop reported.
type State string

const (
	Absent     State = "absent"      // nothing is known yet, not even a file
	Resting    State = "resting"     // nothing runs
	Continuous State = "continuous"  // session after session
	RunOnce    State = "run_once"    // one session
	RunCleanup State = "run_cleanup" // one cleanup session
	BackingOff State = "backing_off" // continuous, between a failure and the next try
	Foreign    State = "foreign"     // somebody else runs the loop; we command and watch
)

// Event is what happened to an agent, named so finely that a state and an event decide.
type Event string

const (
	// The file and the daemon.
	FileFound           Event = "file_found"           // first look: there is one
	FileMissing         Event = "file_missing"         // first look: there is none; later: it was deleted
	FileMalformed       Event = "file_malformed"       // kept aside already
	FileTorn            Event = "file_torn"            // unparsable, met first after a reboot
	CurrentContradicted Event = "current_contradicted" // somebody else wrote current_state
	FileSeen            Event = "file_seen"            // somebody else wrote what it said already
	DesiredOvertaken    Event = "wish_overtaken"       // found in a file that ours replaced; a newer one stands
	ExtraWritten        Event = "extra_written"        // only fields that we do not know changed
	DueContinuous       Event = "due_continuous"       // the wish that stands is due: daemon started, hold released
	DueRunOnce          Event = "due_run_once"
	DueRunCleanup       Event = "due_run_cleanup"
	DueOverLimit        Event = "due_over_limit"
	SessionAdopted      Event = "session_adopted" // it outlived a restart of ours
	MadeForeign         Event = "made_foreign"    // the configuration says so
	MadeOurs            Event = "made_ours"

	// A new wish, by file, command line, page or API.
	WantedContinuous Event = "wanted_continuous"
	WantedRunOnce    Event = "wanted_run_once"
	WantedRunCleanup Event = "wanted_run_cleanup"
	WantedPause      Event = "wanted_pause"
	WantedUnknown    Event = "wanted_unknown"
	WantedAgain      Event = "wanted_again"      // the one-shot under way, once more
	WantedHeld       Event = "wanted_held"       // to start, while the team is held
	WantedStopping   Event = "wanted_stopping"   // to start, while Fairlead stops
	WantedOverLimit  Event = "wanted_over_limit" // to start, while a limit of the day is used up

	// The end of a continuous session, by what is wanted now.
	EndedGoOn              Event = "ended_go_on"
	EndedCleanupDue        Event = "ended_cleanup_due"
	EndedDesiredPause      Event = "ended_wish_pause"
	EndedDesiredRunOnce    Event = "ended_wish_run_once"
	EndedDesiredRunCleanup Event = "ended_wish_run_cleanup"
	EndedDesiredUnknown    Event = "ended_wish_unknown"
	LostGoOn               Event = "lost_go_on"
	ProviderWaits          Event = "provider_waits" // its provider takes no more for a while; of a one-shot, too
	FailedBackingOff       Event = "failed_backing_off"
	FailedForGood          Event = "failed_for_good"

	// The end of a one-shot.
	OneShotEnded      Event = "one_shot_ended"
	OneShotFailed     Event = "one_shot_failed"
	OneShotLost       Event = "one_shot_lost"
	OneShotAgain      Event = "one_shot_again"
	NewerContinuous   Event = "newer_continuous"
	NewerRunOnce      Event = "newer_run_once"
	NewerRunCleanup   Event = "newer_run_cleanup"
	NewerPause        Event = "newer_pause"
	NewerUnknown      Event = "newer_unknown"
	OneShotStillOwing Event = "one_shot_still_owing" // it never began, and nothing forbids it any more

	// The end of either, where something else decides.
	EndedLimited  Event = "ended_limited"
	EndedHeld     Event = "ended_held"
	EndedStopping Event = "ended_stopping"
	EndedRested   Event = "ended_rested" // the file was deleted or broken meanwhile: nobody wants anything

	LimitReached   Event = "limit_reached"
	BackoffElapsed Event = "backoff_elapsed"
	HoldSet        Event = "hold_set"
	StopAsked      Event = "stop_asked"

	// A foreign loop.
	Reported         Event = "reported"          // it wrote current_state
	DesiredSpent     Event = "wish_spent"        // it ended the one-shot that we asked for
	CommandBuried    Event = "command_buried"    // its own end of a one-shot went over our newer command
	CommandUnwritten Event = "command_unwritten" // our last command never reached the file
	HoldLifted       Event = "hold_lifted"
	ProgramDue       Event = "program_due"
	ProgramPostponed Event = "program_postponed" // a limit of the day is used up
	ProgramEnded     Event = "program_ended"
)

// Act is what a rule does with the agent's data on the way.
type Act string

const (
	TakeDesired    Act = "take_wish"       // what is wanted now, by whom and why
	RestDesired    Act = "rest_wish"       // pause, as if nobody had ever asked for anything
	SpendOneShot   Act = "spend_one_shot"  // pause in place of a one-shot that was begun; else nothing
	SpendDesired   Act = "spend_wish"      // pause, with a note that says why; SPEC C8, C9, C16, C17, C20
	OpenSession    Act = "open_session"    // in obedience to the wish as it stands
	OpenCleanup    Act = "open_cleanup"    // the same, with --cleanup-session
	OpenProgram    Act = "open_program"    // the foreign loop's own program
	EndSession     Act = "end_session"     // after a grace period
	NoteLimit      Act = "note_limit"      // which one was reached
	CountSession   Act = "count_session"   // towards cleanup_every
	CountCleanup   Act = "count_cleanup"   // and from nought again
	CountFailure   Act = "count_failure"   // towards failures_max
	ForgetFailures Act = "forget_failures" // a success, or a person who wants it tried now
	StartBackoff   Act = "start_backoff"   // 1 s doubling to 60 s
	Rewrite        Act = "rewrite"         // the file says again what the journal says
	NoteOvertaken  Act = "note_overtaken"  // on record, without effect
	TakeExtra      Act = "take_extra"      // unknown fields are kept, X7
	TakeReport     Act = "take_report"     // current_state as the foreign loop says it
)

// do only saves type names.
func do(acts ...Act) []Act { return acts }

type rules = map[Event]machine.Rule[State, Act]

// Table is the whole policy. The ids are SPEC's rows; F1 to F5 are the rules for a foreign
// loop, which SPEC gives as text below its table.
var Table = machine.Table[State, Event, Act]{
	Absent: {
		FileMissing:   {ID: "C1", To: Resting, Do: do(RestDesired, Rewrite)},
		FileFound:     {ID: "C15", To: Resting, Do: do(TakeDesired, Rewrite), Why: "taken in first, then acted on like any wish that stands"},
		FileMalformed: {ID: "C12", To: Resting, Do: do(RestDesired, Rewrite)},
		FileTorn:      {ID: "C12", To: Resting, Do: do(RestDesired, Rewrite), Why: "there is nothing in the journal to restore it from"},
		MadeForeign:   {ID: "F1", To: Foreign},
	},
	Resting: {
		WantedContinuous:    {ID: "C2", To: Continuous, Do: do(TakeDesired, ForgetFailures, OpenSession)},
		WantedRunOnce:       {ID: "C3", To: RunOnce, Do: do(TakeDesired, ForgetFailures, OpenSession)},
		WantedRunCleanup:    {ID: "C4", To: RunCleanup, Do: do(TakeDesired, ForgetFailures, OpenCleanup)},
		WantedPause:         {ID: "C6", To: Resting, Do: do(TakeDesired), Why: "at rest already; the wish is written all the same"},
		WantedUnknown:       {ID: "C13", To: Resting, Do: do(TakeDesired)},
		WantedHeld:          {ID: "C18", To: Resting, Do: do(TakeDesired, ForgetFailures), Why: "kept until the hold is released"},
		WantedStopping:      {ID: "C14", To: Resting, Do: do(TakeDesired, ForgetFailures), Why: "kept until Fairlead is started again"},
		WantedOverLimit:     {ID: "C17", To: Resting, Do: do(TakeDesired, SpendDesired)},
		DueContinuous:       {ID: "C15", To: Continuous, Do: do(OpenSession)},
		DueRunOnce:          {ID: "C15", To: RunOnce, Do: do(OpenSession)},
		DueRunCleanup:       {ID: "C15", To: RunCleanup, Do: do(OpenCleanup)},
		DueOverLimit:        {ID: "C17", To: Resting, Do: do(SpendDesired)},
		FileMissing:         {ID: "C21", To: Resting, Do: do(RestDesired, Rewrite)},
		FileMalformed:       {ID: "C12", To: Resting, Do: do(RestDesired, Rewrite)},
		FileTorn:            {ID: "C12", To: Resting, Do: do(Rewrite), Why: "a torn write is no wish: the journal knows better"},
		CurrentContradicted: {ID: "C22", To: Resting, Do: do(TakeExtra, Rewrite)},
		FileSeen:            {ID: "X3", To: Resting, Why: "taken in, so that it is no news after a restart"},
		DesiredOvertaken:    {ID: "X3", To: Resting, Do: do(NoteOvertaken), Why: "older than the wish that stands; nothing that was written goes unrecorded"},
		ExtraWritten:        {ID: "X7", To: Resting, Do: do(TakeExtra, Rewrite)},
		MadeForeign:         {ID: "F1", To: Foreign},
	},
	Continuous: underWay(Continuous, rules{
		EndedGoOn:              {ID: "C5", To: Continuous, Do: do(ForgetFailures, CountSession, OpenSession)},
		EndedCleanupDue:        {ID: "C5", To: Continuous, Do: do(ForgetFailures, CountCleanup, OpenCleanup), Why: "cleanup_every: a cleanup session without leaving continuous"},
		EndedDesiredPause:      {ID: "C6", To: Resting, Do: do(ForgetFailures)},
		EndedDesiredRunOnce:    {ID: "C7", To: RunOnce, Do: do(ForgetFailures, OpenSession)},
		EndedDesiredRunCleanup: {ID: "C7", To: RunCleanup, Do: do(ForgetFailures, OpenCleanup)},
		EndedDesiredUnknown:    {ID: "C13", To: Resting, Do: do(ForgetFailures)},
		LostGoOn:               {ID: "C15", To: Continuous, Do: do(OpenSession), Why: "how it ended nobody knows, so it is no failure; the wish stands"},
		ProviderWaits:          {ID: "R1", To: Continuous, Do: do(OpenSession), Why: "it goes on when the provider does; no failure, and no success"},
		FailedBackingOff:       {ID: "C16", To: BackingOff, Do: do(CountFailure, StartBackoff)},
		FailedForGood:          {ID: "C16", To: Resting, Do: do(CountFailure, SpendDesired)},
	}),
	RunOnce: underWay(RunOnce, rules{
		OneShotEnded:      {ID: "C8", To: Resting, Do: do(SpendDesired)},
		OneShotFailed:     {ID: "C20", To: Resting, Do: do(SpendDesired)},
		OneShotLost:       {ID: "C15", To: Resting, Do: do(SpendDesired), Why: "it may have done its work: once means once"},
		OneShotAgain:      {ID: "C19", To: RunOnce, Do: do(OpenSession)},
		OneShotStillOwing: {ID: "C15", To: RunOnce, Do: do(OpenSession)},
		ProviderWaits:     {ID: "R1", To: RunOnce, Do: do(OpenSession), Why: "it has not done what it was asked for, and has not failed"},
		NewerContinuous:   {ID: "C10", To: Continuous, Do: do(OpenSession)},
		NewerRunCleanup:   {ID: "C10", To: RunCleanup, Do: do(OpenCleanup)},
		NewerPause:        {ID: "C10", To: Resting, Why: "the human's own pause, with his own note"},
		NewerUnknown:      {ID: "C13", To: Resting},
		WantedAgain:       {ID: "C19", To: RunOnce, Do: do(TakeDesired), Why: "one more session after this one"},
	}),
	RunCleanup: underWay(RunCleanup, rules{
		OneShotEnded:      {ID: "C9", To: Resting, Do: do(SpendDesired)},
		OneShotFailed:     {ID: "C20", To: Resting, Do: do(SpendDesired)},
		OneShotLost:       {ID: "C15", To: Resting, Do: do(SpendDesired), Why: "it may have done its work: once means once"},
		OneShotAgain:      {ID: "C19", To: RunCleanup, Do: do(OpenCleanup)},
		OneShotStillOwing: {ID: "C15", To: RunCleanup, Do: do(OpenCleanup)},
		ProviderWaits:     {ID: "R1", To: RunCleanup, Do: do(OpenCleanup), Why: "it has not done what it was asked for, and has not failed"},
		NewerContinuous:   {ID: "C10", To: Continuous, Do: do(OpenSession)},
		NewerRunOnce:      {ID: "C10", To: RunOnce, Do: do(OpenSession)},
		NewerPause:        {ID: "C10", To: Resting, Why: "the human's own pause, with his own note"},
		NewerUnknown:      {ID: "C13", To: Resting},
		WantedAgain:       {ID: "C19", To: RunCleanup, Do: do(TakeDesired), Why: "one more session after this one"},
	}),
	BackingOff: {
		BackoffElapsed:      {ID: "C16", To: Continuous, Do: do(OpenSession)},
		DueOverLimit:        {ID: "C17", To: Resting, Do: do(ForgetFailures, SpendDesired)},
		MadeForeign:         {ID: "F1", To: Foreign, Do: do(ForgetFailures)},
		WantedContinuous:    {ID: "C16", To: Continuous, Do: do(TakeDesired, ForgetFailures, OpenSession), Why: "a person who asks again does not want to wait"},
		WantedRunOnce:       {ID: "C16", To: RunOnce, Do: do(TakeDesired, ForgetFailures, OpenSession)},
		WantedRunCleanup:    {ID: "C16", To: RunCleanup, Do: do(TakeDesired, ForgetFailures, OpenCleanup)},
		WantedPause:         {ID: "C16", To: Resting, Do: do(TakeDesired, ForgetFailures)},
		WantedUnknown:       {ID: "C13", To: Resting, Do: do(TakeDesired, ForgetFailures)},
		WantedHeld:          {ID: "C18", To: Resting, Do: do(TakeDesired, ForgetFailures)},
		WantedStopping:      {ID: "C14", To: Resting, Do: do(TakeDesired, ForgetFailures)},
		WantedOverLimit:     {ID: "C17", To: Resting, Do: do(TakeDesired, ForgetFailures, SpendDesired)},
		HoldSet:             {ID: "C18", To: Resting, Do: do(ForgetFailures), Why: "what would have been tried again waits for the release"},
		StopAsked:           {ID: "C14", To: Resting, Do: do(ForgetFailures)},
		LimitReached:        {ID: "C17", To: Resting, Do: do(ForgetFailures, NoteLimit, SpendDesired)},
		FileMissing:         {ID: "C21", To: Resting, Do: do(RestDesired, ForgetFailures, Rewrite)},
		FileMalformed:       {ID: "C12", To: Resting, Do: do(RestDesired, ForgetFailures, Rewrite)},
		FileTorn:            {ID: "C12", To: BackingOff, Do: do(Rewrite)},
		CurrentContradicted: {ID: "C22", To: BackingOff, Do: do(TakeExtra, Rewrite)},
		FileSeen:            {ID: "X3", To: BackingOff, Why: "taken in, so that it is no news after a restart"},
		DesiredOvertaken:    {ID: "X3", To: BackingOff, Do: do(NoteOvertaken), Why: "older than the wish that stands; nothing that was written goes unrecorded"},
		ExtraWritten:        {ID: "X7", To: BackingOff, Do: do(TakeExtra, Rewrite)},
	},
	Foreign: {
		WantedContinuous: {ID: "F2", To: Foreign, Do: do(TakeDesired, Rewrite), Why: "the wish is written; its own loop obeys"},
		WantedRunOnce:    {ID: "F2", To: Foreign, Do: do(TakeDesired, Rewrite)},
		WantedRunCleanup: {ID: "F2", To: Foreign, Do: do(TakeDesired, Rewrite)},
		WantedPause:      {ID: "F2", To: Foreign, Do: do(TakeDesired, Rewrite)},
		WantedUnknown:    {ID: "C13", To: Foreign, Do: do(TakeDesired)},
		WantedHeld:       {ID: "C18", To: Foreign, Do: do(TakeDesired, Rewrite), Why: "pause is what the file says until the hold is released"},
		WantedStopping:   {ID: "F2", To: Foreign, Do: do(TakeDesired, Rewrite)},
		WantedOverLimit:  {ID: "C17", To: Foreign, Do: do(TakeDesired, SpendDesired, Rewrite)},
		Reported:         {ID: "F3", To: Foreign, Do: do(TakeReport)},
		DesiredSpent:     {ID: "F3", To: Foreign, Do: do(TakeDesired, TakeReport), Why: "the foreign loop writes pause and pause at the end of a one-shot"},
		CommandBuried:    {ID: "F4", To: Foreign, Do: do(TakeReport, Rewrite), Why: "it wrote pause over a command that it had not read"},
		CommandUnwritten: {ID: "F4", To: Foreign, Do: do(TakeReport, Rewrite)},
		FileFound:        {ID: "F3", To: Foreign, Do: do(TakeDesired, TakeReport)},
		FileMissing:      {ID: "F3", To: Foreign, Do: do(TakeReport), Why: "its own loop makes it anew"},
		FileMalformed:    {ID: "C12", To: Foreign, Do: do(TakeReport, Rewrite), Why: "the bytes are kept; what is wanted, and what it said last of itself, is written anew"},
		FileTorn:         {ID: "C12", To: Foreign, Do: do(Rewrite)},
		DesiredOvertaken: {ID: "X3", To: Foreign, Do: do(NoteOvertaken), Why: "older than the wish that stands; nothing that was written goes unrecorded"},
		ExtraWritten:     {ID: "X7", To: Foreign, Do: do(TakeReport)},
		LimitReached:     {ID: "C17", To: Foreign, Do: do(NoteLimit, SpendDesired, Rewrite)},
		HoldSet:          {ID: "C18", To: Foreign, Do: do(Rewrite), Why: "a foreign loop is held by its file"},
		HoldLifted:       {ID: "C18", To: Foreign, Do: do(Rewrite)},
		ProgramDue:       {ID: "F5", To: Foreign, Do: do(OpenProgram)},
		ProgramPostponed: {ID: "C17", To: Foreign, Do: do(StartBackoff), Why: "limits stop everything; the deadline falls on the next day"},
		ProgramEnded:     {ID: "F5", To: Foreign, Do: do(CountFailure, StartBackoff), Why: "kept running from up to down"},
		SessionAdopted:   {ID: "C15", To: Foreign},
		MadeOurs:         {ID: "F1", To: Resting, Do: do(SpendOneShot, ForgetFailures, Rewrite), Why: "a continuous wish stands; whether a one-shot was done nobody knows"},
	},
}

// underWay adds what every session has in common: nothing that is wanted interrupts it (C11).
func underWay(state State, own rules) rules {
	common := rules{
		WantedContinuous:    {ID: "C11", To: state, Do: do(TakeDesired)},
		WantedRunOnce:       {ID: "C11", To: state, Do: do(TakeDesired)},
		WantedRunCleanup:    {ID: "C11", To: state, Do: do(TakeDesired)},
		WantedPause:         {ID: "C11", To: state, Do: do(TakeDesired)},
		WantedUnknown:       {ID: "C13", To: state, Do: do(TakeDesired)},
		WantedHeld:          {ID: "C11", To: state, Do: do(TakeDesired)},
		WantedStopping:      {ID: "C11", To: state, Do: do(TakeDesired)},
		WantedOverLimit:     {ID: "C11", To: state, Do: do(TakeDesired)},
		FileMissing:         {ID: "C21", To: state, Do: do(RestDesired, Rewrite), Why: "the session finishes first"},
		FileMalformed:       {ID: "C12", To: state, Do: do(RestDesired, Rewrite), Why: "the session finishes first"},
		FileTorn:            {ID: "C12", To: state, Do: do(Rewrite)},
		CurrentContradicted: {ID: "C22", To: state, Do: do(TakeExtra, Rewrite)},
		FileSeen:            {ID: "X3", To: state, Why: "taken in, so that it is no news after a restart"},
		DesiredOvertaken:    {ID: "X3", To: state, Do: do(NoteOvertaken), Why: "older than the wish that stands; nothing that was written goes unrecorded"},
		ExtraWritten:        {ID: "X7", To: state, Do: do(TakeExtra, Rewrite)},
		SessionAdopted:      {ID: "C15", To: state, Why: "adopted, not doubled"},
		LimitReached:        {ID: "C17", To: state, Do: do(NoteLimit, EndSession)},
		EndedLimited:        {ID: "C17", To: Resting, Do: do(SpendDesired)},
		EndedRested:         {ID: "C21", To: Resting, Do: do(ForgetFailures), Why: "deleted in mid-session, or broken (C12): the session has finished"},
		EndedHeld:           {ID: "C18", To: Resting, Why: "the wish is kept for the release"},
		EndedStopping:       {ID: "C14", To: Resting, Why: "a continuous wish stays for the next start"},
	}
	for event, rule := range own {
		common[event] = rule
	}
	return common
}
