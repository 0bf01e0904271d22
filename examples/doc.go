// Package examples holds teams to try and to copy from.
//
// Each folder is small and complete, and it runs. Its agents are script agents, so only git and a
// shell are needed. The files that change, the tests that fail and the commits are real.
//
// The one promise: the tests run every example as it is.
package examples
