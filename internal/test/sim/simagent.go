package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/script"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// simAgent plays the process of a session for channels: it reads prompts and answers them, mostly
// correctly. It is not a script agent, because checks must find every piece of its output in the
// journal.
type simAgent struct {
	w            *world
	s            *hostSession
	ctx          context.Context
	rnd          *rand.Rand
	now          line  // the prompt that it answers
	took         int64 // offset of the input that it has read
	unanswered   bool  // it has not reported that it listens again
	listensOften bool  // it reports that it listens after each answer, even if it has more input

	crew        map[int]string // seat → member that lives in this lead session
	interrupted interruption   // what ended it in the middle of a marker
}

// noPromptAgent is the agent whose program reads no input while it runs. Each prompt needs a new
// session.
const noPromptAgent = "flaky"

// answerKinds are the ways to answer a prompt. At the end of a day every agent answers "well".
var answerKinds = []string{
	"well", "well", "well", "well", "well", "well", "well", "slowly", "slowly", "in-pieces", "in-pieces",
	"unfinished", "unfinished", "passes", "passes", "waits", "mute", "goes", "crashes", "hangs", "twice", "quotes",
}

// interruption is what ends an answer early.
type interruption int

const (
	uninterrupted interruption = iota
	cancelled                  // an order to cancel
	terminated                 // SIGTERM
	killed                     // SIGKILL
	inputEnded                 // end of input
)

