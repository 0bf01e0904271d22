package team

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// An event that follows and is refused holds back nothing that follows for another run or agent, and is not asked for again
// in the same batch. Without a refusal each is decided once.
func TestRefusedFollowUp(t *testing.T) {
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprintf("refused=%v", refused), func(t *testing.T) {
			all := New(identity)
			at := machinetest.Noon
			var touched Touched
			tell := func(ev Event) {
				at = at.Add(time.Second)
				ev.At = at
				changes, err := all.Decide(ev)
				if err != nil {
					t.Fatal(err)
				}
				for _, ch := range changes {
					touched.Note(ch)
					all.Apply(ch)
				}
			}
			tell(Event{What: Configured{Agents: map[string]Settings{"ada": quiet, "bob": quiet}}})
			tell(Event{What: HoldAsked{}})
			for _, step := range []workflow.Step{
				{ID: "ada", Agent: "ada", Prompt: "x"},
				{ID: "bob", Agent: "bob", Prompt: "x"},
				{ID: "pool1", Command: []string{"true"}},
				{ID: "pool2", Command: []string{"true"}},
			} {
				id := string(step.ID)
				tell(Event{
					Run: id,
					What: workflow.RunAsked{
						ID: workflow.RunID(id), Plan: workflow.Plan{Name: "n", Steps: []workflow.Step{step}},
						Options: often, RepoDir: "/", ReportsDir: "/", ManualInputsDir: "/",
					},
				})
			}
			tell(Event{What: ReleaseAsked{}})
			var runs []string
			for range 100 {
				ev, some := all.Next(&touched, at)
				if !some {
					break
				}
				if _, is := ev.What.(beginStep); is {
					runs = append(runs, ev.Run)
				}
				if refused {
					touched.Refused()
				} else {
					tell(ev)
				}
			}
			if want := []string{"ada", "bob", "pool1", "pool2"}; !slices.Equal(runs, want) {
				t.Errorf("steps of %v are due, want %v", runs, want)
			}
		})
	}
}
