package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	controller "github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/tasks"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/read/view"
)

// demoTask is a task of the demo and its state at the end.
type demoTask struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Agent    string `json:"agent"`
	Status   string `json:"status"`
	Base     string `json:"base"`
	Comments int    `json:"comments"` // that sent it back
	Conflict bool   `json:"conflict"` // sent it back
	Landed   string `json:"landed_commit,omitempty"`
}

// taskDay is what the demo does with its tasks.
type taskDay struct {
	app    cli.App // prints nothing
	client *apiclient.Client
	tasks  []*demoTask
}

// beginTasks gives the demo's tasks and acts on them as a person would, unless a person acts first. It leaves two
// for the person. end ends this and returns the state of each.
func beginTasks(ctx context.Context, a *cli.App) (end func() ([]*demoTask, error), err error) {
	client, err := apiclient.Dial(a.Dir)
	if err != nil {
		return nil, err
	}
	day := taskDay{app: *a, client: client}
	day.app.Out, day.app.Err, day.app.JSON = io.Discard, io.Discard, false
	endDay := meanwhile(ctx, day.live)
	return func() ([]*demoTask, error) {
		defer client.Close()
		if err := endDay(); err != nil {
			return nil, err
		}
		for _, t := range day.tasks {
			r, err := client.Runs.Show(ctx, t.ID)
			if err != nil {
				return nil, err
			}
			t.Status, t.Landed = r.Task.Status, r.Task.LandedCommit
		}
		return day.tasks, nil
	}, nil
}

func (d *taskDay) live(ctx context.Context) error {
	farewell, err := d.give(ctx, "Write a farewell for visitors", "ada")
	if err != nil {
		return err
	}
	byName, err := d.give(ctx, "Greet visitors by name", "bob")
	if err != nil {
		return err
	}
	politely, err := d.give(ctx, "Greet visitors politely", "bob") // changes the same line
	if err != nil {
		return err
	}
	err = d.review(ctx, farewell, byName, politely)
	if errors.As(err, new(*cli.Coded)) || errors.As(err, new(*api.Problem)) { // a person has acted first
		return nil
	}
	return err
}

// review sends the first task back with a comment, merges the second and then the third, which it sends back with a conflict.
func (d *taskDay) review(ctx context.Context, farewell, byName, politely *demoTask) error {
	if err := d.waits(ctx, farewell); err != nil {
		return err
	}
	if err := tasks.Comment(ctx, &d.app, d.client, farewell.ID, "greeting/bye.sh:2", "Say the visitor's name as well."); err != nil {
		return err
	}
	if err := tasks.Request(ctx, &d.app, d.client, farewell.ID, ""); err != nil {
		return err
	}
	farewell.Comments++
	for _, t := range []*demoTask{byName, politely} {
		if err := d.waits(ctx, t); err != nil {
			return err
		}
	}
	if err := tasks.Merge(ctx, &d.app, d.client, byName.ID, api.MergeBody{}, true); err != nil {
		return err
	}
	err := tasks.Merge(ctx, &d.app, d.client, politely.ID, api.MergeBody{}, true)
	if said := (*cli.Coded)(nil); errors.As(err, &said) && said.Code == cli.ExitWaits { // a conflict
		politely.Conflict = true
		return tasks.Request(ctx, &d.app, d.client, politely.ID, "")
	}
	return err
}

func (d *taskDay) give(ctx context.Context, text, agent string) (*demoTask, error) {
	r, err := d.client.Runs.Start(ctx, view.RunFlags{Task: &view.TaskFlags{Text: text, Agent: agent}})
	if err != nil {
		return nil, cli.Faulty(err)
	}
	t := &demoTask{ID: r.ID, Title: r.Task.Title, Agent: r.Task.Agent, Base: r.Task.Base}
	d.tasks = append(d.tasks, t)
	return t, nil
}