// playAgent plays a session for channels until it ends.
func (w *world) playAgent(ctx context.Context, s *hostSession) script.End {
	k := &simAgent{w: w, s: s, ctx: ctx, rnd: rand.New(rand.NewPCG(w.seed, hash(s.id))), crew: map[int]string{}}
	k.listensOften = k.rnd.IntN(2) == 0
	for {
		if why := k.next(); why != uninterrupted {
			return k.end(why)
		}
		end, over := k.answer()
		if over {
			return end
		}
		if agentIn(s.id) == noPromptAgent {
			return k.end(inputEnded)
		}
		if k.listensOften && k.unanswered {
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

// next reads the next prompt. While it waits, it reports that it listens.
func (k *simAgent) next() interruption {
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
		case got != nil && got.order.Type == speech.OrderCancel:
			continue // no answer is in progress
		case got != nil:
			k.now, k.unanswered = *got, true
			return uninterrupted
		case closed:
			return inputEnded
		}
		if k.unanswered {
			k.listen()
		}
		select {
		case <-more:
		case <-k.s.sigterm:
			return terminated
		case <-k.ctx.Done():
			return killed
		}
	}
}

func (k *simAgent) listen() {
	k.unanswered = false
	k.emit(map[string]any{"type": driver.Listening, "input": k.took})
}

// answer answers one prompt in one of the ways. over reports that the process has ended.
func (k *simAgent) answer() (end script.End, over bool) {
	if do := ofLead(k.now.key); do != "" {
		return k.answerLead(do)
	}
	how := answerKinds[k.rnd.IntN(len(answerKinds))]
	if (channelWorld{k.w}).isWellBehaved() {
		how = "well"
	}
	why := k.sleep(200, 6000)
	if why == uninterrupted {
		k.emit(map[string]any{"type": driver.UsageReported, "input_tokens": 3, "output_tokens": 1, "cost_usd": 0.01})
		switch how {
		case "goes":
			k.say("I leave now", k.rnd.IntN(2) == 0)
			return k.end(inputEnded), true
		case "crashes":
			k.say("I feel", false)
			return script.End{Code: -1, Signal: "SIGSEGV"}, true
		}
		why = k.perform(how)
	}
	return k.answered(why)
}

// answered ends an answer, and the program if it was interrupted by more than a cancel.
func (k *simAgent) answered(why interruption) (script.End, bool) {
	switch why {
	case uninterrupted:
		return script.End{}, false
	case cancelled:
		return k.stopped()
	default:
		return k.end(why), true
	}
}

func (k *simAgent) perform(how string) interruption {
	if why := k.markers(); why != uninterrupted {
		return why
	}
	switch how {
	case "slowly":
		if why := k.sleep(15_000, 40_000); why != uninterrupted {
			return why
		}
		k.say("at last", true)
	case "in-pieces":
		for range 2 + k.rnd.IntN(3) {
			k.say("one thing", false)
			if why := k.sleep(100, 4000); why != uninterrupted {
				return why
			}
		}
		k.endTurn("TURN_COMPLETE")
	case "unfinished":
		k.say("that is all", false)
	case "passes":
		k.endTurn("TURN_PASS")
	case "waits":
		k.say("I need something", false)
		k.emit(map[string]any{"type": driver.Said, "text": "TURN_WAIT"})
	case "mute":
	case "hangs":
		if name := agentIn(k.s.id); name != noPromptAgent && name != "coder" {
			break // nothing would end it
		}
		select {
		case <-k.s.sigterm:
			return terminated
		case <-k.ctx.Done():
			return killed
		}
	case "twice":
		k.say("done", true)
		if why := k.sleep(100, 2000); why != uninterrupted {
			return why
		}
		k.say("and one more thing", k.rnd.IntN(2) == 0) // a message after the end of its turn
	case "quotes":
		k.emit(map[string]any{"type": driver.Said, "tool": "bash", "text": "TURN_COMPLETE"})
		k.say("TURN_COMPLETE is what I say at the end", false)
		if why := k.sleep(100, 2000); why != uninterrupted {
			return why
		}
		k.say("so", true)
	default:
		k.say("well", true)
	}
	return uninterrupted
}

// stopped ends an answer that was cancelled. The process continues or ends, and may say something
// first.
func (k *simAgent) stopped() (end script.End, over bool) {
	if k.rnd.IntN(3) == 0 {
		k.say("but", k.rnd.IntN(2) == 0)
	}
	if why := k.sleep(20, 900); why == terminated || why == killed {
		return k.end(why), true
	}
	if k.rnd.IntN(2) == 0 {
		ok := false
		k.emit(map[string]any{"type": driver.Stopped, "ok": ok, "reason": "cancelled"})
		return script.End{Code: script.CodeCancelled}, true
	}
	return script.End{}, false
}

// end reports the end of the process, if it can.
func (k *simAgent) end(why interruption) script.End {
	switch why {
	case killed:
		return script.End{Code: -1, Signal: "SIGKILL"}
	case terminated:
		k.emit(map[string]any{"type": driver.Stopped, "ok": false, "reason": "terminated"})
		return script.End{Code: script.CodeTerminated}
	default:
		k.emit(map[string]any{"type": driver.Stopped, "ok": true, "reason": "completed"})
		return script.End{}
	}
}

// sleep waits for some milliseconds, or until an interruption.
func (k *simAgent) sleep(least, most int) interruption {
	over := wait.After(time.Duration(least+k.rnd.IntN(most-least))*time.Millisecond + time.Duration(k.rnd.IntN(1000))*time.Microsecond)
	for {
		k.w.mu.Lock()
		in := k.s.input
		stop := false
		for i, l := range in.lines {
			if l.order.Type == speech.OrderCancel { // the order also drops the prompts before it
				stop, k.took = true, l.end
				in.lines = in.lines[i+1:]
				break
			}
		}
		more := in.more
		k.w.mu.Unlock()
		if stop {
			return cancelled
		}
		select {
		case <-over:
			return uninterrupted
		case <-more:
		case <-k.s.sigterm:
			return terminated
		case <-k.ctx.Done():
			return killed
		}
	}
}

// say says a text with a new word and, if complete, with the end-of-turn marker.
func (k *simAgent) say(text string, complete bool) {
	k.w.mu.Lock()
	word := k.w.record.word(agentIn(k.s.id), k.s, k.now.key)
	k.w.record.words[word].must = k.unanswered // otherwise no prompt is open, and the message may be dropped
	if complete {
		k.w.record.endsTurn(k.now.key)
	}
	k.w.mu.Unlock()
	text += " " + word
	if complete {
		text += "\nTURN_COMPLETE"
		if k.rnd.IntN(2) == 0 {
			text = text[:len(text)-len("\nTURN_COMPLETE")] + " TURN_COMPLETE"
		}
	}
	k.emit(map[string]any{"type": driver.Said, "text": text})
}

// endTurn ends the turn with a marker and no other text.
func (k *simAgent) endTurn(marker string) {
	k.w.mu.Lock()
	k.w.record.endsTurn(k.now.key)
	k.w.mu.Unlock()
	k.emit(map[string]any{"type": driver.Said, "text": marker})
}

func (k *simAgent) emit(event map[string]any) {
	_, _ = spool{k.w, k.s}.Write(append(encode.JSON(event), '\n'))
}
