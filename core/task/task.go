// Package task is the life of a task: from what a person asks for to a commit on a branch.
//
// A task has one thing to do at a time, its job. Jobs are steps of the task's run, which sessions do (prepare, work, check, review,
// approve), or functions over git (show, land). The result of a job names its number, so a result of an earlier one is late. What a
// person was shown, why a landing failed and how each round ended are values of the task, in the journal.
//
// The one promise: only what a person was shown lands, and it lands once.
package task

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// Job is something that is done for a task.
type Job string

// The jobs.
const (
	Nothing Job = ""        // a person or another task is waited for
	Prepare Job = "prepare" // the folder, and the configured setup
	Work    Job = "work"    // of its agent
	Checks  Job = "check"   // the configured checks
	Reviews Job = "review"  // of the reviewer
	Show    Job = "show"    // what a person is to see is made
	Approve Job = "approve" // a person is asked
	Land    Job = "land"
	Merged  Job = "merged" // the checks, on the files merged with the newest base
)

// Task is the state of one task. Decide reads it, and only Apply changes it. Its zero value was never given.
type Task struct {
	Plan
	Value
	Rounds []Round `json:"rounds,omitempty"` // that were sent back, the oldest first; roundsKept at most
}

// Plan is what a task consists of. It does not change.
type Plan struct {
	Reviewer  bool `json:"reviewer,omitempty"` // one looks at it before a person does
	Made      bool `json:"made,omitempty"`     // its content is there already
	RoundsMax int  `json:"rounds_max"`         // how often checks and reviewer send it back
}

// Value is the part of a task that changes. A change has all of it.
type Value struct {
	Status  Status    `json:"status"`
	Job     Job       `json:"job,omitempty"`
	N       uint64    `json:"n"`                 // the number of the job, counted from 1; only its result counts
	Round   int       `json:"round"`             // of the work, from 1
	Counted int       `json:"counted,omitempty"` // rounds that checks or the reviewer sent back since a person did
	Why     string    `json:"why,omitempty"`     // it failed, was dropped, is shown again, or what a person has to do
	At      Job       `json:"at,omitempty"`      // where it goes on after a failure or a drop
	Was     Status    `json:"was,omitempty"`     // before a failure or a drop
	Shown   Shown     `json:"shown,omitzero"`    // what the newest question shows, or showed
	Yes     Yes       `json:"yes,omitzero"`      // the newest approval
	Failure Failure   `json:"failure,omitzero"`  // why the newest landing failed, until it is approved again
	Landed  string    `json:"landed,omitempty"`  // the commit on the base
	Said    string    `json:"said,omitempty"`    // what else happened when it landed
	Since   time.Time `json:"since,omitzero"`    // of the status
}

// Asked is what a person is asked about. An approval is for exactly this.
type Asked struct {
	Tree   string `json:"tree,omitempty"`   // the content
	Commit string `json:"commit,omitempty"` // a commit with this content, in front of the task's own commits
	From   string `json:"from,omitempty"`   // the commit of the base that it was compared with
}

// String is the text of what was shown for a process, as ParseAsked of git/task reads it.
func (a Asked) String() string { return a.Tree + " " + a.Commit + " " + a.From }

// Governs are governing files that differ. Its zero value is none.
type Governs struct {
	Hash  string   `json:"hash,omitempty"` // what a separate yes names
	Files []string `json:"files,omitempty"`
}

// Line says that a task changes governing files.
func (g Governs) Line() string {
	return "it changes files that decide what runs later: " + strings.Join(g.Files, ", ")
}

// Wants says that a person has to say a separate yes to these files; yes is the hash that was given. Empty: it is theirs.
func (g Governs) Wants(id, yes string) string {
	switch {
	case yes == g.Hash:
		return ""
	case g.Hash == "":
		return "the question shows no file that decides what runs later; leave --governing out"
	case yes == "":
		return fmt.Sprintf("it changes files that decide what runs later, outside of the agent's bounds: %s. Look at them: fairlead diff %s. If you want them, add --governing %s",
			strings.Join(g.Files, ", "), id, g.Hash)
	}
	return fmt.Sprintf("--governing %.32s is not what is shown now: %s. Look at it again: fairlead diff %s. If you want it, add --governing %s",
		yes, strings.Join(g.Files, ", "), id, g.Hash)
}

