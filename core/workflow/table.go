package workflow

import (
	"github.com/fairlead-dev/fairlead/core/table"
)

// State is the state of a step, in the seed's words (seed 004, Status Values).
type State string

const (
	Pending   State = "PENDING"          // not started, or reset to be started again
	Running   State = "RUNNING"          //
	Waiting   State = "WAITING_ON_HUMAN" // people are asked
	Completed State = "COMPLETED"        //
	Failed    State = "FAILED"           // permanently: steps that need it never start
	Skipped   State = "SKIPPED"          // it was not necessary
)

// Event is what happened to a step. Together with the state it determines the rule.
type Event string

const (
	// Before it starts.
	Started        Event = "started"         // its process is to start
	StartedAsking  Event = "started_asking"  // people are asked first
	WhenTrue       Event = "when_true"       //
	WhenFalse      Event = "when_false"      //
	WhenFaulted    Event = "when_faulted"    // it cannot be evaluated
	NeedsSkipped   Event = "needs_skipped"   // all of them, so it is unnecessary
	NotNeeded      Event = "not_needed"      // its run is completed without it
	NothingToLoop  Event = "nothing_to_loop" // a loop over no items
	ItemsFound     Event = "items_found"     //
	ItemsFaulted   Event = "items_faulted"   // they cannot be read
	BackoffElapsed Event = "backoff_elapsed" //
	WaitElapsed    Event = "wait_elapsed"    // the time that its last report named has come

	// While its process is alive.
	Adopted          Event = "adopted"            // it outlived the runner
	Withdrawn        Event = "withdrawn"          // the check before the start failed: it never started
	RunnerDied       Event = "runner_died"        // and the end of the process is unknown
	ProviderWaits    Event = "provider_waits"     // rate limit of its agent's provider
	FailedTriesLeft  Event = "failed_tries_left"  //
	FailedForGood    Event = "failed_for_good"    //
	LimitReached     Event = "limit_reached"      // of an agent or the team
	CancelledByHand  Event = "cancelled_by_hand"  //
	Reported         Event = "reported"           // COMPLETED
	ReportedUnasked  Event = "reported_unasked"   // a human step, and the run does not pause for humans
	ReportedAsking   Event = "reported_asking"    // a human step: people are asked now
	ReportedAgain    Event = "reported_again"     // it is not done, and asks to be run again later
	ItemDone         Event = "item_done"          // of a loop with remaining items
	UntilHolds       Event = "until_holds"        // the loop's condition ends it
	UntilNeverHeld   Event = "until_never_held"   // a loop without items has reached its maximum
	UntilFaulted     Event = "until_faulted"      //
	GateFailed       Event = "gate_failed"        // and sends the run back
	GateAtLimit      Event = "gate_at_limit"      // it has sent the run back as often as permitted
	GateLeadsNowhere Event = "gate_leads_nowhere" // there is no loop_back_to

	// People.
	Asking        Event = "asking"         // before the agent works
	Answered      Event = "answered"       // and the agent's work is done already
	AnsweredFirst Event = "answered_first" // and the agent may begin
	Rejected      Event = "rejected"
	AnswerFaulty  Event = "answer_faulty"
	Approved      Event = "approved" // and a valid report exists already

	// From elsewhere.
	LoopedBack      Event = "looped_back"      // a gate failed, and this step is the target or depends on it
	TargetDone      Event = "target_done"      // the target of the gate is done again
	StartedOver     Event = "started_over"     // --start-at-step
	Ordered         Event = "ordered"          // it is the next step of a run whose steps are ordered, or an order is taken back
	ProcessDeparted Event = "process_departed" // of an ended attempt
)

// Act is a change that a rule makes to the step's data.
type Act string

