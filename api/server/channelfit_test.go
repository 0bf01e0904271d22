package server

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"
)

// However long texts are, a page is bounded, has no hole, parts no change, and says that there
// is more; reading on from it comes to the end.
func TestPagesFit(t *testing.T) {
	text := strings.Repeat("a", 3<<20)
	sizes := []int{0, 100, 1 << 20, 3 << 20}
	for seed := range uint64(300) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			var left []view.ChannelEntry
			seq := uint64(1)
			for range rnd.IntN(20) {
				seq += rnd.Uint64N(2)
				left = append(left, view.ChannelEntry{Seq: seq, Text: text[:sizes[rnd.IntN(len(sizes))]]})
			}
			newest := rnd.IntN(2) == 0
			for len(left) > 0 {
				left = onePage(t, left, newest)
			}
		})
	}
}

// onePage checks one page of entries, and gives those that are left.
func onePage(t *testing.T, all []view.ChannelEntry, newest bool) (left []view.ChannelEntry) {
	t.Helper()
	page := fitPage(view.ChannelPage{Entries: all}, newest)
	n, bytes := len(page.Entries), 0
	changes := map[uint64]bool{}
	for i := range page.Entries {
		bytes += weight(&page.Entries[i])
		changes[page.Entries[i].Seq] = true
	}
	if n == 0 || page.More != (n < len(all)) || bytes > entriesBytesMax && len(changes) > 1 {
		t.Fatalf("%d of %d entries, %d bytes, more=%v", n, len(all), bytes, page.More)
	}
	given := all[:n]
	if left = all[n:]; newest {
		given, left = all[len(all)-n:], all[:len(all)-n]
	}
	if &given[0] != &page.Entries[0] {
		t.Fatal("it is cut at the wrong end")
	}
	for _, e := range left {
		if changes[e.Seq] {
			t.Fatalf("the entries of change %d are parted", e.Seq)
		}
	}
	return left
}

// Actions that are too big come one after the other, the newest messages of each.
func TestActionsFit(t *testing.T) {
	long := view.ChannelEntry{Text: strings.Repeat("a", 400<<10)}
	list := func(n int) (out []view.ActionView) {
		for i := range n {
			out = append(out,
				view.ActionView{
					N: uint64(i), Text: long.Text, LeftOut: 7,
					Messages: []view.ChannelEntry{{N: 1, Text: long.Text}, {N: 2, Text: long.Text}, {N: 3, Text: long.Text}},
				})
		}
		return out
	}
	got := fitActions(list(9))
	if len(got) != 3 || got[0].N != 0 || got[2].N != 2 {
		t.Errorf("%d actions are given", len(got))
	}
	for _, e := range got {
		if len(e.Messages) != 2 || e.Messages[1].N != 3 || e.LeftOut != 8 {
			t.Errorf("%d messages, %d left out", len(e.Messages), e.LeftOut)
		}
	}
	huge := []view.ActionView{{Text: strings.Repeat("a", actionsBytesMax+1)}, {}}
	if got := fitActions(huge); len(got) != 1 || got[0].Messages == nil {
		t.Errorf("%d actions are given where the first is too big for all", len(got))
	}
	if got := fitActions(nil); got != nil {
		t.Errorf("%v", got)
	}
}
