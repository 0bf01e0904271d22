// Package policytest provides the scene and the table of calls with which policy, hooks, drivers and the
// sandbox are tested.
//
// A scene is a repository with notes and programs, links that lead to unexpected places, a dispatch folder, a
// home folder and a place outside. The calls are attempts on that scene with the expected verdicts; they are
// in core/policy/testdata/calls.txt. Build creates the scene on a real disk.
//
// The one promise: every test of a verdict meets the same files.
package policytest
