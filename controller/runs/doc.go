// Package runs carries out workflows: it starts runs, prepares the sessions of steps, reads reports,
// gates and answers, writes run_state.json, and archives runs that are over.
//
// Which step may begin and what a report means is decided by machine workflow. A step is played by an
// agent, a wrapper or a command; a run may have a worktree of its own. run_state.json is a projection of
// the journal that other tools of this kind can read; what they write into it is kept aside.
//
// The promise: a step's result counts once, under the attempt that it belongs to, and nothing that a
// run left behind is deleted.
package runs
