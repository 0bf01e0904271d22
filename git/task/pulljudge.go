package task

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"

	"github.com/fairlead-dev/fairlead/git/forge"
)

const (
	ownMark      = "<!-- fairlead:" // begins what marks a comment of Fairlead; the forges do not show it
	feedbackMax  = 60 << 10
	bodyStat     = 30 // lines of git's stat in a pull request
	titleMax     = 200
	sentShown    = 50 // comments that go back at once; the others follow
	failuresShow = 10 // logs that are read at once
)

func replyMark(t Task, comment string) string {
	return fmt.Sprintf("%sreply %s %s -->", ownMark, t.ID, comment)
}

// create finds the pull request of the branch, or creates it. The branch is the task's own, so a pull request of it
// is one that was created before the process ended.
func (p *pulling) create(ctx context.Context) error {
	found, err := p.forge.Find(ctx, p.Branch, p.Base)
	if err != nil {
		return err
	}
	if found == nil {
		body, err := p.body(ctx)
		if err != nil {
			return err
		}
		made, err := p.forge.Create(ctx, forge.Draft{Branch: p.Branch, Base: p.Base, Title: clip.Text(p.Title(), titleMax), Body: body})
		if err != nil {
			return err
		}
		found = &made
	}
	p.Number, p.URL, p.Quiet = found.Number, found.URL, 0
	if _, err := fmt.Fprintf(p.out, "pull request %s\n", p.URL); err != nil {
		return err
	}
	return p.save()
}

// body is the text of the pull request: the task's, and what speaks for the change.
func (p *pulling) body(ctx context.Context) (string, error) {
	var b strings.Builder
	_, rest, _ := strings.Cut(strings.TrimSpace(p.Text), "\n")
	if rest = strings.TrimSpace(rest); rest != "" {
		b.WriteString(rest + "\n\n")
	}
	if p.Issue != "" {
		b.WriteString("Closes " + p.Issue + "\n\n")
	}
	tree, err := p.ask(ctx, nil, "rev-parse", "--verify", p.Pushed+"^{tree}")
	if err != nil {
		return "", err
	}
	if len(p.Task.Checks) > 0 && p.passed(tree) {
		b.WriteString("Checks that passed:\n")
		for _, c := range p.Task.Checks {
			b.WriteString("\n    " + strings.ReplaceAll(c, "\n", "\n    "))
		}
		b.WriteString("\n\n")
	}
	stat, err := p.ask(ctx, nil, "diff", "--stat=80", "--no-ext-diff", "--no-textconv", remoteBaseRef(p.Task)+"..."+p.Pushed)
	if err != nil {
		return "", err
	}
	lines := strings.Split(stat, "\n")
	if more := len(lines) - bodyStat; more > 0 {
		lines = append(append(lines[:bodyStat-1:bodyStat-1], fmt.Sprintf(" and %d more files", more)), lines[len(lines)-1])
	}
	b.WriteString("    " + strings.Join(lines, "\n    ") + "\n\n")
	b.WriteString("Task: " + p.ID + "\n\n" + ownMark + "task " + p.ID + " -->\n")
	return b.String(), nil
}

// reply answers the comments that the agent has worked on, each once: the note on disk comes before the answer, and
// after a crash in between the thread says whether the answer is there.
func (p *pulling) reply(ctx context.Context, r forge.Request) error {
	for i := range p.Sent {
		s := &p.Sent[i]
		if s.State != handled && s.State != replying {
			continue
		}
		mark := replyMark(p.Task, s.ID)
		if s.State == replying && slices.ContainsFunc(r.Comments, func(c forge.Comment) bool { return strings.Contains(c.Text, mark) }) {
			s.State = replied
			continue
		}
		s.State = replying
		if err := p.save(); err != nil {
			return err
		}
		text := fmt.Sprintf("Worked on; the newest commit is %.10s.", p.Pushed)
		if err := p.forge.Reply(ctx, p.Number, forge.Comment{ID: s.ID, Thread: s.Thread}, text+"\n\n"+mark); err != nil {
			return err
		}
		s.State = replied
		if err := p.save(); err != nil {
			return err
		}
	}
	return nil
}

