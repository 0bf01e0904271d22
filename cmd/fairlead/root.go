package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/config"
)

// app is what every verb has at hand.
type app struct {
	in       io.Reader
	out, err io.Writer
	dir      string // --dir, absolute after begin
	json     bool
}

// run is the whole program as a function: arguments and streams in, exit code out.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	a := &app{in: in, out: out, err: errs}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	return a.report(root.ExecuteContext(context.Background()))
}

// root is the command with all its verbs.
func (a *app) root() *cobra.Command {
	var which bool
	root := &cobra.Command{
		Use:   "fairlead",
		Short: "Run a team of AI agents on a repository, and know what is true of them",
		Long: `Fairlead runs a team of AI agents on a repository, and always knows, and can prove, who
exists, who should run, whose turn it is, what each may touch, and how far the work is.

  fairlead demo               look around: six agents, a scratch repository, nothing to set up
  fairlead init && fairlead up   begin in a repository of your own

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused (the state does not allow it),
4 waits on a human, 5 cancelled, 6 no daemon.`,
		SuggestionsMinimumDistance: 2, // two letters changed places
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args:                       knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if which {
				return a.printVersion()
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(*cobra.Command, []string) error {
			dir, err := filepath.Abs(a.dir)
			if err != nil {
				return fmt.Errorf("find the folder %s: %w", a.dir, err)
			}
			// The daemon and its callers must mean one folder, however it is spelt.
			if real, err := filepath.EvalSymlinks(dir); err == nil {
				dir = real
			}
			a.dir = dir
			return nil
		},
	}
	root.PersistentFlags().StringVar(&a.dir, "dir", ".", "the repository to work on")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "answer in JSON, for programs")
	root.Flags().BoolVar(&which, "version", false, "say which fairlead this is")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, err) })
	root.AddGroup(
		&cobra.Group{ID: "begin", Title: "Begin:"},
		&cobra.Group{ID: "see", Title: "See:"},
		&cobra.Group{ID: "steer", Title: "Steer:"},
		&cobra.Group{ID: "crew", Title: "Summon and wake a team:"},
		&cobra.Group{ID: "talk", Title: "Talk in channels:"},
		&cobra.Group{ID: "work", Title: "Take work through its steps:"},
		&cobra.Group{ID: "answer", Title: "Answer what waits for you:"},
		&cobra.Group{ID: "dispatch", Title: "Let one coordinate and others do the work:"},
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
	add("begin", a.demoVerb(), a.initVerb(), a.upVerb(), a.downVerb())
	add("see", a.psVerb(), a.whyVerb(), a.watchVerb(), a.eventsVerb(), a.usageVerb(), a.openVerb())
	add("steer", a.commandVerb("start"), a.commandVerb("stop"), a.commandVerb("once"), a.commandVerb("cleanup"), a.retryVerb(), a.holdVerb(), a.releaseVerb())
	add("crew", a.teamVerb(), a.summonVerb(), a.wakeVerb(), a.sleepVerb(), a.soulVerb(), a.transcriptVerb())
	add("talk", a.channelsVerb(), a.sayVerb(), a.grantVerb(), a.skipVerb(), a.overrideVerb(), a.assignVerb(), a.removeVerb(), a.disableVerb(), a.enableVerb())
	add("work", a.runVerb(), a.runsVerb(), a.resumeVerb(), a.cancelVerb())
	add("answer", a.inboxVerb(), a.answerAskedVerb(), a.approveVerb(), a.rejectVerb(), a.standingVerb())
	add("dispatch", a.sessionVerb(), a.routeVerb(), a.policyVerb())
	add("more", a.installVerb(), a.uninstallVerb(), a.hookVerb(), a.mcpVerb(), a.docsVerb(root), a.doctorVerb(), a.simVerb(), a.versionVerb())
	return root
}

// knownVerb refuses a verb that does not exist, and offers what may have been meant.
func knownVerb(cmd *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	text := fmt.Sprintf("there is no verb %q", words[0])
	if here := elsewhere[words[0]]; here != "" && !cmd.HasParent() {
		text += "; here that is `fairlead " + here + "`"
	} else if near := cmd.SuggestionsFor(words[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage(cmd, errors.New(text))
}

// dial finds the daemon of the repository.
func (a *app) dial() (*api.Client, error) { return api.Dial(a.dir) }

// asking is a verb that asks the daemon.
func (a *app) asking(do func(ctx context.Context, client *api.Client, words []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, words []string) error {
		client, err := a.dial()
		if err != nil {
			return err
		}
		defer client.Close()
		return do(cmd.Context(), client, words)
	}
}

// load reads the configuration, with words for who has none yet.
func (a *app) load() (*config.Config, error) {
	conf, err := config.Load(a.dir, os.LookupEnv)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no fairlead.yaml in %s; make one with `fairlead init`, name another folder with --dir, or look around first with `fairlead demo`", a.dir)
	}
	return conf, err
}

// tty says whether a stream is a terminal, so that a person reads it and not a program.
func tty(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a descriptor fits an int
}
