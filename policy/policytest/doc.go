// Package policytest provides the scene and the table of calls with which policy, hooks, drivers and the
// sandbox are tested.
//
// A scene is a repository with notes and programs, links that lead to unexpected places, a dispatch folder, a
// home folder and a place outside. The calls are attempts on that scene with the expected verdicts; they are
// in policy/testdata/calls.txt. Build creates the scene on a real disk, Fake holds it in memory, and RunDisk
// checks an implementation of policy.Disk against it.
//
// The one promise: the scene in memory and the scene on disk are the same.
package policytest