// waits returns when a task waits for a person, or is over because a person was faster.
func (d *taskDay) waits(ctx context.Context, t *demoTask) error {
	return poll(ctx, func() (bool, error) {
		r, err := d.client.Runs.Show(ctx, t.ID)
		if err != nil {
			return false, err
		}
		switch r.Task.Status {
		case view.TaskDone, view.TaskDropped, view.TaskFailed:
			return false, &cli.Coded{Code: cli.ExitRefused, Err: fmt.Errorf("task %s is over", t.ID)}
		}
		return r.Task.Status == view.TaskNeedsYou, nil
	})
}

// words describes a task and its state.
func (t *demoTask) words() string {
	text := fmt.Sprintf("%s %q by %s: ", t.ID, t.Title, t.Agent)
	if t.Comments > 0 {
		text += "sent back with " + cli.HowMany(t.Comments, "comment", "comments") + ", "
	}
	if t.Conflict {
		text += "sent back with a conflict, "
	}
	switch {
	case t.Landed != "":
		return text + fmt.Sprintf("landed on %s as %.10s", t.Base, t.Landed)
	case t.Status == view.TaskNeedsYou:
		return text + "waited for you to look and merge"
	default:
		return text + "was " + tasks.Words(t.Status)
	}
}

// How long the demo's crew is awake before it sleeps, and how long it then sleeps: long enough for a
// person to see it, and to press the button first.
const (
	demoAwake  = 20 * time.Second
	demoAsleep = 8 * time.Second
	demoLook   = 100 * time.Millisecond // between two looks
	demoHaste  = 8                      // the factor by which a headless demo is faster
)

// liveDay sends the demo's crew, which was summoned, to sleep once and wakes it again, unless a person acts first.
func liveDay(ctx context.Context, e *controller.App, haste time.Duration) error {
	by := change.Actor{Kind: "human", ID: "demo"}
	if err := crewIs(ctx, e, crew.NoButton); err != nil {
		return err
	}
	if err := cli.Pause(ctx, demoAwake/haste); err != nil {
		return err
	}
	if _, err := e.Crew.Sleep(ctx, by); err != nil {
		return unlessRefused(err)
	}
	if err := crewIs(ctx, e, crew.WakeButton); err != nil {
		return err
	}
	if err := cli.Pause(ctx, demoAsleep/haste); err != nil {
		return err
	}
	view, err := e.Crew.Crew(ctx, false)
	if err != nil || view.Button != string(crew.WakeButton) {
		return err // a person was faster
	}
	_, err = e.Crew.Wake(ctx, by, nil)
	return unlessRefused(err)
}

// crewIs waits until the crew's button is this one.
func crewIs(ctx context.Context, e *controller.App, button crew.Button) error {
	return poll(ctx, func() (bool, error) {
		view, err := e.Crew.Crew(ctx, false)
		return view.Button == string(button), err
	})
}

// poll looks again and again until it is done.
func poll(ctx context.Context, done func() (bool, error)) error {
	for {
		if is, err := done(); is || err != nil {
			return err
		}
		if err := cli.Pause(ctx, demoLook); err != nil {
			return err
		}
	}
}

// meanwhile does something in the background. end ends it.
func meanwhile(ctx context.Context, do func(context.Context) error) (end func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	return func() error {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}

// unlessRefused ignores a refusal, which here means that a person has acted first.
func unlessRefused(err error) error {
	if _, ok := errors.AsType[*table.Refusal](err); ok {
		return nil
	}
	return err
}

// demoTeam is the result of the demo's crew.
type demoTeam struct {
	Summoned int `json:"summoned"`      // members that have registered
	Sessions int `json:"lead_sessions"` // of the lead: one more for each sleep
}

func teamReport(ctx context.Context, e *controller.App) (demoTeam, error) {
	var team demoTeam
	view, err := e.Crew.Crew(ctx, false)
	if err != nil {
		return team, err
	}
	for _, doc := range view.Agents {
		if doc.Name != nil {
			team.Summoned++
		}
	}
	why, err := e.Status.Why(ctx, view.Lead.Agent)
	for _, s := range why.Sessions {
		if s.Kind == "lead" {
			team.Sessions++
		}
	}
	return team, err
}
