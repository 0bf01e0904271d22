// Package worktree creates and removes git worktrees without losing work.
//
// It runs the git program in one folder with a fixed environment, no hooks and no prompts. Before a
// worktree is removed, its branch, its uncommitted and its untracked files are kept under hidden
// refs.
//
// The one promise: removing a worktree loses no commit and no file that git does not ignore.
package worktree
