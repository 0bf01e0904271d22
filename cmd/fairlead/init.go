package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/setup"
)

func initCommand(a *app) *cobra.Command {
	var lead, alone bool
	var agents []string
	cmd := &cobra.Command{
		Use:         "init",
		Annotations: map[string]string{cli.HereOnly: "a workspace is made in the current folder"},
		Short:       "Write a first fairlead.yaml, with an agent that works at once",
		Long: `It writes a commented fairlead.yaml and the script of a first agent into the current folder, and an
.agents/.gitignore that keeps the files of runs out of git. It writes the first free port from 7466.
It changes no file that exists.

If agent programs that Fairlead supports are installed, it asks on a terminal which of them to add;
in a script, name each with --agent. They replace the scripted first agent.

--lead writes LEAD.md instead: the instructions for an agent that leads a crew. team.lead in
fairlead.yaml names that agent.`,
		Example: `  fairlead init
  fairlead init --agent claude --agent codex`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			switch {
			case lead && (alone || len(agents) > 0):
				return errors.New("--lead writes LEAD.md and nothing else; take the other flags out")
			case lead:
				return setup.InitLead(a.App)
			case alone && len(agents) > 0:
				return errors.New("--agent and --no-agents contradict each other; take one out")
			}
			chosen, err := setup.ChooseAgents(a.App, agents, alone)
			if err != nil {
				return err
			}
			return setup.Init(a.App, chosen)
		},
	}
	cmd.Flags().BoolVar(&lead, "lead", false, "write LEAD.md, the instructions of a lead, and nothing else")
	cmd.Flags().StringArrayVar(&agents, "agent", nil, "an installed agent program that is to be on the team: "+strings.Join(setup.DrivenNames(), ", "))
	cmd.Flags().BoolVar(&alone, "no-agents", false, "ask nothing, and begin with the scripted agent alone")
	return cmd
}
