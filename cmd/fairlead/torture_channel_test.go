package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
)

// long says whether the long forms of tests are wanted: FAIRLEAD_TORTURE, as doc/testing.md says.
func long() bool {
	n, err := strconv.Atoi(os.Getenv("FAIRLEAD_TORTURE"))
	return err == nil && n > tortureSmall
}

// channelBlows are the kills that a lively channel is dealt. Exact: the agents and their shims
// live, so that everything has to be there once.
var channelBlows = []kill{
	{"kill_daemon", false, true, killDaemon}, // TestKilledDaemonOfAChannel is the small one
	{"kill_shims", false, false, killShims},
	{"kill_agents", true, false, killAgents},
	{"kill_all", true, false, killAll},
}

// parley is a lively channel: talkers, and a person who speaks, interrupts, grants, skips,
// assigns and removes without rest.
type parley struct {
	*load
	exact bool
	sent  []string // by the person, and acknowledged
	spoke int
}

var parleyAgents = []string{"ada", "bob", "eve"}

// TestChannelTorture kills what is beneath a lively channel at random moments, and counts what
// is lost or there twice. FAIRLEAD_TORTURE=100 is the number of rounds of each blow.
func TestChannelTorture(t *testing.T) {
	longRun(t)
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("it looks for processes as Linux shows them, and it takes its time")
	}
	underRace(t)
	dealKills(t, "channel", channelBlows, (*torture).parley)
}

func (k *torture) parley(exact bool, strike func(*load)) {
	files := threeTalkers()
	timeout := "defaultTimeoutSeconds: 5" // an agent whose script was killed may keep its turn this long
	if exact {
		timeout = "defaultTimeoutSeconds: 60" // no turn may be cut off
	}
	files["fairlead.yaml"] = strings.Replace(files["fairlead.yaml"], "defaultTimeoutSeconds: 3600", timeout, 1)
	s := newRig(k.t, files)
	p := &parley{exact: exact, load: &load{
		torture: k, rig: s, client: s.client(), mark: markOf(s.dir), killed: map[string]int64{}, twice: map[string]bool{},
	}}
	p.talkOn()
	defer p.rest()
	for round := range k.rounds {
		k.begins(round)
		pass(k.upTo(400 * time.Millisecond)) // the random moment
		strike(p.load)
		p.gate.Lock()
		p.settle()
		p.check()
		p.gate.Unlock()
		k.tally.Rounds++
	}
	s.turnsLogged()
}

// talkOn sets the person going.
func (p *parley) talkOn() {
	p.doing, p.cancel = context.WithCancel(context.Background())
	seed := p.rnd.Uint64()
	p.done.Go(func() { p.repeat(seed, 120*time.Millisecond, p.speak) })
	p.done.Go(func() { p.repeat(seed+1, 300*time.Millisecond, p.meddle) })
	p.done.Go(func() { p.repeat(seed+2, lookTime, func(*torture) { p.lookForDoubles() }) })
}

