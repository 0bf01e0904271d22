package claudehook

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/policy"
	"github.com/fairlead-dev/fairlead/rank"
)

// prompt handles a person's input, which starts a conversation (D2). MAIN keeps it and is told which
// description matches: the program's main model is MAIN, so a change of state is its delegation.
func (v *visit) prompt() (Answer, error) {
	if !spoken(v.Prompt) {
		return Answer{}, nil
	}
	in := dispatch.UserInput{Text: cut(v.Prompt, dispatch.TextBytesMax), Over: true}
	for _, path := range policy.NamedPaths(in.Text) {
		if !filepath.IsAbs(path) && !strings.HasPrefix(path, "~") && v.Dir != "" {
			path = filepath.Join(v.Dir, path)
		}
		in.Named = append(in.Named, path)
	}
	if _, err := v.do(in, v.person()); err != nil {
		if words := refused(err); words != "" {
			return refusePrompt("Fairlead: " + words), nil
		}
		return Answer{}, fmt.Errorf("begin a conversation: %w", err)
	}
	c := v.session.Open
	if c == nil {
		return Answer{}, nil
	}
	return tell(UserPromptSubmit, v.inCharge(dispatchfolder.Best(v.session, in.Text)), v.display()), nil
}

// notices are the beginnings of texts that the program itself sends as a prompt, such as when a background
// agent is done. They are not a person's input.
var notices = []string{"<task-notification>", "<system-reminder>", "<local-command-", "<bash-"}

// spoken reports whether a person wrote it.
func spoken(prompt string) bool {
	text := strings.TrimSpace(prompt)
	for _, n := range notices {
		if strings.HasPrefix(text, n) {
			return false
		}
	}
	return text != "" // one program calls the hook after each tool call with an empty prompt
}

// display is the seed's status display: [State: MAIN] [Conv: 002].
func (v *visit) display() string {
	text := "[State: " + dispatch.Display(v.session.State()) + "]"
	if c := v.session.Open; c != nil {
		text += " [Conv: " + strings.TrimPrefix(c.ID(), "conv_") + "]"
	}
	return text
}

// inCharge is the text that MAIN receives with every input, and again after its memory was compacted.
func (v *visit) inCharge(r rank.Ranking) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Fairlead: %s, mode %s.\n", v.display(), v.session.Mode)
	if c := v.session.Open; c != nil {
		fmt.Fprintf(&text, "Workspace of this conversation: %s\nIts record: %s\n", v.folder.Workspace(c.N), v.folder.DialoguePath(c.N))
	}
	switch {
	case r.Best != "":
		fmt.Fprintf(&text, "The description that fits best is %s's (%s). Delegate to it: Task tool, subagent_type %q.\n", r.Best, terms(r, r.Best), r.Best)
	case len(v.session.Agents) == 0:
		text.WriteString("No agents are described in .claude/agents, so there is no agent to delegate to. If work needs one, tell the user and suggest a description.\n")
	default:
		text.WriteString("No agent's description fits this input. Answer it yourself as far as MAIN may. If it needs more, delegate to the closest agent, or suggest to the user to describe a new one in .claude/agents.\n")
	}
	text.WriteString(mainRules)
	return text.String()
}

// mainRules tells MAIN its limits. They are enforced without it; the text saves failed attempts.
const mainRules = `You are MAIN. You plan, read, search and talk; you write notes and other files that are not programs (*.md, *.txt, *.csv, *.json) into the workspace, or to a path that the user named. You do not write code or configuration, and you run only commands that read (ls, cat, grep, git status …). Delegate everything else; a call that MAIN may not make is denied, with the name of an agent that may. Begin each answer to the user with the state and the conversation, as above, and show transitions as they are shown to you.`

// terms shows why a description matches, in the seed's format: "write" + "Python".
func terms(r rank.Ranking, agent string) string {
	for _, c := range r.Scores {
		if c.Name != agent {
			continue
		}
		words := make([]string, 0, len(c.Terms))
		for _, t := range c.Terms {
			words = append(words, fmt.Sprintf("%q", t.Word))
		}
		return "matched " + strings.Join(words, " + ")
	}
	return ""
}