// judge decides from a look whether the agent has to do something.
func (p *pulling) judge(ctx context.Context, r forge.Request) (Look, error) {
	var failed []forge.Check
	pending := 0
	seen := []string{r.Head, string(r.State), fmt.Sprint(r.Conflict)}
	for _, c := range r.Checks {
		seen = append(seen, c.Name+"="+string(c.State))
		switch {
		case c.State == forge.CheckFailed:
			failed = append(failed, c)
		case c.State == forge.CheckPending:
			pending++
		}
	}
	for _, c := range r.Comments {
		seen = append(seen, c.ID)
	}
	if now := digest(strings.Join(seen, "\x00")); now != p.Seen {
		p.Seen, p.Quiet = now, 0
	} else {
		p.Quiet++
	}
	current := r.Head == p.Pushed
	switch {
	case len(failed) == 0:
		p.FailedAt = time.Time{}
	case p.FailedAt.IsZero():
		p.FailedAt = p.now
	}
	var why []string
	var text strings.Builder
	comments := p.fresh(r.Comments)
	if len(comments) > 0 {
		why = append(why, counted(len(comments), "comment"))
		writeComments(&text, comments)
	}
	if current && len(failed) > 0 && p.Pull.Checks != p.Pushed && (pending == 0 || p.now.Sub(p.FailedAt) >= checksWait) {
		why = append(why, counted(len(failed), "failed check"))
		if err := p.writeFailed(ctx, &text, failed); err != nil {
			return Look{}, err
		}
		p.Pull.Checks = p.Pushed
	}
	if current && r.Conflict && p.Conflict != p.Pushed {
		if err := p.fetch(ctx, p.Base, remoteBaseRef(p.Task)); err != nil {
			return Look{}, err
		}
		words, err := p.bringOver(ctx, p.Base, remoteBaseRef(p.Task))
		if err != nil {
			return Look{}, err
		}
		why = append(why, "a conflict with branch "+p.Base)
		fmt.Fprintf(&text, "\nIt conflicts with branch %s. %s.\n", p.Base, words)
		p.Conflict = p.Pushed
	}
	if len(why) > 0 {
		return p.sendBack(comments, strings.Join(why, ", ")+" on "+p.URL+"\n"+text.String())
	}
	said := fmt.Sprintf("pull request %s: %s, %d passed, %d pending, %d failed", p.URL, counted(len(r.Checks), "check"),
		len(r.Checks)-pending-len(failed), pending, len(failed))
	return Look{Outcome: Waits, Again: p.interval(), Said: []string{said}}, nil
}

// fresh are the comments that the agent has not seen: of people who may write to the repository, and not of Fairlead.
func (p *pulling) fresh(all []forge.Comment) []forge.Comment {
	var list []forge.Comment
	for _, c := range all {
		known := slices.ContainsFunc(p.Sent, func(s Sent) bool { return s.ID == c.ID })
		if c.Trusted && !known && c.Text != "" && !strings.Contains(c.Text, ownMark) && len(list) < sentShown &&
			len(p.Sent)+len(list) < sentMax {
			list = append(list, c)
		}
	}
	return list
}

func writeComments(b *strings.Builder, list []forge.Comment) {
	for _, c := range list {
		where := ""
		if c.File != "" {
			where = " on " + c.File
			if c.Line > 0 {
				where += fmt.Sprintf(":%d", c.Line)
			}
		}
		fmt.Fprintf(b, "\nComment of %s%s:\n%s\n", c.Author, where, c.Text)
	}
}

func (p *pulling) writeFailed(ctx context.Context, b *strings.Builder, failed []forge.Check) error {
	for i, c := range failed {
		fmt.Fprintf(b, "\nCheck %s failed. %s\n", c.Name, c.URL)
		if i >= failuresShow {
			continue
		}
		log, err := p.forge.Log(ctx, c)
		if fault, ok := errors.AsType[*forge.Fault](err); ok && !fault.Passes() {
			fmt.Fprintf(b, "(its log cannot be read: %s)\n", fault.Text)
			continue
		} else if err != nil {
			return err
		}
		if log != "" {
			fmt.Fprintf(b, "The end of its log:\n%s\n", log)
		}
	}
	return nil
}

// sendBack keeps what the agent is to be told, and which comments that were.
func (p *pulling) sendBack(comments []forge.Comment, text string) (Look, error) {
	if len(text) > feedbackMax {
		text = clip.To(text, feedbackMax) + "\n(there is more on the pull request)\n"
	}
	if err := file.Replace(filepath.Join(p.Run, FeedbackName), []byte(text), 0o600); err != nil {
		return Look{}, err
	}
	for _, c := range comments {
		p.Sent = append(p.Sent, Sent{ID: c.ID, Thread: c.Thread, State: sentBack})
	}
	why, _, _ := strings.Cut(text, "\n")
	p.Back, p.Quiet = &Back{Round: p.round, Why: why}, 0
	return Look{Outcome: Returns, Why: why, Said: []string{why}}, p.save()
}

func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
