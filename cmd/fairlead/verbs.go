package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
)

// The help lists commands in the order in which they are added.
func init() { cobra.EnableCommandSorting = false }

// addVerbs puts every command into the tree: what people do daily with agents at the top, the
// rest in groups by noun, and the old names of commands that were renamed, hidden.
func (a *app) addVerbs(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: "begin", Title: "Start here:"},
		&cobra.Group{ID: "tasks", Title: "Give tasks and land them:"},
		&cobra.Group{ID: "see", Title: "See what happens:"},
		&cobra.Group{ID: "agents", Title: "Control agents:"},
		&cobra.Group{ID: "answer", Title: "Answer what waits for you:"},
		&cobra.Group{ID: "nouns", Title: "Work by topic (each has commands of its own):"},
		&cobra.Group{ID: "more", Title: "More:"},
	)
	root.SetHelpCommandGroupID("more")
	root.SetCompletionCommandGroupID("more")
	add := func(group string, verbs ...*cobra.Command) {
		for _, verb := range verbs {
			verb.GroupID = group
			root.AddCommand(verb)
		}
	}
	add("begin", demoCommand(a), initCommand(a), upCommand(a), downCommand(a), reloadCommand(a), openCommand(a), doctorCommand(a))
	add("tasks", taskCommand(a), a.AtFlag(tasksCommand(a)), diffCommand(a), commentCommand(a), requestCommand(a), mergeCommand(a), prCommand(a), dropCommand(a), tellCommand(a))
	add("see", a.AtFlag(psCommand(a)), a.AtFlag(whyCommand(a)), watchCommand(a), eventsCommand(a), searchCommand(a), digestCommand(a), a.AtFlag(usageCommand(a)), reposCommand(a))
	add("agents", orderCommand(a, "start"), orderCommand(a, "stop"), orderCommand(a, "once"), orderCommand(a, "cleanup"), holdCommand(a), unholdCommand(a), retryCommand(a))
	add("answer", a.AtFlag(inboxCommand(a)), answerAskedCommand(a), approveCommand(a), rejectCommand(a))
	add("nouns", agentCommand(a), channelCommand(a), crewCommand(a), runCommand(a), dispatchCommand(a), questionCommand(a), notifyCommand(a))
	add("more", claudeCommand(a), compactCommand(a), hookCommand(a), mcpCommand(a), docsCommand(a, root), versionCommand(a), simCommand(a))
	root.AddCommand(a.exitCodesTopic())
	root.AddCommand(a.oldVerbs()...)
}

// oldVerbs are the names that commands had before they were grouped by noun. They do the same
// and warn; they go with the next release.
func (a *app) oldVerbs() []*cobra.Command {
	old := []*cobra.Command{
		a.retired("release", "unhold", unholdCommand(a)),

		a.retired("channels", "channel list", channelListCommand(a)),
		a.retired("say", "channel say", sayCommand(a)),
		a.retired("grant", "channel grant", grantCommand(a)),
		a.retired("skip", "channel skip", skipCommand(a)),
		a.retired("override", "channel override", overrideCommand(a)),
		a.retired("assign", "channel assign", assignCommand(a)),
		a.retired("remove", "channel remove", removeCommand(a)),
		a.retired("enable", "channel enable", enableCommand(a)),
		a.retired("disable", "channel disable", disableCommand(a)),

		a.retired("team", "crew", crewCommand(a, "import")),
		a.retired("soul", "crew show", crewShowCommand(a)),
		a.retired("summon", "crew summon", summonCommand(a)),
		a.retired("wake", "crew wake", wakeCommand(a)),
		a.retired("sleep", "crew sleep", sleepCommand(a)),
		a.retired("transcript", "crew transcript", transcriptCommand(a)),

		retiredRunsCommand(a),
		a.retired("resume", "run resume", resumeCommand(a)),
		a.retired("cancel", "run cancel", cancelCommand(a)),

		a.retired("session", "dispatch", dispatchCommand(a, "start", "input", "delegate", "done", "respond", "status", "list", "end", "log")),
		retiredRouteCommand(a),
		retiredPolicyCommand(a),

		retiredStandingCommand(a),
		retiredClaudeCommand(a, "install", claudeInstallCommand(a)),
		retiredClaudeCommand(a, "uninstall", claudeUninstallCommand(a)),
	}
	return old
}

