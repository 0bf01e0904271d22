package jetstream

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Each answer alone: only a positive one, or what is stored at the place, is proof.
func TestAnswersToAnAttempt(t *testing.T) {
	for _, c := range []struct {
		answer Answer
		found  string
		want   Step
	}{
		{Acknowledged, "", Stored},
		{WrongLast, "", Publish},
		{WrongLast, "mine", Stored},
		{WrongLast, "other", Conflict},
		{NoAnswer, "", Publish},
		{NoAnswer, "mine", Stored},
		{NoAnswer, "other", Conflict},
	} {
		a := NewAttempt("mine", 7)
		step := a.Answered(c.answer, time.Second)
		if step == Look {
			step = a.Read(c.found)
		}
		if step != c.want || a.Place() != 8 || a.MessageID() != "mine" {
			t.Errorf("%s, then %q at the place: %s, want %s", c.answer, c.found, step, c.want)
		}
	}
}

// What is proved stays so, whatever comes later.
func TestProofStays(t *testing.T) {
	a := NewAttempt("mine", 0)
	a.Answered(Acknowledged, 0)
	if a.Answered(WrongLast, 0) != Stored || a.Read("other") != Stored || a.Read("") != Stored {
		t.Error("stored, and then not")
	}
	a = NewAttempt("mine", 0)
	a.Answered(NoAnswer, 0)
	a.Read("other")
	if a.Answered(Acknowledged, 0) != Conflict || a.Read("mine") != Conflict {
		t.Error("a conflict, and then none")
	}
}

// A client that gets no proof for three seconds connects to another server, and again after three more.
func TestReconnect(t *testing.T) {
	a := NewAttempt("mine", 0)
	for n, want := range []Step{Look, Look, Reconnect, Look, Look, Reconnect} {
		if step := a.Answered(NoAnswer, time.Second); step != want {
			t.Errorf("answer %d: %s, want %s", n, step, want)
		}
		a.Read("")
	}
}

// Writers append to a server that answers at random, late readers included. Each append ends as what happened.
func TestWritersAgree(t *testing.T) {
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var log []string
		store := func(a *Attempt) Answer {
			if rnd.IntN(3) == 0 { // lost, or refused without a reason
				return []Answer{NoAnswer, WrongLast}[rnd.IntN(2)]
			}
			if uint64(len(log)) != a.Place()-1 {
				return WrongLast
			}
			log = append(log, a.MessageID())
			return []Answer{Acknowledged, NoAnswer}[rnd.IntN(2)]
		}
		writers := []*Attempt{NewAttempt("a", 0), NewAttempt("b", 0), NewAttempt("c", 0)}
		ended := map[string]Step{}
		for len(ended) < len(writers) {
			a := writers[rnd.IntN(len(writers))]
			step := a.Answered(store(a), time.Millisecond)
			if step == Look {
				found := ""
				if len(log) > 0 && rnd.IntN(2) == 0 {
					found = log[0]
				}
				step = a.Read(found)
			}
			if step == Stored || step == Conflict {
				ended[a.MessageID()] = step
			}
		}
		if len(log) != 1 {
			t.Fatalf("seed %d: stored %q", seed, log)
		}
		for id, step := range ended {
			if (step == Stored) != (id == log[0]) {
				t.Fatalf("seed %d: %s ended as %s, and %s is stored", seed, id, step, log[0])
			}
		}
	}
}
