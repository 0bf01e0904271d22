package questions

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/tasks"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Inbox prints everything that needs a person.
func Inbox(ctx context.Context, a *cli.App) (err error) {
	client, err := a.DialToRead(ctx)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, client.Close()) }()
	items, err := client.Inbox(ctx)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(map[string]any{"items": append([]view.InboxItem{}, items...)})
	}
	return PrintInbox(a, items, client.Offline != nil)
}

const (
	inboxLines  = 3  // how much of a step's text, or of a question in words, is shown
	inboxChoice = 12 // options that are named
)

// PrintInbox prints what waits for a person. Without a daemon (offline) an answer needs one first.
func PrintInbox(a *cli.App, items []view.InboxItem, offline bool) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(a.Out, "nothing needs you")
		return err
	}
	for i, item := range items {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		switch {
		case item.Question != nil:
			printAsked(a, item)
		case item.Kind == view.InboxFailed:
			printFailed(a, item)
		case item.Kind == view.InboxRun:
			printRunFailed(a, item)
		case item.Kind == view.InboxLimit:
			printLimit(a, item)
		case item.Unconfirmed != nil:
			printUnconfirmed(a, item)
		case item.Kind == view.InboxLogin, item.Kind == view.InboxBilling:
			what := map[string]string{view.InboxLogin: "is not signed in", view.InboxBilling: "has no credit or quota left"}[item.Kind]
			fmt.Fprintf(a.Out, "%s  %s, %s ago\n  says    %s\n", a.Paint(cli.Bold, cli.Plain(item.Agent)), what,
				cli.Ago(max(0, time.Since(item.Since))), cli.Plain(item.Why))
		case item.Kind == view.InboxBranch, item.Kind == view.InboxFetch:
			what := map[string]string{view.InboxBranch: "branch", view.InboxFetch: "tasks.fetch has stopped"}[item.Kind]
			fmt.Fprintf(a.Out, "%s  %s ago\n  says    %s\n", a.Paint(cli.Bold, what), cli.Ago(max(0, time.Since(item.Since))),
				cli.Plain(item.Why))
		default:
			printStepAsked(a, item, offline)
		}
		if len(item.Blocks) > 0 && item.Kind != view.InboxLimit {
			fmt.Fprintln(a.Out, "  holds   "+cli.Line(strings.Join(item.Blocks, ", "), cli.ErrorWidth))
		}
	}
	return nil
}

// printRunFailed prints a run that failed.
func printRunFailed(a *cli.App, item view.InboxItem) {
	run := cli.Plain(item.Run)
	what := cli.Line(item.Workflow, cli.StepWidth)
	if item.Task != nil {
		what = cli.Line(item.Task.Title, cli.ErrorWidth)
	}
	fmt.Fprintf(a.Out, "%s  %s failed, %s ago\n", a.Paint(cli.Bold, run), what, cli.Ago(max(0, time.Since(item.Since))))
	fmt.Fprintf(a.Out, "  step    %s\n", cli.Line(item.Step, cli.StepWidth))
	lines := strings.Split(strings.TrimSpace(item.Error), "\n")
	for _, text := range lines[max(0, len(lines)-inboxLines):] {
		fmt.Fprintln(a.Out, "  says    "+cli.Line(text, cli.ErrorWidth))
	}
	switch {
	case item.Task != nil && item.Task.FailedStep == task.StepLand:
		fmt.Fprintf(a.Out, "  answer  fairlead merge %s, or fairlead drop %s\n", run, run)
	case item.Task != nil:
		fmt.Fprintf(a.Out, "  answer  fairlead run resume %s, or fairlead drop %s\n", run, run)
	default:
		fmt.Fprintf(a.Out, "  answer  fairlead run resume %s; a newer run of the workflow removes this entry\n", run)
	}
}

