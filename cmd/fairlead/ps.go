package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/agents"
)

func psCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ps",
		Short: "List the agents: status, session, and anything that contradicts it",
		Long: `A line for each agent: its status, its current and desired state, its session and process, and
remarks. The status is derived from evidence, the first that applies of UNKNOWN, STOPPING, WAITING,
RATE LIMITED, RUNNING, BACKING OFF, FAILED and IDLE. A remark that begins with ? is evidence against the state; ` + "`fairlead why AGENT`" + ` prints it.`,
		Example: `  fairlead ps
  fairlead ps --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			view, err := client.Agents(ctx)
			if err != nil {
				return err
			}
			if client.Offline != nil {
				view.Stopping = false // the daemon has stopped
			}
			return a.Show(view, func() error { return agents.PrintTeam(a.App, a.Out, view, 0) })
		}),
	}
}

func whyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why AGENT",
		Short: "Print the evidence for the state of an agent, with its age",
		Long: `Each piece of evidence agrees with the state (+) or contradicts it (!). Below it are the agent's last
sessions and how they ended.`,
		Example: `  fairlead why coder
  fairlead why coder --json`,
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeAgents,
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, words []string) error {
			why, err := client.Why(ctx, words[0])
			if err != nil {
				return err
			}
			return a.Show(why, func() error { return agents.PrintWhy(a.App, why) })
		}),
	}
}

// completeAgents offers names to the shell; without a daemon those of fairlead.yaml.
func (a *app) completeAgents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	conf, err := a.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, agent := range conf.Agents {
		names = append(names, agent.Name+"\t"+agent.Description)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
