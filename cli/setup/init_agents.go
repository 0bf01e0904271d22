package setup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/cli"
)

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
			return nil, fmt.Errorf("unknown program %q; known are %s; doc/agents/other-acp.md says how to add another one", cli.Plain(name), strings.Join(DrivenNames(), ", "))
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
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n' }) {
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
		where = "a folder of its own; to work on the same code: git worktree add " + workspace
	}
	ran := "as documented; it was not run when this was written"
	if p.Ran {
		ran = "it asks before it writes and runs"
		if p.Name == "codex" {
			ran = "it asks nothing: its own sandbox holds it"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  # %s; %s. Install and set up: doc/agents/%s.\n", p.Title, ran, p.Page)
	fmt.Fprintf(&b, "  %s:\n    description: %s\n    driver: %s\n    command: [%s]\n", p.Name, p.does, p.Driver, strings.Join(p.Command, ", "))
	fmt.Fprintf(&b, "    workspace: %s  # %s\n", workspace, where)
	b.WriteString(`    session_prompt: Continue the work in PLAN.md, one step of it, and say what you did.
    cleanup_prompt: Tidy up what the last sessions left; no new features.
    limits: {session: 1h, cost_per_day_usd: 20}  # as far as the program says what it costs
    # model: NAME            # the program's own spelling; left out: its own choice
`)
	if p.Name == "codex" {
		b.WriteString("    # mode: read-only        # its sandbox; left out: workspace-write\n")
		return b.String()
	}
	b.WriteString(`    permissions:             # what is answered when it asks: doc/agents/permissions.md
      allow: [Read, "Bash(git status*)", "Bash(ls *)"]
      deny: ["Bash(rm *)", "Read(.env)"]
      timeout: 30m           # then the answer is no; until then it waits in ` + "`fairlead inbox`" + `
`)
	return b.String()
}
