// Package sim plays whole days of a team in one process and checks the promises of the engine.
//
// The engine is the real one; everything around it is simulated: the journal is in memory, the
// disk is a map, agents play their scripts in process, and time passes in a bubble of
// testing/synctest. Every effect of the engine (append, start, adopt, read, write, end,
// acknowledge) first waits at a gate. When everything waits, the director chooses what happens
// next. A waiting operation proceeds, fails, or succeeds without an answer, or the engine
// crashes there. Or a person gives an order, a foreign program writes a file, a shim vanishes,
// the power fails, a second engine is started, or a day passes.
//
//	seed ──► director  ──► one thing at a time ──► the engine and its props
//	              ▲                                      │
//	              └── trace ◄── checkers ◄── every act ◄─┘
//
// The checkers are written by hand and use none of the tables. They rebuild a team of their
// own from the stored changes, and compare each act with it when it happens. A day that breaks
// a promise is made shorter, act by act, as long as it still breaks the promise.
//
// Channels are simulated, too: people speak in all modes and intervene, a foreign agent joins and
// leaves, and the output of the agents is generated piece by piece. So each piece can be found in
// the journal, and each prompt in the input where it belongs. One day in four has no channels.
//
// On half of the days an agent leads a crew whose members are not visible to Fairlead. The lead's
// reports are generated: true, false, late, broken or in pieces. The checkers know which of them
// were made, in which session and up to which byte; a member that is alive in the journal is alive
// by one of these reports, recorded in that very append. People summon, wake, put to sleep, import
// documents, write into the files of others and remove them. Most of these days begin with a crew,
// and each ends with all members awake.
//
// On one day in five an agent asks before it does anything, sometimes withdraws its question, and
// is rate limited at times. Rules, people, saved answers and timeouts answer it; each answer is
// compared with the stored one when it is sent.
//
// Days need a bubble, and a bubble needs a test, so a program that is not a test runs one in the
// background: see [Play].
//
// The simulation behaves as the interfaces promise. That the real shim, disk and journal keep
// these promises is tested by their own suites and by the torture tests on real processes.
//
// The promise: every broken promise is reported with its seed and with a trace that leads to it.
package sim
