package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/script"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// talker plays the process of a session for channels: it reads its input and answers, mostly well.
// It is not a script agent, because every piece of its output must be known: each is looked for in
// the journal.
type talker struct {
	w    *world
	s    *hostSession
	ctx  context.Context
	rnd  *rand.Rand
	now  line  // what it answers
	took int64 // bytes of input that it has read
	open bool  // it has not said yet that it listens
	each bool  // it says so after each answer, also where it has more to answer

	crew map[int]string // of a lead: who lives in this session, by seat
	gone cut            // what has ended it in the middle of a marker
}

// deaf is the agent whose program reads nothing while it runs: each thing that it is told
// takes a session of its own.
const deaf = "flaky"

// manners are how a prompt is answered. An evening has only the first.
var manners = []string{
	"well", "well", "well", "well", "well", "well", "well", "slowly", "slowly", "in-pieces", "in-pieces",
	"unfinished", "unfinished", "passes", "passes", "waits", "mute", "goes", "crashes", "hangs", "twice", "quotes",
}

// What ends an answer before its time.
type cut int

const (
	none    cut = iota
	hushed      // it was told to stop
	asked       // SIGTERM
	killed      // SIGKILL
	nothing     // its input is at its end
)

// talk plays a session for channels to its end.
func (w *world) talk(ctx context.Context, s *hostSession) script.End {
	k := &talker{w: w, s: s, ctx: ctx, rnd: rand.New(rand.NewPCG(w.seed, hash(s.id))), crew: map[int]string{}}
	k.each = k.rnd.IntN(2) == 0
	for {
		if why := k.next(); why != none {
			return k.end(why)
		}
		end, over := k.answer()
		if over {
			return end
		}
		if agentIn(s.id) == deaf {
			return k.end(nothing)
		}
		if k.each && k.open {
			k.listen()
		}
	}
}

func hash(text string) (h uint64) {
	for _, b := range []byte(text) {
		h = h*31 + uint64(b)
	}
	return h
}

// next reads one prompt, and says that it listens while there is none.
func (k *talker) next() cut {
	for {
		k.w.mu.Lock()
		in := k.s.input
		var got *line
		if len(in.lines) > 0 {
			got, in.lines = &in.lines[0], in.lines[1:]
			k.took = got.end
		}
		more, closed := in.more, in.closed
		k.w.mu.Unlock()
		switch {
		case got != nil && got.order.Type == script.OrderCancel:
			continue // nothing is under way
		case got != nil:
			k.now, k.open = *got, true
			return none
		case closed:
			return nothing
		}
		if k.open {
			k.listen()
		}
		select {
		case <-more:
		case <-k.s.asked:
			return asked
		case <-k.ctx.Done():
			return killed
		}
	}
}

func (k *talker) listen() {
	k.open = false
	k.tell(map[string]any{"type": driver.Listening, "input": k.took})
}

// answer does as it likes with one prompt. Over: the process has ended.
func (k *talker) answer() (end script.End, over bool) {
	if do := ofLead(k.now.key); do != "" {
		return k.leads(do)
	}
	how := manners[k.rnd.IntN(len(manners))]
	if k.w.isEvening() {
		how = "well"
	}
	why := k.rest(200, 6000)
	if why == none {
		k.tell(map[string]any{"type": driver.UsageReported, "input_tokens": 3, "output_tokens": 1, "cost_usd": 0.01})
		switch how {
		case "goes":
			k.say("I go now", k.rnd.IntN(2) == 0)
			return k.end(nothing), true
		case "crashes":
			k.say("I feel", false)
			return script.End{Code: -1, Signal: "SIGSEGV"}, true
		}
		why = k.speak(how)
	}
	switch why {
	case none:
		return script.End{}, false
	case hushed:
		return k.stopped()
	default:
		return k.end(why), true
	}
}

