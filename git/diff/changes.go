package diff

// What happened to a file.
const (
	Added    = "added"
	Deleted  = "deleted"
	Modified = "modified"
	Renamed  = "renamed"
	Copied   = "copied"
)

// Kinds of rows.
const (
	SameRow = "same"
	AddRow  = "add"
	DelRow  = "del"
	HunkRow = "hunk"
	NoteRow = "note"
)

// ChangedFile is one changed file. Names are text: bytes that are not UTF-8 are replaced.
type ChangedFile struct {
	Name    string `json:"name"`
	OldName string `json:"old_name,omitempty" doc:"Only if it was renamed or copied"`
	Status  string `json:"status" enum:"added,deleted,modified,renamed,copied"`
	Added   int    `json:"added" doc:"Lines"`
	Deleted int    `json:"deleted" doc:"Lines"`
	Binary  bool   `json:"binary,omitempty"`
	Governs bool   `json:"governing,omitempty" doc:"It decides what runs later; such files come first"`
	OldMode string `json:"old_mode,omitempty" doc:"Only if the mode was changed: file, executable file, symbolic link or submodule"`
	NewMode string `json:"new_mode,omitempty" doc:"Only if the mode was changed, or is not that of an ordinary file"`
}

// RowToken is a part of a row in one colour.
type RowToken struct {
	Class   string `json:"c,omitempty" doc:"key, type, const, func, attr, note, num, str; empty: no colour"`
	Text    string `json:"x"`
	Changed bool   `json:"m,omitempty" doc:"The line differs here from the one that it replaced"`
}

// ChangedRow is one row of a file's changes.
type ChangedRow struct {
	Kind      string     `json:"kind" enum:"same,add,del,hunk,note"`
	Old       int64      `json:"old,omitempty" doc:"The line in the old file"`
	New       int64      `json:"new,omitempty" doc:"The line in the new file"`
	Tokens    []RowToken `json:"t"`
	MoreBytes int        `json:"more_bytes,omitempty" doc:"Bytes of the line that are left out"`
}

// ChangedRows is what was changed in one file.
type ChangedRows struct {
	Rows     []ChangedRow `json:"rows"`
	Binary   bool         `json:"binary,omitempty"`
	CRLF     bool         `json:"crlf,omitempty" doc:"All lines end with a carriage return, which is left out"`
	MoreRows int          `json:"more_rows,omitempty" doc:"Rows that are left out"`
	TooLarge bool         `json:"too_large,omitempty" doc:"The file is larger than the limit, so no rows are shown; fairlead diff shows them"`
}
