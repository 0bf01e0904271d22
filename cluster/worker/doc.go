// Package worker is the daemon of a host that runs sessions for a leader on another machine.
//
// [Config] is what the host knows of its team, beside its keys and certificate (cluster/ca).
//
// The one promise: a host acts only for the leader of the team that it has joined.
package worker
