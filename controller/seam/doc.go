// Package seam names everything outside that the controllers stand on: the host of sessions, the files of
// other programs, the drivers, the journal.
//
// A daemon gives the real ones; the simulator and the tests give fakes that pass the same suites. The
// package holds interfaces and the values that cross them, and no behaviour.
//
// The promise: a controller reaches the outside only through Options.
package seam
