package transitionlog

import (
	"bytes"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

func TestTransitionLine(t *testing.T) {
	var out bytes.Buffer
	for _, tr := range []Entry{
		{
			At: time.Date(2026, 2, 4, 21, 0, 0, 0, time.UTC), AgentID: "pm", From: "ACTIVE", To: "QUEUED", Trigger: "TURN_COMPLETE",
			Channel: "reviews", Machine: "turn", Entity: "turn/reviews", Row: "T7", Actor: change.Actor{Kind: "agent", ID: "pm"}, Seq: 17,
		},
		{
			At: time.Date(2026, 2, 4, 22, 0, 0, 120_999_999, time.FixedZone("", 3600)), AgentID: "coder", From: "resting", To: "run_once",
			Trigger: "desired <run_once> & more", Machine: "control", Entity: "control/coder", Row: "C3", Actor: change.Actor{Kind: "human", ID: "ada"},
			Seq: 1 << 60,
		},
		{Trigger: "a\nb\xff\"c\u2028"}, // agents' text; it must stay one line
	} {
		line := Line(tr)
		if bytes.Count(line, []byte("\n")) != 1 || line[len(line)-1] != '\n' {
			t.Errorf("not one line: %q", line)
		}
		out.Write(line)
	}
	golden.Check(t, "testdata/transitions.jsonl", out.String())
}
