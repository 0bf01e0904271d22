package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/prompt"
)

func (a *app) initVerb() *cobra.Command {
	var lead, alone bool
	var agents []string
	cmd := &cobra.Command{
		Use:         "init",
		Annotations: map[string]string{hereOnly: "a workspace is made in the current folder"},
		Short:       "Write a first fairlead.yaml, with an agent that works at once",
		Long: `It writes a commented fairlead.yaml and the script of a first agent into the current folder. It
changes no file that exists.

If agent programs that Fairlead supports are installed, it asks on a terminal which of them to add;
in a script, name each with --agent. They replace the scripted first agent.

--lead writes LEAD.md instead: the instructions for an agent that leads a crew. team.lead in
fairlead.yaml names that agent.`,
		Example: `  fairlead init
  fairlead init --agent claude --agent codex`,
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			switch {
			case lead && (alone || len(agents) > 0):
				return errors.New("--lead writes LEAD.md and nothing else; take the other flags out")
			case lead:
				return a.initLead()
			case alone && len(agents) > 0:
				return errors.New("--agent and --no-agents contradict each other; take one out")
			}
			chosen, err := a.chooseAgents(agents, alone)
			if err != nil {
				return err
			}
			return a.init(chosen)
		},
	}
	cmd.Flags().BoolVar(&lead, "lead", false, "write LEAD.md, the instructions of a lead, and nothing else")
	cmd.Flags().StringArrayVar(&agents, "agent", nil, "an installed agent program that is to be on the team: "+strings.Join(drivenNames(), ", "))
	cmd.Flags().BoolVar(&alone, "no-agents", false, "ask nothing, and begin with the scripted agent alone")
	return cmd
}

// leadFile is what `fairlead init --lead` writes.
const leadFile = "LEAD.md"

func (a *app) initLead() error {
	path := filepath.Join(a.dir, leadFile)
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s is there already, and is left as it is; put it elsewhere to get a new one", path)
	}
	lead, why := a.leadName()
	if err := writeNew(path, []byte(prompt.LeadInstructions(lead))); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"dir": a.dir, "written": []string{leadFile}, "lead": lead})
	}
	fmt.Fprintf(a.out, `wrote %[1]s, for %[2]s

next: let the agent that leads read it in every session
  Claude Code   a line in CLAUDE.md of its workspace: @%[3]s
  others        a line in AGENTS.md of its workspace: Read %[3]s before anything else.
`, leadFile, plain(lead), path)
	if why != "" {
		fmt.Fprintf(a.out, "\n%s\n", plain(why))
	}
	return nil
}

// leadName is who leads by fairlead.yaml, or a name to begin with and what is to be done then.
func (a *app) leadName() (lead, why string) {
	const begin = "julian"
	conf, err := a.load()
	switch {
	case err != nil:
		return begin, "fairlead.yaml could not be read, so the lead is called " + begin + " there; make one with `fairlead init`, and name the lead as team.lead"
	case conf.Team.Lead == "":
		return begin, "nobody leads by fairlead.yaml yet, so the lead is called " + begin + " there; add `team: {lead: " + begin + "}`, and the agent"
	}
	return conf.Team.Lead, ""
}

// writeNew writes a file that is not there yet.
func writeNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a file of the repository
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// init writes the files of a start. With agents, their entries are all that is to be written: the
// scripted one is for those who have none.
func (a *app) init(agents []agentProgram) error {
	if err := os.MkdirAll(a.dir, 0o755); err != nil { //nolint:gosec // a repository is as public as its owner makes it
		return fmt.Errorf("make the folder: %w", err)
	}
	kinds := config.StarterKinds()
	text := config.Starter
	if len(agents) > 0 {
		kinds = []config.StarterKind{config.StarterConfig}
		text = func(config.StarterKind) []byte { return teamFile(agents) }
	}
	// All or nothing: first see that none is there, then write, the configuration last.
	for _, kind := range kinds {
		if _, err := os.Lstat(filepath.Join(a.dir, string(kind))); err == nil {
			return isThere(filepath.Join(a.dir, string(kind)), agents)
		}
	}
	var written []string
	for _, kind := range kinds {
		if err := writeNew(filepath.Join(a.dir, string(kind)), text(kind)); err != nil {
			return err
		}
		written = append(written, string(kind))
	}
	if a.json {
		names := make([]string, 0, len(agents))
		for _, p := range agents {
			names = append(names, p.name)
		}
		return a.printJSON(map[string]any{"dir": a.dir, "written": written, "agents": names})
	}
	for _, name := range written {
		fmt.Fprintln(a.out, "wrote "+name)
	}
	if len(agents) > 0 {
		fmt.Fprintf(a.out, "\nnext:\n  fairlead doctor        do they answer, and what holds them: %s\n", shownNames(agents))
		fmt.Fprintf(a.out, "  fairlead up            the daemon, and the address of Mission Control\n  fairlead once %s   one session, in another terminal\n", agents[0].name)
		return nil
	}
	fmt.Fprint(a.out, "\nnext:\n  fairlead up            the daemon, and the address of Mission Control\n  fairlead start AGENT   in another terminal; names are in fairlead.yaml\n")
	if found := offered(); len(found) > 0 {
		fmt.Fprintf(a.out, "\n%s found here: in another folder, or once fairlead.yaml is gone, `fairlead init --agent %s` puts it on the team\n", shownNames(found), found[0].name)
	}
	return nil
}

// isThere refuses to write over a file, and says what would have been added to it.
func isThere(path string, agents []agentProgram) error {
	if len(agents) == 0 {
		return fmt.Errorf("%s is there already, and is left as it is; change it by hand, or name another folder with --dir", path)
	}
	var entries strings.Builder
	for _, p := range agents {
		entries.WriteString("\n" + p.entry(p.name))
	}
	return fmt.Errorf("%s is there already, and is left as it is; add this below agents:\n%s", path, strings.TrimRight(entries.String(), "\n"))
}
