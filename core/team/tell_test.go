package team

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// S12: what a person writes to the agent of a step during its answer is not lost. The step continues
// with it, and then ends.
func TestStepContinuesWithTexts(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.runs("r", RunSettings{}, "one ada")
	c.stepStarts("r", "one")
	first := c.sit("r", "one")
	for _, text := range []string{"use the v2 client", "and test it"} {
		c.must("ada", PersonWrote{Session: first.ID, Text: text})
	}
	c.does("r", "one", good, control.OK)
	c.steps("r", "one:PENDING")
	c.at = c.at.Add(2 * workflow.AgainLeast)
	c.ofRun("r", TimerFired{})
	second := c.sit("r", "one")
	if words := TellWords(second.FirstTells); second.ID == first.ID ||
		words != "While you worked, you were told:\n\nuse the v2 client\n\nand test it" {
		t.Fatalf("%s begins with %q", second.ID, words)
	}
	if len(c.Agents["ada"].Tells) != 2 {
		t.Errorf("before its process runs it may still be withdrawn: %+v", c.Agents["ada"].Tells)
	}
	c.stepStarts("r", "one")
	c.does("r", "one", good, control.OK)
	c.steps("r", "one:COMPLETED")
	if a := c.Agents["ada"]; len(a.Tells) != 0 || a.Past[len(a.Past)-1].FirstTells != nil {
		t.Errorf("left: %+v", a)
	}
	c.replays()
}

// S13: with several sessions at a time, each removes only the texts that it received.
func TestTellInstances(t *testing.T) {
	c := threeAdas(t, Limits{})
	for _, run := range []string{"T1", "T2"} {
		c.runs(run, ownFolder, "work ada")
		c.stepStarts(run, "work")
	}
	first, second := c.Agents["ada"].Sessions()[0].ID, c.Agents["ada"].Sessions()[1].ID
	c.must("ada", PersonWrote{Session: first, Text: "use v2"})
	if changes := c.must("ada", TellGiven{Session: second, N: 1}); len(changes) != 0 || len(c.Agents["ada"].Tells) != 1 {
		t.Errorf("another session removed the text: %+v", changes)
	}
	if changes := c.must("ada", TellGiven{Session: first, N: 1}); len(changes) != 1 || len(c.Agents["ada"].Tells) != 0 {
		t.Errorf("%+v; left: %+v", changes, c.Agents["ada"].Tells)
	}
	c.replays()
}

// S13: a text for a control session is for the next one. A text that was delivered during the
// answer is not delivered again.
func TestTellControl(t *testing.T) {
	c := newCrew(t, Limits{}, two())
	c.wants("ada", control.WordContinuous)
	s := c.starts("ada")
	c.must("ada", PersonWrote{Session: s, Text: "at once"})
	c.must("ada", PersonWrote{Session: s, Text: "later"})
	c.must("ada", TellGiven{Session: s, N: 1})
	if changes := c.must("ada", TellGiven{Session: s, N: 1}); len(changes) != 0 {
		t.Errorf("twice: %+v", changes)
	}
	c.ends("ada", control.OK)
	if next := c.Agents["ada"].Session; next == nil || len(next.FirstTells) != 1 || next.FirstTells[0].Text != "later" ||
		next.FirstTells[0].By != "test" {
		t.Errorf("the next session is %+v", next)
	}
	c.replays()

	next := c.session("ada")
	refused := func(session, text, want string) {
		t.Helper()
		if _, err := c.try("ada", PersonWrote{Session: session, Text: text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	refused(s, "x", "it is over")
	refused(next, "x", "opened") // it has no process yet
	c.starts("ada")
	refused(next, " ", "no text")
	refused(next, strings.Repeat("x", TellBytesMax+1), "put it into a file")
	for range tellsMax {
		c.must("ada", PersonWrote{Session: next, Text: "x"})
	}
	refused(next, "x", "16 texts wait")
}
