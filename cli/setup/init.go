package setup

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/prompt"
)

// leadFile is what `fairlead init --lead` writes.
const leadFile = "LEAD.md"

// InitLead writes a team whose lead can summon a crew.
func InitLead(a *cli.App) error {
	path := filepath.Join(a.Dir, leadFile)
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists and is not changed; move it away to get a new one", path)
	}
	lead, why := leadName(a)
	if err := writeNew(path, []byte(prompt.LeadInstructions(lead))); err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"dir": a.Dir, "written": []string{leadFile}, "lead": lead})
	}
	fmt.Fprintf(a.Out, `wrote %[1]s, for %[2]s

next: make the lead's program read it in every session
  Claude Code   a line in CLAUDE.md of its workspace: @%[3]s
  others        a line in AGENTS.md of its workspace: Read %[3]s before anything else.
`, leadFile, cli.Plain(lead), path)
	if why != "" {
		fmt.Fprintf(a.Out, "\n%s\n", cli.Plain(why))
	}
	return nil
}

// leadName is the lead of fairlead.yaml, or a name to start with and what else to do.
func leadName(a *cli.App) (lead, why string) {
	const begin = "julian"
	conf, err := a.Load()
	switch {
	case err != nil:
		return begin, "fairlead.yaml could not be read, so the lead is called " + begin + " there; make one with `fairlead init`, and name the lead as team.lead"
	case conf.Team.Lead == "":
		return begin, "fairlead.yaml names no lead yet, so the lead is called " + begin + " there; add `team: {lead: " + begin + "}`, and the agent"
	}
	return conf.Team.Lead, ""
}

// writeNew writes a file that must not exist yet.
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

// Init writes the initial files. With agents, the file has only their entries: the scripted agent is
// for a team without agent programs.
func Init(a *cli.App, agents []AgentProgram) error {
	if err := os.MkdirAll(a.Dir, 0o755); err != nil { //nolint:gosec // a repository is as public as its owner makes it
		return fmt.Errorf("make the folder: %w", err)
	}
	kinds := config.StarterKinds()
	text := config.Starter
	if len(agents) > 0 {
		kinds = []config.StarterKind{config.StarterConfig}
		text = func(config.StarterKind) []byte { return TeamFile(agents) }
	}
	// All or nothing: first check that no file exists, then write them, the configuration last.
	for _, kind := range kinds {
		if _, err := os.Lstat(filepath.Join(a.Dir, string(kind))); err == nil {
			return isThere(filepath.Join(a.Dir, string(kind)), agents)
		}
	}
	var written []string
	for _, kind := range kinds {
		content := text(kind)
		if kind == config.StarterConfig {
			content = bytes.Replace(content, []byte("listen: "+config.ListenDefault), []byte("listen: "+freeAddress()), 1)
		}
		if err := writeNew(filepath.Join(a.Dir, string(kind)), content); err != nil {
			return err
		}
		written = append(written, string(kind))
	}
	kept, err := ignoreRuns(a.Dir)
	if err != nil {
		return err
	}
	written = append(written, kept...)
	if a.JSON {
		names := make([]string, 0, len(agents))
		for _, p := range agents {
			names = append(names, p.Name)
		}
		return a.PrintJSON(map[string]any{"dir": a.Dir, "written": written, "agents": names})
	}
	for _, name := range written {
		fmt.Fprintln(a.Out, "wrote "+name)
	}
	if len(agents) > 0 {
		fmt.Fprintf(a.Out, "\nnext:\n  fairlead doctor        do they answer, and what holds them: %s\n", ShownNames(agents))
		fmt.Fprintf(a.Out, "  fairlead up            the daemon, and the address of Mission Control\n  fairlead once %s   one session, in another terminal\n", agents[0].Name)
		return nil
	}
	fmt.Fprint(a.Out, "\nnext:\n  fairlead up            the daemon, and the address of Mission Control\n  fairlead start AGENT   in another terminal; names are in fairlead.yaml\n  fairlead task TEXT     or a task: it needs a git repository with a commit\n")
	if found := offered(); len(found) > 0 {
		fmt.Fprintf(a.Out, "\n%s found here: in another folder, or once fairlead.yaml is gone, `fairlead init --agent %s` puts it on the team\n", ShownNames(found), found[0].Name)
	}
	return nil
}

// ignoreRuns keeps what runs write below .agents out of git, and returns the file that it wrote. Prompts in
// .agents/prompts belong into the repository. A file that exists is not changed.
func ignoreRuns(dir string) (written []string, err error) {
	name := filepath.Join(".agents", ".gitignore")
	if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Join(dir, ".agents"), 0o755); err != nil { //nolint:gosec // as public as the repository
		return nil, fmt.Errorf("make the folder of runs: %w", err)
	}
	const text = "# what fairlead's runs write; prompts/ belongs into the repository\n/runs/\n/archive/\n/worktrees/\n"
	return []string{name}, writeNew(filepath.Join(dir, name), []byte(text))
}

// portsTried is how many ports init looks at; so many teams on one machine are improbable.
const portsTried = 100

// freeAddress returns the default address, or the same with the next port that no program listens on.
func freeAddress() string {
	host, first, err := net.SplitHostPort(config.ListenDefault)
	port, fault := strconv.Atoi(first)
	if err != nil || fault != nil {
		panic("setup: the default address is invalid: " + config.ListenDefault)
	}
	for n := range portsTried {
		at := net.JoinHostPort(host, strconv.Itoa(port+n))
		if door, err := net.Listen("tcp", at); err == nil {
			_ = door.Close() // nothing was sent over it
			return at
		}
	}
	return config.ListenDefault // `fairlead up` says which program has it
}

// isThere refuses to overwrite a file, and says what would have been added to it.
func isThere(path string, agents []AgentProgram) error {
	if len(agents) == 0 {
		return fmt.Errorf("%s exists and is not changed; edit it by hand, or name another folder with --dir", path)
	}
	var entries strings.Builder
	for _, p := range agents {
		entries.WriteString("\n" + p.entry(p.Name))
	}
	return fmt.Errorf("%s exists and is not changed; add this below agents:\n%s", path, strings.TrimRight(entries.String(), "\n"))
}