// printUnconfirmed prints a change of fairlead.yaml that no person has confirmed.
func printUnconfirmed(a *cli.App, item view.InboxItem) {
	u := item.Unconfirmed
	fmt.Fprintf(a.Out, "%s  %s, %s ago\n", a.Paint(cli.Bold, "config"), cli.Line(strings.Join(u.Files, ", "), cli.ErrorWidth),
		cli.Ago(max(0, time.Since(item.Since))))
	fmt.Fprintln(a.Out, "  says    "+cli.Plain(item.Why))
	for line := range strings.Lines(u.Diff) {
		fmt.Fprintln(a.Out, "  "+cli.Plain(strings.TrimSuffix(line, "\n")))
	}
	fmt.Fprintf(a.Out, "  answer  fairlead reload --governing %s, or change the file back\n", cli.Plain(u.Sum))
}

// printLimit prints a daily limit that stops work.
func printLimit(a *cli.App, item view.InboxItem) {
	fmt.Fprintf(a.Out, "%s  %s ago\n", a.Paint(cli.Bold, "limit"), cli.Ago(max(0, time.Since(item.Since))))
	fmt.Fprintln(a.Out, "  says    "+cli.Line(item.Why, cli.ErrorWidth))
	if len(item.Blocks) > 0 {
		fmt.Fprintln(a.Out, "  stops   "+cli.Line(strings.Join(item.Blocks, ", "), cli.ErrorWidth))
	}
	if item.Run != "" {
		fmt.Fprintf(a.Out, "  answer  it ends with the day; fairlead run resume %s --daily-cost-limit USD raises it\n", cli.Plain(item.Run))
		return
	}
	fmt.Fprintln(a.Out, "  answer  it ends with the day (UTC); raise it in fairlead.yaml to go on now")
}

// printFailed prints an agent that gave up.
func printFailed(a *cli.App, item view.InboxItem) {
	name := cli.Plain(item.Agent)
	fmt.Fprintf(a.Out, "%s  gave up, %s ago\n", a.Paint(cli.Bold, name), cli.Ago(max(0, time.Since(item.Since))))
	fmt.Fprintln(a.Out, "  says    "+cli.Line(item.Why, cli.ErrorWidth))
	fmt.Fprintf(a.Out, "  look    fairlead why %s; then fairlead start %s, or fairlead stop %s to leave it\n", name, name, name)
}

