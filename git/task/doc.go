// Package task does what a task needs of git: a folder of its own, a picture of what was changed in it, and
// landing it on a branch.
//
// The task's machine decides what happens and when (package core/task). This package does it: show and land are called by the daemon;
// prepare, check, merged, and land of a pull request are steps in processes of their own, `fairlead task step NAME`.
//
// The folder is a clone that shares the objects of the person's repository. Its agent may write everything in
// it, also its settings and hooks. Therefore Fairlead runs no git command with the clone's own settings, except
// the one that git itself considers safe: it fetches from the clone. The files of the folder are read with the
// settings of the person's repository and with an index of Fairlead's own.
//
// Landing writes down what it is about to change in the person's checkout before it changes it (move.go). Wherever its process is
// killed, the next landing brings the checkout to where the branch is.
//
// The one promise: what an agent or a person wrote in the folder is in a commit under refs/fairlead/tasks/ID before
// the folder is removed, and a branch moves forward only, to content that was shown and has passed the checks.
package task
