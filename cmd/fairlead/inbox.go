package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/view"
)

func (a *app) inboxVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "inbox",
		Short: "List everything that waits for a person, the oldest first",
		Long: `It lists workflow steps that wait for approval, and questions of agents. For a step it shows what the
step made and how to answer: with ` + "`fairlead approve`" + ` or ` + "`fairlead reject`" + `, in Mission Control, or with
a file. For a question it shows what the agent wants, why it must ask, and what happens without an
answer: answer with ` + "`fairlead answer`" + ` or in Mission Control.`,
		Example: `  fairlead inbox
  fairlead inbox --json`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.inbox(cmd.Context()) },
	}
}

func (a *app) inbox(ctx context.Context) (err error) {
	client, err := a.dialToRead(ctx)
	if err != nil {
		return err
	}
	defer func() { err = cmpErr(err, client.Close()) }()
	items, err := client.Inbox(ctx)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printJSON(map[string]any{"items": append([]view.InboxItem{}, items...)})
	}
	return a.printInbox(items, client.offline != nil)
}

const (
	inboxLines  = 3  // how much of what a step said, or of a question in words, is shown of it
	inboxChoice = 12 // options that are named
)

// printInbox prints what waits for a person. Without a daemon (offline) an answer needs one first.
func (a *app) printInbox(items []view.InboxItem, offline bool) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(a.out, "nothing waits for you")
		return err
	}
	for i, item := range items {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		if item.Question != nil {
			a.printAsked(item)
			continue
		}
		a.printStepAsked(item, offline)
	}
	return nil
}

func (a *app) printStepAsked(item view.InboxItem, offline bool) {
	run, step := plain(item.Run), plain(item.Step)
	fmt.Fprintf(a.out, "%s  %s of run %s, %s ago\n", a.paint(bold, step), line(item.Workflow, stepWidth), run, ago(max(0, time.Since(item.Since))))
	if item.BadInput != "" {
		fmt.Fprintln(a.out, "  "+a.paint(yellow, "the last answer was not valid: ")+line(item.BadInput, errorWidth))
	}
	if len(item.Artifacts) > 0 {
		fmt.Fprintln(a.out, "  made    "+line(strings.Join(item.Artifacts, ", "), errorWidth))
	}
	for _, log := range item.Logs[max(0, len(item.Logs)-inboxLines):] {
		fmt.Fprintln(a.out, "  says    "+line(log, errorWidth))
	}
	if item.InputSchema != "" {
		fmt.Fprintln(a.out, "  wants   "+line(item.InputSchema, errorWidth))
	}
	if offline {
		fmt.Fprintf(a.out, "  answer  fairlead run resume %s, and then in another terminal: fairlead approve %s %s\n", run, run, step)
		fmt.Fprintf(a.out, "  or put  {\"approved\": true} into %s, and fairlead run resume %s\n", plain(item.Path), run)
		return
	}
	fmt.Fprintf(a.out, "  answer  fairlead approve %s %s\n", run, step)
	fmt.Fprintln(a.out, "  or put  "+plain(item.Path))
}

// printAsked shows a question of an agent.
func (a *app) printAsked(item view.InboxItem) {
	q := item.Question
	id := plain(q.ID)
	where := ""
	if item.Run != "" {
		where = fmt.Sprintf(", step %s of run %s", line(item.Step, stepWidth), line(item.Run, stepWidth))
	}
	fmt.Fprintf(a.out, "%s  %s, %s ago%s\n", a.paint(bold, id), wantsWords(q), ago(max(0, time.Since(q.AskedAt))), where)
	say := func(label, text string) {
		if text != "" {
			fmt.Fprintf(a.out, "  %-7s %s\n", label, text)
		}
	}
	call := callWords(q.Call)
	if q.Kind == string(question.Asked) {
		lines := strings.Split(strings.TrimSpace(q.What), "\n")
		for _, text := range lines[:min(len(lines), inboxLines)] {
			say("asks", line(text, errorWidth))
		}
		if more := len(lines) - inboxLines; more > 0 {
			say("", a.paint(dim, fmt.Sprintf("and %d more lines; `fairlead inbox --json` has them", more)))
		}
	} else {
		say("says", line(q.What, errorWidth))
	}
	say("call", line(strings.TrimSpace(q.Tool+" "+call), errorWidth))
	for i, text := range writtenLines(q.Tool, q.Call) {
		say([]string{"writes", ""}[min(i, 1)], text)
	}
	for _, path := range q.Paths {
		say("file", line(path, errorWidth))
	}
	for _, how := range q.Differs {
		say("differs", line(how, errorWidth))
	}
	for _, hint := range q.Hints {
		say("look", a.paint(yellow, line(hint, errorWidth)))
	}
	say("why", line(q.Why, errorWidth))
	say("else", otherwiseWords(q, time.Now()))
	say("answer", answerWords(q))
	if q.Kind != string(question.Permission) {
		return
	}
	for _, o := range q.Options[:min(len(q.Options), inboxChoice)] {
		if !slices.Contains(plainKinds, o.Kind) {
			say("or", "fairlead answer "+id+" "+line(o.ID, stepWidth)+a.paint(dim, "  "+line(o.Label, errorWidth)))
		}
	}
}

