package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// Which agent programs are to be on a new team, and what is written for them.

const answerBytesMax = 4 << 10 // of the line in which somebody says which

// drivenNames are the words for --agent.
func drivenNames() []string {
	var names []string
	for _, p := range agentPrograms {
		if p.driver != "" {
			names = append(names, p.name)
		}
	}
	return names
}

// offered are the programs that are installed here and that this build can drive.
func offered() []agentProgram { return offeredIn(os.Getenv("PATH")) }

func offeredIn(path string) []agentProgram {
	var all []agentProgram
	for _, p := range findPrograms(path) {
		if _, can := drivers()[p.driver]; can {
			all = append(all, p.agentProgram)
		}
	}
	return all
}

func shownNames(programs []agentProgram) string {
	names := make([]string, 0, len(programs))
	for _, p := range programs {
		names = append(names, p.title)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// chooseAgents is which programs are to be on the team: those that were named, or those that a
// person at a terminal chooses. A program that is named need not be installed yet: the file says what
// it needs, and `fairlead doctor` what is missing.
func (a *app) chooseAgents(named []string, alone bool) ([]agentProgram, error) {
	if len(named) > 0 {
		return byName(named)
	}
	found := offered()
	if alone || a.json || len(found) == 0 || !isTerminal(a.in) || !isTerminal(a.out) {
		return nil, nil
	}
	return a.askAgents(found, a.in)
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // a descriptor is a small number
}

func byName(named []string) ([]agentProgram, error) {
	var chosen []agentProgram
	for _, name := range named {
		i := slices.IndexFunc(agentPrograms, func(p agentProgram) bool { return p.name == name || p.file == name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("there is no program %q that is known; there are %s, and doc/agents/other-acp.md says how any other is added", plain(name), strings.Join(drivenNames(), ", "))
		case agentPrograms[i].driver == "":
			return nil, fmt.Errorf("%s: %s", agentPrograms[i].title, agentPrograms[i].hint)
		case !slices.ContainsFunc(chosen, func(p agentProgram) bool { return p.name == agentPrograms[i].name }):
			chosen = append(chosen, agentPrograms[i])
		}
	}
	return chosen, nil
}

// askAgents asks a person at a terminal. An empty line is none, which is what it was before anybody
// had one installed.
func (a *app) askAgents(found []agentProgram, in io.Reader) ([]agentProgram, error) {
	fmt.Fprintln(a.out, "These agent programs are installed here:")
	for i, p := range found {
		fmt.Fprintf(a.out, "  %d  %-12s %s\n", i+1, p.name, p.title)
	}
	lines := bufio.NewReader(io.LimitReader(in, answerBytesMax))
	for {
		fmt.Fprint(a.out, "Which are to be on the team? Numbers or names, or Enter for a scripted one to look around with: ")
		line, err := lines.ReadString('\n')
		if err != nil && (!errors.Is(err, io.EOF) || line == "") {
			return nil, fmt.Errorf("nobody said which agents are to be on the team; name them with --agent, or none with --no-agents: %w", err)
		}
		chosen, fault := chosenOf(found, line)
		if fault == "" {
			return chosen, nil
		}
		fmt.Fprintln(a.out, fault)
	}
}

func chosenOf(found []agentProgram, line string) (chosen []agentProgram, fault string) {
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n' }) {
		i := slices.IndexFunc(found, func(p agentProgram) bool { return p.name == word || p.file == word })
		if n, err := strconv.Atoi(word); err == nil {
			i = n - 1
		}
		if i < 0 || i >= len(found) {
			return nil, fmt.Sprintf("There is no %s in the list.", plain(word))
		}
		if !slices.ContainsFunc(chosen, func(p agentProgram) bool { return p.name == found[i].name }) {
			chosen = append(chosen, found[i])
		}
	}
	return chosen, ""
}

// teamFile is a fairlead.yaml with these agents.
func teamFile(agents []agentProgram) []byte {
	var b strings.Builder
	b.WriteString(`# fairlead.yaml says who is on the team. Every key: doc/config.md.
# ` + "`fairlead up`" + ` runs what stands here; ` + "`fairlead doctor`" + ` checks it, and greets each program.
version: 1

agents:
`)
	names := make([]string, 0, len(agents))
	for i, p := range agents {
		if i > 0 {
			b.WriteString("\n")
		}
		workspace := p.name
		if i == 0 {
			workspace = "."
		}
		b.WriteString(p.entry(workspace))
		names = append(names, p.name)
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

// entry is what stands in a fairlead.yaml for a program.
func (p agentProgram) entry(workspace string) string {
	where := "where it works, and where its agent_state.json lives"
	if workspace != "." {
		where = "a folder of its own; to work on the same code: git worktree add " + workspace
	}
	ran := "as documented; it was not run when this was written"
	if p.ran {
		ran = "it asks before it writes and runs"
		if p.name == "codex" {
			ran = "it asks nothing: its own sandbox holds it"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  # %s; %s. Install and set up: doc/agents/%s.\n", p.title, ran, p.page)
	fmt.Fprintf(&b, "  %s:\n    description: %s\n    driver: %s\n    command: [%s]\n", p.name, p.does, p.driver, strings.Join(p.command, ", "))
	fmt.Fprintf(&b, "    workspace: %s  # %s\n", workspace, where)
	b.WriteString(`    session_prompt: Continue the work in PLAN.md, one step of it, and say what you did.
    cleanup_prompt: Tidy up what the last sessions left; no new features.
    limits: {session: 1h, cost_per_day_usd: 20}  # as far as the program says what it costs
    # model: NAME            # the program's own spelling; left out: its own choice
`)
	if p.name == "codex" {
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
