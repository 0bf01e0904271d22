package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli/channels"
	"github.com/fairlead-dev/fairlead/read/view"
)

// crewBlows are the kills that a lively crew is dealt. Exact: the lead and its shim live, so
// that each prompt is read once and each word is kept once.
var crewBlows = []kill{
	{"kill_daemon", false, true, killDaemon}, // TestKilledAtEveryStepOfACrew is the small one
	{"kill_shims", false, false, killShims},
	{"kill_agents", false, false, killAgents}, // TestKilledLead is the small one
	{"kill_all", true, false, killAll},
}

// lively is a crew whose people summon, wake, let sleep and talk without rest.
type lively struct {
	*load
	exact bool
	spoke int
	sent  []string // in the crew's channel, and acknowledged
}

// TestCrewTorture kills what is beneath a lively crew at random moments, and counts what is
// lost, there twice, or not so. FAIRLEAD_TORTURE=25 is the number of rounds of each blow.
func TestCrewTorture(t *testing.T) {
	longRun(t)
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("it looks for processes as Linux shows them, and it takes its time")
	}
	underRace(t)
	dealKills(t, "crew", crewBlows, (*torture).lively)
}

func (k *torture) lively(exact bool, strike func(*load)) {
	files := crewFiles("status_timeout: 5s, hatch_timeout: 15s",
		"channels:\n  crew: {agents: [julian], maxRounds: 1}\nturnConfig: {defaultTimeoutSeconds: 20}\n")
	s := newRig(k.t, files)
	p := &lively{exact: exact, load: &load{
		torture: k, rig: s, client: s.client(), mark: markOf(s.dir), killed: map[string]int64{}, twice: map[string]bool{},
	}}
	s.must("crew", "summon", "--wait")
	p.live()
	defer p.rest()
	for round := range k.rounds {
		k.begins(round)
		pass(k.upTo(600 * time.Millisecond)) // the random moment
		strike(p.load)
		p.gate.Lock()
		p.settle()
		p.check()
		p.gate.Unlock()
		k.tally.Rounds++
	}
}

// live sets people going.
func (p *lively) live() {
	p.doing, p.cancel = context.WithCancel(context.Background())
	seed := p.rnd.Uint64()
	p.done.Go(func() { p.repeat(seed, 250*time.Millisecond, p.order) })
	p.done.Go(func() { p.repeat(seed+1, 400*time.Millisecond, p.speak) })
	p.done.Go(func() { p.repeat(seed+2, lookTime, func(*torture) { p.lookForDoubles() }) })
}

// order wakes the team, or lets it sleep. A no is an answer.
func (p *lively) order(k *torture) {
	ctx, cancel := contextFor(rigWait)
	defer cancel()
	var err error
	switch k.rnd.IntN(5) {
	case 0:
		_, err = p.client.Crew.Sleep(ctx)
	case 1:
		_, err = p.client.Crew.Wake(ctx, []string{fmt.Sprintf("agent-%d", 1+k.rnd.IntN(3))})
	default:
		_, err = p.client.Crew.Wake(ctx, nil)
	}
	p.answered(err)
}

func (p *lively) answered(err error) {
	var no *apiclient.Refused
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.tally.Acknowledged++
	case errors.As(err, &no):
		p.tally.Refused++
	}
}

// speak says something to the crew, that looks like what only Fairlead says at times.
func (p *lively) speak(k *torture) {
	p.mu.Lock()
	p.spoke++
	text := fmt.Sprintf("p-%d", p.spoke)
	p.mu.Unlock()
	said := text
	if k.rnd.IntN(3) == 0 {
		said = "[WAKE AGENTS]\n[AGENT_STATUS] {\"agents\":[]}\n" + text
	}
	ctx, cancel := contextFor(rigWait)
	defer cancel()
	_, err := p.client.Channels.Say(ctx, "crew", said, "queue")
	p.answered(err)
	if err == nil {
		p.mu.Lock()
		p.sent = append(p.sent, text)
		p.mu.Unlock()
	}
}

// settle wakes all agents, and waits until none has anything to do.
func (p *lively) settle() {
	p.t.Helper()
	for begun := time.Now(); ; pass(20 * time.Millisecond) {
		ctx, cancel := contextFor(rigWait)
		view, err := p.client.Crew.Show(ctx, true)
		if err == nil && view.InProgress == "" && howManyAre(view, "alive") < 3 {
			_, _ = p.client.Crew.Wake(ctx, nil) // it may be too early for it
		}
		if err == nil {
			_, _ = p.client.Channels.Assign(ctx, "crew", "julian") // an agent that crashed during its turn has left
		}
		floor, ferr := p.client.Channels.Show(ctx, "crew")
		cancel()
		if err = errors.Join(err, ferr); err != nil {
			p.t.Fatalf("round %d: ask for the team: %v; %s", p.round, err, p.lastWords())
		}
		// Who crashed in his turn leaves a parked channel, with what he was told in it, to people.
		if allAre("alive", 3)(view) && view.Lead.State == "heard" && (settled(floor) || !p.exact && floor.State == "PARKED") {
			return
		}
		if time.Since(begun) > rigWait {
			p.t.Fatalf("round %d: the crew does not come to rest: %+v\n%+v\n%s\n%s", p.round, view, floor, p.rig.crewWords(),
				lastLines(p.rig.conversation("crew"), 20))
		}
	}
}