// plainKinds are the options that yes and no stand for. Any other does something besides.
var plainKinds = []string{"allow_once", "allow_always", "reject_once", "reject_always"}

// wantsWords says who wants what, in our own words: what a program says of it stands below.
func wantsWords(q *view.QuestionView) string {
	agent := plain(q.Agent)
	switch question.Kind(q.Kind) {
	case question.Asked:
		return agent + " asks"
	case question.Resume:
		return agent + " waits: its conversation would go on under other conditions"
	case question.Permission:
	}
	switch q.Tool {
	case "Bash":
		return agent + " wants to run a command"
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return agent + " wants to change a file"
	case "Read", "Glob", "Grep":
		return agent + " wants to read files"
	case "WebFetch", "WebSearch":
		return agent + " wants to go to the network"
	case "":
		return agent + " wants to do something"
	default:
		return agent + " wants to use " + line(q.Tool, stepWidth)
	}
}

// chiefArgs are the arguments that say what a call is about, the first that is there.
var chiefArgs = []string{"command", "file_path", "path", "notebook_path", "url", "query", "pattern"}

// callWords is what a call is about, in one line: its chief argument, or all of it.
func callWords(call string) string {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(call), &args) != nil {
		return call
	}
	for _, name := range chiefArgs {
		var text string
		if json.Unmarshal(args[name], &text) == nil && text != "" {
			return text
		}
	}
	var one bytes.Buffer
	if json.Compact(&one, []byte(call)) != nil {
		return call
	}
	return one.String()
}

// writtenArgs are the arguments that say what a file gets, the first that is there: of a change the
// places that are changed.
var writtenArgs = []string{"diff", "new_string", "new_source", "patchText", "content"}

// inboxWritten is how many lines of what would be written are shown.
const inboxWritten = 12

// writtenLines is what a call would write into a file, so that nobody says yes to what he has not seen.
func writtenLines(tool, call string) (shown []string) {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(call), &args) != nil {
		return nil
	}
	names := writtenArgs
	if tool == "Write" {
		names = append([]string{"content"}, names...) // a file that is written is written whole
	}
	for _, name := range names {
		var text string
		if json.Unmarshal(args[name], &text) != nil || strings.TrimSpace(text) == "" {
			continue
		}
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		for _, one := range lines[:min(len(lines), inboxWritten)] {
			shown = append(shown, "| "+clipped(one))
		}
		if more := len(lines) - inboxWritten; more > 0 {
			shown = append(shown, fmt.Sprintf("and %d more lines; `fairlead inbox --json` has them", more))
		}
		return shown
	}
	return nil
}

// clipped is a line as it stands, with what leads it, and no longer than a terminal bears.
func clipped(text string) string {
	text = plain(strings.ReplaceAll(text, "\t", "    "))
	if runes := []rune(text); len(runes) > errorWidth {
		return string(runes[:errorWidth-1]) + "…"
	}
	return text
}

// otherwiseWords says what happens when nobody answers, and when.
func otherwiseWords(q *view.QuestionView, now time.Time) string {
	if q.ExpiresAt == nil {
		return "waits until somebody answers"
	}
	then := "it goes on without an answer"
	switch {
	case question.Kind(q.Kind) == question.Permission && q.Otherwise == "allow":
		then = "it is allowed"
	case question.Kind(q.Kind) == question.Permission:
		then = "it is denied"
	case q.Otherwise != "":
		then = "the answer is " + line(q.Otherwise, stepWidth)
	}
	return then + " in " + ago(max(0, q.ExpiresAt.Sub(now)))
}

// answerWords says how it is answered.
func answerWords(q *view.QuestionView) string {
	words := "fairlead answer " + plain(q.ID) + " "
	if question.Kind(q.Kind) == question.Permission {
		if !slices.ContainsFunc(q.Options, func(o view.OptionView) bool { return o.Kind == "allow_once" || o.Kind == "allow_always" }) {
			return words + "no" // it asks which of several things it shall be: a plain yes says nothing
		}
		words += "yes|no"
		if q.MayStand {
			words += " [--for session|always]"
		}
		return words
	}
	names := make([]string, 0, len(q.Options))
	for _, o := range q.Options[:min(len(q.Options), inboxChoice)] {
		names = append(names, line(o.ID, stepWidth))
	}
	switch {
	case len(names) > 0 && q.FreeText:
		return words + strings.Join(names, "|") + `, or --text "…"`
	case len(names) > 0:
		return words + strings.Join(names, "|")
	default:
		return words + `--text "…"`
	}
}