const (
	CountAttempt   Act = "count_attempt"
	UncountAttempt Act = "uncount_attempt" // the attempt does not count
	BeginProcess   Act = "begin_process"   // with a lease of its own
	StampStart     Act = "stamp_start"
	StampEnd       Act = "stamp_end"
	EndProcess     Act = "end_process" // if one is still alive
	ForgetProcess  Act = "forget_process"
	TakeReport     Act = "take_report"   // path, artifacts, metrics, logs
	HoldReport     Act = "hold_report"   // until people have answered
	NoteUnasked    Act = "note_unasked"  // in the step's log
	ClearReport    Act = "clear_report"  // the next attempt writes its own
	KeepError      Act = "keep_error"    // last_error
	ClearError     Act = "clear_error"   //
	StartBackoff   Act = "start_backoff" // 1 s doubling to 60 s
	StopBackoff    Act = "stop_backoff"
	StartWait      Act = "start_wait" // until the time that the report names; earlier failures no longer count
	StopWait       Act = "stop_wait"
	CountLoss      Act = "count_loss" // of the runner, under a step
	NoteWeighed    Act = "note_weighed"
	TakeItems      Act = "take_items"
	CountItem      Act = "count_item"
	NextItem       Act = "next_item"   // attempts start at 0
	AskPeople      Act = "ask_people"  // manual_input_path
	TakeAnswer     Act = "take_answer" // once in an iteration
	KeepFault      Act = "keep_fault"  // of the answer, for the person who gave it
	StartOver      Act = "start_over"  // reset everything except the counters
)

// do shortens the table.
func do(acts ...Act) []Act { return acts }

