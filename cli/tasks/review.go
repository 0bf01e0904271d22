package tasks

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/read/view"
)

// DiffFlags say what Diff shows.
type DiffFlags struct {
	Stat  bool
	Round int // what this round has changed; 0: all that the task has
}

// Diff shows what a person is asked to approve of a task. If no question is open, it shows what the task has changed so far. On a
// terminal it uses git's pager, and elsewhere it prints a patch with every byte. All comments are listed above the diff; on a terminal
// each is also shown below its line.
func Diff(ctx context.Context, a *cli.App, id string, flags DiffFlags) error {
	t, err := Open(a, id)
	if err != nil {
		return err
	}
	review := task.Review{Task: t}
	about, also, err := askedAbout(ctx, a, id)
	if err != nil {
		return err
	}
	var from, commit, head string
	var asked *view.TaskAsked
	if about != nil {
		asked = about.Asked
	}
	switch {
	case flags.Round > 0:
		if from, commit, head, err = ofRound(ctx, review, flags.Round); err != nil {
			return err
		}
	case asked != nil && review.Has(ctx, asked.Commit, asked.From):
		from, commit, head = asked.From, asked.Commit, askedHead(about)
	default:
		if commit, err = t.Newest(ctx); err != nil {
			return err
		}
		if from, err = t.Before(ctx, commit); err != nil {
			return err
		}
	}
	for _, line := range also {
		head += line + "\n"
	}
	threads, err := threadsOf(ctx, review, from, commit)
	if err != nil {
		return err
	}
	head += threadLines(threads)
	args := []string{"-C", t.Repo, "-c", "core.quotePath=false", "--no-pager", "diff", "--no-color", "--no-ext-diff", "--no-textconv"}
	if flags.Stat {
		args = append(args, "--stat")
	}
	if about != nil && about.Landing != nil && about.Why != "" {
		why := cli.Line(about.Why, cli.ErrorWidth) + "\n"
		if about.Unlanded() {
			why += cli.Line(about.WaysOn(), cli.ErrorWidth) + "\n"
		}
		head = why + head
	}
	if about != nil && about.Checkout != "" {
		head = checkedOutWords(about) + "\n" + head
	}
	cmd := exec.CommandContext(ctx, "git", append(args, first(ctx, t, from, commit)...)...) //nolint:gosec // two commits
	cmd.Stderr = a.Err
	cmd.Env = append(os.Environ(), "GIT_NO_REPLACE_OBJECTS=1") // what is shown is what the hash says
	if !cli.Tty(a.Out) {
		if _, err := io.WriteString(a.Err, head); err != nil { // the patch is exact
			return err
		}
		cmd.Stdout = a.Out
		return cmd.Run()
	}
	if width := a.Columns(); width > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("COLUMNS=%d", width)) // of --stat
	}
	notes := placedOf(threads)
	if flags.Stat {
		notes = nil
	}
	return paged(ctx, a, t.Repo, head, cmd, notes)
}

// askedHead are the lines about the question that a task waits with.
func askedHead(about *view.TaskView) string {
	asked, id := about.Asked, cli.Plain(about.ID)
	head := ""
	if asked.Round > 0 {
		head = fmt.Sprintf("round %d; ", asked.Round)
	}
	if nothingNew(about) != "" {
		head += fmt.Sprintf("tree %s; send it back with `fairlead request %s TEXT`, or end it with `fairlead drop %[2]s`\n",
			shortTree(asked.Tree), id)
	} else {
		head += fmt.Sprintf("tree %s; `fairlead merge %s --tree %[1]s` approves exactly this\n", shortTree(asked.Tree), id)
	}
	for _, line := range asked.Told {
		head += cli.Line(line, cli.ErrorWidth) + "\n"
	}
	if asked.GoverningHash != "" {
		head += fmt.Sprintf("%s\na separate yes: --governing %s\n", cli.Line((state.Governs{Files: asked.Governing}).Line(), cli.ErrorWidth),
			cli.Plain(asked.GoverningHash))
	}
	return head
}

