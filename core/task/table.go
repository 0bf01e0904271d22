package task

import "github.com/fairlead-dev/fairlead/core/table"

// Status is the state of a task, in the words of the contract (DESIGN.md).
type Status string

// The states.
const (
	Absent   Status = "absent"
	Blocked  Status = "blocked"   // until other tasks have landed
	Queued   Status = "queued"    // its agent has not begun
	Working  Status = "working"   // its agent works, or is to work again
	Checking Status = "checking"  // the checks run, or what a person is to see is made
	Review   Status = "review"    // the reviewer works
	NeedsYou Status = "needs_you" // a person is asked, or has to make room for a landing
	Landing  Status = "landing"   //
	PROpen   Status = "pr_open"   // its pull request waits on the forge
	Done     Status = "done"      //
	Failed   Status = "failed"    // until a person lets it go on
	Dropped  Status = "dropped"   //
)

// Event is what happened to a task. Together with the state it determines the rule.
type Event string

// The events.
const (
	Given        Event = "given"
	GivenBlocked Event = "given_blocked" // it waits for other tasks
	Unblocked    Event = "unblocked"     // they have landed

	Prepared     Event = "prepared"
	PreparedMade Event = "prepared_made" // its content was there: nothing is to be done before the checks
	WorkBegan    Event = "work_began"
	WorkEnded    Event = "work_ended"
	Checked      Event = "checked"          // the checks passed
	CheckedFirst Event = "checked_first"    // and the reviewer is next
	CheckFailed  Event = "check_failed"     // and its agent is to work again
	Reviewed     Event = "reviewed"         //
	Found        Event = "found"            // something that its agent is to repair
	ShownNow     Event = "shown"            // a person can be asked
	ShownBefore  Event = "shown_before"     // a pull request that is published already: no person is asked
	JobFailed    Event = "job_failed"       // and is not tried again
	OftenBack    Event = "often_back"       // it was sent back as often as is permitted
	Asks         Event = "asks"             // its agent asks a person
	AsksNoMore   Event = "asks_no_more"     //
	Approved     Event = "approved"         //
	Requested    Event = "requested"        // a person sends it back
	Landed       Event = "landed"           //
	AsksAgain    Event = "asks_again"       // what would land is not what was shown, or does not fit: it is shown again
	NeedsRoom    Event = "needs_room"       // a person has to do something in the repository first
	NeedsChecks  Event = "needs_checks"     // the base has moved: the checks run on the merged files
	MergeChecked Event = "merge_checked"    // they passed
	MergeFailed  Event = "merge_failed"     // they did not
	Tried        Event = "tried"            // a person has made room
	PullOpened   Event = "pull_opened"      //
	PullReturned Event = "pull_returned"    // the forge sends it back
	PullClosed   Event = "pull_closed"      // without a merge
	Undone       Event = "undone"           // its landing was taken back
	DroppedNow   Event = "dropped"          //
	ToPrepare    Event = "again_at_prepare" // it goes on after a failure or a drop, at this job
	ToWork       Event = "again_at_work"
	ToCheck      Event = "again_at_check"
	ToReview     Event = "again_at_review"
	ToShow       Event = "again_at_show"
	ToAnswer     Event = "again_at_approve"
	ToWaits      Event = "again_at_others" // it was dropped while it waited for other tasks
)

// Act is a change that a rule makes to the task's data.
type Act string

// The acts.
const (
	DoPrepare    Act = "do_prepare"
	DoWork       Act = "do_work"
	DoCheck      Act = "do_check"
	DoReview     Act = "do_review"
	DoShow       Act = "do_show"
	Ask          Act = "ask"
	DoLand       Act = "do_land"
	DoMerged     Act = "do_merged"
	DoNothing    Act = "do_nothing"
	NextRound    Act = "next_round"    // keeps how this one ended
	FreeRound    Act = "free_round"    // what a person asks for counts towards no limit
	TakeShown    Act = "take_shown"    //
	TakeYes      Act = "take_yes"      // who approved it
	TakeLanded   Act = "take_landed"   //
	ForgetLanded Act = "forget_landed" //
	TakeFailure  Act = "take_failure"  // why it did not land
	NoFailure    Act = "no_failure"    //
	KeepWhy      Act = "keep_why"      //
	KeepPlace    Act = "keep_place"    // where it goes on after a failure or a drop
)

func do(acts ...Act) []Act { return acts }

var (
	failed  = table.Rule[Status, Act]{ID: "K11", To: Failed, Do: do(KeepPlace, KeepWhy, DoNothing)}
	dropped = table.Rule[Status, Act]{ID: "K12", To: Dropped, Do: do(KeepPlace, KeepWhy, DoNothing)}
)

// again are the rules for a task that goes on where it was.
func again() map[Event]table.Rule[Status, Act] {
	return map[Event]table.Rule[Status, Act]{
		ToPrepare: {ID: "K13", To: Queued, Do: do(KeepWhy, DoPrepare)},
		ToWork:    {ID: "K13", To: Working, Do: do(KeepWhy, DoWork)},
		ToCheck:   {ID: "K13", To: Checking, Do: do(KeepWhy, DoCheck)},
		ToReview:  {ID: "K13", To: Review, Do: do(KeepWhy, DoReview)},
		ToShow:    {ID: "K13", To: Checking, Do: do(KeepWhy, DoShow)},
		ToAnswer:  {ID: "K13", To: NeedsYou, Do: do(KeepWhy, Ask)},
	}
}

