// Command fairlead runs a team of AI agents on a repository.
//
// It is one binary for several processes. As `fairlead up` it is the daemon; most other verbs are a client that sends requests
// to the daemon over its socket. The binary also executes itself as the shim beside each agent, as the proxy of the sessions, as
// the adapter before a real agent program, as the program that enters a sandbox, and as the built-in scripted agent. This package
// only wires: one file for each verb, drivers.go for the drivers, exit.go for the meaning of the exit codes.
//
// The one promise: every verb says in words what happened, and in its exit code whether.
package main

import (
	"os"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/script"
	"github.com/fairlead-dev/fairlead/process/proxy"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/work/notify"
)

func main() {
	shim.Intercept()
	proxy.Intercept()
	sandbox.Intercept()
	notify.Intercept()
	script.Intercept()
	adapter.Intercept(cli.Protocols()...)
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
