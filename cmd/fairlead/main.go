// Command fairlead runs a team of AI agents on a repository.
//
// It is one binary with many faces. As `fairlead up` it is the daemon; under most other
// verbs it is a caller that speaks with the daemon over its socket; and it executes itself
// again as the shim beside each agent, as the proxy of the sessions, as the adapter before a real agent program, as the door
// of a sandbox and as the built-in scripted agent. This package only wires: one file a verb, drivers.go for what agents it
// can drive, exit.go for what its exit codes mean.
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
