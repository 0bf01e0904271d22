// Package questions takes what agents ask to the people who can answer it, and tells the agents.
//
// An agent's bounds and patterns answer first, then saved answers, then a person, then the time-out;
// machine question decides in which order and records each step. This package reads the rules from the
// configuration, notifies people, tells the answer to the program that asked, also after a crash in
// between, and lists what waits for a person.
//
// The one promise: every question is recorded from its asking to its answer, and an answer reaches the
// program that asked, or the question says why it cannot.
package questions
