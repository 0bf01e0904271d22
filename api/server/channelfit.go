package server

import (
	"github.com/fairlead-dev/fairlead/view"
)

// Texts of a channel are up to 128 KiB each, and what is not printable is six times as long in
// JSON. So one answer holds as much as a client takes, and the rest comes with the next one.
const (
	entriesBytesMax = 8 << 20 // of a page, like one of the journal; of a transcript too
	actionsBytesMax = 4 << 20 // of all actions that are fetched at once; one is always given
	givenBytesMax   = 1 << 20 // of the messages of one action; its text is bounded by itself
	entryBytes      = 256     // what an entry takes beside its texts
)

func weight(e *view.ChannelEntry) int { return entryBytes + len(e.Text) + len(e.By) + len(e.Agent) }

// fitPage cuts a page that is too big: an end that was asked for by after loses its newest
// entries, any other its oldest. The entries of one change are not parted, so at least those of
// one are given.
func fitPage(page view.ChannelPage, newest bool) view.ChannelPage {
	fits, cut := fitSeqs(page.Entries, newest, func(e *view.ChannelEntry) (uint64, int) { return e.Seq, weight(e) })
	page.Entries, page.More = fits, page.More || cut
	return page
}

// fitSeqs gives as much of one end of a list as an answer has room for, and says whether that is
// not all. What one change holds is not parted. each gives the sequence and the bytes of a thing.
func fitSeqs[T any](list []T, newest bool, each func(*T) (uint64, int)) (fits []T, cut bool) {
	n, room := 0, entriesBytesMax
	at := func(i int) (uint64, int) { // the i-th of those that go first
		if newest {
			return each(&list[len(list)-1-i])
		}
		return each(&list[i])
	}
	for i := range list {
		seq, bytes := at(i)
		if room -= bytes; room < 0 && n > 0 {
			break
		}
		if i+1 == len(list) {
			n = i + 1
		} else if next, _ := at(i + 1); next != seq {
			n = i + 1
		}
	}
	switch {
	case n == len(list):
		return list, false
	case newest:
		return list[len(list)-n:], true
	default:
		return list[:n], true
	}
}

// fitActions gives the first actions for which there is room, the messages of each cut to the
// newest. Those that are left come when these are done: they stay in the list until then.
func fitActions(list []view.ActionView) []view.ActionView {
	room := actionsBytesMax
	for i := range list {
		e := &list[i]
		e.Messages = some(e.Messages)
		given := 0
		for n := len(e.Messages) - 1; n >= 0; n-- {
			size := weight(&e.Messages[n])
			if given+size > givenBytesMax && given > 0 {
				e.LeftOut, e.Messages = e.LeftOut+uint64(n+1), e.Messages[n+1:]
				break
			}
			given += size
		}
		if room -= given + len(e.Text); room < 0 && i > 0 {
			return list[:i]
		}
	}
	return list
}
