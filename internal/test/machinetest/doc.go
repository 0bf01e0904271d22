// Package machinetest is the test harness that all state machines share.
//
// It runs scripts, whose results are golden files, and it counts which rows, and which pairs of a
// state and an event, the tests of a package used. Main fails the test binary if a row of a table
// was never used, so a row cannot be added without a test. It skips this check if the command line
// selects only some tests.
//
// The one promise: if the tests of a package pass, every row of its tables was used at least once.
package machinetest
