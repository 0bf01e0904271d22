// Package machinetest is the test harness that all state machines share.
//
// It plays scripts, whose results are golden files, and it counts which rows and which pairs of
// a state and an event the tests of a package took. Main fails the test binary when a row of a
// table was never taken, so a row cannot be added without a test. It skips this check when
// the command line selects only some tests.
//
// The promise: if the tests of a package pass, every row of its tables was taken at least once.
package machinetest