func printStepAsked(a *cli.App, item view.InboxItem, offline bool) {
	run, step := cli.Plain(item.Run), cli.Plain(item.Step)
	name, what := step, cli.Line(item.Workflow, cli.StepWidth)+" of run "+run
	var told []string
	if item.Task != nil {
		name, what = run, cli.Line(item.Task.Title, cli.ErrorWidth)
		if item.Task.Asked != nil {
			told = item.Task.Asked.Told
		}
	}
	fmt.Fprintf(a.Out, "%s  %s, %s ago\n", a.Paint(cli.Bold, name), what, cli.Ago(max(0, time.Since(item.Since))))
	if item.BadInput != "" {
		fmt.Fprintln(a.Out, "  "+a.Paint(cli.Yellow, "the last answer was not valid: ")+cli.Line(item.BadInput, cli.ErrorWidth))
	}
	if len(item.Artifacts) > 0 {
		fmt.Fprintln(a.Out, "  made    "+cli.Line(strings.Join(item.Artifacts, ", "), cli.ErrorWidth))
	}
	for _, made := range item.Made {
		fmt.Fprintf(a.Out, "  before  %s %s%s\n", cli.Line(made.ID, cli.StepWidth), strings.ToLower(cli.Plain(made.Status)),
			metricWords(made.Metrics))
	}
	if item.Task != nil && item.Task.Asked != nil {
		if g := item.Task.Asked; g.GoverningHash != "" {
			fmt.Fprintf(a.Out, "  %s %s: they decide what runs later; approve them with --governing %s\n", a.Paint(cli.Yellow, "governs"),
				cli.Line(strings.Join(g.Governing, ", "), cli.ErrorWidth), cli.Plain(g.GoverningHash))
		}
		for _, line := range told {
			fmt.Fprintf(a.Out, "  %s    %s\n", a.Paint(cli.Yellow, "told"), cli.Line(line, cli.ErrorWidth))
		}
		fmt.Fprintln(a.Out, "  shows   tree "+cli.Plain(item.Task.Asked.Tree[:min(len(item.Task.Asked.Tree), view.TreeDigits)]))
	}
	if words := metricWords(item.Metrics); words != "" {
		fmt.Fprintln(a.Out, "  reports "+words[2:])
	}
	for _, log := range item.Logs[max(0, len(item.Logs)-inboxLines):] {
		if !slices.Contains(told, log) {
			fmt.Fprintln(a.Out, "  says    "+cli.Line(log, cli.ErrorWidth))
		}
	}
	if item.InputSchema != "" {
		fmt.Fprintln(a.Out, "  wants   "+cli.Line(item.InputSchema, cli.ErrorWidth))
	}
	if item.Task != nil {
		printTaskAnswer(a, item.Task, offline)
		return
	}
	if offline {
		fmt.Fprintf(a.Out, "  answer  fairlead run resume %s, and then in another terminal: fairlead approve %s %s\n", run, run, step)
		fmt.Fprintf(a.Out, "  or put  {\"approved\": true} into %s, and fairlead run resume %s\n", cli.Plain(item.Path), run)
		return
	}
	fmt.Fprintf(a.Out, "  answer  fairlead approve %s %s\n", run, step)
	fmt.Fprintln(a.Out, "  or put  "+cli.Plain(item.Path))
}

func printTaskAnswer(a *cli.App, t *view.TaskView, offline bool) {
	if t.Checkout != "" {
		fmt.Fprintf(a.Out, "  in      %s; fairlead checkout %s --done takes what is committed there\n", cli.Line(t.Checkout, cli.ErrorWidth), cli.Plain(t.ID))
	}
	if t.Unlanded() {
		fmt.Fprintln(a.Out, "  ways    "+cli.Line(t.WaysOn(), cli.ErrorWidth))
	}
	first := ""
	if offline {
		first = "fairlead up; then "
	}
	fmt.Fprintln(a.Out, "  answer  "+first+tasks.AnswerWords(t))
}

// metricWords lists metrics, after a colon; empty without any.
func metricWords(metrics map[string]string) string {
	words := []string{}
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		words = append(words, cli.Line(name+" "+metrics[name], cli.StepWidth))
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + cli.Line(strings.Join(words, ", "), cli.ErrorWidth)
}

