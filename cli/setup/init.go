package setup

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/files/prompts"
	"github.com/fairlead-dev/fairlead/git/worktree"
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
	if err := writeNew(path, []byte(prompts.LeadInstructions(lead))); err != nil {
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
		return begin,
			"fairlead.yaml could not be read, so the lead is called " + begin +
				" there; make one with `fairlead init`, and name the lead as team.lead"
	case conf.Team.Lead == "":
		return begin,
			"fairlead.yaml names no lead yet, so the lead is called " + begin + " there; add `team: {lead: " + begin + "}`, and the agent"
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
	excluded, err := ignoreStates(a.Dir)
	if err != nil {
		return err
	}
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
	if excluded != "" {
		fmt.Fprintln(a.Out, "git ignores the state files of agents here: "+cli.Plain(excluded))
	}
	if len(agents) > 0 {
		for _, p := range agents {
			if words := p.network(); len(words) == 1 {
				fmt.Fprintf(a.Out, "%s has network: [%s], because the service of its model is not known: add the hosts that it needs\n", p.Name, words[0])
			}
		}
		fmt.Fprintf(a.Out, "\nnext:\n  fairlead doctor        do they answer, and what holds them: %s\n", ShownNames(agents))
		fmt.Fprintf(a.Out,
			"  fairlead up            the daemon, and the address of Mission Control\n  fairlead once %s   one session, in another terminal\n", agents[0].Name)
		return nil
	}
	fmt.Fprint(a.Out,
		"\nnext:\n  fairlead up            the daemon, and the address of Mission Control\n  fairlead start AGENT   in another terminal; names are in fairlead.yaml\n  fairlead task TEXT     or a task: it needs a git repository with a commit\n")
	if found := offered(); len(found) > 0 {
		fmt.Fprintf(a.Out,
			"\n%s found here: in another folder, or once fairlead.yaml is gone, `fairlead init --agent %s` puts it on the team\n",
			ShownNames(found), found[0].Name)
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

// statesIgnored are patterns for the files that Fairlead writes in the workspaces of agents. In a commit they would be
// changes of every checkout.
const statesIgnored = "# fairlead: the state files of agents\nagent_state.json\nagent_state.json.corrupt-*\n.agent_state.json.*\n"

// ignoreStates keeps the state files of agents out of git, in this clone only, and returns the file that it changed; empty:
// it changed none. Files of the repository are not changed.
func ignoreStates(dir string) (changed string, err error) {
	path, err := worktree.Git{Dir: dir}.Ask(context.Background(), "rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
	if err != nil {
		return "", nil //nolint:nilerr // there is no repository, or no git: then nothing is committed
	}
	path = strings.TrimSuffix(path, "\n")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("keep the state files of agents out of git: %w", err)
	}
	if bytes.Contains(text, []byte(statesIgnored)) {
		return "", nil
	}
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
		os.WriteFile(path, append(text, statesIgnored...), 0o644)); err != nil { //nolint:gosec // as git makes it
		return "", fmt.Errorf("keep the state files of agents out of git: %w", err)
	}
	return path, nil
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
		if listener, err := net.Listen("tcp", at); err == nil {
			_ = listener.Close() // nothing was sent over it
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

// Which agent programs a new team has, and what is written for them.

const AnswerBytesMax = 4 << 10 // of the line with the answer

// DrivenNames are the words for --agent.
func DrivenNames() []string {
	var names []string
	for _, p := range AgentPrograms {
		if p.Driver != "" {
			names = append(names, p.Name)
		}
	}
	return names
}

// offered are the programs that are installed here and that this build can drive.
func offered() []AgentProgram { return OfferedIn(os.Getenv("PATH")) }

// OfferedIn lists the agent programs found in a search path.
func OfferedIn(path string) []AgentProgram {
	var all []AgentProgram
	for _, p := range FindPrograms(path) {
		if _, can := cli.Drivers()[p.Driver]; can {
			all = append(all, p.AgentProgram)
		}
	}
	return all
}

// ShownNames joins the names of agent programs.
func ShownNames(programs []AgentProgram) string {
	names := make([]string, 0, len(programs))
	for _, p := range programs {
		names = append(names, p.Title)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// ChooseAgents returns the programs of a new team: the named ones, or those that a person chooses at
// a terminal. A named program need not be installed yet: the file says what it needs, and `fairlead
// doctor` what is missing.
func ChooseAgents(a *cli.App, named []string, alone bool) ([]AgentProgram, error) {
	if len(named) > 0 {
		return byName(named)
	}
	found := offered()
	if alone || a.JSON || len(found) == 0 || !cli.Tty(a.In) || !cli.Tty(a.Out) {
		return nil, nil
	}
	return AskAgents(a, found, a.In)
}

func byName(named []string) ([]AgentProgram, error) {
	var chosen []AgentProgram
	for _, name := range named {
		i := slices.IndexFunc(AgentPrograms, func(p AgentProgram) bool { return p.Name == name || p.File == name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("unknown program %q; known are %s; doc/agents/other-acp.md says how to add another one", cli.Plain(name),
				strings.Join(DrivenNames(), ", "))
		case AgentPrograms[i].Driver == "":
			return nil, fmt.Errorf("%s: %s", AgentPrograms[i].Title, AgentPrograms[i].Hint)
		case !slices.ContainsFunc(chosen, func(p AgentProgram) bool { return p.Name == AgentPrograms[i].Name }):
			chosen = append(chosen, AgentPrograms[i])
		}
	}
	return chosen, nil
}

// AskAgents asks a person at a terminal. An empty line means none: the file then has the scripted
// agent.
func AskAgents(a *cli.App, found []AgentProgram, in io.Reader) ([]AgentProgram, error) {
	fmt.Fprintln(a.Out, "These agent programs are installed here:")
	for i, p := range found {
		fmt.Fprintf(a.Out, "  %d  %-12s %s\n", i+1, p.Name, p.Title)
	}
	lines := bufio.NewReader(io.LimitReader(in, AnswerBytesMax))
	for {
		fmt.Fprint(a.Out, "Which are to be on the team? Numbers or names, or Enter for a scripted one to look around with: ")
		line, err := lines.ReadString('\n')
		if err != nil && (!errors.Is(err, io.EOF) || line == "") {
			return nil, fmt.Errorf("no agents were chosen for the team; name them with --agent, or use --no-agents: %w", err)
		}
		chosen, fault := chosenOf(found, line)
		if fault == "" {
			return chosen, nil
		}
		fmt.Fprintln(a.Out, fault)
	}
}

func chosenOf(found []AgentProgram, line string) (chosen []AgentProgram, fault string) {
	for _, word := range strings.FieldsFunc(line,
		func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n' }) {
		i := slices.IndexFunc(found, func(p AgentProgram) bool { return p.Name == word || p.File == word })
		if n, err := strconv.Atoi(word); err == nil {
			i = n - 1
		}
		if i < 0 || i >= len(found) {
			return nil, fmt.Sprintf("There is no %s in the list.", cli.Plain(word))
		}
		if !slices.ContainsFunc(chosen, func(p AgentProgram) bool { return p.Name == found[i].Name }) {
			chosen = append(chosen, found[i])
		}
	}
	return chosen, ""
}

// TeamFile is a fairlead.yaml with these agents.
func TeamFile(agents []AgentProgram) []byte {
	var b strings.Builder
	b.WriteString(`# fairlead.yaml says who is on the team. Every key: doc/config.md.
# ` + "`fairlead up`" + ` runs these agents; ` + "`fairlead doctor`" + ` checks the file and starts each program once.
version: 1

agents:
`)
	names := make([]string, 0, len(agents))
	for i, p := range agents {
		if i > 0 {
			b.WriteString("\n")
		}
		workspace := p.Name
		if i == 0 {
			workspace = "."
		}
		b.WriteString(p.entry(workspace))
		names = append(names, p.Name)
	}
	b.WriteString(`
# What the whole team may use.
#
# team:
#   limits: {cost_per_day_usd: 50}

# Where agents take turns.
#
# channels:
#   reviews: {agents: [` + strings.Join(names, ", ") + `], maxRounds: 3}

# Told when something waits for you.
#
# notify: {webhook: "${NOTIFY_URL}", desktop: true}

listen: 127.0.0.1:7466
`)
	return []byte(b.String())
}

// entry is a program's entry in a fairlead.yaml.
func (p AgentProgram) entry(workspace string) string {
	where := "where it works, and where its agent_state.json lives"
	if workspace != "." {
		where = "a folder of its own; to work on the same code, give it a task"
	}
	ran := "as documented; it was not run when this was written"
	if p.Ran {
		ran = "it asks before it writes and runs"
		if p.Name == "codex" {
			ran = "it asks nothing: the wall around it holds it"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  # %s; %s. Install and set up: doc/agents/%s.\n", p.Title, ran, p.Page)
	fmt.Fprintf(&b, "  %s:\n    description: %s\n    driver: %s\n    command: [%s]\n", p.Name, p.does, p.Driver,
		strings.Join(p.Command, ", "))
	fmt.Fprintf(&b, "    workspace: %s  # %s\n", workspace, where)
	b.WriteString(`    session_prompt: Continue the work in PLAN.md, one step of it, and say what you did.
    cleanup_prompt: Tidy up what the last sessions left; no new features.
    limits: {session: 1h, cost_per_day_usd: 20}  # as far as the program says what it costs
    # model: NAME            # the program's own spelling; left out: its own choice
`)
	if p.walled {
		b.WriteString("    sandbox: workspace       # the wall around it; what this machine holds of it: fairlead why " + p.Name + "\n")
	}
	fmt.Fprintf(&b, "    network: [%s]  # the hosts that it reaches: doc/network.md\n", strings.Join(p.network(), ", "))
	if p.Name == "codex" {
		b.WriteString("    # mode: read-only        # left out: it writes in its workspace\n")
		return b.String()
	}
	b.WriteString(`    permissions:             # what is answered when it asks: doc/agents/permissions.md
      allow: [Read, "Bash(git status*)", "Bash(ls *)"]
      deny: ["Bash(rm *)", "Read(.env)"]
      timeout: 30m           # then the answer is no; until then it waits in ` + "`fairlead inbox`" + `
`)
	return b.String()
}

// network is what init writes for the program: of the service of its model nothing, if it is not known.
func (p AgentProgram) network() []string {
	_, known := network.ProviderOf(p.Driver, p.Command, nil)
	return network.Setting{Model: known, Packages: true}.Words()
}

// AgentProgram is an agent program that doctor looks for and init offers.
type AgentProgram struct {
	Name    string   // of the agent that init writes, and the word for --agent
	Title   string   // as people call it
	File    string   // in the PATH
	Driver  string   // the word in fairlead.yaml; empty: no driver supports it
	Command []string // in fairlead.yaml; nil: the driver finds the program itself
	Page    string   // below doc/agents
	Ran     bool     // Fairlead's developers have run it; otherwise the facts are from its documentation
	Hint    string   // of a program without a driver: what to do with it
	does    string   // the description that init writes
	walled  bool     // it works inside a wall, because the folders that it needs are known
}

// AgentPrograms are the known programs, those that Fairlead's developers have run first.
var AgentPrograms = []AgentProgram{
	{
		Name: "opencode", Title: "OpenCode", File: "opencode", Driver: config.DriverACP, Command: []string{"opencode", "acp"},
		Page: "opencode.md", Ran: true, does: "Writes and changes code", walled: true,
	},
	{
		Name: "qwen", Title: "Qwen Code", File: "qwen", Driver: config.DriverACP, Command: []string{"qwen", "--acp"}, Page: "qwen.md",
		Ran: true, does: "Writes and changes code", walled: true,
	},
	{
		Name: "claude", Title: "Claude Code", File: "claude", Driver: config.DriverClaude, Command: []string{"claude"},
		Page: "claude-code.md",
		does: "Writes and changes code", walled: true,
	},
	{
		Name: "codex", Title: "Codex", File: "codex", Driver: config.DriverCodex, Command: []string{"codex"}, Page: "codex.md", Ran: true,
		does: "Writes and changes code", walled: true,
	},
	{
		Name: "gemini", Title: "Gemini CLI", File: "gemini", Driver: config.DriverACP, Command: []string{"gemini", "--acp"},
		Page: "gemini.md",
		Ran:  true, does: "Writes and changes code", walled: true,
	},
	{
		Name: "goose", Title: "goose", File: "goose", Driver: config.DriverACP, Command: []string{"goose", "acp"}, Page: "other-acp.md",
		does: "Writes and changes code",
	},
	{
		Name: "copilot", Title: "Copilot CLI", File: "copilot", Driver: config.DriverACP, Command: []string{"copilot", "--acp", "--stdio"},
		Page: "other-acp.md", does: "Writes and changes code",
	},
	{
		Name: "cursor", Title: "Cursor CLI", File: "cursor-agent", Driver: config.DriverACP, Command: []string{"cursor-agent", "acp"},
		Page: "other-acp.md", does: "Writes and changes code",
	},
	{
		Name: "kimi", Title: "Kimi CLI", File: "kimi", Driver: config.DriverACP, Command: []string{"kimi", "acp"}, Page: "other-acp.md",
		does: "Writes and changes code",
	},
	{
		Name: "claude-acp", Title: "Claude Code by its ACP adapter", File: "claude-agent-acp", Driver: config.DriverACP,
		Command: []string{"claude-agent-acp"}, Page: "other-acp.md", does: "Writes and changes code",
	},
	{
		Name: "codex-acp", Title: "Codex by its ACP adapter", File: "codex-acp", Driver: config.DriverACP, Command: []string{"codex-acp"},
		Page: "other-acp.md", does: "Writes and changes code",
	},
	{
		Name: "amp", Title: "Amp", File: "amp", Page: "other-acp.md",
		Hint: "no driver supports its protocol; an adapter that speaks the Agent Client Protocol for it works with driver acp",
	},
	{
		Name: "aider", Title: "Aider", File: "aider", Page: "other-acp.md",
		Hint: "run it with driver exec, as `command: [aider, --yes-always, --message-file, TASK.md]`: it asks nothing then",
	},
	{
		Name: "crush", Title: "Crush", File: "crush", Page: "other-acp.md",
		Hint: "run it with driver exec, as `command: [crush, run, …]`: it asks nothing then",
	},
}

// FoundProgram is a known program that is in the PATH.
type FoundProgram struct {
	AgentProgram
	Path string
}

// FindPrograms looks for the known programs in the PATH, in the order of the list. It starts nothing.
func FindPrograms(path string) []FoundProgram {
	var found []FoundProgram
	for _, p := range AgentPrograms {
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) { // a relative PATH entry such as "." could find the wrong program
				continue
			}
			full := filepath.Join(dir, p.File)
			if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				found = append(found, FoundProgram{p, full})
				break
			}
		}
	}
	return found
}
