package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Events prints the changes that a query has, page by page. To follow goes on with new ones until the end of the query's
// time, or Ctrl-C.
func Events(ctx context.Context, a *cli.App, client *apiclient.Client, query apiclient.JournalQuery, follow bool) error {
	for {
		page, err := client.Journal(ctx, query)
		if err != nil {
			return err
		}
		for _, change := range page.Changes {
			if err := printChange(a, change); err != nil {
				return err
			}
		}
		if page.Next > 0 {
			query.After = page.Next
			continue
		}
		if !follow {
			return nil
		}
		return Follow(ctx, a, client, int64(page.Head), query) //nolint:gosec // no journal is that long
	}
}

// Follow prints the new changes that a query has, until the end of its time, or Ctrl-C.
func Follow(ctx context.Context, a *cli.App, client *apiclient.Client, after int64, query apiclient.JournalQuery) error {
	for change, err := range client.Events(ctx, apiclient.EventsQuery{After: after, Entity: query.Entity}) {
		switch {
		case err != nil:
			return err
		case !query.Until.IsZero() && change.Time.After(query.Until):
			return nil
		case !change.About(query.Agent):
			continue
		}
		if err := printChange(a, change); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func printChange(a *cli.App, ch api.Change) error {
	if a.JSON {
		return a.PrintJSON(ch)
	}
	rule := ""
	if a.Verbose {
		rule = a.Paint(cli.Dim,
			fmt.Sprintf("  [%s %s %s -> %s %s by %s]", ch.Row, ch.Entity, cli.OrDash(ch.From), cli.OrDash(ch.To), ch.Trigger,
				cli.Plain(ch.Actor.ID)))
	}
	_, err := fmt.Fprintf(a.Out, "%7d  %s  %s%s%s\n", ch.Seq, ch.Time.Local().Format("Jan _2 15:04:05"), said(ch),
		a.Paint(cli.Dim, with(ch)), rule)
	return err
}

// said is a change as one sentence: its subject and what it did.
func said(ch api.Change) string {
	var data struct {
		Session struct {
			ID string `json:"id"`
		} `json:"session"`
		Used struct {
			Session  string             `json:"session"`
			Provider *view.ProviderView `json:"provider"`
		} `json:"used"`
	}
	_ = json.Unmarshal(ch.Data, &data) // unreadable data names no session
	words := cli.Plain(view.ChangeWords(ch.Machine, ch.Trigger, ch.From, ch.To, data.Session.ID))
	if p := data.Used.Provider; p != nil {
		words = "session " + cli.Plain(data.Used.Session) + ": " + cli.Line(p.Words(), 120)
	}
	if ch.Entity == "team/team" {
		return words
	}
	_, name, _ := strings.Cut(ch.Entity, "/")
	return cli.Plain(name) + ": " + words
}

// with is the actor of a change, if it is not Fairlead, and the words that it carries.
func with(ch api.Change) string {
	text := ""
	switch ch.Actor.Kind {
	case "human":
		text = ", by " + cli.Plain(cmp.Or(ch.Actor.ID, "a person"))
	case "agent":
		text = ", by agent " + cli.Plain(ch.Actor.ID)
	}
	var data struct {
		Session struct {
			Outcome string `json:"outcome"`
			Why     string `json:"why"`
		} `json:"session"`
		Control struct {
			Value struct {
				Wish struct {
					Note string `json:"note"`
				} `json:"desired"`
			} `json:"value"`
		} `json:"control"`
		Question struct {
			Question askedOf `json:"question"`
		} `json:"question"`
		Run struct {
			Step struct {
				Value struct {
					Answer workflow.Answer `json:"answer"`
					Fault  string          `json:"bad_input"`
				} `json:"value"`
			} `json:"step"`
		} `json:"run"`
		Note struct {
			Warned team.Warned `json:"warned"`
		} `json:"note"`
		Turn struct {
			Text string `json:"text"`
			Body struct {
				Say  string `json:"say"`
				Warn string `json:"warn"`
			} `json:"body"`
		} `json:"turn"`
	}
	if json.Unmarshal(ch.Data, &data) != nil {
		return text // unreadable data adds nothing; --json prints it unchanged
	}
	if s := data.Session; s.Outcome != "" {
		if s.Outcome != ch.Trigger {
			text = ": " + s.Outcome + text
		}
		text += cli.OrNote(s.Why)
	}
	text += data.Question.Question.words()
	switch value := data.Run.Step.Value; workflow.Event(ch.Trigger) {
	case workflow.Answered, workflow.AnsweredFirst, workflow.Rejected:
		text = ", " + cli.Line(view.AnswerWords(value.Answer), cli.ErrorWidth)
	case workflow.AnswerFaulty:
		text += cli.OrNote(value.Fault)
	}
	return text + cli.OrNote(data.Control.Value.Wish.Note) + cli.OrNote(data.Turn.Text) + cli.OrNote(data.Turn.Body.Say) +
		cli.OrNote(data.Turn.Body.Warn) + cli.OrNote(data.Note.Warned.Limit)
}

// askedOf is the part of a question's changes that is printed.
type askedOf struct {
	What  string `json:"what"`
	State string `json:"state"`
	Allow bool   `json:"allow"`
	By    string `json:"by"`
	Rule  string `json:"rule"`
	Text  string `json:"text"`
}

// words says what was asked and, if it was answered, how and by which rule.
func (q askedOf) words() string {
	if q.What == "" {
		return ""
	}
	text := ": " + cli.Line(q.What, cli.StepWidth)
	if q.By == "" {
		return text
	}
	answer := "no"
	if q.Allow {
		answer = "yes"
	}
	if q.State == string(question.Withdrawn) {
		answer = "withdrawn"
	}
	for _, more := range []string{q.Rule, q.Text} {
		if more != "" {
			answer += ", " + more
		}
	}
	return text + cli.OrNote(answer)
}

// linesFirst is how many lines are printed without --verbose.
const linesFirst = 12

// PrintDigest prints what happened since a person looked last.
func PrintDigest(a *cli.App, d view.Digest) error {
	if len(d.Lines) == 0 {
		_, err := fmt.Fprintf(a.Out, "nothing happened in the last %s\n", cli.Ago(d.Until.Sub(d.Since)))
		return err
	}
	fmt.Fprintln(a.Out, a.Paint(cli.Bold, "in the last "+cli.Ago(d.Until.Sub(d.Since)))+digestSums(d))
	if n := len(d.Lines) - linesFirst; n > 0 && !a.Verbose {
		d.Lines, d.More = d.Lines[:linesFirst], d.More+n
	}
	for _, l := range d.Lines {
		fmt.Fprintf(a.Out, "  %s  %-8s  %s\n", l.At.Local().Format("15:04"), cli.Plain(l.Kind), cli.Line(l.Text, cli.ErrorWidth))
	}
	if d.More > 0 {
		fmt.Fprintf(a.Out, "  and %d more; `fairlead events --since %s` lists all\n", d.More, d.Since.UTC().Format(time.RFC3339))
	}
	if d.Cut {
		fmt.Fprintln(a.Err,
			"fairlead: the journal has more changes since then than a digest reads; answers, sessions and cost are those of the newest 100,000")
	}
	return nil
}

func digestSums(d view.Digest) string {
	var parts []string
	if d.CostUSD > 0 {
		parts = append(parts, "it cost "+cli.Money(d.CostUSD))
	} else if d.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens were used", d.Tokens))
	}
	if d.Landed > 0 {
		parts = append(parts,
			cli.HowMany(d.Landed, "task landed", "tasks landed")+" with "+cli.HowMany(d.Files, "changed file", "changed files"))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}
