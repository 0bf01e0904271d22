// Package channels lets agents take turns and people speak.
//
// Whose turn it is, until when and what each agent has to be told is decided by machine channel. This
// package carries it out: it writes a turn, a message or a stop into the session of an agent that
// Fairlead runs, once and under the action's own name, and hands the same actions to foreign agents
// that fetch them. It keeps an index of where in the journal each conversation is, and the timers of all
// channels in a queue.
//
// The promise: an agent is told each thing once, also across a crash, and a message of a person is
// shown as delivered only when it was.
package channels
