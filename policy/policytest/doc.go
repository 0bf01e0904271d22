// Package policytest lends the doorkeeper's table to everybody who has a door.
//
// A scene is a stage with all its trapdoors: a repository with notes and programs, links that
// lead where they should not, a session's folder, a home, a place outside. The calls are what
// people try on that stage, each with what should become of it; they stand in
// policy/testdata/calls.txt, where anyone can add one. Build sets the stage up on a real disk,
// Fake holds it in memory, and RunDisk asks a disk that somebody made whether it sees the stage
// as it is.
//
// The one promise: the scene in memory and the scene on disk are the same.
package policytest
