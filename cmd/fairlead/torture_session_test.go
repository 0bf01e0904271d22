package main

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// sessionBlows are the kills that a busy session is dealt. Exact: agents and shims live, so that every
// input is answered by those who were at it.
var sessionBlows = []kill{
	{"kill_daemon", false, true, killDaemon}, // TestKilledDaemonOfASession is the small one
	{"kill_shims", false, false, killShims},
	{"kill_agents", false, false, killAgents},
	{"kill_all", true, false, killAll},
}

// busyWard is a session that people speak to without rest, by the daemon and past it.
type busyWard struct {
	*load
	*ward
	exact  bool
	spoken int
	sent   []string // and acknowledged
}

// TestSessionTorture kills what is beneath a session that we host at random moments, and counts inputs
// that are lost or there twice, words and files that are, works that were done twice, and what the daemon
// says that is not so. FAIRLEAD_TORTURE=25 is the number of rounds of each blow.
func TestSessionTorture(t *testing.T) {
	t.Parallel()
	longRun(t)
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("it looks for processes as Linux shows them, and it takes its time")
	}
	if testsize.Race && !long() {
		t.Skip("TestKilledDaemonOfASession looks for races")
	}
	dealKills(t, "session", sessionBlows, (*torture).ward)
}

func (k *torture) ward(exact bool, strike func(*load)) {
	w := newWard(k.t)
	p := &busyWard{exact: exact, ward: w, load: &load{
		torture: k, rig: w.rig, client: w.client(), mark: markOf(w.dir), killed: map[string]int64{}, twice: map[string]bool{},
	}}
	p.doing, p.cancel = context.WithCancel(context.Background())
	seed := p.rnd.Uint64()
	p.done.Go(func() { p.repeat(seed, 300*time.Millisecond, p.speak) })
	p.done.Go(func() { p.repeat(seed+1, lookTime, func(*torture) { p.lookForDoubles() }) })
	defer p.rest()
	for round := range k.rounds {
		k.begins(round)
		pass(k.upTo(900 * time.Millisecond)) // the random moment
		strike(p.load)
		p.gate.Lock()
		p.settle()
		p.check()
		p.gate.Unlock()
		k.tally.Rounds++
	}
}

// speak says something new, to the daemon or to the folder. What is not acknowledged may be there all the
// same, once.
func (p *busyWard) speak(k *torture) {
	p.mu.Lock()
	p.spoken++
	text := wishOf(k.rnd.IntN(3), p.spoken)
	p.mu.Unlock()
	var err error
	if k.rnd.IntN(2) == 0 {
		err = p.says(text)
	} else {
		ctx, cancel := contextFor(rigWait)
		_, err = apiclient.Post[api.DispatchInputResult](ctx, p.client, "/dispatch/"+p.folder.Name()+"/input",
			api.DispatchInputBody{Text: text})
		cancel()
	}
	var no *apiclient.Refused
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.sent = append(p.sent, text)
		p.tally.Acknowledged++
	case errors.As(err, &no):
		p.tally.Refused++
	}
}

// settle waits until no input waits for an answer.
func (p *busyWard) settle() {
	p.torture.t.Helper()
	for begun := time.Now(); !p.rests(p.client); pass(20 * time.Millisecond) {
		if time.Since(begun) > 2*rigWait {
			s, err := p.folder.Session()
			p.torture.t.Fatalf("round %d: the session does not come to rest: %+v, open %+v, %v; %s", p.round, s.Now, s.Open, err,
				p.lastWords())
		}
	}
}

// check holds everything so far to what was said.
func (p *busyWard) check() {
	f := p.audit(p.client, p.sent, p.exact)
	count := func(to *int, faults []string) {
		for _, words := range faults {
			if !p.twice[words] { // or it was counted in an earlier round
				p.twice[words] = true
				p.wrong(to, "%s", words)
			}
		}
	}
	count(&p.tally.Commands, f.inputs)
	count(&p.tally.Doubles, f.doubles)
	count(&p.tally.Output, f.output)
	count(&p.tally.Statuses, f.other)
	p.countStrays()
	p.tally.Sessions, p.tally.Written = len(f.sessions), f.conversations
}
