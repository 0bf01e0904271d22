package control

import (
	"maps"

	"github.com/fairlead-dev/fairlead/core/table"
)

// State is the state of one agent's control. It determines current_state: resting is pause,
// backing_off is continuous, and foreign is what the foreign loop reported.
type State string

const (
	Absent     State = "absent"      // initial state, before the file was read
	Resting    State = "resting"     // nothing runs
	Continuous State = "continuous"  // session after session
	RunOnce    State = "run_once"    // one session
	RunCleanup State = "run_cleanup" // one cleanup session
	BackingOff State = "backing_off" // continuous, between a failure and the retry
	Foreign    State = "foreign"     // another program runs the loop; Fairlead commands and watches
)

// Event is what happened to an agent. Each case has its own name, so state and event decide.
type Event string

const (
	// The file and the daemon.
	FileFound           Event = "file_found"           // first look: the file exists
	FileMissing         Event = "file_missing"         // first look: no file; later: the file was deleted
	FileMalformed       Event = "file_malformed"       // invalid; a copy has been kept
	FileTorn            Event = "file_torn"            // invalid, found first after a reboot
	CurrentContradicted Event = "current_contradicted" // another program wrote current_state
	FileSeen            Event = "file_seen"            // another program wrote the content it already had
	DesiredOvertaken    Event = "desired_overtaken"    // found in a file that Fairlead's write replaced; a newer one applies
	ExtraWritten        Event = "extra_written"        // only unknown fields changed
	PauseStands         Event = "pause_stands"         // a file tried to lift a pause that it may not lift
	RaiseAsked          Event = "raise_asked"          // a file asked for more during a session of a sandboxed agent that can write it
	DueContinuous       Event = "due_continuous"       // the current desired state is due: daemon started, hold released
	DueRunOnce          Event = "due_run_once"
	DueRunCleanup       Event = "due_run_cleanup"
	DueOverLimit        Event = "due_over_limit"
	SessionAdopted      Event = "session_adopted" // it outlived a restart of the daemon
	MadeForeign         Event = "made_foreign"    // the configuration says so
	MadeOurs            Event = "made_ours"

	// A new desired state, from the file, the command line, the page or the API.
	WantedContinuous Event = "wanted_continuous"
	WantedRunOnce    Event = "wanted_run_once"
	WantedRunCleanup Event = "wanted_run_cleanup"
	WantedPause      Event = "wanted_pause"
	WantedUnknown    Event = "wanted_unknown"
	WantedAgain      Event = "wanted_again"      // the current one-shot once more
	WantedHeld       Event = "wanted_held"       // to start, while the team is held
	WantedStopping   Event = "wanted_stopping"   // to start, while Fairlead stops
	WantedOverLimit  Event = "wanted_over_limit" // to start, while a daily limit is used up

	// The end of a continuous session, by the desired state.
	EndedGoOn              Event = "ended_go_on"
	EndedCleanupDue        Event = "ended_cleanup_due"
	EndedDesiredPause      Event = "ended_desired_pause"
	EndedDesiredRunOnce    Event = "ended_desired_run_once"
	EndedDesiredRunCleanup Event = "ended_desired_run_cleanup"
	EndedDesiredUnknown    Event = "ended_desired_unknown"
	LostGoOn               Event = "lost_go_on"
	ProviderWaits          Event = "provider_waits"    // the provider's rate limit ended the session; also of a one-shot
	ConversationLost       Event = "conversation_lost" // its program did nothing; also of a one-shot
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
	OneShotStillOwing Event = "one_shot_still_owing" // it never began and may start now

	// The end of either, where a limit, a hold or the file decides.
	EndedLimited  Event = "ended_limited"
	EndedHeld     Event = "ended_held"
	EndedStopping Event = "ended_stopping"
	EndedRested   Event = "ended_rested" // the file was deleted or broken meanwhile: no session is desired

	LimitReached   Event = "limit_reached"
	BackoffElapsed Event = "backoff_elapsed"
	HoldSet        Event = "hold_set"
	StopAsked      Event = "stop_asked"

	// A foreign loop.
	Reported         Event = "reported"          // it wrote current_state
	DesiredSpent     Event = "desired_spent"     // it ended the one-shot that Fairlead asked for
	CommandBuried    Event = "command_buried"    // its end of a one-shot overwrote a newer command
	CommandUnwritten Event = "command_unwritten" // the last command never reached the file
	HoldLifted       Event = "hold_lifted"
	ProgramDue       Event = "program_due"
	ProgramPostponed Event = "program_postponed" // a daily limit is used up
	ProgramEnded     Event = "program_ended"
)

