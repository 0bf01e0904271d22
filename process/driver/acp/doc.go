// Package acp drives programs that speak the Agent Client Protocol.
//
// The package translates between the protocol and package speech. Programs send text in pieces,
// announce a tool call before its arguments are known, offer several options that look alike, and
// sometimes print lines that are not JSON. Each message is handled in the order of arrival and
// becomes events of package speech; a message that cannot be understood is reported as Faulted, with
// its raw text. The package never answers a question by itself: a question stays open until a person
// or a rule answers it, or until the session ends.
//
//	program ──▶ decode ──▶ receive ──▶ speech.Writer     updates, questions, answers
//	program ◀── outbox ◀── conversation ◀── orders            prompt, answer, cancel
//
// A session consists of initialize, session/new (or session/resume, or session/load), the mode and
// the model if they are configured, and then one session/prompt after the other. Fairlead offers
// programs no files and no terminals: they use their own, under their own questions.
//
// The one promise: a tool call is reported before the question about it, and no question is answered with an
// option that was not chosen for it.
package acp