// ofRound is what a round has changed: since the round before it was shown, and for the first one since its base.
func ofRound(ctx context.Context, t task.Review, round int) (from, commit, head string, err error) {
	all, err := t.Rounds(ctx)
	if err != nil {
		return "", "", "", err
	}
	at := slices.IndexFunc(all, func(r task.Round) bool { return r.Number == round })
	switch {
	case len(all) == 0:
		return "", "", "", &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("task %s was not shown yet, so it has no round to show", cli.Plain(t.ID))}
	case at < 0:
		return "", "", "", &cli.Coded{
			Code: cli.ExitUsage,
			Err:  fmt.Errorf("task %s has no round %d that was shown; there are %d to %d", cli.Plain(t.ID), round, all[0].Number, all[len(all)-1].Number),
		}
	case at > 0:
		return all[at-1].Commit, all[at].Commit, fmt.Sprintf("round %d, compared with round %d\n", round, all[at-1].Number), nil
	}
	from, err = t.Before(ctx, all[0].Commit)
	return from, all[0].Commit, fmt.Sprintf("round %d, compared with %s\n", round, cli.Plain(t.Base)), err
}

// threadsOf are the comments on a task at their places in what is shown.
func threadsOf(ctx context.Context, t task.Review, from, commit string) ([]task.Thread, error) {
	all, err := t.Comments()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return t.Threads(ctx, all, from, commit)
}

// threadLines list comments with their round, state and place.
func threadLines(all []task.Thread) string {
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%s: %s%s\n", threadTitle(c), threadPlace(c), shortText(c))
		if c.Gone {
			for _, line := range c.About() {
				b.WriteString("    " + cli.Line(line, cli.ErrorWidth) + "\n")
			}
		}
	}
	return b.String()
}

// shortText is the first line of a comment.
func shortText(c task.Thread) string {
	line, _, _ := strings.Cut(strings.TrimSpace(c.Text), "\n")
	return cli.Line(line, cli.ErrorWidth)
}

func threadTitle(c task.Thread) string {
	state := c.State
	if c.New() {
		state = "not sent"
	}
	return fmt.Sprintf("comment %d (round %d, %s)", c.ID, c.Round, state)
}

func threadPlace(c task.Thread) string {
	at, gone := c.Now, ""
	if c.Gone {
		at, gone = task.At{File: c.File, Line: c.Line, Old: c.Old}, ", which is gone"
	}
	if at.File == "" {
		return ""
	}
	where := cli.Line(at.File, cli.PathWidth)
	if at.Line > 0 {
		where += ":" + strconv.Itoa(at.Line)
	}
	if at.Old {
		where += " of the old file"
	}
	return where + gone + ": "
}

// paged runs a command that prints a diff, and shows a line and the diff in git's pager, with comments below their lines.
func paged(ctx context.Context, a *cli.App, repo, head string, cmd *exec.Cmd, notes *placed) error {
	diff, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	to, done := a.Out, func() error { return nil }
	if name, err := exec.CommandContext(ctx, "git", "-C", repo, "var",
		"GIT_PAGER").Output(); err == nil { //nolint:gosec // the user's repository
		if to, done, err = a.Pager(ctx, strings.TrimSpace(string(name))); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, done())
	}
	if _, err = io.WriteString(to, head); err == nil {
		err = coloured(a, to, diff, notes)
	}
	if err != nil {
		_ = cmd.Process.Kill() // nothing reads it
	}
	ended := cmd.Wait()
	switch {
	case err == nil:
		return errors.Join(ended, done())
	case !cli.Tty(to): // the person has left the pager
		return done()
	}
	return err
}

