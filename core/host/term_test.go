package host

import (
	"testing"
	"time"
)

// A leader acts on its lease only while a majority has acknowledged it lately, and never when another host has claimed it.
func TestTerm(t *testing.T) {
	t.Parallel()
	const s = BootTime(time.Second)
	term := NewTerm(7, 100*s)
	if _, _, due := term.Renew(101 * s); due {
		t.Error("a renewal is due after a second")
	}
	n, on, due := term.Renew(102 * s)
	if !due || n != 1 || on != 7 {
		t.Fatalf("renewal %d on %d, %t", n, on, due)
	}
	if !term.Confirmed(104*s) || term.Confirmed(105*s) {
		t.Error("the claim counts for 4.5 s")
	}
	if term.Deadline() != 145*s {
		t.Errorf("the sessions end at %v", term.Deadline())
	}
	term.Saw(9, 1, true)
	if !term.Confirmed(106*s) || term.Confirmed(107*s) || term.Deadline() != 147*s {
		t.Error("the renewal counts from when it was sent")
	}
	term.Saw(8, 0, false) // an old answer
	if term.Over() {
		t.Error("an old entry ends the term")
	}
	n, on, _ = term.Renew(104 * s)
	if n != 2 || on != 9 {
		t.Errorf("renewal %d on %d", n, on)
	}
	term.Saw(10, 0, false)
	if !term.Over() || term.Confirmed(104*s) {
		t.Error("a claim of another host does not end the term")
	}
	if _, _, due := term.Renew(200 * s); due {
		t.Error("a term that is over is renewed")
	}
}

// When another host may claim the lead, the previous leader acts on its lease no longer, whatever the rates of their clocks
// are: its last renewal was stored after it was sent, and seen after it was stored.
func TestTermRates(t *testing.T) {
	t.Parallel()
	slow, fast := 1-float64(RateMax)/100, 1+float64(RateMax)/100
	if acts, claims := float64(LeadFor)/slow, float64(LeaderSilence)/fast; acts >= claims {
		t.Errorf("a leader with a slow clock acts for %.2f s, and one with a fast clock claims after %.2f s", acts/1e9, claims/1e9)
	}
}
