package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	dispatchcli "github.com/fairlead-dev/fairlead/cli/dispatch"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/claudehook"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/work/questions"
)

// dispatchCommand groups the commands about a dispatch.
func dispatchCommand(a *app) *cobra.Command {
	var path string
	cmd := noun(&cobra.Command{
		Use:   "dispatch",
		Short: "Send requests to the agents whose descriptions fit, through a coordinator",
		Long: `A dispatch is a folder, by default in .claude/agent-state-machine. Its coordinator (MAIN) changes no
code. Each input starts a conversation with a folder of its own, and goes to the agent whose
description fits best. All state is in the folder, so these commands work without a daemon too; if
a daemon runs, agents of fairlead.yaml do the work.

The commands act on the open dispatch that was started last; --path names another one.`,
		Example: `  fairlead dispatch start
  fairlead dispatch input "write a hello world in Python" --wait
  fairlead dispatch status`,
	}, sessionStartCommand(a, &path), sessionInputCommand(a, &path), sessionDelegateCommand(a, &path), sessionDoneCommand(a, &path),
		sessionRespondCommand(a, &path),
		sessionStatusCommand(a, &path), sessionListCommand(a), sessionEndCommand(a, &path), sessionLogCommand(a, &path),
		routeCommand(a, &path), policyCommand(a, &path))
	cmd.PersistentFlags().StringVar(&path, "path", "", "the dispatch `folder`, or its name (default: the open one that was started last)")
	return cmd
}

// oldPath adds --session, which some commands had in place of --path.
func oldPath(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "session", "", "the dispatch folder, or its name")
	if err := cmd.Flags().MarkHidden("session"); err != nil {
		panic("fairlead: " + err.Error())
	}
}

func sessionStartCommand(a *app, path *string) *cobra.Command {
	var mode, host string
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a dispatch",
		Long: `It makes the folder, reads the agent descriptions (.claude/agents of the project, then of the user,
and fairlead.yaml), and is in state MAIN. A folder that exists already is refused.

  orchestrator  an agent reports back to MAIN when it is done
  interactive   an agent may ask another one and gets its answer; then back to MAIN
  response      there is no MAIN: messages in the folder's inbox/ go to the agents that fit

--host says what does the work: fairlead (the daemon, with agents of fairlead.yaml), or none (people
or programs do it and report with the commands of this group). The default is fairlead if a daemon
runs and fairlead.yaml names dispatch.main or describes an agent, otherwise none.`,
		Example: `  fairlead dispatch start
  fairlead dispatch start --mode interactive --host none`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if host != "" && host != dispatchcli.HostNone && host != dispatchcli.HostFairlead {
				return cli.Usage(cmd,
					fmt.Errorf("there is no host %q; it is none or fairlead (Claude Code begins its own by /agent-state-machine)", host))
			}
			if !slices.Contains(dispatch.Modes(), dispatch.Mode(mode)) {
				return cli.Usage(cmd, fmt.Errorf("there is no mode %q; it is orchestrator, interactive or response", mode))
			}
			return dispatchcli.SessionStart(cmd.Context(), a.App, *path, dispatch.Mode(mode), host)
		},
	}
	cmd.Flags().StringVar(&mode, "mode", string(dispatch.Orchestrator), "orchestrator, interactive or response")
	cmd.Flags().StringVar(&host, "host", "", "who does the work: none or fairlead")
	words := []string{
		"orchestrator\tagents report back to MAIN", "interactive\tagents may ask other agents", "response\tmessages of an inbox, no MAIN",
	}
	if err := errors.Join(
		cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)),
		cmd.RegisterFlagCompletionFunc("host",
			cobra.FixedCompletions([]string{dispatchcli.HostFairlead, dispatchcli.HostNone}, cobra.ShellCompDirectiveNoFileComp)),
	); err != nil {
		panic("fairlead: session start lacks a flag: " + err.Error())
	}
	return cmd
}