// Shown is what a person was shown.
type Shown struct {
	Asked
	Governs   Governs  `json:"governs,omitzero"`
	Files     int      `json:"files,omitempty"`     // that were changed
	Round     int      `json:"round,omitempty"`     // in which it was shown, from 1
	Unchanged bool     `json:"unchanged,omitempty"` // nothing has changed since the person's request
	Told      []string `json:"told,omitempty"`      // what a person has to know about checks and tests
	Lines     []string `json:"lines,omitempty"`     // the changed files, and what else a person sees with the question
	Diff      string   `json:"diff,omitempty"`      // the file with the whole difference; empty: there is none
}

// Yes is a person's approval.
type Yes struct {
	By        string    `json:"by,omitempty"`
	Governing string    `json:"governing,omitempty"` // the hash of the governing files that it includes
	At        time.Time `json:"at,omitzero"`         // tasks land in this order
}

// Failure says why a task did not land. Its zero value is a landing that did not fail.
type Failure struct {
	Kind  string   `json:"kind,omitempty"`  // conflict, checks, dirty or moved
	Files []string `json:"files,omitempty"` // with conflicts, or in the way
	Lines int      `json:"lines,omitempty"` // of the base or of the task, whichever are more, in the conflicts; 0: not known
	Check string   `json:"check,omitempty"` // the command that failed
}

// Kinds of a landing that failed.
const (
	FailedConflict = "conflict" // with the newest commit of the base
	FailedChecks   = "checks"   // on the files merged with the newest commit of the base
	FailedDirty    = "dirty"    // a checkout of the base has changes, or something is half done in it
	FailedMoved    = "moved"    // the base is not where it was shown, or another program holds its lock
)

// Metrics in the reports of a task's steps.
const (
	MetricLanded = "landed_commit" // by Land; none if there was nothing to land
	MetricCheck  = "failed_check"  // by Merged: the command that failed
	MetricPull   = "pull_request_state"

	PullClosedWord = "closed" // in MetricPull
)

// Sentence says for a person what a failure was that the task's own work can end; empty: it is no such failure.
func (f Failure) Sentence(base string) string {
	switch f.Kind {
	case FailedConflict:
		lines := ""
		if f.Lines == 1 {
			lines = " (1 line)"
		} else if f.Lines > 1 {
			lines = fmt.Sprintf(" (%d lines)", f.Lines)
		}
		return fmt.Sprintf("did not land: conflicts with %s in %s%s", base, cmp.Or(strings.Join(f.Files, ", "), "some files"), lines)
	case FailedChecks:
		check := "a check"
		if f.Check != "" {
			check = "check `" + f.Check + "`"
		}
		return fmt.Sprintf("did not land: %s failed on the files merged with %s", check, base)
	default:
		return ""
	}
}

// Round is a round of the work that was sent back.
type Round struct {
	N   int       `json:"n"`
	By  Job       `json:"by"`  // who sent it back: the checks, the reviewer, a person (approve) or the forge (land)
	Why string    `json:"why"` // in their words, which may be cut
	At  time.Time `json:"at"`
}

// The limits of what the journal keeps.
const (
	roundsKept  = 50
	textKeptMax = 2000 // bytes of one text
	namesKept   = 50   // names in one list
)

// Outcome is how a job ended.
type Outcome string

// The outcomes. Each job has some of them.
const (
	OK      Outcome = "ok"      //
	Back    Outcome = "back"    // its agent is to work again
	Fails   Outcome = "fails"   // and it is not tried again
	Again   Outcome = "again"   // of a landing: it is to be shown again
	Room    Outcome = "room"    // of a landing: a person has to do something first
	Recheck Outcome = "recheck" // of a landing: the merged files have not passed the checks
	Opened  Outcome = "opened"  // of a landing: its pull request waits
	Closed  Outcome = "closed"  // of a landing: its pull request was closed
	Known   Outcome = "known"   // of what is shown: no person is to be asked
)

