// Package examples holds teams to try and to copy from.
//
// Each folder is a model railway: small, complete, and it runs. What stands on the
// tracks are script agents, so nothing is needed but git and a shell; the rest, the
// files that change, the tests that fail, the commits, is real.
//
// The one promise: what stands here is run by the tests as it stands.
package examples
