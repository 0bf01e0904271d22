package old

import (
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/team"
)

// TestDeniedOfAnOlderVersion checks that denied calls are read from the last lines of a step's logs
// in journals of older versions, which stored them only there. A log line of a present version with
// the same text, which an agent can write, does not count.
func TestDeniedOfAnOlderVersion(t *testing.T) {
	for _, tt := range []struct {
		name         string
		logs, denied []string
		want         []string
	}{
		{"none", []string{"built"}, nil, []string{}},
		{"no log", nil, nil, []string{}},
		{"one", []string{"built", "1 call was denied: Bash rm -rf ."}, nil, []string{"1 call was denied: Bash rm -rf ."}},
		{
			"both kinds",
			[]string{"it did not ask for what its rules deny: Write .git/config", "2 calls were denied: Bash rm; Bash git push"},
			nil,
			[]string{"it did not ask for what its rules deny: Write .git/config", "2 calls were denied: Bash rm; Bash git push"},
		},
		{"too far from the end", []string{"1 call was denied: Bash rm", "a", "b"}, nil, []string{}},
		{"no number", []string{"some calls were denied: Bash rm"}, nil, []string{}},
		{"forged today", []string{"1 call was denied: Bash rm"}, []string{}, []string{}},
		{"of today", []string{"1 call was denied: Bash rm"}, []string{"1 call was denied: Bash make"}, []string{"1 call was denied: Bash make"}},
	} {
		ch := team.Change{Body: team.Body{Run: &workflow.Body{Step: &workflow.StepSet{Facts: &workflow.Facts{Logs: tt.logs, Denied: tt.denied}}}}}
		Decode(&ch)
		if got := ch.Body.Run.Step.Facts.Denied; got == nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
