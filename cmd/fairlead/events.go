package main

import (
	"context"
	"encoding/json"
	"fmt"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/machine/question"
)

func (a *app) eventsVerb() *cobra.Command {
	var after uint64
	var tail int
	var entity string
	var follow bool
	var agent string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what happened: each change in the journal, one per line",
		Long: `A line has the sequence number, the time, the rule, the entity, its state before and after, the
event, and the actor. --follow continues with new changes.`,
		Example: `  fairlead events --tail 20
  fairlead events --agent coder --follow
  fairlead events --json --after 1200`,
		Args: args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *reader, _ []string) error {
			if agent != "" {
				entity = "control/" + agent
			}
			if follow {
				if client.offline != nil {
					return client.offline
				}
				return a.follow(ctx, client.Client, apiclient.EventsQuery{After: int64(after), Tail: tail, Entity: entity}) //nolint:gosec // no journal is that long
			}
			return a.events(ctx, client.Client, apiclient.JournalQuery{After: after, Tail: tail, Entity: entity})
		}),
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "only what came after this sequence number")
	cmd.Flags().IntVar(&tail, "tail", 0, "begin with the newest so many")
	cmd.Flags().StringVar(&entity, "entity", "", "only this one, as in session/coder or team/team")
	cmd.Flags().StringVar(&agent, "agent", "", "only the control of this agent: short for --entity control/AGENT")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with what comes")
	return cmd
}

// follow shows what there is, and then what comes, until Ctrl-C.
func (a *app) follow(ctx context.Context, client *apiclient.Client, query apiclient.EventsQuery) error {
	for change, err := range client.Events(ctx, query) {
		if err != nil {
			return err
		}
		if err := a.printChange(change); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// events shows what there is, page by page.
func (a *app) events(ctx context.Context, client *apiclient.Client, query apiclient.JournalQuery) error {
	for {
		page, err := client.Journal(ctx, query)
		if err != nil {
			return err
		}
		for _, change := range page.Changes {
			if err := a.printChange(change); err != nil {
				return err
			}
			query.After = change.Seq
		}
		if len(page.Changes) == 0 || query.Tail > 0 {
			return nil
		}
	}
}

func (a *app) printChange(ch api.Change) error {
	if a.json {
		return a.printJSON(ch)
	}
	_, err := fmt.Fprintf(a.out, "%7d  %s  %-4s %-24s %s -> %s  %s%s\n", ch.Seq, ch.Time.Local().Format("15:04:05.000"),
		ch.Row, ch.Entity, orDash(ch.From), orDash(ch.To), ch.Trigger, a.paint(dim, by(ch)))
	return err
}

func by(ch api.Change) string {
	text := "  by " + plain(ch.Actor.ID)
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
		return text // what cannot be read adds nothing; --json shows it as it is
	}
	if s := data.Session; s.ID != "" {
		text += "  " + s.ID
		if s.Outcome != "" {
			text += " " + s.Outcome + orNote(s.Why)
		}
	}
	if t := data.Turn; t.Agent != "" {
		text += "  " + plain(t.Agent)
	}
	text += data.Question.Question.words()
	return text + orNote(data.Control.Value.Wish.Note) + orNote(data.Turn.Text) + orNote(data.Turn.Body.Say) + orNote(data.Turn.Body.Warn)
}

// askedOf is what the journal says of a question.
type askedOf struct {
	What  string `json:"what"`
	State string `json:"state"`
	Allow bool   `json:"allow"`
	By    string `json:"by"`
	Rule  string `json:"rule"`
	Text  string `json:"text"`
}

// words says what was asked, and how it was answered and by which rule, if it was.
func (q askedOf) words() string {
	if q.What == "" {
		return ""
	}
	text := "  " + line(q.What, stepWidth)
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
	return text + orNote(answer)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return plain(s)
}