// Table contains all rules for one step. The IDs are rows of SPEC.
var Table = table.Table[State, Event, Act]{
	Pending: {
		Started:         {ID: "W2", To: Running, Do: do(CountAttempt, StampStart, ClearReport, BeginProcess)},
		StartedAsking:   {ID: "W2", To: Running, Do: do(CountAttempt, StampStart, ClearReport)},
		WhenTrue:        {ID: "W11", To: Pending, Do: do(NoteWeighed), Why: "the decision is kept until there is room to start the step"},
		WhenFalse:       {ID: "W11", To: Skipped, Do: do(StampEnd)},
		WhenFaulted:     {ID: "W11", To: Failed, Do: do(KeepError, StampEnd)},
		NeedsSkipped:    {ID: "W11", To: Skipped, Do: do(StampEnd)},
		NotNeeded:       {ID: "W11", To: Skipped, Do: do(StampEnd)},
		NothingToLoop:   {ID: "W15", To: Skipped, Do: do(StampEnd)},
		ItemsFound:      {ID: "W15", To: Pending, Do: do(TakeItems)},
		ItemsFaulted:    {ID: "W15", To: Failed, Do: do(KeepError, StampEnd)},
		BackoffElapsed:  {ID: "W4", To: Pending, Do: do(StopBackoff)},
		WaitElapsed:     {ID: "W16", To: Pending, Do: do(StopWait)},
		LoopedBack:      {ID: "W6", To: Pending, Do: do(StartOver), Why: "not started, but its iteration still increases"},
		TargetDone:      {ID: "W6", To: Pending, Why: "blocked_by_loop is over"},
		StartedOver:     {ID: "W12", To: Pending, Do: do(StartOver), Why: "it had been tried, or sent back"},
		Ordered:         {ID: "W12", To: Pending, Do: do(StartOver)},
		ProcessDeparted: {ID: "J1", To: Pending, Do: do(ForgetProcess), Why: "the step can start again only now"},
	},
	Running: {
		Adopted:          {ID: "W13", To: Running},
		Withdrawn:        {ID: "X8", To: Pending, Do: do(UncountAttempt, ForgetProcess)},
		RunnerDied:       {ID: "W13", To: Pending, Do: do(UncountAttempt, ForgetProcess, CountLoss, KeepError, StampEnd), Why: "a crash of the runner does not count as an attempt"},
		ProviderWaits:    {ID: "R1", To: Pending, Do: do(UncountAttempt, ForgetProcess, KeepError, StampEnd), Why: "a rate limit is not a failure: the step waits until the agent may continue"},
		FailedTriesLeft:  {ID: "W4", To: Pending, Do: do(KeepError, StampEnd, EndProcess, StartBackoff)},
		FailedForGood:    {ID: "W5", To: Failed, Do: do(KeepError, StampEnd, EndProcess)},
		LimitReached:     {ID: "X9", To: Failed, Do: do(KeepError, StampEnd, EndProcess), Why: "a retry would reach the same limit"},
		CancelledByHand:  {ID: "W14", To: Failed, Do: do(KeepError, StampEnd, EndProcess)},
		Reported:         {ID: "W3", To: Completed, Do: do(TakeReport, CountItem, ClearError, StampEnd, EndProcess)},
		ReportedUnasked:  {ID: "W8", To: Completed, Do: do(TakeReport, NoteUnasked, CountItem, ClearError, StampEnd, EndProcess), Why: "with --unattended no person is asked"},
		ReportedAsking:   {ID: "W8", To: Waiting, Do: do(TakeReport, HoldReport, AskPeople, EndProcess)},
		ReportedAgain:    {ID: "W16", To: Pending, Do: do(TakeReport, ClearError, StampEnd, EndProcess, StartWait), Why: "waiting for something outside is no failure, and occupies no place"},
		ItemDone:         {ID: "W15", To: Pending, Do: do(TakeReport, CountItem, NextItem, ClearError, StampEnd, EndProcess)},
		UntilHolds:       {ID: "W15", To: Completed, Do: do(TakeReport, CountItem, ClearError, StampEnd, EndProcess)},
		UntilNeverHeld:   {ID: "W15", To: Failed, Do: do(TakeReport, CountItem, KeepError, StampEnd, EndProcess)},
		UntilFaulted:     {ID: "W15", To: Failed, Do: do(TakeReport, CountItem, KeepError, StampEnd, EndProcess)},
		GateFailed:       {ID: "W6", To: Completed, Do: do(TakeReport, KeepError, StampEnd, EndProcess), Why: "the step has completed; its report sends the run back"},
		GateAtLimit:      {ID: "W7", To: Failed, Do: do(TakeReport, KeepError, StampEnd, EndProcess)},
		GateLeadsNowhere: {ID: "W6", To: Failed, Do: do(TakeReport, KeepError, StampEnd, EndProcess), Why: "without loop_back_to it is not tried again"},
		Asking:           {ID: "W8", To: Waiting, Do: do(AskPeople)},
		Approved:         {ID: "W9", To: Completed, Do: do(CountItem, ClearError, StampEnd)},
		LoopedBack:       {ID: "W6", To: Pending, Do: do(EndProcess, StartOver), Why: "its late report is refused"},
		StartedOver:      {ID: "W12", To: Pending, Do: do(EndProcess, StartOver), Why: "of a run that no engine drives"},
		Ordered:          {ID: "W12", To: Pending, Do: do(EndProcess, StartOver)},
	},
	Waiting: {
		Answered:        {ID: "W9", To: Running, Do: do(TakeAnswer), Why: "runs after it is approved"},
		AnsweredFirst:   {ID: "W9", To: Running, Do: do(TakeAnswer, BeginProcess), Why: "its report decides"},
		Rejected:        {ID: "W9", To: Running, Do: do(TakeAnswer), Why: "then counts as a gate failure"},
		AnswerFaulty:    {ID: "W10", To: Waiting, Do: do(KeepFault)},
		LoopedBack:      {ID: "W6", To: Pending, Do: do(StartOver), Why: "its question is withdrawn"},
		StartedOver:     {ID: "W12", To: Pending, Do: do(StartOver)},
		Ordered:         {ID: "W12", To: Pending, Do: do(StartOver)},
		ProcessDeparted: {ID: "J1", To: Waiting, Do: do(ForgetProcess)},
	},
	Completed: {
		LoopedBack:      {ID: "W6", To: Pending, Do: do(StartOver)},
		StartedOver:     {ID: "W12", To: Pending, Do: do(StartOver)},
		Ordered:         {ID: "W12", To: Pending, Do: do(StartOver)},
		ProcessDeparted: {ID: "J1", To: Completed, Do: do(ForgetProcess)},
	},
	Failed: {
		LoopedBack:      {ID: "W6", To: Pending, Do: do(StartOver)},
		StartedOver:     {ID: "W12", To: Pending, Do: do(StartOver)},
		Ordered:         {ID: "W12", To: Pending, Do: do(StartOver)},
		ProcessDeparted: {ID: "J1", To: Failed, Do: do(ForgetProcess)},
	},
	Skipped: {
		LoopedBack:  {ID: "W6", To: Pending, Do: do(StartOver), Why: "the steps that it depends on may now end differently"},
		StartedOver: {ID: "W12", To: Pending, Do: do(StartOver)},
		Ordered:     {ID: "W12", To: Pending, Do: do(StartOver)},
	},
}

// Stage is the state of a run as a whole. Its progress is derived from its steps: Run.Status.
type Stage string

const (
	Absent  Stage = "absent"
	Driven  Stage = "driven"    // steps that may start are started
	Paused  Stage = "paused"    // running steps finish
	Parked  Stage = "parked"    // imported from another program's file, or edited in its own; not driven yet
	Stopped Stage = "cancelled" //
)

// RunEvent is what happened to a run as a whole.
type RunEvent string

