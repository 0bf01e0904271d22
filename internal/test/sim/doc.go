// Package sim simulates whole days of a team in one process and checks the promises of the engine.
//
// The engine is the real one. Everything around it is simulated: the journal is in memory, the disk
// is a map, agents run their scripts in this process, and time passes in a bubble of
// testing/synctest. Every effect of the engine (append, start, adopt, read, write, end,
// acknowledge) first waits at a gate. When all goroutines wait, the director chooses the next act.
// It may let a waiting operation proceed, make it fail, lose its result, or crash the engine there.
// Or a person gives an order, another program writes a file, a shim disappears, the power fails, a
// second engine is opened, or a day passes.
//
//	seed ──► director ──► one act at a time ──► the engine and its environment
//	             ▲                                     │
//	             └── trace ◄── checkers ◄── every act ◄┘
//
// The checkers use none of the transition tables. They apply the stored changes to a second team
// and compare each effect with it. A day that breaks a promise is shortened, act by act, as long as
// it still breaks the promise.
//
// Channels are simulated, too. People post in all modes and intervene, and a foreign agent joins
// and leaves. Each message contains a unique word, so that the checkers can find it in the journal
// and in the prompts that must deliver it. One day in four has no channels.
//
// On half of the days an agent leads a crew whose members are not visible to Fairlead. The lead's
// reports are generated: true, false, late, broken or in pieces. The checkers know which reports
// were made, in which session, and where they end in the output. A member is alive in the journal
// only by such a report, recorded in the same append. People summon, wake, put to sleep and import
// documents, and other programs edit and remove documents. Most of these days begin with a summon,
// and each ends with all members awake.
//
// On one day in five an agent asks for permission before its calls, sometimes withdraws a question,
// and sometimes meets a rate limit. Rules, people, saved answers and timeouts answer it. Each
// answer is compared with the stored one when it is sent.
//
// Only a test can use a bubble. A program that is not a test runs a test in the background: see
// [Play].
//
// The simulation behaves as the interfaces document it. That the real shim, disk and journal do so
// is tested by their own suites and by the torture tests on real processes.
//
// The one promise: every broken promise is reported with its seed and with a trace that leads to
// it.
package sim
