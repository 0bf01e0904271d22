// Package turns lets agents take turns and people speak.
//
// Machine channel decides whose turn it is, until when, and what each agent must be told. This
// package carries it out. It writes a turn, a message or a stop into the session of an agent that
// Fairlead runs, once and labeled with the action's key, and hands the same actions to foreign
// agents that fetch them. It keeps an index of where in the journal each conversation is, and the
// timers of all channels in a queue.
//
// The one promise: an agent receives each message once, also across a crash, and a person's message is
// shown as delivered only when it was delivered.
package turns