// Act is what a row does with the agent's data.
type Act string

const (
	TakeDesired    Act = "take_desired"    // the new desired state, its author and reason
	RestDesired    Act = "rest_desired"    // pause by default
	SpendOneShot   Act = "spend_one_shot"  // pause if a one-shot was begun; else nothing
	SpendDesired   Act = "spend_desired"   // pause, with a note that says why; SPEC C8, C9, C16, C17, C20
	OpenSession    Act = "open_session"    // for the current desired state
	OpenCleanup    Act = "open_cleanup"    // the same, with --cleanup-session
	OpenProgram    Act = "open_program"    // the foreign loop's own program
	EndSession     Act = "end_session"     // after a grace period
	NoteLimit      Act = "note_limit"      // which limit was reached
	CountSession   Act = "count_session"   // towards cleanup_every
	CountCleanup   Act = "count_cleanup"   // and restarts that count from zero
	CountFailure   Act = "count_failure"   // towards failures_max
	ForgetFailures Act = "forget_failures" // after a success, or a new request
	StartBackoff   Act = "start_backoff"   // 1 s, doubling up to 60 s
	Rewrite        Act = "rewrite"         // write the file from the journal
	NoteOvertaken  Act = "note_overtaken"  // recorded without effect
	TakeExtra      Act = "take_extra"      // keep unknown fields, X7
	TakeReport     Act = "take_report"     // current_state as the foreign loop reports it
	GiveUp         Act = "give_up"         // no retry follows; a person should look
)

// do saves type names in the table.
func do(acts ...Act) []Act { return acts }

type rules = map[Event]table.Rule[State, Act]

