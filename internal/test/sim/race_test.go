//go:build race

package sim

// slow says that the race detector looks on: of a day it makes ten. The days of .ci/run days are
// played without it.
const slow = true
