package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/interop"
)

func (a *app) initVerb() *cobra.Command {
	var lead bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a fairlead.yaml to begin with, and an agent that works at once",
		Long: `Writes a commented fairlead.yaml and the script of a first agent into the repository.
Nothing that is there already is changed.

With --lead it writes LEAD.md instead: what an agent has to know that leads a team, which is
what it is told and what it is to say. It names the agent that is team.lead in fairlead.yaml.`,
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if lead {
				return a.initLead()
			}
			return a.init()
		},
	}
	cmd.Flags().BoolVar(&lead, "lead", false, "write LEAD.md, the instructions of a lead, and nothing else")
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
	if err := writeNew(path, []byte(interop.LeadInstructions(lead))); err != nil {
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

func (a *app) init() error {
	if err := os.MkdirAll(a.dir, 0o755); err != nil { //nolint:gosec // a repository is as public as its owner makes it
		return fmt.Errorf("make the folder: %w", err)
	}
	// All or nothing: first see that none is there, then write, the configuration last.
	for _, kind := range config.StarterKinds() {
		if _, err := os.Lstat(filepath.Join(a.dir, string(kind))); err == nil {
			return fmt.Errorf("%s is there already, and is left as it is; change it by hand, or name another folder with --dir", filepath.Join(a.dir, string(kind)))
		}
	}
	var written []string
	for _, kind := range config.StarterKinds() {
		path := filepath.Join(a.dir, string(kind))
		if err := writeNew(path, config.Starter(kind)); err != nil {
			return err
		}
		written = append(written, string(kind))
	}
	if a.json {
		return a.printJSON(map[string]any{"dir": a.dir, "written": written})
	}
	for _, name := range written {
		fmt.Fprintln(a.out, "wrote "+name)
	}
	fmt.Fprint(a.out, "\nnext:\n  fairlead up            the daemon, and the address of Mission Control\n  fairlead start AGENT   in another terminal; names are in fairlead.yaml\n")
	return nil
}
