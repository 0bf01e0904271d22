// Package dispatchfolder stores a dispatch (a coordinator, MAIN, and its agents) in a folder, in the
// format of seed 002.
//
// The folder is the only storage: hooks, the command line and the daemon write to it, and none of
// them needs another to run. A writer takes the lock, completes an interrupted commit of an earlier
// writer, reads the last complete line of state.jsonl, decides, and appends. A reader takes no lock,
// because the last line alone holds the whole state. Other programs may write to the files too:
// their lines are read in the seed's terms, applied where they do not weaken enforcement, and never
// removed.
//
//	FOLDER/
//	├── state.jsonl             a line for each change: the seed's fields, then Fairlead's in the field `fairlead`
//	├── agent-list.txt          a line for each agent: its name
//	├── AGENT_DIRECTORY.md      a section for each agent: its description, and where it was found
//	├── conversations/
//	│   ├── messages.jsonl      a line for each finished conversation
//	│   └── conv_001/
//	│       ├── dialogue.md     what was said and done, with times
//	│       └── outputs/        files that were created
//	├── inbox/                  mode response: messages, and NAME.result.md beside each answered one
//	│   └── unmatched/          messages that no description matches, with NAME.ranking.json
//	├── .lock                   locked by the writer
//	└── .commit                 the redo file of the commit in progress; otherwise empty
//
// A change affects several files. All parts are first written to .commit and synced; then each file
// receives its part, and .commit is emptied. The next writer that finds a commit there applies the
// missing parts, and none twice. state.jsonl receives its part last, and all parts are synced before
// the caller gets an answer.
//
// A line of state.jsonl has one of these types (SPEC's rows): session_init (D1), conversation_start
// (D2, and the start of D6), input_waiting (D2), transition (D3, D4, D5), agent_seen, round_end,
// denied (D8), file_written (D9), conversation_end (D7, D11, and the end of D6), session_end (D10),
// unmatched (D6). If the state changes, a line has `trigger` and `previous`, whatever its type.
// Times without a zone are local, as the seed writes them.
//
// No link below the folder is followed, for reading or writing. Content by other programs survives,
// because files only grow.
//
// Limits: a program that rewrites state.jsonl instead of appending removes the history that it does
// not write back. A disk that does not honour sync can lose the last change. On a network file
// system without locks, two writers do not exclude each other.
//
// The one promise: wherever a write is interrupted, the next writer leaves complete files with every
// change in them once and numbers without gaps.
package dispatchfolder