// Table is the whole policy. The ids are the rows of SPEC; F1 to F5 are the rules for a foreign
// loop, which SPEC gives as text below its table.
var Table = table.Table[State, Event, Act]{
	Absent: {
		FileMissing:   {ID: "C1", To: Resting, Do: do(RestDesired, Rewrite)},
		FileFound:     {ID: "C15", To: Resting, Do: do(TakeDesired, Rewrite), Why: "recorded first, then obeyed like any other desired state"},
		FileMalformed: {ID: "C12", To: Resting, Do: do(RestDesired, Rewrite)},
		FileTorn:      {ID: "C12", To: Resting, Do: do(RestDesired, Rewrite), Why: "the journal has no content to restore"},
		MadeForeign:   {ID: "F1", To: Foreign},
	},
	Resting: {
		WantedContinuous:    {ID: "C2", To: Continuous, Do: do(TakeDesired, ForgetFailures, OpenSession)},
		WantedRunOnce:       {ID: "C3", To: RunOnce, Do: do(TakeDesired, ForgetFailures, OpenSession)},
		WantedRunCleanup:    {ID: "C4", To: RunCleanup, Do: do(TakeDesired, ForgetFailures, OpenCleanup)},
		WantedPause:         {ID: "C6", To: Resting, Do: do(TakeDesired), Why: "already at rest; the desired state is still recorded"},
		WantedUnknown:       {ID: "C13", To: Resting, Do: do(TakeDesired)},
		WantedHeld:          {ID: "C18", To: Resting, Do: do(TakeDesired, ForgetFailures), Why: "takes effect when the hold is released"},
		WantedStopping:      {ID: "C14", To: Resting, Do: do(TakeDesired, ForgetFailures), Why: "takes effect at the next start of Fairlead"},
		WantedOverLimit:     {ID: "C17", To: Resting, Do: do(TakeDesired, SpendDesired)},
		DueContinuous:       {ID: "C15", To: Continuous, Do: do(OpenSession)},
		DueRunOnce:          {ID: "C15", To: RunOnce, Do: do(OpenSession)},
		DueRunCleanup:       {ID: "C15", To: RunCleanup, Do: do(OpenCleanup)},
		DueOverLimit:        {ID: "C17", To: Resting, Do: do(SpendDesired)},
		FileMissing:         {ID: "C21", To: Resting, Do: do(RestDesired, Rewrite)},
		FileMalformed:       {ID: "C12", To: Resting, Do: do(RestDesired, Rewrite)},
		FileTorn:            {ID: "C12", To: Resting, Do: do(Rewrite), Why: "a torn write is not a desired state; the journal has the last one"},
		CurrentContradicted: {ID: "C22", To: Resting, Do: do(TakeExtra, Rewrite)},
		FileSeen:            {ID: "X3", To: Resting, Why: "recorded, so that a restart does not report it again"},
		DesiredOvertaken:    {ID: "X3", To: Resting, Do: do(NoteOvertaken), Why: "older than the current desired state; recorded without effect"},
		ExtraWritten:        {ID: "X7", To: Resting, Do: do(TakeExtra, Rewrite)},
		RaiseAsked:          {ID: "X10", To: Resting, Do: do(NoteOvertaken, TakeExtra, Rewrite), Why: "the session can write that file; a person decides, and until then the file says what is in force"},
		PauseStands:         {ID: "X10", To: Resting, Do: do(NoteOvertaken, TakeExtra, Rewrite), Why: "a pause that a person ordered is lifted only by a person's order, and no agent lifts a person's pause"},
		MadeForeign:         {ID: "F1", To: Foreign},
	},
	Continuous: underWay(Continuous, rules{
		EndedGoOn:              {ID: "C5", To: Continuous, Do: do(ForgetFailures, CountSession, OpenSession)},
		EndedCleanupDue:        {ID: "C5", To: Continuous, Do: do(ForgetFailures, CountCleanup, OpenCleanup), Why: "cleanup_every is reached: one cleanup session, still continuous"},
		EndedDesiredPause:      {ID: "C6", To: Resting, Do: do(ForgetFailures)},
		EndedDesiredRunOnce:    {ID: "C7", To: RunOnce, Do: do(ForgetFailures, OpenSession)},
		EndedDesiredRunCleanup: {ID: "C7", To: RunCleanup, Do: do(ForgetFailures, OpenCleanup)},
		EndedDesiredUnknown:    {ID: "C13", To: Resting, Do: do(ForgetFailures)},
		LostGoOn:               {ID: "C15", To: Continuous, Do: do(OpenSession), Why: "how it ended is unknown, so it is not a failure; still wanted"},
		ProviderWaits:          {ID: "R1", To: Continuous, Do: do(OpenSession), Why: "a rate limit is neither a failure nor a success; it continues after the limit"},
		ConversationLost:       {ID: "R3", To: Continuous, Do: do(OpenSession), Why: "its program had lost the conversation and did nothing: a new one begins"},
		FailedBackingOff:       {ID: "C16", To: BackingOff, Do: do(CountFailure, StartBackoff)},
		FailedForGood:          {ID: "C16", To: Resting, Do: do(CountFailure, SpendDesired, GiveUp)},
	}),
	RunOnce: underWay(RunOnce, rules{
		OneShotEnded:      {ID: "C8", To: Resting, Do: do(SpendDesired)},
		OneShotFailed:     {ID: "C20", To: Resting, Do: do(SpendDesired, GiveUp)},
		OneShotLost:       {ID: "C15", To: Resting, Do: do(SpendDesired), Why: "it may have done its work, and a one-shot runs once"},
		OneShotAgain:      {ID: "C19", To: RunOnce, Do: do(OpenSession)},
		OneShotStillOwing: {ID: "C15", To: RunOnce, Do: do(OpenSession)},
		ProviderWaits:     {ID: "R1", To: RunOnce, Do: do(OpenSession), Why: "a rate limit stopped it before it was done; not a failure"},
		ConversationLost:  {ID: "R3", To: RunOnce, Do: do(OpenSession), Why: "its program had lost the conversation and did nothing: a new one begins"},
		NewerContinuous:   {ID: "C10", To: Continuous, Do: do(OpenSession)},
		NewerRunCleanup:   {ID: "C10", To: RunCleanup, Do: do(OpenCleanup)},
		NewerPause:        {ID: "C10", To: Resting, Why: "pause as the person set it, with its note"},
		NewerUnknown:      {ID: "C13", To: Resting},
		WantedAgain:       {ID: "C19", To: RunOnce, Do: do(TakeDesired), Why: "one more session after the current one"},
	}),
	RunCleanup: underWay(RunCleanup, rules{
		OneShotEnded:      {ID: "C9", To: Resting, Do: do(SpendDesired)},
		OneShotFailed:     {ID: "C20", To: Resting, Do: do(SpendDesired, GiveUp)},
		OneShotLost:       {ID: "C15", To: Resting, Do: do(SpendDesired), Why: "it may have done its work, and a one-shot runs once"},
		OneShotAgain:      {ID: "C19", To: RunCleanup, Do: do(OpenCleanup)},
		OneShotStillOwing: {ID: "C15", To: RunCleanup, Do: do(OpenCleanup)},
		ProviderWaits:     {ID: "R1", To: RunCleanup, Do: do(OpenCleanup), Why: "a rate limit stopped it before it was done; not a failure"},
		ConversationLost:  {ID: "R3", To: RunCleanup, Do: do(OpenCleanup), Why: "its program had lost the conversation and did nothing: a new one begins"},
		NewerContinuous:   {ID: "C10", To: Continuous, Do: do(OpenSession)},
		NewerRunOnce:      {ID: "C10", To: RunOnce, Do: do(OpenSession)},
		NewerPause:        {ID: "C10", To: Resting, Why: "pause as the person set it, with its note"},
		NewerUnknown:      {ID: "C13", To: Resting},
		WantedAgain:       {ID: "C19", To: RunCleanup, Do: do(TakeDesired), Why: "one more session after the current one"},
	}),
	BackingOff: {
		BackoffElapsed:      {ID: "C16", To: Continuous, Do: do(OpenSession)},
		DueOverLimit:        {ID: "C17", To: Resting, Do: do(ForgetFailures, SpendDesired)},
		MadeForeign:         {ID: "F1", To: Foreign, Do: do(ForgetFailures)},
		WantedContinuous:    {ID: "C16", To: Continuous, Do: do(TakeDesired, ForgetFailures, OpenSession), Why: "a new request skips the rest of the back-off"},
		WantedRunOnce:       {ID: "C16", To: RunOnce, Do: do(TakeDesired, ForgetFailures, OpenSession)},
		WantedRunCleanup:    {ID: "C16", To: RunCleanup, Do: do(TakeDesired, ForgetFailures, OpenCleanup)},
		WantedPause:         {ID: "C16", To: Resting, Do: do(TakeDesired, ForgetFailures)},
		WantedUnknown:       {ID: "C13", To: Resting, Do: do(TakeDesired, ForgetFailures)},
		WantedHeld:          {ID: "C18", To: Resting, Do: do(TakeDesired, ForgetFailures)},
		WantedStopping:      {ID: "C14", To: Resting, Do: do(TakeDesired, ForgetFailures)},
		WantedOverLimit:     {ID: "C17", To: Resting, Do: do(TakeDesired, ForgetFailures, SpendDesired)},
		HoldSet:             {ID: "C18", To: Resting, Do: do(ForgetFailures), Why: "the retry waits for the release"},
		StopAsked:           {ID: "C14", To: Resting, Do: do(ForgetFailures)},
		LimitReached:        {ID: "C17", To: Resting, Do: do(ForgetFailures, NoteLimit, SpendDesired)},
		FileMissing:         {ID: "C21", To: Resting, Do: do(RestDesired, ForgetFailures, Rewrite)},
		FileMalformed:       {ID: "C12", To: Resting, Do: do(RestDesired, ForgetFailures, Rewrite)},
		FileTorn:            {ID: "C12", To: BackingOff, Do: do(Rewrite)},
		CurrentContradicted: {ID: "C22", To: BackingOff, Do: do(TakeExtra, Rewrite)},
		FileSeen:            {ID: "X3", To: BackingOff, Why: "recorded, so that a restart does not report it again"},
		DesiredOvertaken:    {ID: "X3", To: BackingOff, Do: do(NoteOvertaken), Why: "older than the current desired state; recorded without effect"},
		ExtraWritten:        {ID: "X7", To: BackingOff, Do: do(TakeExtra, Rewrite)},
		RaiseAsked:          {ID: "X10", To: BackingOff, Do: do(NoteOvertaken, TakeExtra, Rewrite), Why: "a session can write that file; a person decides whether the back-off ends"},
	},
	Foreign: {
		WantedContinuous: {ID: "F2", To: Foreign, Do: do(TakeDesired, Rewrite), Why: "the desired state is written to the file; the foreign loop obeys it"},
		WantedRunOnce:    {ID: "F2", To: Foreign, Do: do(TakeDesired, Rewrite)},
		WantedRunCleanup: {ID: "F2", To: Foreign, Do: do(TakeDesired, Rewrite)},
		WantedPause:      {ID: "F2", To: Foreign, Do: do(TakeDesired, Rewrite)},
		WantedUnknown:    {ID: "C13", To: Foreign, Do: do(TakeDesired)},
		WantedHeld:       {ID: "C18", To: Foreign, Do: do(TakeDesired, Rewrite), Why: "the file says pause until the hold is released"},
		WantedStopping:   {ID: "F2", To: Foreign, Do: do(TakeDesired, Rewrite)},
		WantedOverLimit:  {ID: "C17", To: Foreign, Do: do(TakeDesired, SpendDesired, Rewrite)},
		Reported:         {ID: "F3", To: Foreign, Do: do(TakeReport)},
		DesiredSpent:     {ID: "F3", To: Foreign, Do: do(TakeDesired, TakeReport), Why: "the foreign loop writes pause for both states at the end of a one-shot"},
		CommandBuried:    {ID: "F4", To: Foreign, Do: do(TakeReport, Rewrite), Why: "it wrote pause over a command that it had not read"},
		CommandUnwritten: {ID: "F4", To: Foreign, Do: do(TakeReport, Rewrite)},
		FileFound:        {ID: "F3", To: Foreign, Do: do(TakeDesired, TakeReport)},
		FileMissing:      {ID: "F3", To: Foreign, Do: do(TakeReport), Why: "the foreign loop creates it again"},
		FileMalformed:    {ID: "C12", To: Foreign, Do: do(TakeReport, Rewrite), Why: "a copy keeps the bytes; the desired state and the last report are written again"},
		FileTorn:         {ID: "C12", To: Foreign, Do: do(Rewrite)},
		DesiredOvertaken: {ID: "X3", To: Foreign, Do: do(NoteOvertaken), Why: "older than the current desired state; recorded without effect"},
		ExtraWritten:     {ID: "X7", To: Foreign, Do: do(TakeReport)},
		RaiseAsked:       {ID: "X10", To: Foreign, Do: do(NoteOvertaken, TakeReport, Rewrite), Why: "another agent's session can write that file; a person decides, and until then the file says what is in force"},
		PauseStands:      {ID: "X10", To: Foreign, Do: do(NoteOvertaken, TakeReport, Rewrite), Why: "a pause that a person ordered is lifted only by a person's order, and no agent lifts a person's pause"},
		LimitReached:     {ID: "C17", To: Foreign, Do: do(NoteLimit, SpendDesired, Rewrite)},
		HoldSet:          {ID: "C18", To: Foreign, Do: do(Rewrite), Why: "the file is how a foreign loop learns of a hold"},
		HoldLifted:       {ID: "C18", To: Foreign, Do: do(Rewrite)},
		ProgramDue:       {ID: "F5", To: Foreign, Do: do(OpenProgram)},
		ProgramPostponed: {ID: "C17", To: Foreign, Do: do(StartBackoff), Why: "daily limits apply to foreign programs too; retried the next day"},
		ProgramEnded:     {ID: "F5", To: Foreign, Do: do(CountFailure, StartBackoff), Why: "the program runs as long as the daemon does"},
		SessionAdopted:   {ID: "C15", To: Foreign},
		MadeOurs:         {ID: "F1", To: Resting, Do: do(SpendOneShot, ForgetFailures, Rewrite), Why: "a continuous desired state remains; a one-shot may already be done, so it ends"},
	},
}

