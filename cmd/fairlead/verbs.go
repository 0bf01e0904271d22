package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
)

// app is what every command has: the shared part, and the commands as its methods.
type app struct{ *cli.App }

// The help lists commands in the order in which they are added.
func init() { cobra.EnableCommandSorting = false }

// A verb is a command below the root, by its name.
type verb struct {
	name string
	make func(*app) *cobra.Command
}

// verbGroups lists every command: what people do daily with agents at the top, and the rest in groups by noun.
func verbGroups() []struct {
	id, title string
	verbs     []verb
} {
	return []struct {
		id, title string
		verbs     []verb
	}{
		{"begin", "Start here:", []verb{
			{"demo", demoCommand},
			{"init", initCommand},
			{"up", upCommand},
			{"down", downCommand},
			{"reload", reloadCommand},
			{"open", openCommand},
			{"doctor", doctorCommand},
		}},
		{"tasks", "Give tasks and land them:", []verb{
			{"task", taskCommand},
			{"tasks", at(tasksCommand)},
			{"diff", diffCommand},
			{"comment", commentCommand},
			{"request", requestCommand},
			{"checkout", checkoutCommand},
			{"merge", mergeCommand},
			{"pr", prCommand},
			{"push", pushCommand},
			{"undo", undoCommand},
			{"drop", dropCommand},
			{"tell", tellCommand},
			{"shell", shellCommand},
		}},
		{"see", "See what happens:", []verb{
			{"ps", at(psCommand)},
			{"why", at(whyCommand)},
			{"watch", watchCommand},
			{"events", eventsCommand},
			{"search", searchCommand},
			{"digest", digestCommand},
			{"usage", at(usageCommand)},
			{"repos", reposCommand},
			{"hosts", hostsCommand},
		}},
		{"agents", "Control agents:", []verb{
			ordering("start"), ordering("stop"), ordering("once"), ordering("cleanup"),
			{"hold", holdCommand},
			{"unhold", unholdCommand},
			{"retry", retryCommand},
		}},
		{"answer", "Answer what waits for you:", []verb{
			{"inbox", at(inboxCommand)}, {"answer", answerAskedCommand}, {"approve", approveCommand}, {"reject", rejectCommand},
		}},
		{"nouns", "Work by topic (each has commands of its own):", []verb{
			{"agent", agentCommand},
			{"channel", channelCommand},
			{"crew", crewCommand},
			{"cluster", clusterCommand},
			{"host", hostCommand},
			{"run", runCommand},
			{"dispatch", dispatchCommand},
			{"question", questionCommand},
			{"notify", notifyCommand},
		}},
		{"more", "More:", []verb{
			{"claude", claudeCommand},
			{"compact", compactCommand},
			{"hook", hookCommand},
			{"mcp", mcpCommand},
			{"docs", docsCommand},
			{"version", versionCommand},
		}},
	}
}

func at(make func(*app) *cobra.Command) func(*app) *cobra.Command {
	return func(a *app) *cobra.Command { return a.AtFlag(make(a)) }
}

func ordering(name string) verb {
	return verb{name, func(a *app) *cobra.Command { return orderCommand(a, name) }}
}

// addVerbs adds the command of that name to the root. If there is none, it adds every command: for the help, for
// suggestions and for completion. To make all of them takes longer than most commands do.
func (a *app) addVerbs(root *cobra.Command, name string) {
	groups := verbGroups()
	for _, group := range groups {
		for _, verb := range group.verbs {
			if verb.name == name {
				root.CompletionOptions.DisableDefaultCmd = true
				root.AddCommand(verb.make(a))
				return
			}
		}
	}
	root.SetHelpCommandGroupID("more")
	root.SetCompletionCommandGroupID("more")
	for _, group := range groups {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, verb := range group.verbs {
			cmd := verb.make(a)
			cmd.GroupID = group.id
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(a.exitCodesTopic())
}

// firstWord is the index of the first argument that is neither a flag nor the value of --dir.
func firstWord(args []string) int {
	for i := 0; i < len(args); i++ {
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

// exitCodes is what the numbers mean with which a command ends.
const exitCodes = `0  done
1  failed
2  wrong usage
3  refused: the current state does not allow it
4  waits for a person
5  cancelled
6  no daemon runs, or it ended before it answered`

func (a *app) exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use: "exit-codes", Short: "What the exit codes of commands mean",
		Long: "A command ends with one of these exit codes:\n\n" + exitCodes,
	}
}

// elsewhere maps words of other programs to the command here. A suggestion by spelling alone (docs for logs) would be
// wrong for them.
var elsewhere = map[string]string{
	"agents": "ps", "ls": "ps", "list": "ps", "status": "ps", "top": "watch",
	"attach": "watch AGENT", "follow": "watch AGENT", "output": "watch AGENT", "tail": "watch AGENT",
	"log": "events`; what one agent says is `fairlead watch AGENT", "logs": "events`; what one agent says is `fairlead watch AGENT",
	"audit": "events", "history": "events", "journal": "events",
	"explain": "why AGENT", "describe": "why AGENT", "inspect": "why AGENT", "show": "why AGENT",
	"pause": "stop AGENT", "end": "stop AGENT --now", "kill": "stop AGENT --now", "interrupt": "stop AGENT --now",
	"abort":   "stop AGENT --now",
	"restart": "stop AGENT` and then `fairlead start AGENT", "spawn": "start AGENT", "unpause": "start AGENT",
	"freeze": "hold", "thaw": "unhold",
	"serve": "up", "daemon": "up", "recover": "up", "restore": "up", "quit": "down", "shutdown": "down", "exit": "down",
	"create": "init", "new": "init", "setup": "init", "add": "init --agent NAME",
	"dashboard": "open", "gui": "open", "ui": "open", "web": "open",
	"budget": "usage", "cost": "usage", "costs": "usage", "tokens": "usage",
	"chat": "channel say CHANNEL TEXT", "message": "channel say CHANNEL TEXT", "msg": "channel say CHANNEL TEXT",
	"send": "channel say CHANNEL TEXT", "steer": "tell AGENT TEXT",
	"approvals": "inbox", "pending": "inbox",
	"allow": "answer QUESTION yes", "deny": "answer QUESTION no", "reply": "answer QUESTION",
	"permissions": "question saved", "rules": "question saved", "revoke": "question revoke ID",
	"workflow": "run FILE", "workflows": "run list",
	"check": "doctor", "config": "doctor", "diagnose": "doctor", "validate": "doctor",
	"questions":     "inbox",
	"notifications": "notify list", "notices": "notify list", "alerts": "notify list",
}
