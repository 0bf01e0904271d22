package view

import "time"

// What happened to a file.
const (
	DiffAdded    = "added"
	DiffDeleted  = "deleted"
	DiffModified = "modified"
	DiffRenamed  = "renamed"
	DiffCopied   = "copied"
)

// Kinds of rows.
const (
	DiffSame = "same"
	DiffAdd  = "add"
	DiffDel  = "del"
	DiffHunk = "hunk"
	DiffNote = "note"
)

// DiffFile is one changed file. Names are text: bytes that are not UTF-8 are replaced.
type DiffFile struct {
	Name    string `json:"name"`
	OldName string `json:"old_name,omitempty" doc:"Only if it was renamed or copied"`
	Status  string `json:"status" enum:"added,deleted,modified,renamed,copied"`
	Added   int    `json:"added" doc:"Lines"`
	Deleted int    `json:"deleted" doc:"Lines"`
	Binary  bool   `json:"binary,omitempty"`
	OldMode string `json:"old_mode,omitempty" doc:"Only if the mode was changed: file, executable file, symbolic link or submodule"`
	NewMode string `json:"new_mode,omitempty" doc:"Only if the mode was changed, or is not that of an ordinary file"`
}

// DiffToken is a part of a row in one colour.
type DiffToken struct {
	Class   string `json:"c,omitempty" doc:"key, type, const, func, attr, note, num, str; empty: no colour"`
	Text    string `json:"x"`
	Changed bool   `json:"m,omitempty" doc:"The line differs here from the one that it replaced"`
}

// DiffRow is one row of a file's changes.
type DiffRow struct {
	Kind      string      `json:"kind" enum:"same,add,del,hunk,note"`
	Old       int64       `json:"old,omitempty" doc:"The line in the old file"`
	New       int64       `json:"new,omitempty" doc:"The line in the new file"`
	Tokens    []DiffToken `json:"t"`
	MoreBytes int         `json:"more_bytes,omitempty" doc:"Bytes of the line that are left out"`
}

// DiffRows is what was changed in one file.
type DiffRows struct {
	Rows     []DiffRow `json:"rows"`
	Binary   bool      `json:"binary,omitempty"`
	CRLF     bool      `json:"crlf,omitempty" doc:"All lines end with a carriage return, which is left out"`
	MoreRows int       `json:"more_rows,omitempty" doc:"Rows that are left out"`
	TooLarge bool      `json:"too_large,omitempty" doc:"The file is larger than the limit, so no rows are shown; fairlead diff shows them"`
}

// TaskCommit is a commit of a task's branch.
type TaskCommit struct {
	ID      string    `json:"id"`
	Subject string    `json:"subject"`
	Author  string    `json:"author"`
	At      time.Time `json:"at"`
}

// TaskRound is what a person was shown once.
type TaskRound struct {
	Round  int    `json:"round" doc:"From 1"`
	Commit string `json:"commit"`
}

// TaskRequest is what a person asked to be changed.
type TaskRequest struct {
	Round int    `json:"round" doc:"The round of the work that it began, from 1"`
	Text  string `json:"text"`
}

// TaskCheck is the result of one command of the checks.
type TaskCheck struct {
	Command string     `json:"command"`
	State   string     `json:"state" enum:"passed,failed,not_run"`
	TookMS  int64      `json:"took_ms,omitempty"`
	EndedAt *time.Time `json:"ended_at,omitempty"`
	Output  string     `json:"output,omitempty" doc:"Its last lines"`
}

// TaskChanges is what a task has changed, and what a person needs to judge it.
type TaskChanges struct {
	Text     string         `json:"text" doc:"What was to be done"`
	Base     string         `json:"base" doc:"The branch on which it lands"`
	Land     string         `json:"land" doc:"How it lands: squash or merge"`
	From     string         `json:"from" doc:"The commit that the changes are compared with"`
	To       string         `json:"to" doc:"The commit with the changes"`
	Shown    string         `json:"shown,omitempty" doc:"The commit that a person is asked to approve; an approval names it"`
	Live     bool           `json:"live" doc:"The agent may still change it"`
	Files    []DiffFile     `json:"files"`
	More     int            `json:"more_files,omitempty" doc:"Files that are left out"`
	Commits  []TaskCommit   `json:"commits" doc:"From the base on, the oldest first"`
	Rounds   []TaskRound    `json:"rounds" doc:"What was shown before, the oldest first"`
	Requests []TaskRequest  `json:"requests"`
	Checks   []TaskCheck    `json:"checks"`
	Attached []TaskAttached `json:"attachments" doc:"Files that were given with the task"`
}

// TaskAttached is a file that was given with a task.
type TaskAttached struct {
	Name  string `json:"name"`
	Image string `json:"image,omitempty" doc:"The media type, if it is an image: image/png, image/jpeg, image/gif or image/webp"`
}

// TaskComment is a person's comment on a line, which is not sent yet.
type TaskComment struct {
	ID    int    `json:"id,omitempty" doc:"From 1"`
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty" doc:"0: the whole file"`
	Old   bool   `json:"old,omitempty" doc:"The line is one of the old file"`
	Quote string `json:"quote,omitempty" doc:"The text of the line"`
	Text  string `json:"text"`
}

// TaskComments are the comments that are not sent yet.
type TaskComments struct {
	Comments []TaskComment `json:"comments"`
}
