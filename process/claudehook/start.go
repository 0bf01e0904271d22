package claudehook

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/rank"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
)

// command carries out the slash command (D1, D10). It comes as a prompt, so a person wrote it (X10). If a
// model may have written it, it is refused.
func (h Hook) command(is Event, args string) Answer {
	cmd, err := parseCommand(args)
	if err != nil {
		return refusePrompt("Fairlead: " + err.Error())
	}
	if is.Session == "" {
		return refusePrompt("Fairlead: " + errNoSession.Error() + ", so its dispatch cannot be found; nothing was begun or ended")
	}
	if why := h.modelSays(is); why != "" {
		return refusePrompt("Fairlead: " + why +
			", and an agent may not begin or end its own session (X10); do it from another terminal: fairlead dispatch end")
	}
	v, err := h.visit(is)
	switch {
	case err != nil:
		return failed(UserPromptSubmit, err)
	case cmd.end:
		return h.end(is, v, cmd)
	case v != nil:
		return refusePrompt(fmt.Sprintf("Fairlead: this conversation already has a session, in %s; end that first: /%s --session end",
			v.folder.Path(), CommandName))
	}
	return h.start(is, cmd)
}

// modelSays reports that a model may have written a prompt: the agent runs under a daemon of Fairlead, or
// inside another agent program's shell.
func (h Hook) modelSays(is Event) string {
	switch {
	case is.Agent != "":
		return "an agent wrote this input"
	case h.Env("FAIRLEAD_MARK") != "":
		return "this program runs as an agent of a team"
	case h.Nested != nil && h.Nested():
		return "this program was started in an agent's shell"
	}
	return ""
}

// start creates a dispatch (D1).
func (h Hook) start(is Event, cmd command) Answer {
	repo := h.project(is.Dir)
	path := cmd.path
	if path != "" {
		path = absolute(dispatchfolder.InHome(path, h.Home), is.Dir)
	}
	setup, note := dispatch.Setup{Mode: cmd.mode, Host: dispatch.Claude, Program: is.Session}, ""
	opt := dispatchfolder.Options{Repo: repo, Home: h.Home, At: h.Now(), Actor: change.Actor{Kind: "human", ID: "claude"}}
	conf, err := configuredIn(repo)
	if err != nil {
		return refusePrompt("Fairlead: " + err.Error())
	}
	opt.Tools, opt.NoCommits = conf.Tools, conf.Commits != nil && !*conf.Commits || !isClone(repo)
	if cmd.mode == dispatch.Response {
		if setup, note, err = h.responseSetup(repo); err != nil {
			return refusePrompt("Fairlead: no session was begun: " + err.Error())
		}
	}
	folder, s, err := dispatchfolder.Create(path, setup, opt)
	if err != nil {
		if words := refused(err); words != "" {
			return refusePrompt("Fairlead: " + words)
		}
		return refusePrompt("Fairlead: no session was begun: " + err.Error())
	}
	status := dispatchfolder.Status(s, len(s.Agents))
	rules := "From now on every input starts a new conversation, with a workspace that the input's context names. The files of the session in " + folder.Path() + " are written by Fairlead; never write them yourself.\n" + mainRules
	more := "and nothing else"
	if cmd.mode == dispatch.Response {
		rules, more = responseContext(folder, note), "and then what is said below it"
	}
	context := fmt.Sprintf("Fairlead has begun a session. Show the user this status block unchanged, %s:\n\n%s\n%s", more, status, rules)
	return tell(UserPromptSubmit, context, "[State: "+dispatch.Display(s.State())+"] session begun in "+folder.Path())
}

// isClone reports whether a project is in a clone that Fairlead has made, whose git directory is the agent's. Such a clone borrows the
// objects of Fairlead's copy of the repository. In a person's repository the key commits does not count: there .git is read-only for
// agents.
func isClone(project string) bool {
	for dir := project; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil && dir != filepath.Dir(dir) {
			continue
		}
		borrows, _, err := readSmall(filepath.Join(dir, ".git", "objects", "info", "alternates"))
		return err == nil && strings.Contains(string(borrows)+"\n", "/.fairlead/git/objects\n")
	}
}

// end ends it (D10).
func (h Hook) end(is Event, v *visit, cmd command) Answer {
	if v == nil && cmd.path != "" {
		if a, done := h.endResponse(absolute(dispatchfolder.InHome(cmd.path, h.Home), is.Dir)); done {
			return a
		}
	}
	if v == nil {
		return refusePrompt("Fairlead: this conversation has no session to end; end the session of another conversation there, or with fairlead dispatch end --path")
	}
	if cmd.path != "" && filepath.Clean(absolute(dispatchfolder.InHome(cmd.path, h.Home), v.Dir)) != v.folder.Path() {
		return refusePrompt(fmt.Sprintf("Fairlead: this conversation's session is in %s, not in %s; omit --path", v.folder.Path(),
			cmd.path))
	}
	if _, err := v.do(dispatch.End{Why: "the user ended it"}, v.person()); err != nil {
		return refusePrompt("Fairlead: the session was not ended: " + err.Error())
	}
	return tell(UserPromptSubmit,
		"Fairlead has ended the session in "+v.folder.Path()+
			". You are no longer MAIN: only the user's own settings apply. Tell the user in one sentence.",
		"session ended; its record stays in "+v.folder.Path())
}

func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// outside handles an event of a program without a dispatch. Only a program that resumes a conversation whose dispatch ended
// meanwhile gets a notice, because its model may still believe that it is MAIN.
func (h Hook) outside(is Event) Answer {
	if is.Name != SessionStart || is.Source != "resume" {
		return Answer{}
	}
	all, err := dispatchfolder.List(h.project(is.Dir))
	if err != nil {
		return Answer{} // nothing is known to be wrong
	}
	for _, f := range all {
		if f.Fault == "" && f.Session.Program == is.Session {
			text := fmt.Sprintf("Fairlead: the session in %s has ended (%s), so nothing is recorded or enforced; you are not MAIN. The user can begin a new one with /%s.", f.Folder.Path(), f.Session.Ended, CommandName)
			return tell(SessionStart, text, "")
		}
	}
	return Answer{}
}

// prompt handles a person's input, which starts a conversation (D2). MAIN keeps it and is told which
// description matches: the program's main model is MAIN, so a change of state is its delegation.
func (v *visit) prompt() (Answer, error) {
	if !spoken(v.Prompt) {
		return Answer{}, nil
	}
	in := dispatch.UserInput{Text: cut(v.Prompt, dispatch.TextBytesMax), Over: true}
	there := dispatchfolder.Exists(v.Dir, v.Home)
	for _, path := range policy.NamedPaths(in.Text, there) {
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
		fmt.Fprintf(&text, "The description that fits best is %s's (%s). Delegate to it: Task tool, subagent_type %q.\n", r.Best,
			terms(r, r.Best), r.Best)
	case len(v.session.Agents) == 0:
		text.WriteString("No agents are described in .claude/agents, so there is no agent to delegate to. If work needs one, tell the user and suggest a description.\n")
	default:
		text.WriteString("No agent's description fits this input. Answer it yourself as far as MAIN may. If it needs more, delegate to the closest agent, or suggest to the user to describe a new one in .claude/agents.\n")
		if choice := r.Choice(); choice != "" {
			text.WriteString(choice + "\n")
		}
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
		words := c.Words()
		for i, word := range words {
			words[i] = strconv.Quote(word)
		}
		return "matched " + strings.Join(words, " + ")
	}
	return ""
}