// retired makes a command answer to an old name: hidden, and with a warning that names the new
// one. Commands below it keep their names.
func (a *app) retired(old, now string, cmd *cobra.Command) *cobra.Command {
	_, takes, has := strings.Cut(cmd.Use, " ")
	cmd.Use = old[strings.LastIndexByte(old, ' ')+1:]
	if has {
		cmd.Use += " " + takes
	}
	cmd.Hidden = true
	a.warn(cmd, "fairlead "+old, "fairlead "+now)
	return cmd
}

// warn lets a command, and all below it, say that it has a new name. The warning comes before
// the arguments are checked, so that a wrong call hears it too.
func (a *app) warn(cmd *cobra.Command, old, now string) {
	for _, sub := range cmd.Commands() {
		a.warn(sub, old+" "+sub.Name(), now+" "+sub.Name())
	}
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, words []string) error {
		fmt.Fprintf(a.Err, "`%s` is now `%s`; it works for one more release\n", old, now)
		if check == nil {
			return nil
		}
		return check(cmd, words)
	}
}

// noun is a group of commands. Called without one of them it prints its help.
func noun(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	if cmd.Args == nil {
		cmd.Args = knownVerb
	}
	if cmd.RunE == nil {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	cmd.AddCommand(verbs...)
	return cmd
}

// only keeps the named ones of a group's commands; none named: all.
func only(names []string, verbs ...*cobra.Command) []*cobra.Command {
	if len(names) == 0 {
		return verbs
	}
	var kept []*cobra.Command
	for _, verb := range verbs {
		for _, name := range names {
			if verb.Name() == name {
				kept = append(kept, verb)
			}
		}
	}
	return kept
}

// exitCodes is what the numbers mean with which a command ends (exit.go).
const exitCodes = `0  done
1  failed
2  wrong usage
3  refused: the current state does not allow it
4  waits for a person
5  cancelled
6  no daemon runs, or it ended before it answered`

func (a *app) exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes of commands mean", Long: "A command ends with one of these exit codes:\n\n" + exitCodes}
}

// retiredRunsCommand is `fairlead runs [RUN]`, which is two commands now, and `fairlead runs prune`.
func retiredRunsCommand(a *app) *cobra.Command {
	list, show := runListCommand(a), runShowCommand(a)
	a.warn(list, "fairlead runs", "fairlead run list")
	a.warn(show, "fairlead runs RUN", "fairlead run show RUN")
	chosen := func(words []string) *cobra.Command {
		if len(words) > 0 {
			return show
		}
		return list
	}
	return noun(&cobra.Command{
		Use:               "runs [RUN]",
		Short:             list.Short,
		Hidden:            true,
		ValidArgsFunction: a.completeRuns,
		Args:              func(cmd *cobra.Command, words []string) error { return chosen(words).Args(cmd, words) },
		RunE:              func(cmd *cobra.Command, words []string) error { return chosen(words).RunE(cmd, words) },
	}, a.retired("runs prune", "run prune", pruneCommand(a)))
}

// retiredRouteCommand is `fairlead route`.
func retiredRouteCommand(a *app) *cobra.Command {
	var path string
	return a.retired("route", "dispatch route", routeCommand(a, &path))
}

// retiredPolicyCommand is `fairlead policy check`.
func retiredPolicyCommand(a *app) *cobra.Command {
	var path string
	return a.retired("policy", "dispatch policy", policyCommand(a, &path))
}

// retiredStandingCommand is `fairlead standing` and `fairlead standing revoke`.
func retiredStandingCommand(a *app) *cobra.Command {
	return noun(a.retired("standing", "question saved", savedCommand(a)), a.retired("standing revoke", "question revoke", revokeCommand(a)))
}

// retiredClaudeCommand is `fairlead install claude` or `fairlead uninstall claude`.
func retiredClaudeCommand(a *app, verb string, cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgs = []string{"claude"}
	cmd.Args = cli.Args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs))
	cmd = a.retired(verb+" claude", "claude "+verb, cmd)
	cmd.Use = verb + " claude"
	return cmd
}
