package sessions

import (
	"testing"

	"github.com/fairlead-dev/fairlead/machine/question"
)

// TestResumeNext takes each combination of what decides whether a session resumes a conversation.
func TestResumeNext(t *testing.T) {
	is := func(state question.State) *question.Question { return &question.Question{State: state} }
	for _, tt := range []struct {
		name      string
		q         *question.Question
		unasked   resumeStep // while the session may be started and has not asked
		afterward resumeStep // when it has asked
	}{
		{"no question", nil, resumeAsks, resumeBeginsNew},
		{"open", is(question.Open), resumeWaits, resumeWaits},
		{"answered", is(question.Answered), resumeTakesAnswer, resumeTakesAnswer},
		{"told", is(question.Told), resumeTakesAnswer, resumeTakesAnswer},
		{"withdrawn", is(question.Withdrawn), resumeBeginsNew, resumeBeginsNew},
	} {
		for _, c := range []struct {
			startable, asked bool
			want             resumeStep
		}{{true, false, tt.unasked}, {true, true, tt.afterward}, {false, false, resumeLeaves}, {false, true, resumeLeaves}} {
			if got := resumeNext(tt.q, c.startable, c.asked); got != c.want {
				t.Errorf("%s, startable %v, asked %v: step %d, want %d", tt.name, c.startable, c.asked, got, c.want)
			}
		}
	}
}