// printAsked prints a question of an agent.
func printAsked(a *cli.App, item view.InboxItem) {
	q := item.Question
	id := cli.Plain(q.ID)
	where := ""
	if item.Run != "" {
		where = fmt.Sprintf(", step %s of run %s", cli.Line(item.Step, cli.StepWidth), cli.Line(item.Run, cli.StepWidth))
	}
	fmt.Fprintf(a.Out, "%s  %s, %s ago%s\n", a.Paint(cli.Bold, id), wantsWords(q), cli.Ago(max(0, time.Since(q.AskedAt))), where)
	say := func(label, text string) {
		if text != "" {
			fmt.Fprintf(a.Out, "  %-7s %s\n", label, text)
		}
	}
	call := cli.CallWords(q.Call)
	if q.Kind == string(question.Asked) {
		lines := strings.Split(strings.TrimSpace(q.What), "\n")
		for _, text := range lines[:min(len(lines), inboxLines)] {
			say("asks", cli.Line(text, cli.ErrorWidth))
		}
		if more := len(lines) - inboxLines; more > 0 {
			say("", a.Paint(cli.Dim, fmt.Sprintf("and %d more lines; `fairlead inbox --json` has them", more)))
		}
	} else {
		say("says", cli.Line(q.What, cli.ErrorWidth))
	}
	say("call", cli.Line(strings.TrimSpace(q.Tool+" "+call), cli.ErrorWidth))
	for i, text := range WrittenLines(q.Tool, q.Call) {
		say([]string{"writes", ""}[min(i, 1)], text)
	}
	for _, path := range q.Paths {
		say("file", cli.Line(path, cli.ErrorWidth))
	}
	for _, how := range q.Differs {
		say("differs", cli.Line(how, cli.ErrorWidth))
	}
	for _, hint := range q.Hints {
		say("look", a.Paint(cli.Yellow, cli.Line(hint, cli.ErrorWidth)))
	}
	say("why", cli.Line(q.Why, cli.ErrorWidth))
	say("else", otherwiseWords(q, time.Now()))
	say("answer", answerWords(q))
	for _, o := range q.Options[:min(len(q.Options), inboxChoice)] {
		if q.Kind != string(question.Permission) {
			say("option", cli.Line(o.ID, cli.StepWidth)+labelOf(o))
		} else if !slices.Contains(plainKinds, o.Kind) {
			say("or", "fairlead answer "+id+" "+cli.Line(o.ID, cli.StepWidth)+a.Paint(cli.Dim, "  "+cli.Line(o.Label, cli.ErrorWidth)))
		}
	}
}

// labelOf is an option's text, after its name.
func labelOf(o view.OptionView) string {
	if o.Label == "" || o.Label == o.ID {
		return ""
	}
	return "  " + cli.Line(o.Label, cli.ErrorWidth)
}

// plainKinds are the options that yes and no mean. Other options have further effects.
var plainKinds = []string{"allow_once", "allow_always", "reject_once", "reject_always"}

// wantsWords says what an agent wants; the program's own text is printed below it.
func wantsWords(q *view.QuestionView) string {
	agent := cli.Plain(q.Agent)
	switch question.Kind(q.Kind) {
	case question.Asked:
		return agent + " asks"
	case question.Resume:
		return agent + " waits: its conversation would be resumed under changed conditions"
	case question.HostLost:
		return agent + " waits: the host of its step was lost"
	case question.Permission:
		if q.Order != "" {
			return agent + " is asked for more work by its file"
		}
		if q.Host != "" {
			return agent + " wants to reach a host of the network"
		}
	}
	switch q.Tool {
	case "Bash":
		return agent + " wants to run a command"
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return agent + " wants to change a file"
	case "Read", "Glob", "Grep":
		return agent + " wants to read files"
	case "WebFetch", "WebSearch":
		return agent + " wants to access the network"
	case "":
		return agent + " wants to do something"
	default:
		return agent + " wants to use " + cli.Line(q.Tool, cli.StepWidth)
	}
}

// writtenArgs are the arguments with a file's new content, in order of preference; for an edit, the
// changed parts.
var writtenArgs = []string{"diff", "new_string", "new_source", "patchText", "content"}

// inboxWritten is how many lines of the new content are shown.
const inboxWritten = 12

