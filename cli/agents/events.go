package agents

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/machine/question"
)

// Follow prints the existing changes, and then new ones until Ctrl-C.
func Follow(ctx context.Context, a *cli.App, client *apiclient.Client, span Span, query apiclient.EventsQuery) error {
	for change, err := range client.Events(ctx, query) {
		if err != nil {
			return err
		}
		if span.over(change) {
			return nil
		}
		if !span.has(change) {
			continue
		}
		if err := printChange(a, change); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Events prints the existing changes, page by page.
func Events(ctx context.Context, a *cli.App, client *apiclient.Client, span Span, query apiclient.JournalQuery) error {
	var last []api.Change // the newest that fit, if only so many are wanted of some
	most := query.Tail
	if !span.empty() {
		query.Tail = 0
	}
	for {
		page, err := client.Journal(ctx, query)
		if err != nil {
			return err
		}
		over := len(page.Changes) == 0 || query.Tail > 0
		for _, change := range page.Changes {
			query.After = change.Seq
			if over = over || span.over(change); span.over(change) || !span.has(change) {
				continue
			}
			if most > 0 && query.Tail == 0 {
				last = append(last[max(0, len(last)-most+1):], change)
				continue
			}
			if err := printChange(a, change); err != nil {
				return err
			}
		}
		if !over {
			continue
		}
		for _, change := range last {
			if err := printChange(a, change); err != nil {
				return err
			}
		}
		return nil
	}
}

func printChange(a *cli.App, ch api.Change) error {
	if a.JSON {
		return a.PrintJSON(ch)
	}
	_, err := fmt.Fprintf(a.Out, "%7d  %s  %-4s %-24s %s -> %s  %s%s\n", ch.Seq, ch.Time.Local().Format("15:04:05.000"),
		ch.Row, ch.Entity, cli.OrDash(ch.From), cli.OrDash(ch.To), ch.Trigger, a.Paint(cli.Dim, by(ch)))
	return err
}

func by(ch api.Change) string {
	text := "  by " + cli.Plain(ch.Actor.ID)
	var data struct {
		Session struct {
			ID      string `json:"id"`
			Outcome string `json:"outcome"`
			Why     string `json:"why"`
		} `json:"session"`
		Control struct {
			Value struct {
				Wish struct {
					Note string `json:"note"`
				} `json:"wish"`
			} `json:"value"`
		} `json:"control"`
		Question struct {
			Question askedOf `json:"question"`
		} `json:"question"`
		Turn struct {
			Agent string `json:"agent"`
			Text  string `json:"text"`
			Body  struct {
				Say  string `json:"say"`
				Warn string `json:"warn"`
			} `json:"body"`
		} `json:"turn"`
	}
	if json.Unmarshal(ch.Data, &data) != nil {
		return text // unreadable data adds nothing; --json prints it unchanged
	}
	if s := data.Session; s.ID != "" {
		text += "  " + s.ID
		if s.Outcome != "" {
			text += " " + s.Outcome + cli.OrNote(s.Why)
		}
	}
	if t := data.Turn; t.Agent != "" {
		text += "  " + cli.Plain(t.Agent)
	}
	text += data.Question.Question.words()
	return text + cli.OrNote(data.Control.Value.Wish.Note) + cli.OrNote(data.Turn.Text) + cli.OrNote(data.Turn.Body.Say) + cli.OrNote(data.Turn.Body.Warn)
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
	text := "  " + cli.Line(q.What, cli.StepWidth)
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
