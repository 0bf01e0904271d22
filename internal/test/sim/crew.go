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
	statusMax = 30 * time.Second // the limits of the specification
	hatchMax  = 5 * time.Minute

	leadCostMax = 0.2 // USD a day, for a lead with a limit
)

// hasLead reports whether a day has a lead. Half of the days do, with and without channels.
func hasLead(seed uint64) bool { return seed/4%2 == 1 }

// configureLead makes one agent the lead: either one without a limit on its sessions, or one with
// short sessions. The crew is small, because each member is a file.
func configureLead(conf *config.Config, seed uint64) {
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

// lead returns the lead's name, or "" on a day without a lead.
func (w *world) lead() string { return w.conf.Team.Lead }

// crewActKinds lists the kinds of acts around a crew with their weights.
var crewActKinds = []struct {
	do     string
	weight int
}{
	{"summon", 3}, {"wake", 7}, {"sleep", 3}, {"run-lead", 7}, {"import", 2}, {"add-document", 2}, {"edit-document", 3}, {"delete-document", 1},
}

// opening returns the first acts of a day. Most days with a lead begin with a summon. These acts
// come in addition to the random ones.
func opening(seed uint64) []Act {
	if !hasLead(seed) || seed/32%4 == 0 {
		return nil
	}
	return []Act{{Do: "start"}, {Do: "settle"}, {Do: "summon"}, {Do: "run-lead"}}
}

// crewActs lists the same kinds with the words that an act can have.
var crewActs = map[string][]string{
	"summon":          nil,
	"wake":            {"", "", "name", "id", "unknown"},
	"sleep":           nil,
	"run-lead":        nil,
	"import":          documentKinds,
	"add-document":    documentKinds,
	"edit-document":   {"extra", "extra", "alive", "soul", "broken", "same", "empty"},
	"delete-document": nil,
}

// documentKinds are the kinds of documents that come from another device.
var documentKinds = []string{"asleep", "asleep", "alive", "bare", "hatching", "expired", "broken", "nameless", "lead's", "taken", "odd"}

// drawCrewAct chooses the word and the number of an act around the crew.
func drawCrewAct(rnd *rand.Rand, a Act) Act {
	of, is := crewActs[a.Do]
	if !is {
		return a
	}
	a.Target, a.Word, a.MS = "", "", int64(1+rnd.IntN(9))
	if len(of) > 0 {
		a.Word = of[rnd.IntN(len(of))]
	}
	return a
}

// crewAct performs what a person or another program does with the crew. MS is the number of a
// document, or a seat.
func (w *world) crewAct(a Act) {
	if w.lead() == "" {
		return
	}
	switch a.Do {
	case "summon":
		w.crewOrder("summon", func(ctx context.Context, e *controller.Supervisor, by seam.Actor) (uint64, error) {
			return e.Summon(ctx, by)
		})
	case "wake":
		who := w.wakeTargets(a)
		w.crewOrder("wake", func(ctx context.Context, e *controller.Supervisor, by seam.Actor) (uint64, error) {
			return e.Wake(ctx, by, who)
		})
	case "sleep":
		w.putToSleep()
	case "run-lead":
		w.runLead()
	case "import":
		w.importDocument(a)
	case "add-document", "edit-document", "delete-document":
		w.changeDocuments(a)
	}
}

// runLead lets enough time pass for the lead to receive an action and to answer it.
func (w *world) runLead() {
	for range 5 {
		w.settle()
		w.pass(3 * time.Second)
	}
	w.settle()
}

// crewOrder has a person give an order under a unique name, so that the order can be found in the
// journal.
func (w *world) crewOrder(what string, order func(ctx context.Context, e *controller.Supervisor, by seam.Actor) (uint64, error)) {
	note := w.note("crew order")
	w.mu.Lock()
	w.crew.orders[note] = what
	w.mu.Unlock()
	by := seam.Actor{Kind: "human", ID: note}
	w.order(what, "", func(ctx context.Context, l *engineRun) (uint64, error) { return order(ctx, l.engine, by) })
}

// putToSleep orders the end of the lead session, and checks that a confirmed order ends it.
func (w *world) putToSleep() {
	w.mu.Lock()
	before := w.leadSession()
	w.mu.Unlock()
	w.order("sleep", "", func(ctx context.Context, l *engineRun) (uint64, error) {
		seq, err := l.engine.Sleep(ctx, byPerson)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil && before != "" && w.leadSession() == before {
			w.check(summonWanted, w.truth.Agents[w.lead()].Session.Ending != "", "%s was put to sleep with change %d, but is not ending", before, seq)
		}
		return seq, err
	})
}

// leadSession returns the id of the open lead session, or "". The caller holds the lock.
func (w *world) leadSession() string {
	if a := w.truth.Agents[w.lead()]; a != nil && a.Session.IsLead() {
		return a.Session.ID
	}
	return ""
}

// wakeTargets returns the members that a wake is for; nil means all.
func (w *world) wakeTargets(a Act) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := w.crew.nth(int(a.MS))
	switch {
	case a.Word == "" || is == nil:
		return nil
	case a.Word == "unknown":
		return []string{"not-a-member"}
	case a.Word == "name" && is.name != "":
		return []string{is.name}
	default:
		return []string{is.id}
	}
}

// checkLastWake runs at the end of every day with a lead, after a night in which all members fell
// asleep. The lead reports correctly, so a wake must bring back all members. The lead session stays
// open for checkLastMessages.
func (w *world) checkLastWake() {
	if w.lead() == "" || w.failed() {
		return
	}
	w.mu.Lock()
	w.wellBehaved = true
	n := w.crew.visible()
	w.mu.Unlock()
	w.channelAct(Act{Do: "enable", Target: w.lead()})
	w.settle()
	do := Act{Do: "wake"}
	if n == 0 {
		do = Act{Do: "summon"}
	}
	w.crewAct(do)
	w.settle()
	for range 24 { // eight seconds each: the wake may have to wait while the lead answers in channels
		if w.failed() || !w.summonInProgress() {
			break
		}
		w.pass(8 * time.Second)
		w.settle()
	}
	w.checkSettled()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil {
		return
	}
	w.check(summonEnds, !w.truth.Crew.Lead.InProgress(), "%s does not end although the lead answers: %+v", do.Do, w.truth.Crew.Lead)
	for _, is := range w.crew.docs {
		w.check(reportApplied, is.status == "expired" || is.status == "alive", "after %s the lead reported all members as alive, but %s is %s", do.Do, is, is.status)
	}
	w.check(reportApplied, w.truth.Crew.Button() == crew.NoButton, "all members are alive, but the button says %s", w.truth.Crew.Button())
}

func (w *world) summonInProgress() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.truth.Crew.Lead.InProgress()
}

// checkLastSleep puts the crew to sleep, and checks that only a person wakes it.
func (w *world) checkLastSleep() {
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
	w.oneEngine()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil {
		return
	}
	w.check(summonWanted, w.crew.lead == "", "the crew was put to sleep, but %s runs", w.crew.lead)
	for _, is := range w.crew.docs {
		w.check(aliveByReport, is.status != "alive", "the crew was put to sleep, but %s is alive", is)
	}
}

func (b *memberDocument) String() string {
	return fmt.Sprintf("%s (%q, seat %d)", b.id, b.name, b.seat)
}
