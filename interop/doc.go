// Package interop speaks to programs that know nothing of Fairlead, in their own files.
//
// On the table between two people lies one sheet: agent_state.json. One of them writes
// what he wants done, the other what he is doing, and each looks at the sheet whenever
// it moves. Neither rings before he writes. The foreign one rubs the sheet clean and
// writes it anew where it lies, so that whoever looks at that moment sees a blank, or
// half a word. So we look again before we call it nonsense, and what really is nonsense
// we copy and put aside. When we write, we take a fresh sheet, write it in full, and
// swap it for the old one in a single move; then we keep our eyes on the old sheet for
// a second, because the other's pen may still be on it.
//
// Two kinds of thing live here for that. AgentState is the sheet as a value: ParseAgentState and
// Render are pure, keep the fields they do not know, and are the only place that knows
// how the seed spells things. StateFiles is the sheets of a whole team, live: what
// others write arrives as Seen, in order and once, and Write exchanges without burying.
//
// A run of a workflow has more sheets: the plan that people wrote, the report that a step leaves
// behind, the answer that somebody gives, the list of gates that are open, and run_state.json,
// which others read and write as well as we do. Here are those who can read them, and who say of
// a sheet that is no good what is wrong with it and in which line: ParseWorkflow, ParseReport,
// ParseManualInput, ParseGates, ReadRunState; RunStateOf writes; StepCommand knows how a wrapper
// wants to be called. They remember nothing and start nothing.
//
// An agent in a channel knows nothing of ours either, and what it reads is a text: TurnPrompt and its
// kin say who spoke and how a turn ends. Others' words stand in it behind a mark on each line, so that
// nobody can put words into our mouth.
//
// A team that sleeps is a folder of documents, one for each agent, in the seed's own spelling:
// ReadDocument and WriteDocument know it, and keep what they do not know. What the lead of the team
// says about it comes as JSON behind two markers, which ParseStatus and ParseRegistered read; what
// it is told is a text again, SummonPrompt and WakePrompt, in which the soul and the talk of
// somebody who sleeps lie like letters in an envelope: nothing that is written in a letter opens it.
//
// What is not promised: a foreign program's own read-modify-write that began before our
// write and ends after it carries its old idea of our fields; it arrives as Seen like any
// other. A foreign writer that holds a swapped-out file open for more than a second
// before it writes is not heard. Where the file system knows no exchange, a foreign
// rename that falls into the microseconds between our look and our rename is lost.
//
// The one promise: what somebody else wrote in full is reported before, or although,
// we write over it.
package interop
