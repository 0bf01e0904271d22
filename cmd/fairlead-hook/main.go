// Command fairlead-hook is `fairlead hook` alone, for its start-up time.
//
// Agent programs start a hook for every tool call, so a hook must start quickly. This program links
// only what a hook needs: dispatch folders, the rules, and the format of the answers. It runs the same
// code as `fairlead hook`.
//
//	fairlead-hook EVENT   reads the event on standard input, answers on standard output
//	fairlead-hook exec …  runs a shell command in a view of the machine (package confine)
//
// `fairlead claude install` uses it if it is in the same folder as fairlead.
//
// The one promise: it gives the same answers as `fairlead hook`, and starts faster.
package main

import (
	"fmt"
	"os"

	"github.com/fairlead-dev/fairlead/process/claudehook"
	"github.com/fairlead-dev/fairlead/process/claudehook/confine"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "fairlead-hook: it is called with the name of one event\nusage: fairlead-hook PreToolUse")
		os.Exit(2)
	}
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fairlead-hook: find this program's own file:", err)
		os.Exit(2)
	}
	os.Exit(claudehook.Run(os.Args[1], []string{exe, confine.Verb}, os.Stdin, os.Stdout, os.Stderr))
}
