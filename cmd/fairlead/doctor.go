package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/doctor"
	"github.com/fairlead-dev/fairlead/cli/probe"
)

func doctorCommand(a *app) *cobra.Command {
	var fix, fresh bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find problems in this workspace, and say how to fix them",
		Long: `It checks the configuration, the agents' programs, the workspace, the whole hash chain of the
journal, the agents' files against the journal, the process beside each open session, the session
folders, the sockets, the daemon, the disk, the clock, and leftover processes.

It starts the agent programs that it finds in PATH and knows, four at a time, and asks each for its
version, whether it can resume conversations, how it takes the team's tools, and what sandbox holds
it. It starts no conversation, and without network where the kernel allows that. On a terminal each
line appears as soon as it is known; elsewhere the order of lines is always the same. An answer
without warnings is remembered for a day, until the program's file changes; --fresh asks again. A
program whose agent has an ` + "`env`" + ` is always asked.

It changes nothing. --fix fixes what it can and prints each step: it removes stale sockets and the
file of a dead daemon, ends leftover processes, and cuts off a torn last line of a transition log.
It never changes the journal. Exit code 1 means that there is a problem.`,
		Example: `  fairlead doctor
  fairlead doctor --fix`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if fresh {
				ctx = probe.Fresh(ctx)
			}
			return doctor.Doctor(ctx, a.App, fix)
		},
	}
	a.probeFlags(cmd)
	cmd.Flags().BoolVar(&fresh, "fresh", false, "ask each agent program again, although its answer is known")
	cmd.Flags().BoolVar(&fix, "fix", false, "fix what can be fixed, and report each fix; the journal is never changed")
	return cmd
}