// underWay adds the rows that all sessions share: no desired state interrupts a session (C11).
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
		FileMissing:         {ID: "C21", To: state, Do: do(RestDesired, Rewrite), Why: "takes effect when the session ends"},
		FileMalformed:       {ID: "C12", To: state, Do: do(RestDesired, Rewrite), Why: "takes effect when the session ends"},
		FileTorn:            {ID: "C12", To: state, Do: do(Rewrite)},
		CurrentContradicted: {ID: "C22", To: state, Do: do(TakeExtra, Rewrite)},
		FileSeen:            {ID: "X3", To: state, Why: "recorded, so that a restart does not report it again"},
		DesiredOvertaken:    {ID: "X3", To: state, Do: do(NoteOvertaken), Why: "older than the current desired state; recorded without effect"},
		ExtraWritten:        {ID: "X7", To: state, Do: do(TakeExtra, Rewrite)},
		RaiseAsked:          {ID: "X10", To: state, Do: do(NoteOvertaken, TakeExtra, Rewrite), Why: "the session can write that file; a person decides, and until then the file says what is in force"},
		PauseStands:         {ID: "X10", To: state, Do: do(NoteOvertaken, TakeExtra, Rewrite), Why: "the session ends as the person ordered; the file does not lift that pause"},
		SessionAdopted:      {ID: "C15", To: state, Why: "the running session is adopted; no second one starts"},
		LimitReached:        {ID: "C17", To: state, Do: do(NoteLimit, EndSession)},
		EndedLimited:        {ID: "C17", To: Resting, Do: do(SpendDesired)},
		EndedRested:         {ID: "C21", To: Resting, Do: do(ForgetFailures), Why: "the file was deleted or broken (C12) during the session, which has now ended"},
		EndedHeld:           {ID: "C18", To: Resting, Why: "the desired state waits for the release"},
		EndedStopping:       {ID: "C14", To: Resting, Why: "a continuous desired state waits for the next start"},
	}
	maps.Copy(common, own)
	return common
}
