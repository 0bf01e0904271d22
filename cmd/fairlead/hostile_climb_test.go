package main

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/read/view"
)

// climb asks the daemon for everything that an agent could want for itself: as a child of the
// agent, and as what is left of a process that forked twice, began a session of its own and
// threw its environment away.
const climb = `ask() { env -i XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" "$bin" "$@" --dir .. >> words 2>&1; echo "$how $*: $?" >> codes; }
all() { ask unhold; ask down; ask down --now; ask start ada; ask stop ada; ask cleanup ada; ask once bob; begun; ask once cyd; ask hold; ask unhold; talk; }
begun() { until test -e ../bob/begun; do sleep 0.02; done; } # a request that is not carried out yet is the same as the next one
talk() { ask channel say desk hello; ask channel grant desk ada --now; ask channel skip desk; ask channel override desk --resume; ask channel assign desk ada; ask channel remove desk bob; ask channel disable bob; ask channel enable ada; }
bin=$1 how=$2
case $how in
child) all; setsid sh "$0" "$bin" between & wait; until test -e over; do sleep 0.02; done;;
between) sh "$0" "$bin" orphan $$ & exit;;
orphan) while test "$(cut -d ' ' -f 4 /proc/$$/stat)" = "$3"; do sleep 0.02; done; all; touch over;;
esac
`

// X10, from the agent's side: a daemon, shims, and an agent that does what it can.
func TestClimber(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says which process is at the other end of a socket")
	}
	s := newRig(t, map[string]string{
		"climb.sh": climb,
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [sh, ../climb.sh, " + program +
			", child], workspace: ada}\n" +
			"  bob: {driver: exec, command: [touch, begun], workspace: bob}\n" +
			"  cyd: {driver: exec, command: [\"true\"], workspace: cyd}\nchannels:\n  desk: {agents: [bob]}\n",
	})
	s.must("stop", "cyd") // a person's pause: no agent lifts it
	s.must("once", "ada")
	s.until("ada", "it rests again", func(v view.WhyView) bool { return v.Agent.Session == nil && len(v.Sessions) > 0 })

	var want []string
	for _, how := range []string{"child", "orphan"} {
		for _, line := range []string{
			"unhold: 3", "down: 3", "down --now: 3", "start ada: 3", "stop ada: 3", "cleanup ada: 3", "once bob: 0", "once cyd: 3",
			"hold: 0", "unhold: 3",
			"channel say desk hello: 3", "channel grant desk ada --now: 3", "channel skip desk: 3", "channel override desk --resume: 3",
			"channel assign desk ada: 3", "channel remove desk bob: 3", "channel disable bob: 3", "channel enable ada: 3",
		} {
			want = append(want, how+" "+line)
		}
	}
	if got := s.lines("ada/codes"); !slices.Equal(got, want) {
		t.Errorf("it was answered\n%s\nand should be\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if words := strings.Join(s.lines("ada/words"), "\n"); strings.Count(words, "an agent may not lift a hold") != 14 ||
		strings.Count(words, "this route is for people") != 16 {
		t.Errorf("it was told: %s", words)
	}
	s.must("unhold")
	page, err := s.client().Journal(t.Context(), apiclient.JournalQuery{})
	if err != nil {
		t.Fatal(err)
	}
	orders := map[string][]string{}
	for _, c := range page.Changes {
		orders[c.Trigger] = append(orders[c.Trigger], c.Actor.Kind)
		if c.Actor.Kind == "agent" && c.Actor.ID != "ada" {
			t.Errorf("%s is told of %s", c.Trigger, c.Actor.ID)
		}
	}
	for trigger, want := range map[string][]string{
		"hold_asked": {"agent"}, "release_asked": {"human"},
		"wanted_run_once": {"human", "agent"}, "wanted_held": {"agent"},
	} {
		if !slices.Equal(orders[trigger], want) {
			t.Errorf("%s: by %q, want %q", trigger, orders[trigger], want)
		}
	}
}
