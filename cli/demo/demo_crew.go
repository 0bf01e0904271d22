package demo

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/controller"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/crew"
)

// How long the demo's crew is awake before it sleeps, and how long it then sleeps: long enough for a
// person to see it, and to press the button first.
const (
	demoAwake  = 20 * time.Second
	demoAsleep = 8 * time.Second
	demoLook   = 250 * time.Millisecond // between two looks at the crew
	demoHaste  = 8                      // the factor by which a headless demo is faster
)

// demoDay sends the demo's crew, which was summoned, to sleep once and wakes it again, unless a
// person acts first. It returns a function that ends this and waits for it.
func demoDay(ctx context.Context, e *controller.Supervisor, headless bool) (end func() error) {
	ctx, cancel := context.WithCancel(ctx)
	lived := make(chan error, 1)
	haste := time.Duration(1)
	if headless {
		haste = demoHaste
	}
	go func() { lived <- liveDay(ctx, e, haste) }()
	return func() error {
		cancel()
		err := <-lived
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
}

func liveDay(ctx context.Context, e *controller.Supervisor, haste time.Duration) error {
	by := seam.Actor{Kind: "human", ID: "demo"}
	if err := crewIs(ctx, e, crew.NoButton); err != nil {
		return err
	}
	if err := cli.Pause(ctx, demoAwake/haste); err != nil {
		return err
	}
	if _, err := e.Sleep(ctx, by); err != nil {
		return unlessRefused(err)
	}
	if err := crewIs(ctx, e, crew.WakeButton); err != nil {
		return err
	}
	if err := cli.Pause(ctx, demoAsleep/haste); err != nil {
		return err
	}
	view, err := e.Crew(ctx, false)
	if err != nil || view.Button != string(crew.WakeButton) {
		return err // a person was faster
	}
	_, err = e.Wake(ctx, by, nil)
	return unlessRefused(err)
}

// crewIs waits until the crew's button is this one.
func crewIs(ctx context.Context, e *controller.Supervisor, button crew.Button) error {
	for {
		view, err := e.Crew(ctx, false)
		if err != nil || view.Button == string(button) {
			return err
		}
		if err := cli.Pause(ctx, demoLook); err != nil {
			return err
		}
	}
}

// unlessRefused ignores a refusal, which here means that a person has acted first.
func unlessRefused(err error) error {
	var refusal *machine.Refusal
	if errors.As(err, &refusal) {
		return nil
	}
	return err
}

// demoTeam is the result of the demo's crew.
type demoTeam struct {
	Summoned int `json:"summoned"`      // members that have come
	Sessions int `json:"lead_sessions"` // of the lead: one more for each sleep
}

func teamReport(ctx context.Context, e *controller.Supervisor) (demoTeam, error) {
	var team demoTeam
	view, err := e.Crew(ctx, false)
	if err != nil {
		return team, err
	}
	for _, doc := range view.Agents {
		if doc.Name != nil {
			team.Summoned++
		}
	}
	why, err := e.Why(ctx, view.Lead.Agent)
	for _, s := range why.Sessions {
		if s.Kind == "lead" {
			team.Sessions++
		}
	}
	return team, err
}
