// Package seam defines the interfaces between the controllers and everything outside: the host of
// sessions, the files of other programs, the drivers, the journal.
//
// The daemon provides the production implementations; the simulator and the tests provide fakes
// that pass the same suites. The package holds interfaces and the values that cross them, and no
// behaviour.
//
// The one promise: a controller reaches the outside only through Options.
package seam
