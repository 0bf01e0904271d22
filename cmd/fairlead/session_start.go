package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// The words for who carries a session out.
const (
	hostNone     = "none"
	hostFairlead = "fairlead"
)

func (a *app) sessionStartVerb(path *string) *cobra.Command {
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
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if host != "" && host != hostNone && host != hostFairlead {
				return usage(cmd, fmt.Errorf("there is no host %q; it is none or fairlead (Claude Code begins its own by /agent-state-machine)", host))
			}
			if !slices.Contains(dispatch.Modes(), dispatch.Mode(mode)) {
				return usage(cmd, fmt.Errorf("there is no mode %q; it is orchestrator, interactive or response", mode))
			}
			return a.sessionStart(cmd.Context(), *path, dispatch.Mode(mode), host)
		},
	}
	cmd.Flags().StringVar(&mode, "mode", string(dispatch.Orchestrator), "orchestrator, interactive or response")
	cmd.Flags().StringVar(&host, "host", "", "who does the work: none or fairlead")
	words := []string{
		"orchestrator\tagents report back to MAIN", "interactive\tagents may ask other agents", "response\tmessages of an inbox, no MAIN",
	}
	if err := errors.Join(
		cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)),
		cmd.RegisterFlagCompletionFunc("host", cobra.FixedCompletions([]string{hostFairlead, hostNone}, cobra.ShellCompDirectiveNoFileComp)),
	); err != nil {
		panic("fairlead: session start lacks a flag: " + err.Error())
	}
	return cmd
}

// sessionBegun is what `fairlead dispatch start --json` prints.
type sessionBegun struct {
	Path   string   `json:"path"`
	State  string   `json:"state"`
	Mode   string   `json:"mode"`
	Name   string   `json:"name"`
	Host   string   `json:"host"`
	Agents int      `json:"agents"`
	Notes  []string `json:"notes,omitempty"`
}

func (a *app) sessionStart(ctx context.Context, path string, mode dispatch.Mode, host string) error {
	now := time.Now()
	where := filepath.Join(a.dir, filepath.FromSlash(usualPlace), "new")
	if path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("find %s: %w", path, err)
		}
		path, where = abs, abs
	}
	if err := a.outside("session_start", where, dispatch.NoHost); err != nil {
		return err
	}
	conf, err := a.maybeConfig()
	if err != nil {
		return err
	}
	setup := dispatch.Setup{Mode: mode}
	options := dispatchfolder.Options{Repo: a.dir, At: now, Actor: byHand}
	if conf != nil {
		options.Tools, options.NoCommits = conf.Dispatch.Tools, !conf.Dispatch.Commits
	}
	if setup.Host, err = a.hostOf(conf, host); err != nil {
		return err
	}
	var notes []string
	if setup.Agents, notes, err = a.describedAgents(conf); err != nil {
		return err
	}
	if setup.Host == dispatch.Fairlead {
		setup.Lead, setup.Ranker = conf.Dispatch.Main, conf.Dispatch.Ranker
		notes = append(notes, unstartable(setup.Agents, conf)...)
	}
	if len(setup.Agents) == 0 {
		notes = append(notes, "nobody is described, so there is nobody to delegate to; describe agents in .claude/agents/NAME.md (name: and description: in its front matter)")
	}
	notes = append(notes, a.otherOpen()...)
	folder, is, err := dispatchfolder.Create(path, setup, options)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(sessionBegun{
			Path: folder.Path(), State: is.State(), Mode: string(is.Mode), Name: folder.Name(),
			Host: hostWord(is.Host), Agents: len(is.Agents), Notes: notes,
		})
	}
	for _, note := range notes {
		fmt.Fprintln(a.err, "note: "+line(note, errorWidth))
	}
	_, err = fmt.Fprint(a.out, plain(strings.TrimRight(dispatchfolder.Status(is, len(is.Agents)), "\n"))+"\n")
	return err
}

// hostOf settles who does the work.
func (a *app) hostOf(conf *config.Config, host string) (dispatch.Host, error) {
	if host == hostNone || host == "" && !canHost(conf) {
		return dispatch.NoHost, nil
	}
	if host == hostFairlead && conf == nil {
		_, err := a.load() // its words for who has no fairlead.yaml
		return "", err
	}
	client, err := a.dial()
	var none *apiclient.NoDaemon
	switch {
	case err == nil:
		_ = client.Close() // it was only asked whether somebody is there
		return dispatch.Fairlead, nil
	case host == "" && errors.As(err, &none):
		return dispatch.NoHost, nil
	default:
		return "", err
	}
}

// canHost says whether there is an agent of fairlead.yaml that an input could go to.
func canHost(conf *config.Config) bool {
	return conf != nil && (conf.Dispatch.Main != "" || slices.ContainsFunc(conf.Agents, func(c config.Agent) bool { return c.Description != "" }))
}

func hostWord(h dispatch.Host) string {
	if h == dispatch.NoHost {
		return hostNone
	}
	return string(h)
}

// withConfigured adds the agents of fairlead.yaml to those of .claude/agents. Who is in both has
// the description of fairlead.yaml, which is the one that can be started; MAIN is no agent.
func withConfigured(agents []dispatch.Description, conf *config.Config) []dispatch.Description {
	agents = slices.DeleteFunc(agents, func(d dispatch.Description) bool { return d.Name == conf.Dispatch.Main })
	for _, c := range conf.Agents {
		if c.Description == "" || c.Name == conf.Dispatch.Main || c.Name == conf.Dispatch.Ranker {
			continue
		}
		d := dispatch.Description{Name: c.Name, Text: c.Description, File: conf.File}
		if i := slices.IndexFunc(agents, func(d dispatch.Description) bool { return d.Name == c.Name }); i >= 0 {
			agents[i] = d
		} else {
			agents = append(agents, d)
		}
	}
	slices.SortFunc(agents, func(a, b dispatch.Description) int { return strings.Compare(a.Name, b.Name) })
	return agents
}

// unstartable names who is described and could do nothing: nobody can start it.
func unstartable(agents []dispatch.Description, conf *config.Config) []string {
	var names []string
	for _, d := range agents {
		if _, ok := conf.Agent(d.Name); !ok {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("described in .claude/agents alone, so nobody can start them, and a task for them fails: %s; add them to %s to have them work", strings.Join(names, ", "), conf.File)}
}

// otherOpen says which sessions are open already: they go on, and the verbs mean the new one.
func (a *app) otherOpen() []string {
	found, err := dispatchfolder.List(a.dir)
	if err != nil {
		return nil // whoever asks for the list is told
	}
	var names []string
	for _, f := range found {
		if f.Open() {
			names = append(names, f.Folder.Name())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"open already, and now meant by --path alone: " + strings.Join(names, ", ") + "; `fairlead dispatch end --path NAME` ends one"}
}
