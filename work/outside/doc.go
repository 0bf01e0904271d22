// Package outside defines what the controllers need from outside: the configuration, the journal, the host of sessions, the
// drivers, the files of other programs, and the team's other hosts.
//
// The daemon provides the production implementations. The simulator and the tests provide fakes that pass the same suites.
//
// The one promise: a controller reaches the outside only through Options.
package outside
