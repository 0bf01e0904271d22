// Package acp drives programs that speak the Agent Client Protocol.
//
// Picture a sworn interpreter at a counter. On one side stands a program with its own
// language and its own habits: it says half sentences, mentions a tool before it knows
// what it wants of it, asks for leave with five buttons of which two look alike, and
// sometimes puts noise on the counter. On the other side sits the team, which knows
// twelve kinds of fact and four kinds of order. The interpreter takes one message at a
// time, in the order in which they came, writes down what it means, and what he does not
// understand he passes on as it was, marked as not understood. He never answers in
// anybody's name: a question waits until somebody has answered it.
//
//	program ──▶ decode ──▶ hear ──▶ speech.Writer     updates, questions, answers
//	program ◀── outbox ◀── talk ◀── orders            prompt, answer, cancel
//
// A session is initialize, session/new (or resume, or load), the mode and the model where they
// were asked for, session/prompt, and so on until the last prompt is answered. The program gets
// no files and no terminals from us: what it does it does itself, under its own questions.
//
// The one promise: a tool's call is told before the question about it, and no question is
// answered with an option that nobody chose.
package acp