// WrittenLines is what a call would write into a file, so that a person sees it before answering.
func WrittenLines(tool, call string) (shown []string) {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(call), &args) != nil {
		return nil
	}
	names := writtenArgs
	if tool == "Write" {
		names = append([]string{"content"}, names...) // a file that is written is replaced completely
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

// clipped is a line with its indentation, shortened for a terminal.
func clipped(text string) string {
	return cli.Fit(cli.Plain(strings.ReplaceAll(text, "\t", "    ")), cli.ErrorWidth)
}

// otherwiseWords says what happens without an answer, and when.
func otherwiseWords(q *view.QuestionView, now time.Time) string {
	if q.ExpiresAt == nil {
		return "waits for an answer without a time limit"
	}
	then := "it continues without an answer"
	switch {
	case question.Kind(q.Kind) == question.Permission && q.Otherwise == "allow":
		then = "it is allowed"
	case question.Kind(q.Kind) == question.Permission:
		then = "it is denied"
	case q.Otherwise != "":
		then = "the answer is " + cli.Line(q.Otherwise, cli.StepWidth)
	}
	return then + " in " + cli.Ago(max(0, q.ExpiresAt.Sub(now)))
}

// answerWords says how to answer a question.
func answerWords(q *view.QuestionView) string {
	words := "fairlead answer " + cli.Plain(q.ID) + " "
	if question.Kind(q.Kind) == question.Permission {
		if !slices.ContainsFunc(q.Options, func(o view.OptionView) bool { return o.Kind == "allow_once" || o.Kind == "allow_always" }) {
			return words + "no" // the question offers several options, so a plain yes is ambiguous
		}
		words += "yes|no"
		if q.MayStand {
			words += " [--for session|always]"
		}
		return words
	}
	names := make([]string, 0, len(q.Options))
	for _, o := range q.Options[:min(len(q.Options), inboxChoice)] {
		names = append(names, cli.Line(o.ID, cli.StepWidth))
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

// NoticeTargets prints the targets of notices.
func NoticeTargets(ctx context.Context, a *cli.App, client *apiclient.Client) error {
	targets, err := client.NoticeTargets(ctx)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(map[string]any{"targets": append([]view.NoticeTarget{}, targets...)})
	case len(targets) == 0:
		_, err := fmt.Fprintln(a.Out, "no target is configured; add one under notify.targets in fairlead.yaml, then run `fairlead reload`")
		return err
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TARGET\tKIND\tSTATE\tWAITING\tLAST HOUR\tQUIET\tEVENTS")
	for i := range targets {
		t := &targets[i]
		sent := fmt.Sprintf("%d of %d", t.LastHour, t.PerHour)
		if t.Counted > 0 {
			sent += fmt.Sprintf(", %d left out", t.Counted)
		}
		quiet := cmp.Or(t.Quiet, "-")
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", cli.Plain(t.Name), cli.Plain(t.Kind), t.State, t.Waiting, sent, cli.Plain(quiet),
			strings.Join(t.Events, " "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := range targets {
		if t := &targets[i]; t.State == "failing" {
			fmt.Fprintf(a.Out, "%s: %s\n", cli.Plain(t.Name), FailingWords(t))
		}
	}
	return nil
}

// FailingWords says why a target cannot be reached.
func FailingWords(t *view.NoticeTarget) string {
	text := "notices cannot be delivered"
	if t.Since != nil {
		text += " since " + t.Since.UTC().Format(time.DateTime) + "Z"
	}
	return text + ": " + cli.Plain(t.Cause) + "; " + cli.Plain(t.WayOut)
}

// TestNotice sends a test notice to one target, or to all, and prints the result.
func TestNotice(ctx context.Context, a *cli.App, client *apiclient.Client, target string) error {
	done, err := client.TestNotice(ctx, target)
	if err != nil {
		return cli.Faulty(err)
	}
	failed := 0
	for _, t := range done {
		if !t.Delivered {
			failed++
		}
	}
	if a.JSON {
		err = a.PrintJSON(map[string]any{"tests": done})
	} else {
		for _, t := range done {
			line := fmt.Sprintf("%s (%s): delivered", cli.Plain(t.Target), cli.Plain(t.Kind))
			if !t.Delivered {
				line = fmt.Sprintf("%s (%s): not delivered: %s; %s", cli.Plain(t.Target), cli.Plain(t.Kind), cli.Plain(t.Cause),
					cli.Plain(t.WayOut))
			}
			fmt.Fprintln(a.Out, line)
		}
	}
	if err == nil && failed > 0 {
		err = &cli.Coded{Code: cli.ExitFailed, Err: fmt.Errorf("%d of %d test notices were not delivered", failed, len(done))}
	}
	return err
}