// speak says something new. What is not acknowledged may be there all the same, once.
func (p *parley) speak(k *torture) {
	modes := []string{"queue", "inject", "parallel", "interrupt"}
	if p.exact { // who is interrupted is cut off in the middle of what it says
		modes = modes[:3]
	}
	p.mu.Lock()
	p.spoke++
	text := fmt.Sprintf("p-%d", p.spoke)
	p.mu.Unlock()
	ctx, cancel := contextFor(rigWait)
	defer cancel()
	_, err := p.client.Channels.Say(ctx, "talk", text, modes[k.rnd.IntN(len(modes))])
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

// meddle orders about who has the turn, and lets in again who has crashed. A no is an answer.
func (p *parley) meddle(k *torture) {
	ctx, cancel := contextFor(rigWait)
	defer cancel()
	name := parleyAgents[k.rnd.IntN(len(parleyAgents))]
	switch what := k.rnd.IntN(6); {
	case what == 0 && !p.exact:
		_, _ = p.client.Channels.Grant(ctx, "talk", name, true)
	case what == 1 && !p.exact:
		_, _ = p.client.Channels.Skip(ctx, "talk", 0)
	case what == 2 && !p.exact:
		_, _ = p.client.Channels.Unassign(ctx, "talk", name)
	case what == 3:
		_, _ = p.client.Channels.Override(ctx, "talk", k.rnd.IntN(2) == 0)
	case what == 4:
		_ = os.WriteFile(filepath.Join(p.rig.dir, name, "wait"), nil, 0o600)
	default:
		_, _ = p.client.Channels.Assign(ctx, "talk", name)
	}
}

// settle waits until the channel is idle: crashed agents join again, waiting ones continue, and every message
// of a person is answered.
func (p *parley) settle() {
	p.t.Helper()
	for begun := time.Now(); ; pass(20 * time.Millisecond) {
		ctx, cancel := contextFor(rigWait)
		v, err := p.client.Channels.Show(ctx, "talk")
		if err != nil {
			p.t.Fatalf("round %d: ask for the channel: %v; %s", p.round, err, p.lastWords())
		}
		quiet := settled(v)
		for _, name := range parleyAgents {
			if m := member(v, name); m.State == "IDLE" || m.State == "" {
				_, err := p.client.Channels.Assign(ctx, "talk", name)
				quiet = quiet && err == nil
			}
		}
		if v.State == "WAITING" && v.Aside == nil {
			_, _ = p.client.Channels.Override(ctx, "talk", true) // it may have gone on by itself
		}
		cancel()
		if quiet {
			return
		}
		if time.Since(begun) > rigWait {
			p.t.Fatalf("round %d: the channel does not come to rest: %+v\n%s", p.round, v, lastLines(p.rig.conversation("talk"), 40))
		}
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// check compares everything so far with the records. Where agents or shims were killed, their unread output
// and their input are lost: then the only promises are that no message appears twice, and that each message of
// a person is present.
func (p *parley) check() {
	all := p.rig.entries("talk")
	books := p.rig.books(append([]string{"lea"}, parleyAgents...)...)
	if !p.exact {
		books.unseen = p.unseen()
	}
	f := books.audit(all, p.sent)
	count := func(to *int, faults []string) {
		for _, words := range faults {
			if p.twice[words] {
				continue // it was counted in an earlier round
			}
			p.twice[words] = true
			p.wrong(to, "%s", words)
		}
	}
	count(&p.tally.Commands, f.lostWords)
	count(&p.tally.Commands, f.twiceWords)
	count(&p.tally.Output, f.twiceSaid)
	count(&p.tally.Doubles, f.twiceTold)
	count(&p.tally.Statuses, f.moves)
	if p.exact {
		count(&p.tally.Output, f.lostSaid)
		count(&p.tally.Doubles, f.twiceHeard)
		count(&p.tally.Other, f.untold)
	}
	p.countStrays()
	p.tally.Written = len(turnsTaken(all))
	p.tally.Sessions = 0
	for _, name := range append([]string{"lea"}, parleyAgents...) {
		starts, err := os.ReadFile(filepath.Join(p.rig.dir, name, "starts"))
		if err != nil {
			continue // it has not got so far
		}
		ids := strings.Fields(string(starts))
		p.tally.Sessions += len(ids)
		slices.Sort(ids)
		if n := len(ids) - len(slices.Compact(ids)); n > 0 {
			p.wrong(&p.tally.Doubles, "%d sessions of %s were started twice", n, name)
		}
	}
}

// unseen are sessions that were killed with their shims before anybody had seen that they
// lived: what such a one was to be told is told to the one after it.
func (p *parley) unseen() map[string]bool {
	unseen := map[string]bool{}
	for _, name := range append([]string{"lea"}, parleyAgents...) {
		for _, line := range p.rig.books(name).told[name] {
			id, _, _ := strings.Cut(line, " ")
			unseen[id] = true
		}
		for after := uint64(0); ; {
			ctx, cancel := contextFor(rigWait)
			page, err := p.client.Journal(ctx, apiclient.JournalQuery{After: after, Entity: "session/" + name})
			cancel()
			if err != nil {
				p.t.Fatalf("round %d: read the journal: %v; %s", p.round, err, p.lastWords())
			}
			for _, ch := range page.Changes {
				after = ch.Seq
				var data struct {
					Session struct {
						ID string `json:"id"`
					} `json:"session"`
				}
				if ch.To == "running" && json.Unmarshal(ch.Data, &data) == nil {
					delete(unseen, data.Session.ID)
				}
			}
			if len(page.Changes) == 0 {
				break
			}
		}
	}
	return unseen
}
