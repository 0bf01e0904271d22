// Package tasks lets a person look at what a task has changed, comment on its lines, and answer it.
//
// A task is a run, and the package runs carries it out. This package reads the task's commits with git, keeps a
// person's comments in the run's folder, and turns the person's words into the answer to the step that waits.
//
// The one promise: an approval is for exactly the commit that the person was shown. If another one is shown by then,
// the approval is refused.
package tasks
