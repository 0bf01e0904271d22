// Command fairlead-hook is `fairlead hook` alone, for its start-up time.
//
// Think of a porter's lodge beside a large house. Whoever passes asks at the lodge, because the
// way to it is short; what the porter says is what the house would have said, since both read from
// the same book. An agent program starts a hook for every tool call, so this one links only what a
// hook needs: sessions in folders, the rules, and the form of the answers.
//
//	fairlead-hook EVENT   reads the event on standard input, answers on standard output
//
// `fairlead claude install` uses it where it lies beside fairlead.
//
// The one promise: it answers as `fairlead hook` does, only sooner.
package main

import (
	"fmt"
	"os"

	"github.com/fairlead-dev/fairlead/claudehook"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "fairlead-hook: it is called with the name of one event\nusage: fairlead-hook PreToolUse")
		os.Exit(2)
	}
	os.Exit(claudehook.Run(os.Args[1], os.Stdin, os.Stdout, os.Stderr))
}
