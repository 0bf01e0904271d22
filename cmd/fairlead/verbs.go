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
	add("begin", a.demoVerb(), a.initVerb(), a.upVerb(), a.downVerb(), a.reloadVerb(), a.openVerb(), a.doctorVerb())
	add("see", a.psVerb(), a.whyVerb(), a.watchVerb(), a.eventsVerb(), a.usageVerb())
	add("agents", a.commandVerb("start"), a.commandVerb("stop"), a.commandVerb("once"), a.commandVerb("cleanup"), a.holdVerb(), a.unholdVerb(), a.retryVerb())
	add("answer", a.inboxVerb(), a.answerAskedVerb(), a.approveVerb(), a.rejectVerb())
	add("nouns", a.channelVerb(), a.crewVerb(), a.runVerb(), a.dispatchVerb(), a.questionVerb())
	add("more", a.claudeVerb(), a.hookVerb(), a.mcpVerb(), a.docsVerb(root), a.versionVerb(), a.simVerb())
	root.AddCommand(a.exitCodesTopic())
	root.AddCommand(a.oldVerbs()...)
}

// oldVerbs are the names that commands had before they were grouped by noun. They do the same
// and warn; they go with the next release.
func (a *app) oldVerbs() []*cobra.Command {
	old := []*cobra.Command{
		a.retired("release", "unhold", a.unholdVerb()),

		a.retired("channels", "channel list", a.channelListVerb()),
		a.retired("say", "channel say", a.sayVerb()),
		a.retired("grant", "channel grant", a.grantVerb()),
		a.retired("skip", "channel skip", a.skipVerb()),
		a.retired("override", "channel override", a.overrideVerb()),
		a.retired("assign", "channel assign", a.assignVerb()),
		a.retired("remove", "channel remove", a.removeVerb()),
		a.retired("enable", "channel enable", a.enableVerb()),
		a.retired("disable", "channel disable", a.disableVerb()),

		a.retired("team", "crew", a.crewVerb("import")),
		a.retired("soul", "crew show", a.crewShowVerb()),
		a.retired("summon", "crew summon", a.summonVerb()),
		a.retired("wake", "crew wake", a.wakeVerb()),
		a.retired("sleep", "crew sleep", a.sleepVerb()),
		a.retired("transcript", "crew transcript", a.transcriptVerb()),

		a.retiredRuns(),
		a.retired("resume", "run resume", a.resumeVerb()),
		a.retired("cancel", "run cancel", a.cancelVerb()),

		a.retired("session", "dispatch", a.dispatchVerb("start", "input", "delegate", "done", "respond", "status", "list", "end", "log")),
		a.retiredRoute(),
		a.retiredPolicy(),

		a.retiredStanding(),
		a.retiredClaude("install", a.claudeInstallVerb()),
		a.retiredClaude("uninstall", a.claudeUninstallVerb()),
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
6  no daemon runs`

func (a *app) exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes of commands mean", Long: "A command ends with one of these exit codes:\n\n" + exitCodes}
}

// retiredRuns is `fairlead runs [RUN]`, which is two commands now, and `fairlead runs prune`.
func (a *app) retiredRuns() *cobra.Command {
	list, show := a.runListVerb(), a.runShowVerb()
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
	}, a.retired("runs prune", "run prune", a.pruneVerb()))
}

// retiredRoute is `fairlead route`.
func (a *app) retiredRoute() *cobra.Command {
	var path string
	return a.retired("route", "dispatch route", a.routeVerb(&path))
}

// retiredPolicy is `fairlead policy check`.
func (a *app) retiredPolicy() *cobra.Command {
	var path string
	return a.retired("policy", "dispatch policy", a.policyVerb(&path))
}

// retiredStanding is `fairlead standing` and `fairlead standing revoke`.
func (a *app) retiredStanding() *cobra.Command {
	return noun(a.retired("standing", "question saved", a.savedVerb()), a.retired("standing revoke", "question revoke", a.revokeVerb()))
}

// retiredClaude is `fairlead install claude` or `fairlead uninstall claude`.
func (a *app) retiredClaude(verb string, cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgs = []string{"claude"}
	cmd.Args = cli.Args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs))
	cmd = a.retired(verb+" claude", "claude "+verb, cmd)
	cmd.Use = verb + " claude"
	return cmd
}
