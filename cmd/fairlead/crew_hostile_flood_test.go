package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/read/view"
)

const (
	floodedMax = 8 << 20 // bytes of the journal and the logs for one answer of a lead, whatever it is
	noticed    = 20      // notices that people are shown
)

// A lead that does not stop: markers without end, one that is too long, JSON that never ends,
// agents without end, reports that say the one and then the other. The daemon answers, what it
// keeps has a limit, and what the lead says at last is heard.
func TestFloodOfMarkers(t *testing.T) {
	t.Parallel()
	longRun(t)
	register := func(name string, seat int) string {
		return fmt.Sprintf(`[AGENT_REGISTERED] {"name":"%s","gridPosition":%d}`, name, seat) + "\n"
	}
	var crowd strings.Builder
	for n := range 1000 {
		crowd.WriteString(register(fmt.Sprintf("crowd%d", n), n%9))
	}
	alternate := `[AGENT_STATUS] {"agents":[]}` + "\n" + `[AGENT_STATUS] {"agents":[{"name":"Lyra","status":"alive","gridPosition":0}]}` +
		"\n"
	for name, flood := range map[string]string{
		"100000 reports":   strings.Repeat(strings.Repeat(`[AGENT_STATUS] {"agents":[]}`+"\n", 100), 1000),
		"100000 broken":    strings.Repeat(strings.Repeat("[AGENT_STATUS] {x}\n", 100), 1000),
		"1000 agents":      crowd.String(),
		"1000 times other": strings.Repeat(alternate, 1000),
		"long marker": `[AGENT_REGISTERED] {"name":"Long","gridPosition":1,"more":"` +
			strings.Repeat(strings.Repeat("m", 1024), 1024) + "\"}\n",
		"no end":     "[AGENT_STATUS] {\"agents\":[\n" + strings.Repeat(strings.Repeat(` "more and more",`+"\n", 100), 1000),
		"within one": strings.Repeat("[AGENT_STATUS] "+strings.Repeat(`{"agents":[ [AGENT_REGISTERED] `, 100), 300) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testsize.Race && name != "1000 times other" && name != "no end" {
				t.Skip("two of them are enough with the race detector")
			}
			flooded(t, register("Lyra", 0)+flood+`{"type":"usage_reported","input_tokens":1,"output_tokens":1}`+"\n"+
				saying(t, "The end of it.", `[AGENT_STATUS] {"agents":[{"name":"Lyra","status":"alive","gridPosition":0}]}`,
					"That was all."))
		})
	}
}

func flooded(t *testing.T, output string) {
	s := newRig(t, speaker(t, silentSoon, output))
	before := s.stateBytes()
	begun := time.Now()
	s.must("crew", "summon")
	for range 3 {
		s.must("ps")
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("four verbs took %s meanwhile", took)
	}
	shown := s.crewUntil("the last report is believed", func(v view.CrewView) bool {
		return v.InProgress == "" && v.Agents[0].Status == "alive"
	})
	changes := map[string]int{}
	for _, ch := range s.presenceChanges() {
		changes[ch.Trigger]++
	}
	grown := s.stateBytes() - before
	t.Logf("%s: the journal and the logs grew by %d bytes, changes %v, %d agents, %d notices", time.Since(begun).Round(time.Millisecond),
		grown, changes, len(shown.Agents), len(shown.Notices))
	if grown > floodedMax {
		t.Errorf("the journal and the logs grew by %d bytes", grown)
	}
	if len(shown.Notices) > noticed {
		t.Errorf("people are shown %d notices", len(shown.Notices))
	}
	if len(shown.Agents) > 8 || visible(shown) > 8 {
		t.Errorf("there are %d agents", len(shown.Agents))
	}
	if slices.ContainsFunc(shown.Agents, func(d view.DocumentView) bool { return d.Name != nil && *d.Name == "Long" }) {
		t.Error("a marker of more than a megabyte was believed")
	}
	s.kill()
	s.up() // what was kept can be read again
	if after := s.crew(); len(after.Agents) != len(shown.Agents) {
		t.Errorf("%d agents became %d with the next daemon", len(shown.Agents), len(after.Agents))
	}
}