// coloured copies a diff, with the colours of its lines and the comments below them.
func coloured(a *cli.App, to io.Writer, diff io.Reader, notes *placed) error {
	const lineKept = 64 << 10 // a longer line is copied in pieces
	from := bufio.NewReaderSize(diff, lineKept)
	begins, colour, below := true, "", []string(nil)
	for {
		text, err := from.ReadSlice('\n')
		if begins {
			colour, below = colourOf(text), notes.below(text)
		}
		ends := bytes.HasSuffix(text, []byte("\n"))
		line := strings.TrimSuffix(string(text), "\n")
		switch {
		case colour == "" || cli.Colourless():
		case begins && ends:
			line = a.Paint(colour, line)
		case begins:
			line = colour + line
		case ends:
			line += cli.Reset
		}
		if ends {
			line += "\n"
			for _, note := range below {
				line += a.Paint(cli.Yellow, "  # "+note) + "\n"
			}
		}
		if _, err := io.WriteString(to, line); err != nil {
			return err
		}
		begins = ends
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if !ends && colour != "" && !cli.Colourless() {
				_, _ = io.WriteString(to, cli.Reset) // a pager that has ended reports it below
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// colourOf is the colour of a diff's line, by how it begins.
func colourOf(line []byte) string {
	for _, c := range []struct{ begins, colour string }{
		{"diff --git ", cli.Bold},
		{"--- ", cli.Bold},
		{"+++ ", cli.Bold},
		{"index ", cli.Bold},
		{"@@ ", cli.Dim},
		{"+", cli.Green},
		{"-", cli.Red},
	} {
		if bytes.HasPrefix(line, []byte(c.begins)) {
			return c.colour
		}
	}
	return ""
}

// first are the rest of git's arguments for a difference: the governing files come first. If they are not known, it is in git's own
// order.
func first(ctx context.Context, t task.Task, from, commit string) []string {
	governs, err := (task.Review{Task: t}).Governs(ctx, from, commit)
	if err != nil || len(governs) == 0 {
		return []string{from, commit, "--"}
	}
	order := filepath.Join(t.Run, "order")
	var lines strings.Builder
	for _, name := range governs {
		lines.WriteString(literal.Replace(name) + "\n")
	}
	if err := os.WriteFile(order, []byte(lines.String()), 0o600); err != nil {
		return []string{from, commit, "--"}
	}
	return []string{"-O" + order, from, commit, "--"}
}

// literal makes a name a pattern of git that matches only it.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// shortTree is what is printed of the hash of a tree. It comes from a report.
func shortTree(tree string) string { return cli.Plain(tree[:min(len(tree), view.TreeDigits)]) }

// askedAbout is a task about which a person may be asked, as the journal has it; nil: it has none. also has a line for each other open
// task that changes the same files.
func askedAbout(ctx context.Context, a *cli.App, id string) (about *view.TaskView, also []string, err error) {
	client, err := a.DialToRead(ctx)
	if none := (*apiclient.NoDaemon)(nil); errors.As(err, &none) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	r, err := client.Runs.Show(ctx, id)
	var p *api.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound || err == nil && r.Task == nil {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if all, err := client.Runs.List(ctx); err == nil { // they are told, and are no condition
		also = alsoChange(id, tasksOf(all))
	}
	return r.Task, also, nil
}

// commentOn finds what a comment is about: FILE:LINE, or FILE. The name of a file may end like a line, too.
func commentOn(ctx context.Context, t task.Review, where string) (api.CommentBody, error) {
	type place struct {
		file string
		line int
	}
	places, wrong := []place{{where, 0}}, error(nil)
	if colon := strings.LastIndexByte(where, ':'); colon >= 0 {
		if line, err := strconv.Atoi(where[colon+1:]); err == nil && line > 0 {
			places = []place{{where[:colon], line}, {where, 0}}
		} else {
			wrong = fmt.Errorf("%s: the line is a number from 1, as in upload.go:40", cli.Line(where, cli.PathWidth))
		}
	}
	for _, p := range places {
		if !filepath.IsLocal(p.file) {
			return api.CommentBody{}, fmt.Errorf("%s is not a file of the repository; name it as `fairlead diff` does", cli.Line(p.file, cli.PathWidth))
		}
		on := api.CommentBody{File: filepath.ToSlash(filepath.Clean(p.file)), Line: p.line}
		var err error
		if on.Quote, on.Old, err = t.Line(ctx, on.File, on.Line); err == nil {
			return on, nil
		}
		if wrong == nil {
			wrong = err
		}
	}
	return api.CommentBody{}, wrong
}

// Comment keeps a comment on a line. The next request sends it.
func Comment(ctx context.Context, a *cli.App, client *apiclient.Client, id, where, text string) error {
	if _, err := shownTask(ctx, client, id); err != nil {
		return err
	}
	t, err := Open(a, id)
	if err != nil {
		return err
	}
	body, err := commentOn(ctx, task.Review{Task: t}, where)
	if err != nil {
		return &cli.Coded{Code: cli.ExitUsage, Err: err}
	}
	body.Text = strings.TrimSpace(text)
	all, err := client.Runs.Comment(ctx, id, body)
	if err != nil {
		return cli.Faulty(err)
	}
	_, err = fmt.Fprintf(a.Out, "%s for task %s; `fairlead request %s` sends them\n", cli.HowMany(unsent(all), "comment", "comments"),
		cli.Plain(id), cli.Plain(id))
	return err
}

// unsent counts the comments that the next request sends.
func unsent(all []view.TaskComment) (n int) {
	for _, c := range all {
		if c.Sent == 0 && c.State != task.ThreadResolved {
			n++
		}
	}
	return n
}

// Resolve says that a comment is resolved, or that it is open again.
func Resolve(ctx context.Context, a *cli.App, client *apiclient.Client, id string, comment int, resolved bool) error {
	if _, err := shownTask(ctx, client, id); err != nil {
		return err
	}
	all, err := client.Runs.ChangeComment(ctx, id, comment, api.CommentTextBody{Resolved: &resolved})
	var p *api.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		return &cli.Coded{
			Code: cli.ExitUsage,
			Err:  fmt.Errorf("task %s has no comment %d; `fairlead diff %s` lists them", cli.Plain(id), comment, cli.Plain(id)),
		}
	} else if err != nil {
		return cli.Faulty(err)
	}
	left := 0
	for _, c := range all {
		if c.State != task.ThreadResolved {
			left++
		}
	}
	words := map[bool]string{true: "resolved", false: "open again"}[resolved]
	_, err = fmt.Fprintf(a.Out, "comment %d of task %s is %s; %d not resolved\n", comment, cli.Plain(id), words, left)
	return err
}

// Request sends the comments and a text back to the agent.
func Request(ctx context.Context, a *cli.App, client *apiclient.Client, id, text string) error {
	r, err := shownTask(ctx, client, id)
	if err != nil {
		return err
	}
	if !waitsForApproval(r) {
		return notNow(r)
	}
	text = strings.TrimSpace(text)
	if all, err := client.Runs.Comments(ctx, id); err != nil {
		return err
	} else if text == "" && unsent(all) == 0 && !r.Task.Unlanded() {
		return &cli.Coded{
			Code: cli.ExitUsage,
			Err:  fmt.Errorf("there is nothing to send; write a text, or comment first: fairlead comment %s FILE:LINE TEXT", cli.Plain(id)),
		}
	}
	if _, err := client.Runs.Request(ctx, id, api.RequestBody{Text: text}); err != nil {
		return cli.Faulty(err)
	}
	_, err = fmt.Fprintf(a.Out, "task %s goes back to %s\n", cli.Plain(id), cli.Plain(r.Task.Agent))
	return err
}

// Drop cancels a task and removes its folder. Its content stays under a hidden ref.
func Drop(ctx context.Context, a *cli.App, client *apiclient.Client, id string) error {
	done, err := client.Runs.Drop(ctx, id)
	ref, p := done.Ref, (*api.Problem)(nil)
	if errors.As(err, &p) && p.Status == http.StatusNotFound { // the daemon died before the run began, or the run is archived
		t, err := Open(a, id)
		if err != nil {
			return err
		}
		if err := t.DropByHand(ctx); err != nil {
			return &cli.Coded{Code: cli.ExitRefused, Err: err}
		}
		if ref, err = t.Remove(ctx); err != nil {
			return cli.Faulty(err)
		}
	} else if err != nil {
		return cli.Faulty(err)
	}
	_, err = fmt.Fprintf(a.Out, "the folder of task %s is removed; what was written is in %s: git show --stat %[2]s\n`fairlead task restore %[1]s` brings it back\n",
		cli.Plain(id), ref)
	return err
}

// follow waits until a task has landed, or needs a person again.
func follow(ctx context.Context, a *cli.App, client *apiclient.Client, id string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The stream begins with an earlier change, so that the task is looked at once more when the stream is there.
	changed, ended := client.Changed(ctx, apiclient.EventsQuery{Tail: 1})
	name, shown := cli.Plain(id), ""
	for {
		r, err := client.Runs.Show(ctx, id)
		if err != nil {
			return err
		}
		if line := fmt.Sprintf("task %s: %s\n", name, cli.Line(r.Task.Why, cli.ErrorWidth)); r.Task.Status == view.TaskLanding &&
			len(r.Task.Why) > 0 && line != shown {
			fmt.Fprint(a.Err, line)
			shown = line
		}
		switch {
		case r.Task.Status == view.TaskPROpen:
			return sayPull(a, r)
		case r.Task.Status == view.TaskDone:
			said, approved := "", (*view.StepAnswered)(nil)
			for _, s := range r.Steps {
				switch {
				case s.ID == task.StepLand && len(s.Logs) > 0:
					said = ": " + cli.Line(s.Logs[0], cli.ErrorWidth)
				case s.ID == task.StepApprove && s.Answer != nil:
					approved = s.Answer
				}
			}
			if a.JSON {
				return a.PrintJSON(map[string]any{"task": r.Task, "approved": approved})
			}
			if approved != nil {
				said += "\napproved " + cli.Line(approved.Words, cli.ErrorWidth)
			}
			_, err := fmt.Fprintf(a.Out, "task %s has landed%s\n", name, said)
			return err
		case r.Task.Unlanded():
			return &cli.Coded{
				Code: cli.ExitWaits,
				Err: fmt.Errorf("task %s %s. Look at it again: fairlead diff %[1]s; %[3]s", name, cli.Line(r.Task.Why, cli.ErrorWidth),
					cli.Line(r.Task.WaysOn(), cli.ErrorWidth)),
			}
		case r.Task.Asked != nil && r.Task.Why != "":
			return &cli.Coded{
				Code: cli.ExitWaits,
				Err: fmt.Errorf("task %s has not landed, and is shown again: %s. Look at it again: fairlead diff %s", name,
					cli.Line(r.Task.Why, cli.ErrorWidth), name),
			}
		case r.Status == string(workflow.IsFailed) && r.Task.FailedStep != "":
			return &cli.Coded{
				Code: cli.ExitFailed,
				Err: fmt.Errorf("task %s has not landed: %s: %s", name, cli.Plain(r.Task.FailedStep),
					cli.Line(r.Task.Why, cli.ErrorWidth)),
			}
		case r.Task.Status == view.TaskDropped:
			return &cli.Coded{Code: cli.ExitCancelled, Err: fmt.Errorf("task %s was dropped", name)}
		case wentBack(&r) != "":
			return &cli.Coded{
				Code: cli.ExitFailed,
				Err:  fmt.Errorf("task %s has not landed and went back to %s: %s", name, cli.Plain(r.Task.Agent), wentBack(&r)),
			}
		}
		select {
		case <-changed:
		case err := <-ended:
			return err
		}
	}
}

// wentBack is why a task that was to land is with its agent again; empty: it is not. A task that a person has to look at again is no such
// task, also in the moment before it is shown, when only its status says so.
func wentBack(r *view.RunView) string {
	if r.Task.Status == view.TaskLanding || r.Task.Status == view.TaskChecking && r.Task.Why != "" {
		return ""
	}
	for _, s := range r.Steps {
		if s.ID == task.StepLand && s.LastError != "" {
			return cli.Line(s.LastError, cli.ErrorWidth)
		}
	}
	return ""
}