// droppedAgain are the rules of a dropped task.
func droppedAgain() map[Event]table.Rule[Status, Act] {
	rules := again()
	rules[ToWaits] = table.Rule[Status, Act]{ID: "K13", To: Blocked, Do: do(KeepWhy, DoNothing)}
	rules[NeedsRoom] = table.Rule[Status, Act]{ID: "K13", To: NeedsYou, Do: do(DoNothing)}
	return rules
}

// Table contains all rules for a task. The ids are rows of doc/tasks.md.
var Table = table.Table[Status, Event, Act]{
	Absent: {
		Given:        {ID: "K1", To: Queued, Do: do(DoPrepare)},
		GivenBlocked: {ID: "K1", To: Blocked, Why: "it waits until other tasks have landed"},
	},
	Blocked: {
		Unblocked:  {ID: "K2", To: Queued, Do: do(DoPrepare)},
		DroppedNow: dropped,
	},
	Queued: {
		Prepared:     {ID: "K3", To: Queued, Do: do(DoWork)},
		PreparedMade: {ID: "K3", To: Checking, Do: do(DoCheck), Why: "such as the revert of a landing: its agent works only if it is sent back"},
		WorkBegan:    {ID: "K4", To: Working},
		WorkEnded:    {ID: "K4", To: Checking, Do: do(DoCheck), Why: "it was quick"},
		Asks:         {ID: "K14", To: NeedsYou},
		JobFailed:    failed,
		DroppedNow:   dropped,
	},
	Working: {
		WorkEnded:  {ID: "K4", To: Checking, Do: do(DoCheck)},
		Asks:       {ID: "K14", To: NeedsYou},
		JobFailed:  failed,
		DroppedNow: dropped,
	},
	Checking: {
		Checked:      {ID: "K5", To: Checking, Do: do(DoShow)},
		CheckedFirst: {ID: "K5", To: Review, Do: do(DoReview)},
		CheckFailed:  {ID: "K6", To: Working, Do: do(NextRound, DoWork)},
		ShownNow:     {ID: "K7", To: NeedsYou, Do: do(TakeShown, Ask)},
		ShownBefore:  {ID: "K7", To: Landing, Do: do(TakeShown, DoLand), Why: "tasks.pr.ask says when a person is asked about a pull request"},
		OftenBack:    failed,
		JobFailed:    failed,
		DroppedNow:   dropped,
	},
	Review: {
		Reviewed:   {ID: "K5", To: Checking, Do: do(DoShow)},
		Found:      {ID: "K6", To: Working, Do: do(NextRound, DoWork)},
		OftenBack:  failed,
		JobFailed:  failed,
		DroppedNow: dropped,
	},
	NeedsYou: {
		Approved:   {ID: "K8", To: Landing, Do: do(TakeYes, NoFailure, DoLand)},
		Requested:  {ID: "K8", To: Working, Do: do(NextRound, FreeRound, NoFailure, DoWork)},
		Tried:      {ID: "K8", To: Landing, Do: do(NoFailure, DoLand), Why: "it was approved; a person has made room for it"},
		AsksNoMore: {ID: "K14", To: Working},
		WorkEnded:  {ID: "K4", To: Checking, Do: do(DoCheck), Why: "it ended without an answer"},
		ToShow:     {ID: "K13", To: Checking, Do: do(KeepWhy, DoShow), Why: "it may have other content than was shown"},
		ToCheck:    {ID: "K13", To: Checking, Do: do(NoFailure, KeepWhy, DoCheck), Why: "a person has changed it by hand"},
		JobFailed:  failed,
		DroppedNow: dropped,
	},
	Landing: {
		Landed:       {ID: "K9", To: Done, Do: do(TakeLanded, NoFailure, DoNothing)},
		AsksAgain:    {ID: "K10", To: Checking, Do: do(TakeFailure, KeepWhy, DoShow)},
		NeedsRoom:    {ID: "K10", To: NeedsYou, Do: do(TakeFailure, KeepWhy, DoNothing)},
		NeedsChecks:  {ID: "K9", To: Landing, Do: do(DoMerged)},
		MergeChecked: {ID: "K9", To: Landing, Do: do(DoLand)},
		MergeFailed:  {ID: "K10", To: Checking, Do: do(TakeFailure, KeepWhy, DoShow)},
		PullOpened:   {ID: "K9", To: PROpen},
		PullReturned: {ID: "K6", To: Working, Do: do(NextRound, FreeRound, DoWork)},
		PullClosed:   {ID: "K12", To: Dropped, Do: do(KeepPlace, KeepWhy, DoNothing)},
		JobFailed:    {ID: "K10", To: NeedsYou, Do: do(KeepWhy, DoNothing), Why: "a person looks what is wrong, and tries it again"},
		DroppedNow:   dropped,
	},
	PROpen: {
		Landed:       {ID: "K9", To: Done, Do: do(TakeLanded, NoFailure, DoNothing)},
		PullReturned: {ID: "K6", To: Working, Do: do(NextRound, FreeRound, DoWork)},
		PullClosed:   {ID: "K12", To: Dropped, Do: do(KeepPlace, KeepWhy, DoNothing)},
		JobFailed:    {ID: "K10", To: NeedsYou, Do: do(KeepWhy, DoNothing)},
		DroppedNow:   dropped,
	},
	Done: {
		Undone: {ID: "K15", To: Checking, Do: do(ForgetLanded, KeepWhy, DoShow), Why: "a person is asked again, so an undo can be undone"},
	},
	Failed:  withDrop(again()),
	Dropped: droppedAgain(),
}

func withDrop(rules map[Event]table.Rule[Status, Act]) map[Event]table.Rule[Status, Act] {
	rules[DroppedNow] = table.Rule[Status, Act]{ID: "K12", To: Dropped, Do: do(KeepWhy), Why: "it goes on where it failed"}
	return rules
}
