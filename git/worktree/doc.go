// Package worktree makes and removes the clones of runs without losing work.
//
// It runs the git program in one folder with a fixed environment, no hooks and no prompts. A clone's git directory is an agent's, all of
// it: only [Inside] opens one, in a view, and the repository checks what comes from there. Before a clone is removed, its branches, its
// uncommitted and its untracked files are kept under hidden refs.
//
// The one promise: removing a clone loses no commit and no file, also of those that git ignores.
package worktree
