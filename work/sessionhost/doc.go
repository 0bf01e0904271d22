// Package sessionhost defines how the controllers run sessions: a Host starts and adopts them, and each is a Process.
//
// work/sessions implements Host with a shim beside each agent, hosts/remote with another machine, and hosts/membership
// chooses between the two. The simulator and the tests play sessions in process.
//
// The one promise: a session on another machine looks to a controller as one on this machine does.
package sessionhost
