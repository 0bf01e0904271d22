// Package sessionfolder keeps a session of dispatch in a folder, as seed 002 lays it out.
//
// Think of a ship's log that lies open on the chart table. Whoever comes on watch (a hook of an
// agent program, a person at the command line, the daemon) bars the cabin door for a moment, mends
// what the last one left half written when the lights went out, reads the last whole line, decides,
// writes one line more, and opens the door again. The last line alone says where the ship is, so
// whoever only wants to know looks through the window and bars nothing. Strangers write in the same
// book: what they write is read by the seed's words, believed where it releases nobody, and never
// erased.
//
//	FOLDER/
//	├── state.jsonl             a line a change: the seed's fields, then ours in one field `fairlead`
//	├── agent-list.txt          a line an agent: its name
//	├── AGENT_DIRECTORY.md      a section an agent: its description, and where it was found
//	├── conversations/
//	│   ├── messages.jsonl      a line a conversation that is over
//	│   └── conv_001/
//	│       ├── dialogue.md     what was said and done, timed
//	│       └── outputs/        what was made
//	├── inbox/                  mode response: messages; NAME.result.md beside each that was answered
//	│   └── unmatched/          those that nobody's description fits, with NAME.ranking.json
//	├── .lock                   held by whoever writes
//	└── .commit                 what is being written, while it is being written; else empty
//
// Several files belong to one change. All of it is written to .commit first, and synced; then each
// file gets its part, and .commit is emptied. Who finds something in .commit behind the door writes
// what of it is missing, and no part twice. state.jsonl is the last to get its part, and all parts
// are synced before anybody is told.
//
// A line of state.jsonl is of one of these types, by SPEC's rows: session_init (D1),
// conversation_start (D2, and D6's begin), input_waiting (D2), transition (D3, D4, D5), agent_seen,
// round_end, denied (D8), file_written (D9), conversation_end (D7, D11, and D6's end), session_end
// (D10), unmatched (D6). Where the state is another one after it, a line has `trigger` and
// `previous`, whatever its type. Times without zone are local, as the seed writes them.
//
// No link is followed below the folder, for reading or for writing. What a file holds that was not
// written by us survives: files only grow.
//
// What is not promised: a program that rewrites state.jsonl instead of adding to it takes the
// history away that it does not write back; a disk that lies about syncing can lose the last
// change; and on a network file system without locks two writers are two writers.
//
// The one promise: whatever stops between any two writes, the next one at the door leaves whole
// files, with every change in them once and numbers without gaps.
package dispatchfolder