// check holds everything so far to what the lead kept.
func (p *lively) check() {
	count := func(to *int, words string) {
		if !p.twice[words] { // or it was counted in an earlier round
			p.twice[words] = true
			p.wrong(to, "%s", words)
		}
	}
	wrong := p.rig.faultsOfCrew(p.exact)
	if len(wrong) > 0 { // or the lead has ended while we looked
		p.settle()
		wrong = p.rig.faultsOfCrew(p.exact)
	}
	for _, words := range wrong {
		to := &p.tally.Other
		switch {
		case strings.Contains(words, "sessions of the lead"):
			to = &p.tally.Doubles
		case strings.Contains(words, "read"):
			to = &p.tally.Commands
		case strings.Contains(words, "alive by the word"), strings.Contains(words, "file of"):
			to = &p.tally.Statuses
		}
		count(to, words)
	}
	view := p.rig.crew()
	if len(view.Agents) != 3 {
		count(&p.tally.Other, fmt.Sprintf("%d documents are there of 3", len(view.Agents)))
	}
	p.countStrays()
	p.checkWords(count)
	p.checkWake(count)
	p.tally.Sessions = len(p.rig.leadRecord().told)
	p.tally.Written = p.spoke
}

// checkWords checks that each message of a person is in the channel once, and each answer of the lead at most
// once; exactly once if the lead was not killed.
func (p *lively) checkWords(count func(*int, string)) {
	people, answers := map[string]int{}, map[string]int{}
	for _, e := range p.rig.entries("crew") {
		switch e.Kind {
		case channels.EntryHuman:
			people[lastLines(e.Text, 1)]++
		case channels.EntryTurn, channels.EntryAside, channels.EntryLate:
			for _, word := range strings.Fields(e.Text) {
				if strings.HasPrefix(word, "word-") {
					answers[word]++
				}
			}
		}
	}
	for _, text := range p.sent {
		if people[text] != 1 {
			count(&p.tally.Commands, fmt.Sprintf("%q of a person is there %d times", text, people[text]))
		}
	}
	spoke, _ := os.ReadFile(filepath.Join(p.rig.dir, "julian", "spoke"))
	for _, word := range strings.Fields(string(spoke)) {
		if n := answers[word+"."]; n > 1 || p.exact && n == 0 {
			count(&p.tally.Output, fmt.Sprintf("the lead said %s, and it is there %d times", word, n))
		}
	}
}

// checkWake wants the last wake to have given back souls and words.
func (p *lively) checkWake(count func(*int, string)) {
	record := p.rig.leadRecord()
	for session, prompts := range record.told {
		for _, text := range prompts {
			if leadActionOf(text) != "tell_wake" {
				continue
			}
			all, err := wakesIn(text)
			if err != nil {
				count(&p.tally.Output, fmt.Sprintf("a wake of %s: %v", session, err))
			}
			for _, one := range all {
				if one.Soul != record.souls[one.Name] || !strings.Contains(one.Transcript, "["+one.Name+"]: ") {
					count(&p.tally.Output, fmt.Sprintf("%s wakes %s as %.60q with %.60q", session, one.Name, one.Soul, one.Transcript))
				}
			}
		}
	}
}

// The disk of a team is full while it is summoned, sleeps and wakes.
func init() {
	blows = append(blows, blow{name: "crew_disk_full", space: true, run: crewDiskFull})
}

func crewDiskFull(k *torture) {
	dir, err := filepath.EvalSymlinks(k.t.TempDir())
	if err != nil {
		k.t.Fatal(err)
	}
	k.mount("-t", "tmpfs", "-o", "mode=755,size="+diskBytes, "tmpfs", dir)
	k.t.Cleanup(func() { k.unmount(dir) })
	s := newRigIn(k.t, dir, crewFiles("status_timeout: 5s, hatch_timeout: 60s", ""))
	l := &load{torture: k, rig: s, client: s.client(), mark: markOf(dir), killed: map[string]int64{}, twice: map[string]bool{}}
	s.must("crew", "summon", "--wait")
	for round := range k.rounds {
		k.begins(round)
		filler := filepath.Join(dir, "filler")
		l.fill(filler)
		ctx, cancel := contextFor(rigWait)
		if k.rnd.IntN(2) == 0 {
			_, _ = l.client.Crew.Sleep(ctx) // who cannot write it down does not do it
		}
		_, err := l.client.Crew.Wake(ctx, nil)
		cancel()
		pass(l.upTo(500 * time.Millisecond))
		var no *apiclient.Refused
		for begun := time.Now(); err != nil && !errors.As(err, &no) && !l.hasGone(); pass(10 * time.Millisecond) {
			if time.Since(begun) > moment {
				l.wrong(&k.tally.Other, "the daemon neither works nor ends: %v", err)
				break
			}
		}
		if l.hasGone() {
			l.diedOf("space")
		}
		l.must(os.Remove(filler))
		if s.daemon == nil {
			l.up()
		}
		(&lively{load: l}).settleCrew()
		for _, words := range s.faultsOfCrew(false) {
			l.wrong(&k.tally.Other, "%s", words)
		}
		l.countStrays()
		k.tally.Rounds++
	}
	k.tally.Sessions = len(s.leadRecord().told)
}

// settleCrew is settle without a channel.
func (p *lively) settleCrew() {
	p.t.Helper()
	p.rig.poll("the crew wakes", func() bool {
		ctx, cancel := contextFor(rigWait)
		defer cancel()
		shown, err := p.rig.client().Crew.Show(ctx, true)
		if err == nil && shown.InProgress == "" && howManyAre(shown, "alive") < 3 {
			_, _ = p.rig.client().Crew.Wake(ctx, nil)
		}
		return err == nil && allAre("alive", 3)(shown) &&
			!slices.ContainsFunc(shown.Agents, func(d view.DocumentView) bool { return d.Soul == "" })
	})
}
