package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/controller"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/machine/crew"
)

const (
	statusMax = 30 * time.Second // as the seed and the specification have it
	hatchMax  = 5 * time.Minute

	leadCostMax = 0.2 // USD a day, of a lead that has a limit
)

// hasLead reports whether a day has a lead: half of them do, with and without channels.
func hasLead(seed uint64) bool { return seed/4%2 == 1 }

// withLead gives a day's team a lead: one that may take its time, or one whose sessions are
// short; with seats for few, since each is a file that is written.
func withLead(conf *config.Config, seed uint64) {
	if !hasLead(seed) {
		return
	}
	name := []string{"pm", "coder"}[seed/8%2]
	conf.Team.Lead, conf.Team.Size = name, []int{2, 3, 2, 8}[seed/16%4]
	conf.Team.StatusTimeout, conf.Team.HatchTimeout = statusMax, hatchMax
	for i := range conf.Agents {
		if conf.Agents[i].Name == name && seed/64%2 == 0 {
			conf.Agents[i].Limits.CostPerDayUSD = leadCostMax
		}
	}
}

// lead is the lead's name; empty: this day has none.
func (w *world) lead() string { return w.conf.Team.Lead }

// crewDeeds are what happens around a team that has a lead, with how often.
var crewDeeds = []struct {
	do     string
	weight int
}{
	{"summon", 3}, {"wake", 7}, {"sleep", 3}, {"tend", 7}, {"import", 2}, {"paper", 2}, {"blot", 3}, {"shred", 1},
}

// opening is how most days with a lead begin: with a team. It comes before what is drawn, so that
// there is no less of that.
func opening(seed uint64) []Act {
	if !hasLead(seed) || seed/32%4 == 0 {
		return nil
	}
	return []Act{{Do: "start"}, {Do: "settle"}, {Do: "summon"}, {Do: "tend"}}
}

// rituals are the same by name, with what a word says about each.
var rituals = map[string][]string{
	"summon": nil,
	"wake":   {"", "", "name", "id", "nobody"},
	"sleep":  nil,
	"tend":   nil,
	"import": papers,
	"paper":  papers,
	"blot":   {"extra", "extra", "alive", "soul", "broken", "same", "empty"},
	"shred":  nil,
}

// papers are documents that come from elsewhere.
var papers = []string{"asleep", "asleep", "alive", "bare", "hatching", "expired", "broken", "nameless", "lead's", "taken", "odd"}

// drawRitual fills in what a deed around the team is about.
func drawRitual(rnd *rand.Rand, a Act) Act {
	of, is := rituals[a.Do]
	if !is {
		return a
	}
	a.Whom, a.Word, a.MS = "", "", int64(1+rnd.IntN(9))
	if len(of) > 0 {
		a.Word = of[rnd.IntN(len(of))]
	}
	return a
}

// ritual is something that people do with the team. MS is the how-many-eth of its documents, or a
// seat.
func (w *world) ritual(a Act) {
	if w.lead() == "" {
		return
	}
	switch a.Do {
	case "summon":
		w.bids("summon", func(ctx context.Context, e *controller.Supervisor, by seam.Actor) (uint64, error) {
			return e.Summon(ctx, by)
		})
	case "wake":
		who := w.whom(a)
		w.bids("wake", func(ctx context.Context, e *controller.Supervisor, by seam.Actor) (uint64, error) {
			return e.Wake(ctx, by, who)
		})
	case "sleep":
		w.putToSleep()
	case "tend":
		w.tend()
	case "import":
		w.handsIn(a)
	case "paper", "blot", "shred":
		w.onPaper(a)
	}
}

// tend leaves the lead in peace for as long as it takes to tell it a thing and to be answered.
func (w *world) tend() {
	for range 5 {
		w.settle()
		w.pass(3 * time.Second)
	}
	w.settle()
}

