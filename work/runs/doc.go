// Package runs carries out workflows: it starts runs, prepares the sessions of steps, reads reports,
// gates and answers, writes run_state.json, and archives runs that have ended.
//
// The workflow machine decides which step may start and what a report means. An agent, a wrapper or
// a command executes a step. A run may have its own worktree. run_state.json is a projection of the
// journal that other tools can read. A change that another tool makes to it is kept under another
// name.
//
// The one promise: a step's result counts once, under the attempt that it belongs to, and nothing that a
// run left behind is deleted.
package runs
