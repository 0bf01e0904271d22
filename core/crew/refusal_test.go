package crew

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// TestRefusalsNameWhatIsAllowed: a refused summon names wake, and a refused wake names summon, in words (SPEC, X4). What
// the refusal lists as allowed is accepted in the same state.
func TestRefusalsNameWhatIsAllowed(t *testing.T) {
	t.Parallel()
	requests := map[string]Input{"summon": SummonAsked{}, "wake": WakeAsked{}}
	steps := []struct {
		after  string
		in     Input
		refuse map[string]string // the request that is refused, and what its words name
	}{
		{"nothing", LeadConfigured{Agent: "julian", Size: 1}, map[string]string{"wake": "summon"}},
		{"a summon, under way", SummonAsked{}, map[string]string{"summon": "wake", "wake": "wake"}},
		{"the lead ended in it", LeadEnded{Why: "no"}, map[string]string{"summon": "wake", "wake": "registered"}},
		{"a session of the lead", LeadBegan{Session: "s1", UUID: "u1"}, map[string]string{"summon": "wake"}},
		{"all are alive", Registered{Session: "s1", Identity: Identity{Name: "Lyra"}}, map[string]string{"summon": "wake"}},
		{"all sleep", LeadEnded{Session: "s1"}, map[string]string{"summon": "wake"}},
		{"a wake, under way", WakeAsked{}, map[string]string{"summon": "wake", "wake": "wake"}},
	}
	c, now := &Crew{}, Now{At: machinetest.Noon}
	for _, s := range steps {
		now.At = now.At.Add(time.Second)
		changes, err := c.Decide(s.in, now)
		if err != nil {
			t.Fatalf("%s: %v", s.after, err)
		}
		for _, ch := range changes {
			c.Apply(ch)
		}
		for request, name := range s.refuse {
			_, err := c.Decide(requests[request], now)
			no, is := errors.AsType[*table.Refusal](err)
			if !is || !strings.Contains(no.Reason, name) {
				t.Errorf("after %s, %s: %v; the words name no %s", s.after, request, err, name)
				continue
			}
			for _, other := range no.Takes {
				if _, err := c.Decide(requests[other], now); err != nil ||
					!slices.Contains(strings.FieldsFunc(no.Reason, func(r rune) bool { return r < 'a' || r > 'z' }), other) {
					t.Errorf("after %s, %s: %q takes %s, but: %v", s.after, request, no.Reason, other, err)
				}
			}
		}
	}
}
