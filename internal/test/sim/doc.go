// Package sim plays whole days of a team in one process, and watches for a broken promise.
//
// Think of a stage with one stagehand. The engine is the real one; everything around it
// is a prop: the journal is in memory, the disk is a map, agents play their scripts in
// process, and time is played too, inside a bubble of testing/synctest. Whatever the
// engine does to the world (append, start, adopt, read, write, end, acknowledge) first
// knocks at a gate and waits. When nobody moves any more, the stagehand chooses what
// happens next: one of those who wait goes on, fails, is done without anybody hearing of
// it, or the engine dies there; a person gives an order, a foreign program writes a file,
// a shim vanishes, the power goes, a second engine is started, a day passes.
//
//	seed ──► stagehand ──► one thing at a time ──► the engine and its props
//	              ▲                                      │
//	              └── trace ◄── checkers ◄── every act ◄─┘
//
// The checkers are written by hand and know nothing of the tables. They keep a team of
// their own from what was stored, and compare each act with it at the moment of the act.
// A day that breaks one is made shorter, thing by thing, as long as it still breaks it.
//
// In channels everybody is a prop, too: people speak in all modes and meddle, a foreign agent
// comes and goes, and what our own agents say is played piece by piece, so that each piece can
// be looked for in the journal, and each prompt in the one input where it belongs. One day in
// four has no channels.
//
// On half of the days somebody leads a team of which nobody else can be seen. What the lead says
// of it is made up on the spot, true, false, late, broken or in pieces, so it is known which of
// it was said, in which session and up to which byte; whoever is alive in the journal is alive by
// one of those markers, heard with that very append. People summon, wake, put to sleep, hand in
// documents, write into the files of others and take them away. Most of these days begin with a
// team, and each ends with one that everybody woke up in.
//
// On one day in five somebody asks before it does anything, takes its question back now and then, and
// has a provider that takes no more at times. Rules, people, what people left standing and time answer
// it; each answer is compared with what is stored when it is typed.
//
// Days need a bubble, and a bubble needs a test, so a program that is no test runs one in
// the background: see [Play].
//
// What is played is what the seams promise. Props that are kinder than the world find
// less: that the real shim, disk and journal keep the seams is what their own suites
// and the torture on real processes show.
//
// The one promise: a broken promise comes with a seed, and with a trace that leads to it.
package sim
