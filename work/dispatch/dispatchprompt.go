package dispatch

import (
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	colleaguesBytesMax = 16 << 10 // of descriptions in a prompt: no model chooses well among more than a hundred agents
	colleagueBytesMax  = 600      // of one
)

// workPrompt is what an agent is told that has work in a session folder.
func workPrompt(s *dispatch.Dispatch, f *dispatchfolder.Folder, work dispatch.Action) string {
	var b strings.Builder
	if work.Rank {
		rankPrompt(&b, s, work)
		return b.String()
	}
	if work.Task == 0 {
		mainPrompt(&b, s, work)
	} else {
		taskPrompt(&b, s, f, work)
	}
	resultsPrompt(&b, work)
	if work.Task == 0 || s.Mode == dispatch.Interactive {
		colleaguesPrompt(&b, s, work)
	}
	return b.String()
}

// taskPrompt is the seed's: the request, where files are to go, and the task.
func taskPrompt(b *strings.Builder, s *dispatch.Dispatch, f *dispatchfolder.Folder, work dispatch.Action) {
	b.WriteString(dispatchfolder.DelegationPrompt(work.Text, f.Workspace(work.Conversation), f.DialoguePath(work.Conversation)))
	task, _ := s.Open.Task(work.Task)
	who := dispatch.Main
	if asker, ok := s.Open.Task(task.By); ok {
		who = asker.Agent
	}
	fmt.Fprintf(b, "\n\nYou are %s, in conversation %s. What you say is your result, and goes back to %s.\n", work.Agent,
		dispatch.ConversationID(work.Conversation), who)
}

func mainPrompt(b *strings.Builder, s *dispatch.Dispatch, work dispatch.Action) {
	fmt.Fprintf(b, "[State: %s] [Conv: %03d]\n\n%s\n\n", dispatch.Main, work.Conversation, work.Text)
	fmt.Fprintf(b, "You are %s: you coordinate, and answer the user. You may read everything and write notes; you do not write code, run\n"+
		"programs or change the repository, and what you try of that is denied: %s\n", dispatch.Main, inOneLine(string(s.ForMain)))
	b.WriteString("What you say is the answer that the user sees.\n")
	if choice := dispatchfolder.Best(*s, work.Text).Choice(); choice != "" && len(work.Results) == 0 {
		b.WriteString(choice + "\n")
	}
}

// rankPrompt asks whose work an input is.
func rankPrompt(b *strings.Builder, s *dispatch.Dispatch, work dispatch.Action) {
	b.WriteString("Whose work is this? It is what a user says:\n\n")
	for line := range strings.Lines(strings.TrimRight(work.Text, "\n") + "\n") {
		b.WriteString("> " + line)
	}
	b.WriteString("\nYou do none of it, and change nothing: you only choose, by the descriptions below. Where none of them fits, say NONE.\n")
	colleaguesPrompt(b, s, work)
}

// resultsPrompt reports the results to the agent that asked for help. They are another agent's
// words, so they are quoted.
func resultsPrompt(b *strings.Builder, work dispatch.Action) {
	if len(work.Results) == 0 {
		return
	}
	b.WriteString("\nYou had this task before and delegated parts of it. These are the results:\n")
	for _, r := range work.Results {
		how := "is done"
		if !r.OK {
			how = "has failed"
		}
		fmt.Fprintf(b, "\n%s %s, and said:\n", r.Agent, how)
		for line := range strings.Lines(strings.TrimRight(r.Text, "\n") + "\n") {
			b.WriteString("> " + line)
		}
	}
	b.WriteString("\nContinue from there.\n")
}

// colleaguesPrompt says who can be asked, and how.
func colleaguesPrompt(b *strings.Builder, s *dispatch.Dispatch, work dispatch.Action) {
	b.WriteString("\nTo delegate a part of the task to another agent, write this on a line of its own and end your answer. You receive the result:\n" +
		`[DELEGATE] {"to": NAME, "task": TEXT}` + "\nThese agents are available:\n")
	room := colleaguesBytesMax
	for i, d := range s.Agents {
		if d.Name == work.Agent && work.Task != 0 {
			continue
		}
		line := fmt.Sprintf("- %s: %s\n", d.Name, clip.Text(inOneLine(d.Text), colleagueBytesMax))
		if room -= len(line); room < 0 {
			fmt.Fprintf(b, "and %d more, in AGENT_DIRECTORY.md of the session.\n", len(s.Agents)-i)
			return
		}
		b.WriteString(line)
	}
}

func inOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
