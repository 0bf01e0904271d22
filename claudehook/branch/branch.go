// Package branch makes the program that imports it run `fairlead hook EVENT` early.
//
// An agent waits for a hook before each tool call, and a hook needs little of fairlead: this package branches off before
// most others are initialized (package shim does the same and explains how). With flags, the command runs the hook.
//
// The one promise: a hook answers as the command does, and starts faster.
package branch

import (
	"os"
	"strings"

	"github.com/fairlead-dev/fairlead/claudehook"
)

func init() { //nolint:gochecknoinits // see above: main is too late
	if len(os.Args) == 3 && os.Args[1] == "hook" && !strings.HasPrefix(os.Args[2], "-") {
		os.Exit(claudehook.Main(os.Args[2], os.Stdin, os.Stdout, os.Stderr))
	}
}