const (
	RunStarted   RunEvent = "run_started"
	RunTakenIn   RunEvent = "run_taken_in"
	RunEdited    RunEvent = "run_edited" // its run_state.json was, while nothing of it was active
	RunPaused    RunEvent = "run_paused"
	RunReleased  RunEvent = "run_released"
	RunCancelled RunEvent = "run_cancelled"
	RunResumed   RunEvent = "run_resumed"
	RunReplanned RunEvent = "run_replanned" // the workflow was edited meanwhile
	GatesRead    RunEvent = "gates_read"

	// From what orders its steps.
	RunCompleted RunEvent = "run_completed"
	RunFailed    RunEvent = "run_failed"
	RunGoesOn    RunEvent = "run_goes_on"
)

// RunAct is a change that a rule makes to the run's data.
type RunAct string

const (
	LayOut   RunAct = "lay_out"   // all steps PENDING
	TakeIn   RunAct = "take_in"   // the steps as in the file
	NoteWhy  RunAct = "note_why"  // who did it, and why
	EndSteps RunAct = "end_steps" // W14 for each running step
	Redo     RunAct = "redo"      // W12 for the named step and all that depend on it, or for the failed ones
	Relay    RunAct = "relay"     // the steps of the new plan, as far as they are known
	SetGates RunAct = "set_gates"

	NoteStatus RunAct = "note_status"
)

func doRun(acts ...RunAct) []RunAct { return acts }

// RunTable contains the rules for a run as a whole. It is short, since most rules concern steps.
var RunTable = table.Table[Stage, RunEvent, RunAct]{
	Absent: {
		RunStarted: {ID: "W1", To: Driven, Do: doRun(LayOut)},
		RunTakenIn: {ID: "X3", To: Parked, Do: doRun(TakeIn), Why: "another program's write is an event like any other"},
	},
	Driven: {
		RunPaused:    {ID: "X9", To: Paused, Do: doRun(NoteWhy), Why: "a daily limit with --cost-limit-action pause, or a person"},
		RunCancelled: {ID: "W14", To: Stopped, Do: doRun(NoteWhy, EndSteps)},
		RunResumed:   {ID: "W12", To: Driven, Do: doRun(Redo), Why: "after its work has stopped"},
		RunEdited:    {ID: "X3", To: Parked, Do: doRun(NoteWhy, TakeIn), Why: "while nothing of it is active"},
		RunReplanned: {ID: "W12", To: Driven, Do: doRun(Relay), Why: "each resume reads the file again, as the seed's tool does"},
		GatesRead:    {ID: "W2", To: Driven, Do: doRun(SetGates)},
		RunCompleted: {ID: "W12", To: Driven, Do: doRun(NoteStatus)},
		RunFailed:    {ID: "W12", To: Driven, Do: doRun(NoteStatus)},
		RunGoesOn:    {ID: "W12", To: Driven, Do: doRun(NoteStatus)},
	},
	Paused: {
		RunReleased:  {ID: "X9", To: Driven, Do: doRun(NoteWhy)},
		RunCancelled: {ID: "W14", To: Stopped, Do: doRun(NoteWhy, EndSteps)},
		GatesRead:    {ID: "W2", To: Paused, Do: doRun(SetGates)},
		RunCompleted: {ID: "W12", To: Paused, Do: doRun(NoteStatus)},
		RunFailed:    {ID: "W12", To: Paused, Do: doRun(NoteStatus)},
		RunGoesOn:    {ID: "W12", To: Paused, Do: doRun(NoteStatus)},
	},
	Parked: {
		RunResumed:   {ID: "W12", To: Driven, Do: doRun(Redo)},
		RunEdited:    {ID: "X3", To: Parked, Do: doRun(NoteWhy, TakeIn)},
		RunReplanned: {ID: "W12", To: Parked, Do: doRun(Relay)},
		RunCancelled: {ID: "W14", To: Stopped, Do: doRun(NoteWhy, EndSteps)},
		GatesRead:    {ID: "W2", To: Parked, Do: doRun(SetGates)},
	},
	Stopped: {
		RunResumed:   {ID: "W12", To: Driven, Do: doRun(Redo), Why: "a person can resume a cancelled step"},
		RunEdited:    {ID: "X3", To: Parked, Do: doRun(NoteWhy, TakeIn)},
		RunReplanned: {ID: "W12", To: Stopped, Do: doRun(Relay)},
		GatesRead:    {ID: "W2", To: Stopped, Do: doRun(SetGates)},
	},
}