// bids has a person give an order that only the journal can confirm.
func (w *world) bids(what string, order func(ctx context.Context, e *controller.Supervisor, by seam.Actor) (uint64, error)) {
	note := w.note("bid")
	w.mu.Lock()
	w.crew.bids[note] = what
	w.mu.Unlock()
	by := seam.Actor{Kind: "human", ID: note}
	w.give(what, "", func(ctx context.Context, l *life) (uint64, error) { return order(ctx, l.engine, by) })
}

// putToSleep ends the lead session that there is, and sees that it does when that was answered.
func (w *world) putToSleep() {
	w.mu.Lock()
	before := w.leadSession()
	w.mu.Unlock()
	w.give("sleep", "", func(ctx context.Context, l *life) (uint64, error) {
		seq, err := l.engine.Sleep(ctx, byPerson)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil && before != "" && w.leadSession() == before {
			w.check(ceremonyWanted, w.truth.Agents[w.lead()].Session.Ending != "", "%s was put to sleep with change %d, and is not to end", before, seq)
		}
		return seq, err
	})
}

// leadSession is the lead session that is open; the caller holds the lock.
func (w *world) leadSession() string {
	if a := w.truth.Agents[w.lead()]; a != nil && a.Session.IsLead() {
		return a.Session.ID
	}
	return ""
}

// whom names those whom a wake is for; none: everybody.
func (w *world) whom(a Act) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := w.crew.nth(int(a.MS))
	switch {
	case a.Word == "" || is == nil:
		return nil
	case a.Word == "nobody":
		return []string{"nobody-of-the-team"}
	case a.Word == "name" && is.name != "":
		return []string{is.name}
	default:
		return []string{is.id}
	}
}

// crewMorning is the same at the end of every day with a lead: after a night everybody sleeps,
// the lead is well-mannered, and all who are wanted come. It leaves the lead session open, so
// that the last words are said in it.
func (w *world) crewMorning() {
	if w.lead() == "" || w.failed() {
		return
	}
	w.mu.Lock()
	w.night = true
	n := w.crew.visible()
	w.mu.Unlock()
	w.deed(Act{Do: "enable", Whom: w.lead()})
	w.settle()
	do := Act{Do: "wake"}
	if n == 0 {
		do = Act{Do: "summon"}
	}
	w.ritual(do)
	w.settle()
	for range 24 { // of eight seconds: a ceremony may have to wait for what its lead does in channels
		if w.failed() || !w.ceremony() {
			break
		}
		w.pass(8 * time.Second)
		w.settle()
	}
	w.calm()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil {
		return
	}
	w.check(ceremonyEnds, !w.truth.Crew.Lead.InProgress(), "nothing is in the way, and %s does not end: %+v", do.Do, w.truth.Crew.Lead)
	for _, is := range w.crew.docs {
		w.check(reportTaken, is.status == "expired" || is.status == "alive", "everybody was told to come (%s), the lead said that all are there, and %s is %s", do.Do, is, is.status)
	}
	w.check(reportTaken, w.truth.Crew.Button() == crew.NoButton, "everybody is alive, and the button says %s", w.truth.Crew.Button())
}

func (w *world) ceremony() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.truth.Crew.Lead.InProgress()
}

// crewNight puts the crew to sleep, and checks that only a person wakes it.
func (w *world) crewNight() {
	if w.lead() == "" || w.failed() {
		return
	}
	w.putToSleep()
	w.settle()
	for range 4 {
		w.pass(grace)
		w.settle()
	}
	w.do(Act{Do: "crash"})
	w.peace()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil {
		return
	}
	w.check(ceremonyWanted, w.crew.lead == "", "the team was put to sleep, and %s runs", w.crew.lead)
	for _, is := range w.crew.docs {
		w.check(leadAlone, is.status != "alive", "the team was put to sleep, and %s is alive", is)
	}
}

func (b *being) String() string { return fmt.Sprintf("%s (%q, seat %d)", b.id, b.name, b.seat) }