// Input is an event of a task.
type Input = change.Input[Event]

// Subject is what an input is about. It names no entity: the task is known.
type Subject = change.Subject[Event]

type (
	// Begin gives a task.
	Begin struct {
		Plan
		Blocked bool // it waits for other tasks
	}
	// Free says that the tasks have landed for which it waits.
	Free struct{}
	// JobBegan says that the session of a job has begun.
	JobBegan struct{ N uint64 }
	// JobEnded is the result of a job.
	JobEnded struct {
		N       uint64
		Outcome Outcome
		Why     string
		Shown   Shown   // of Show
		Failure Failure // of Land and Merged
		Landed  string  // the commit; empty: there was nothing to land
	}
	// Answer is a person's answer to the question that the job Approve asks.
	Answer struct {
		N         uint64
		By        string
		Sent      bool // it is sent back
		Why       string
		Governing string // the hash of the governing files to which the person said a separate yes
	}
	// Try says that a person has made room for a landing that was approved. It is refused while a question is open.
	Try struct{}
	// Question says whether its agent waits for a person's answer.
	Question struct{ Open bool }
	// Drop ends a task.
	Drop struct{ Why string }
	// Resume lets a task go on that failed or was dropped, or shows one again whose question is open.
	Resume struct {
		Job Job // empty: where it was; Approve, Land and Merged: it is shown, and a person is asked
		Why string
	}
	// Undo says that its landing was taken back.
	Undo struct{ Why string }
)

// Subject of each input is the word for it.
func (Begin) Subject() Subject    { return Subject{Event: Given, Starts: true} }
func (Free) Subject() Subject     { return Subject{Event: Unblocked} }
func (JobBegan) Subject() Subject { return Subject{Event: WorkBegan} }
func (JobEnded) Subject() Subject { return Subject{Event: "job_ended"} }
func (Try) Subject() Subject      { return Subject{Event: Tried} }
func (Question) Subject() Subject { return Subject{Event: Asks} }
func (Drop) Subject() Subject     { return Subject{Event: DroppedNow} }
func (Resume) Subject() Subject   { return Subject{Event: "resumed"} }
func (Undo) Subject() Subject     { return Subject{Event: Undone} }

func (in Answer) Subject() Subject {
	if in.Sent {
		return Subject{Event: Requested}
	}
	return Subject{Event: Approved}
}

// Body is what Apply needs.
type Body struct {
	Plan  *Plan  `json:"plan,omitempty"` // of a task that was given now
	Value Value  `json:"value"`
	Round *Round `json:"round,omitempty"` // that was sent back

	Recalled []Round `json:"recalled,omitempty"` // of a task that comes back from the archive
}

// JSONKey is the key of a change in the journal.
func (*Body) JSONKey() string { return "task" }

// Apply performs a change. It decides nothing.
func (t *Task) Apply(ch change.Change) {
	body := change.As[Body](ch.Body)
	if body.Plan != nil {
		*t = Task{Plan: *body.Plan, Rounds: body.Recalled}
	}
	t.Value = body.Value
	if body.Round != nil {
		t.Rounds = append(t.Rounds[max(0, len(t.Rounds)+1-roundsKept):len(t.Rounds):len(t.Rounds)], *body.Round)
	}
}

// Over reports whether nothing of the task goes on unless a person asks for it.
func (v *Value) Over() bool { return v.Status == Done || v.Status == Dropped || v.Status == Failed }

// NeedsHelp reports whether a person has to do something before the task goes on, other than answer its question.
func (v *Value) NeedsHelp() bool {
	return v.Status == Failed || v.Status == NeedsYou && v.Job == Nothing
}

// FailedAt is the job that failed and goes on only with a person's help; empty: there is none.
func (v *Value) FailedAt() Job {
	switch {
	case !v.NeedsHelp():
		return Nothing
	case v.Status == Failed:
		return v.At
	default:
		return Land
	}
}

// Open reports whether a person is asked about what is shown.
func (v *Value) Open() bool { return v.Job == Approve }