func (k *talker) speak(how string) cut {
	if why := k.markers(); why != none {
		return why
	}
	switch how {
	case "slowly":
		if why := k.rest(15_000, 40_000); why != none {
			return why
		}
		k.say("at last", true)
	case "in-pieces":
		for range 2 + k.rnd.IntN(3) {
			k.say("one thing", false)
			if why := k.rest(100, 4000); why != none {
				return why
			}
		}
		k.gives("TURN_COMPLETE")
	case "unfinished":
		k.say("that is all", false)
	case "passes":
		k.gives("TURN_PASS")
	case "waits":
		k.say("I need something", false)
		k.tell(map[string]any{"type": driver.Said, "text": "TURN_WAIT"})
	case "mute":
	case "hangs":
		if name := agentIn(k.s.id); name != deaf && name != "coder" {
			break // it would never end
		}
		select {
		case <-k.s.asked:
			return asked
		case <-k.ctx.Done():
			return killed
		}
	case "twice":
		k.say("done", true)
		if why := k.rest(100, 2000); why != none {
			return why
		}
		k.say("and one more thing", k.rnd.IntN(2) == 0) // unasked, after the end
	case "quotes":
		k.tell(map[string]any{"type": driver.Said, "tool": "bash", "text": "TURN_COMPLETE"})
		k.say("TURN_COMPLETE is what I say at the end", false)
		if why := k.rest(100, 2000); why != none {
			return why
		}
		k.say("so", true)
	default:
		k.say("well", true)
	}
	return none
}

// stopped is the end of an answer that was not wanted any more. One goes on to listen, another
// one ends; each may have something on its tongue.
func (k *talker) stopped() (end script.End, over bool) {
	if k.rnd.IntN(3) == 0 {
		k.say("but", k.rnd.IntN(2) == 0)
	}
	if why := k.rest(20, 900); why == asked || why == killed {
		return k.end(why), true
	}
	if k.rnd.IntN(2) == 0 {
		ok := false
		k.tell(map[string]any{"type": driver.Stopped, "ok": ok, "reason": "cancelled"})
		return script.End{Code: script.CodeCancelled}, true
	}
	return script.End{}, false
}

// end is how the process ends, as it says it itself where it can.
func (k *talker) end(why cut) script.End {
	switch why {
	case killed:
		return script.End{Code: -1, Signal: "SIGKILL"}
	case asked:
		k.tell(map[string]any{"type": driver.Stopped, "ok": false, "reason": "terminated"})
		return script.End{Code: script.CodeTerminated}
	default:
		k.tell(map[string]any{"type": driver.Stopped, "ok": true, "reason": "completed"})
		return script.End{}
	}
}

// rest lets some milliseconds pass, unless something ends them before.
func (k *talker) rest(least, most int) cut {
	over := wait.After(time.Duration(least+k.rnd.IntN(most-least))*time.Millisecond + time.Duration(k.rnd.IntN(1000))*time.Microsecond)
	for {
		k.w.mu.Lock()
		in := k.s.input
		stop := false
		for i, l := range in.lines {
			if l.order.Type == script.OrderCancel { // with all that was typed before it
				stop, k.took = true, l.end
				in.lines = in.lines[i+1:]
				break
			}
		}
		more := in.more
		k.w.mu.Unlock()
		if stop {
			return hushed
		}
		select {
		case <-over:
			return none
		case <-more:
		case <-k.s.asked:
			return asked
		case <-k.ctx.Done():
			return killed
		}
	}
}

// say says something that is like nothing else, with the marker behind it where it gives the
// turn back.
func (k *talker) say(text string, complete bool) {
	k.w.mu.Lock()
	word := k.w.book.word(agentIn(k.s.id), k.s, k.now.key)
	k.w.book.words[word].must = k.open // otherwise no one expects it
	if complete {
		k.w.book.givesUp(k.now.key)
	}
	k.w.mu.Unlock()
	text += " " + word
	if complete {
		text += "\nTURN_COMPLETE"
		if k.rnd.IntN(2) == 0 {
			text = text[:len(text)-len("\nTURN_COMPLETE")] + " TURN_COMPLETE"
		}
	}
	k.tell(map[string]any{"type": driver.Said, "text": text})
}

// gives gives the turn back with nothing else.
func (k *talker) gives(marker string) {
	k.w.mu.Lock()
	k.w.book.givesUp(k.now.key)
	k.w.mu.Unlock()
	k.tell(map[string]any{"type": driver.Said, "text": marker})
}

func (k *talker) tell(event map[string]any) {
	b, err := json.Marshal(event)
	if err != nil {
		panic(fmt.Sprintf("sim: an event that is no JSON: %v", err))
	}
	_, _ = spool{k.w, k.s}.Write(append(b, '\n'))
}
