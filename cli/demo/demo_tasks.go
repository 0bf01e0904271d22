package demo

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/tasks"
	"github.com/fairlead-dev/fairlead/view"
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
	during, cancel := context.WithCancel(ctx)
	lived := make(chan error, 1)
	go func() { lived <- day.live(during) }()
	return func() ([]*demoTask, error) {
		defer client.Close()
		cancel()
		if err := <-lived; err != nil && !errors.Is(err, context.Canceled) {
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
	for _, do := range []func() error{
		func() error { return d.waits(ctx, farewell) },
		func() error {
			if err := tasks.Comment(ctx, &d.app, d.client, farewell.ID, "greeting/bye.sh:2", "Say the visitor's name as well."); err != nil {
				return err
			}
			return tasks.Request(ctx, &d.app, d.client, farewell.ID, "")
		},
		func() error { farewell.Comments++; return d.waits(ctx, byName) },
		func() error { return d.waits(ctx, politely) },
		func() error { return tasks.Merge(ctx, &d.app, d.client, byName.ID, true) },
		func() error {
			err := tasks.Merge(ctx, &d.app, d.client, politely.ID, true)
			if said := (*cli.Coded)(nil); errors.As(err, &said) && said.Code == cli.ExitFailed { // it went back to its agent
				politely.Conflict = true
				return nil
			}
			return err
		},
	} {
		switch err := do(); {
		case errors.As(err, new(*cli.Coded)), errors.As(err, new(*api.Problem)): // a person has acted first
			return nil
		case err != nil:
			return err
		}
	}
	return nil
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
	for {
		r, err := d.client.Runs.Show(ctx, t.ID)
		if err != nil {
			return err
		}
		switch r.Task.Status {
		case view.TaskNeedsYou:
			return nil
		case view.TaskDone, view.TaskDropped, view.TaskFailed:
			return &cli.Coded{Code: cli.ExitRefused, Err: fmt.Errorf("task %s is over", t.ID)}
		}
		if err := cli.Pause(ctx, demoLook); err != nil {
			return err
		}
	}
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