func sessionInputCommand(a *app, path *string) *cobra.Command {
	var wait, over bool
	cmd := &cobra.Command{
		Use:   "input TEXT...",
		Short: "Send a request: it starts a conversation with its own folder",
		Long: `The agent whose description fits best gets it; if none fits, MAIN keeps it. ` + "`fairlead dispatch route`" + `
shows the ranking. Agents may write to the paths that the request names; everything else that they
make goes to the conversation's outputs/. As TEXT, - reads standard input; several words are one
text. A request that comes while a conversation is open waits; --over ends the open one as
interrupted.

--wait shows which agent takes over, and returns with the answer; exit code 1 means that there is
none, because the conversation was interrupted or its task failed.`,
		Example: `  fairlead dispatch input "write a hello world in Python" --wait`,
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: a.speaking(0, func(cmd *cobra.Command, words []string, text string) error {
			return dispatchcli.SessionInput(cmd.Context(), a.App, *path, text, wait, over)
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "show what happens, and return when it is answered")
	cmd.Flags().BoolVar(&over, "over", false, "end the conversation that is open as interrupted")
	return cmd
}

func sessionDelegateCommand(a *app, path *string) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "delegate AGENT TEXT...",
		Short: "Give an agent a task, when you do the work of MAIN by hand",
		Long: `MAIN gives an agent a task; with --from, in mode interactive, an agent asks another one for help. It
prints what to tell the agent: the task, and where its files belong. As TEXT, - reads standard
input.`,
		Example:           `  fairlead dispatch delegate backend "add an index to the orders table"`,
		Args:              cli.Args(cobra.MinimumNArgs(2)),
		ValidArgsFunction: a.completeSessionAgent(path),
		RunE: a.speaking(1, func(cmd *cobra.Command, words []string, text string) error {
			return dispatchcli.SessionDelegate(a.App, *path, words[0], text, from)
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "the agent that asks for help (default: MAIN delegates)")
	return cmd
}

func sessionDoneCommand(a *app, path *string) *cobra.Command {
	var failed bool
	var agent string
	cmd := &cobra.Command{
		Use:   "done [TEXT...]",
		Short: "Report that an agent has finished its task, with the result",
		Long: `For people and programs that do the work by hand. Without --agent it ends the task that was started
last. In mode orchestrator MAIN is in charge then; in mode interactive, the agent that asked. As
TEXT, - reads standard input.`,
		Example: `  fairlead dispatch done "the index is there"
  fairlead dispatch done --failed "there is no such table"`,
		RunE: func(cmd *cobra.Command, words []string) error {
			text := ""
			if len(words) > 0 {
				var err error
				if text, err = a.Spoken(words); err != nil {
					return cli.Usage(cmd, err)
				}
			}
			return dispatchcli.SessionDone(a.App, *path, agent, text, failed)
		},
	}
	cmd.Flags().BoolVar(&failed, "failed", false, "it failed")
	cmd.Flags().StringVar(&agent, "agent", "", "the agent whose task it is (default: the task that was started last)")
	if err := cmd.RegisterFlagCompletionFunc("agent", a.completeSessionAgent(path)); err != nil {
		panic("fairlead: session done has no --agent: " + err.Error())
	}
	return cmd
}

func sessionRespondCommand(a *app, path *string) *cobra.Command {
	var summary string
	cmd := &cobra.Command{
		Use:   "respond TEXT...",
		Short: "Answer the request, and close the conversation",
		Long: `For people and programs that do the work by hand. The files in the conversation's outputs/ are listed
in its line of messages.jsonl. A waiting request starts then. As TEXT, - reads standard input.`,
		Example: `  fairlead dispatch respond "the query takes 20 ms now"`,
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: a.speaking(0, func(cmd *cobra.Command, words []string, text string) error {
			found, err := dispatchcli.Saying(a.App, *path, "responded", dispatch.NoHost)
			if err != nil {
				return err
			}
			done, err := dispatchcli.TellSession(a.App, found, dispatch.Respond{Text: text, Summary: summary})
			if err != nil {
				return err
			}
			return a.Show(done, func() error { return dispatchcli.PrintMoved(a.App, done, found.Session) })
		}),
	}
	cmd.Flags().StringVar(&summary, "summary", "", "what it was about, for messages.jsonl (default: the input's first line)")
	return cmd
}

// completeSessionAgent offers the agents of the session.
func (a *app) completeSessionAgent(path *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
		if a.Place(nil) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := dispatchcli.Session(a.App, *path)
		if err != nil || len(words) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, d := range found.Session.Agents {
			if !strings.ContainsAny(cli.Plain(d.Name), "\t\n\uFFFD") {
				names = append(names, d.Name+"\t"+cli.Line(d.Text, cli.SummaryWidth))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func sessionStatusCommand(a *app, path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the state of a dispatch, and its conversations",
		Long: `It shows which agent is in charge, the tasks, the waiting requests, the last denied tool calls, and
each conversation with its files.`,
		Example: `  fairlead dispatch status
  fairlead dispatch status --path 20260801_1015 --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			found, err := dispatchcli.Session(a.App, *path)
			if err != nil {
				return err
			}
			conversations, err := found.Folder.Conversations()
			if err != nil {
				return err
			}
			status := dispatchcli.SessionStatusOf(found, conversations)
			if status.Denials, err = dispatchcli.DenialsOf(found); err != nil {
				return err
			}
			return a.Show(status, func() error { return dispatchcli.PrintSession(a.App, status) })
		},
	}
}

func sessionListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the dispatches of the repository, the open ones first",
		Long:    "The newest come first.",
		Example: "  fairlead dispatch list",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			found, err := dispatchfolder.List(a.Dir)
			if err != nil {
				return err
			}
			list := make([]dispatchcli.SessionListed, 0, len(found))
			for _, f := range slices.Backward(found) {
				list = append(list, dispatchcli.SessionListedOf(f))
			}
			slices.SortStableFunc(list, func(a, b dispatchcli.SessionListed) int {
				switch {
				case a.Open == b.Open:
					return 0
				case a.Open:
					return -1
				default:
					return 1
				}
			})
			return a.Show(map[string]any{"sessions": list}, func() error { return dispatchcli.PrintSessions(a.App, list) })
		},
	}
}

func sessionEndCommand(a *app, path *string) *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:   "end",
		Short: "End a dispatch: its rules are no longer enforced",
		Long: `A working agent is cancelled, and its conversation closed with a summary that says so. Nothing is
deleted. Only a person, or a program outside of the dispatch, can end it.`,
		Example: `  fairlead dispatch end --why "done for today"`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			found, err := dispatchcli.Ordering(a.App, *path, "end_asked")
			if err != nil {
				return err
			}
			done, err := dispatchcli.TellSession(a.App, found, dispatch.End{Why: why})
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(map[string]any{
					"path": found.Folder.Path(), "state": string(dispatch.Closed),
					"conversations": done.After.Made,
				})
			}
			for _, ch := range done.Changes {
				dispatchcli.PrintMove(a.App, ch)
			}
			_, err = fmt.Fprintf(a.Out, "session %s is closed; its folder stays: %s\n", cli.Line(found.Folder.Name(), cli.SummaryWidth),
				cli.Plain(found.Folder.Path()))
			return err
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "why, for the record")
	return cmd
}

// loggedMost is the maximum size of a conversation's JSON in bytes.
const loggedMost = 1 << 20

func sessionLogCommand(a *app, path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "log",
		Short: "Record a conversation in messages.jsonl, from JSON on standard input",
		Long: `It replaces simple_asm_logger.py for programs that call it. The input is one JSON object with
conversation_id, timestamp, summary, files_created and agents_used, or the same as conversation_data
beside a session_path, which names the dispatch folder. A conversation that messages.jsonl has
already is not recorded twice.`,
		Example: "  fairlead dispatch log < conversation.json",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			raw, err := io.ReadAll(io.LimitReader(a.In, loggedMost+1))
			switch {
			case err != nil:
				return fmt.Errorf("read standard input: %w", err)
			case len(raw) > loggedMost:
				return cli.Usage(cmd, fmt.Errorf("the JSON has more than %d KiB; a summary is a line, not a file", loggedMost>>10))
			}
			return a.sessionLog(cmd, *path, raw)
		},
	}
}

func (a *app) sessionLog(cmd *cobra.Command, path string, raw []byte) error {
	given, err := dispatchfolder.LoggedPath(raw)
	if err != nil {
		return cli.Usage(cmd, err)
	}
	path = cmp.Or(path, given)
	found, err := dispatchcli.Ordering(a.App, path, "log")
	if err != nil {
		return err
	}
	if given != "" && dispatchcli.SessionPath(a.App, given) != found.Folder.Path() {
		return &cli.Coded{
			Code: cli.ExitUsage,
			Err:  errors.New("--path names one session, and session_path in the JSON another one; leave one of them out"),
		}
	}
	added, err := found.Folder.Log(raw)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"path": found.Folder.Path(), "logged": added})
	}
	words := "noted in "
	if !added {
		words = "nothing to do: the conversation is noted already in "
	}
	_, err = fmt.Fprintln(a.Out, words+cli.Plain(filepath.Join(found.Folder.Path(), "conversations", "messages.jsonl")))
	return err
}

func routeCommand(a *app, path *string) *cobra.Command {
	explain := false
	cmd := &cobra.Command{
		Use:   "route TEXT...",
		Short: "Show which agent's description fits an input, and why",
		Long: `It ranks the agents of the open dispatch; if none is open, the agents that a new dispatch would have.
It changes nothing. Words that an input and a description share count; rare words count more.
If they are in different languages, only the agent's name and the names of files count.
If no agent reaches the threshold, or none is clearly first, MAIN keeps the input. As TEXT - reads standard input.`,
		Example: `  fairlead dispatch route "optimize the SQL query"`,
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: a.speaking(0, func(cmd *cobra.Command, words []string, text string) error {
			found, err := dispatchcli.SessionOrNew(a.App, *path)
			if err != nil {
				return err
			}
			orders, err := dispatchcli.Orders(a.App)
			if err != nil {
				return err
			}
			ranking := orders.RankDispatch(found.Session, text)
			return a.Show(ranking, func() error { return dispatchcli.PrintRanking(a.App, ranking, len(found.Session.Agents), explain) })
		}),
	}
	cmd.Flags().BoolVar(&explain, "explain", false, "give each word that counted a line, with its weight")
	oldPath(cmd, path)
	return cmd
}

func policyCommand(a *app, path *string) *cobra.Command {
	return noun(&cobra.Command{
		Use:     "policy",
		Short:   "Ask what an agent may do",
		Long:    "It asks the same rules that are enforced when an agent runs.",
		Example: `  fairlead dispatch policy check --tool Bash --input '{"command":"git push"}'`,
	}, policyCheckCommand(a, path))
}

func policyCheckCommand(a *app, path *string) *cobra.Command {
	var asked dispatchcli.PolicyAsked
	cmd := &cobra.Command{
		Use:   "check --tool TOOL --input JSON",
		Short: "Print whether a tool call would be allowed; nothing is run",
		Long: `It uses the same rules as the hooks, the drivers and the sandbox. --state is MAIN or an agent.
--tool and --input are the tool and its arguments as the agent program names them:
Bash {"command":…}, Write {"file_path":…,"content":…}, Edit, NotebookEdit, mcp__… .

It applies the rules of the open dispatch, or of the one that --path names, including its output
folder and the paths that its input named. If no dispatch is open, only the rules of the state
apply, not those about where files belong.

With --agent it applies the permissions of an agent in fairlead.yaml: its bounds (such as can_write)
and its patterns (allow, deny). It then ignores dispatches and saved answers. If no rule matches,
a person would be asked.

Exit codes: 0 allowed, 3 denied, 4 a person would be asked.`,
		Example: `  fairlead dispatch policy check --state MAIN --tool Write --input '{"file_path":"a.go","content":""}'
  fairlead dispatch policy check --agent coder --tool Bash --input '{"command":"git push"}'`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case asked.Tool == "":
				return cli.Usage(cmd, errors.New("--tool is missing: Bash, Write, Edit, Read, …"))
			case !dispatchcli.IsObject(asked.Input):
				return cli.Usage(cmd, errors.New(`--input is no JSON object; for Bash it is {"command":"git status"}`))
			case asked.Agent != "" && (cmd.Flags().Changed("state") || *path != ""):
				return cli.Usage(cmd, errors.New("--agent cannot be combined with --state or --path"))
			case asked.Agent != "":
				return a.agentCheck(cmd, asked)
			}
			asked.Session = *path
			return a.policyCheck(cmd, asked)
		},
	}
	cmd.Flags().StringVar(&asked.State, "state", dispatch.Main, "MAIN, or an agent's name")
	cmd.Flags().StringVar(&asked.Agent, "agent", "", "an agent of fairlead.yaml; its permissions decide")
	cmd.Flags().StringVar(&asked.Tool, "tool", "", "the tool's name")
	cmd.Flags().StringVar(&asked.Input, "input", "{}", "its arguments, a JSON object")
	oldPath(cmd, path)
	cmd.Flags().StringVar(&asked.Dir, "cwd", "", "the folder in which the call is made (default: the repository)")
	return cmd
}

func (a *app) policyCheck(cmd *cobra.Command, asked dispatchcli.PolicyAsked) error {
	found, err := dispatchcli.SessionOrNew(a.App, asked.Session)
	if err != nil {
		return err
	}
	is, folder := found.Session, found.Folder
	asked.State = dispatchcli.StateNamed(is, asked.State)
	main := asked.State == dispatch.Main || asked.State == dispatch.Desk
	if !main && folder != nil && !is.Knows(asked.State) {
		return cli.Usage(cmd,
			fmt.Errorf("the dispatch has no agent %q; `fairlead dispatch status --json` names them", cli.Line(asked.State, cli.StepWidth)))
	}
	call := policy.Call{Tool: asked.Tool, Input: json.RawMessage(asked.Input), Dir: asked.Dir}
	if _, why := sandbox.Supported(); why == "" { // Claude Code's hook then runs MAIN's commands in the sandbox
		home, _ := os.UserHomeDir() // none: hooks of the user are not found
		others := claudehook.Hook{Env: os.Getenv, Home: home}.OtherHooks(a.Dir)
		call.Confined = folder == nil || is.Host == dispatch.Claude && !folder.Unconfined() && len(others) == 0
	}
	answer := dispatchcli.Judged(a.App, found, asked.State, call)
	if err := a.Show(answer, func() error { return dispatchcli.PrintVerdict(a.App, answer, asked.State, len(is.Agents)) }); err != nil {
		return err
	}
	if answer.Decision == "deny" {
		return &cli.Coded{Code: cli.ExitRefused, Err: cli.ErrSaid}
	}
	return nil
}

// agentCheck says what an agent's program would be answered.
func (a *app) agentCheck(cmd *cobra.Command, asked dispatchcli.PolicyAsked) error {
	conf, err := a.Load()
	if err != nil {
		return err
	}
	agent, ok := conf.Agent(asked.Agent)
	if !ok {
		return cli.Usage(cmd, fmt.Errorf("fairlead.yaml has no agent %q", cli.Line(asked.Agent, cli.StepWidth)))
	}
	dir := asked.Dir
	if dir != "" && !filepath.IsAbs(dir) {
		dir = filepath.Join(agent.Workspace, dir)
	}
	var answer dispatchcli.PolicyAnswer
	call := policy.Call{Tool: asked.Tool, Input: json.RawMessage(asked.Input), Dir: dir}
	if answer.Decision, answer.Reason, err = questions.AnswerTo(&agent, call); err != nil {
		return err
	}
	err = a.Say(answer, "%s", cli.Plain(answer.Decision+": "+answer.Reason))
	switch {
	case err != nil:
		return err
	case answer.Decision == "allow":
		return nil
	case answer.Decision == "deny":
		return &cli.Coded{Code: cli.ExitRefused, Err: cli.ErrSaid}
	}
	return &cli.Coded{Code: cli.ExitWaits, Err: cli.ErrSaid}
}
