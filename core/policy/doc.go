// Package policy decides whether a tool call is allowed.
//
// Judge decides by a role's Rules (MainRules and AgentRules are the seed's), a Call, what is known
// of the dispatch (Where) and what a Disk says about files. MAIN may read anything, write notes into
// its conversation's outputs, and delegate. An agent may use its tools, except on what X10 protects.
// A path is resolved through every link, and a shell command is parsed down to the last
// substitution. A denial says what is missing; package rank selects the agent that has it.
//
// Answer decides the permission questions of an agent program: by X10, by the agent's bounds, and by
// a person's patterns. If none of them decides, the person is asked. testdata/permissions.txt lists
// calls and answers.
//
// The package is one of three layers. The others are the sandbox below MAIN and the check of what
// changed on disk afterwards. Policy alone is not enough, because it reads commands and cannot know
// what an unknown program writes: such a call of an agent is allowed with Unsure set, unless its
// words name something that X10 protects. If agents may commit, git checkout and similar commands
// can change any tracked file.
//
// A shell command is read once, by the type shell, which lists its simple commands, also those inside others.
// X10, bounds, patterns and MAIN's rules judge this list. Programs are known by their names, and what they
// write by their words; flags are plain, or every word counts as a file (writers.go).
//
// MAIN's shell commands may gather information. If the caller runs them in the kernel's sandbox
// (Call.Confined), names decide: gathering.go lists the programs, and the calls of those that act
// where the kernel does not see it. What the parser does not understand is left to the kernel.
// Without the sandbox only the small language is allowed (small.go): plain commands, with programs
// and flags of a list. A test compares it with real shells. Assumptions: the shell's aliases and
// functions, PATH and the user's git configuration are the user's. Git also refreshes its index when
// it reads, so MAIN's shell must run with GIT_OPTIONAL_LOCKS=0 there.
//
// testdata/calls.txt lists calls and verdicts; add the ones that you wonder about.
//
// The one promise: in MAIN, a command that was not fully understood is denied, or held by the kernel.
package policy
