package view

import (
	"time"

	"github.com/fairlead-dev/fairlead/git/diff"
)

// TaskCommit is a commit of a task's branch.
type TaskCommit struct {
	ID      string    `json:"id"`
	Subject string    `json:"subject"`
	Author  string    `json:"author"`
	At      time.Time `json:"at"`
}

// TaskRound is what a person was shown once.
type TaskRound struct {
	Round  int    `json:"round" doc:"From 1: the first work that was shown. A request has the number of the round that it is about, and begins the next one"`
	Commit string `json:"commit"`
}

// TaskRequest is what a person asked to be changed.
type TaskRequest struct {
	Round int    `json:"round" doc:"The round that it is about, from 1"`
	Text  string `json:"text"`
}

// TaskCheck is the result of one command of the checks.
type TaskCheck struct {
	Command string     `json:"command"`
	State   string     `json:"state" enum:"passed,failed,not_run"`
	TookMS  int64      `json:"took_ms,omitempty"`
	EndedAt *time.Time `json:"ended_at,omitempty"`
	Output  string     `json:"output,omitempty" doc:"Its last lines"`
	Base    bool       `json:"base,omitempty" doc:"It ran with the base's version of the files that decide what runs"`
}

// TaskChanges is what a task has changed, and what a person needs to judge it.
type TaskChanges struct {
	Text     string             `json:"text" doc:"What was to be done"`
	Base     string             `json:"base" doc:"The branch on which it lands"`
	Land     string             `json:"land" doc:"How it lands: squash or merge"`
	From     string             `json:"from" doc:"The commit that the changes are compared with"`
	To       string             `json:"to" doc:"The commit with the changes"`
	Shown    string             `json:"shown,omitempty" doc:"The commit that a person is asked to approve; an approval names it"`
	Tree     string             `json:"tree,omitempty" doc:"The hash of its tree; an approval names it, too"`
	Govern   string             `json:"governing_hash,omitempty" doc:"The hash of the governing files that are shown; an approval needs it"`
	Told     []string           `json:"told,omitempty" doc:"What a person has to know besides the changes"`
	Same     bool               `json:"unchanged,omitempty" doc:"A person asked for changes, and the content is what was shown before"`
	Overlaps []TaskOverlap      `json:"overlaps,omitempty" doc:"Other open tasks that change the same files"`
	Live     bool               `json:"live" doc:"The agent may still change it"`
	Files    []diff.ChangedFile `json:"files"`
	More     int                `json:"more_files,omitempty" doc:"Files that are left out"`
	Commits  []TaskCommit       `json:"commits" doc:"From the base on, the oldest first"`
	Round    int                `json:"round" doc:"The round that the task is in, from 1"`
	Rounds   []TaskRound        `json:"rounds" doc:"What was shown so far, the oldest first"`
	Requests []TaskRequest      `json:"requests"`
	Comments []TaskComment      `json:"comments" nullable:"false" doc:"Those of all rounds, at their places in these changes"`
	Checks   []TaskCheck        `json:"checks"`
	Attached []TaskAttached     `json:"attachments" doc:"Files that were given with the task"`
}

// TaskAttached is a file that was given with a task.
type TaskAttached struct {
	Name  string `json:"name"`
	Image string `json:"image,omitempty" doc:"The media type, if it is an image: image/png, image/jpeg, image/gif or image/webp"`
}

// TaskComment is a person's comment on a line, a file or the whole task. It stays over the rounds.
type TaskComment struct {
	ID    int    `json:"id,omitempty" doc:"From 1"`
	File  string `json:"file,omitempty" doc:"Where it was said; empty: about the whole task"`
	Line  int    `json:"line,omitempty" doc:"0: the whole file"`
	Old   bool   `json:"old,omitempty" doc:"The line is one of the old file"`
	Quote string `json:"quote,omitempty" doc:"The text of the line"`
	Text  string `json:"text"`

	Round int      `json:"round,omitempty" doc:"The round in which it was said, from 1"`
	Sent  int      `json:"sent,omitempty" doc:"The round whose request has sent it; missing: the next request sends it, unless it is resolved"`
	State string   `json:"state,omitempty" enum:"open,changed,resolved" doc:"open: nothing of it has changed since; changed: the line or the file that it is about has; resolved: a person said so"`
	At    *TaskAt  `json:"at,omitempty" doc:"Where its line is in the newest content; left out: the line is no longer in the file, or the comment is about the whole task"`
	About []string `json:"about,omitempty" doc:"The lines that it was about, if they are no longer in the file; the commented line begins with >"`
}

// TaskAt is a place in the newest content of a task.
type TaskAt struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty" doc:"0: the whole file"`
	Old  bool   `json:"old,omitempty" doc:"The line is one of the old file"`
}

// TaskComments are a person's comments on a task.
type TaskComments struct {
	Comments []TaskComment `json:"comments"`
}

// TaskOverlap is another open task that changes the same files.
type TaskOverlap struct {
	ID     string   `json:"id"`
	Status string   `json:"status"`
	Files  []string `json:"files" nullable:"false" doc:"The first ones that both change"`
	More   int      `json:"more_files,omitempty" doc:"How many more there are"`
}
