package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The help lists commands in the order in which they are added.
func init() { cobra.EnableCommandSorting = false }

// addVerbs puts every command into the tree: what people do daily with agents at the top, and the
// rest in groups by noun.
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
}

// oldNames are the names that commands had before they were grouped by noun. They do the same and
// warn; they go with the next release.
var oldNames = []struct{ old, now string }{
	{"release", "unhold"},
	{"channels", "channel list"},
	{"say", "channel say"},
	{"grant", "channel grant"},
	{"skip", "channel skip"},
	{"override", "channel override"},
	{"assign", "channel assign"},
	{"remove", "channel remove"},
	{"enable", "channel enable"},
	{"disable", "channel disable"},
	{"team", "crew"},
	{"soul", "crew show"},
	{"summon", "crew summon"},
	{"wake", "crew wake"},
	{"sleep", "crew sleep"},
	{"transcript", "crew transcript"},
	{"runs prune", "run prune"},
	{"runs RUN", "run show RUN"},
	{"runs", "run list"},
	{"resume", "run resume"},
	{"cancel", "run cancel"},
	{"session", "dispatch"},
	{"route", "dispatch route"},
	{"policy", "dispatch policy"},
	{"standing revoke", "question revoke"},
	{"standing", "question saved"},
	{"install claude", "claude install"},
	{"uninstall claude", "claude uninstall"},
}

// present replaces an old name in the arguments by the present one, and says so.
func (a *app) present(root *cobra.Command, args []string) []string {
	first := nextWord(args, 0)
	second := nextWord(args, first+1)
	for _, name := range oldNames {
		verb, part, two := strings.Cut(name.old, " ")
		switch {
		case first == len(args) || args[first] != verb:
			continue
		case two && (second == len(args) || part != "RUN" && args[second] != part):
			continue
		}
		words := strings.Fields(strings.TrimSuffix(name.now, " RUN"))
		rest := slices.Clone(args[first+1:])
		if two && part != "RUN" {
			rest = slices.Delete(rest, second-first-1, second-first)
		}
		args = slices.Concat(args[:first], words, rest)
		below := "" // a command of a group keeps its name
		if cmd, _, err := root.Find(args); err == nil {
			below = strings.TrimPrefix(cmd.CommandPath(), "fairlead "+strings.Join(words, " "))
		}
		fmt.Fprintf(a.Err, "`fairlead %s%s` is now `fairlead %s%s`; it works for one more release\n", name.old, below, name.now, below)
		break
	}
	return args
}

// nextWord is the index of the first argument from a place on that is neither a flag nor the value of --dir.
func nextWord(args []string, from int) int {
	for i := from; i < len(args); i++ {
		switch {
		case args[i] == "--dir":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return i
		}
	}
	return len(args)
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
