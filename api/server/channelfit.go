package server

import (
	"github.com/fairlead-dev/fairlead/read/view"
)

// Texts of a channel are up to 128 KiB each, and unprintable characters take six times as much in
// JSON. An answer is therefore cut to these limits, and the client fetches the rest with the next
// request.
const (
	entriesBytesMax = 8 << 20 // of a page, as for the journal; also of a transcript
	actionsBytesMax = 4 << 20 // of all actions in one answer; at least one is always returned
	givenBytesMax   = 1 << 20 // of the messages of one action; its text has a limit of its own
	entryBytes      = 256     // estimate for an entry without its texts
)

func weight(e *view.ChannelEntry) int { return entryBytes + len(e.Text) + len(e.By) + len(e.Agent) }

// fitPage cuts a page that is too big. A page that was requested with `after` loses its newest
// entries, any other page its oldest. Entries of one change stay together, so the entries of at
// least one change are returned.
func fitPage(page view.ChannelPage, newest bool) view.ChannelPage {
	fits, cut := fitSeqs(page.Entries, newest, func(e *view.ChannelEntry) (uint64, int) { return e.Seq, weight(e) })
	page.Entries, page.More = fits, page.More || cut
	return page
}

// fitSeqs returns as many items from one end of a list as fit into an answer, and reports whether
// any were cut. Items of one change stay together. each returns the sequence number and the size in
// bytes of an item.
func fitSeqs[T any](list []T, newest bool, each func(*T) (uint64, int)) (fits []T, cut bool) {
	n, room := 0, entriesBytesMax
	at := func(i int) (uint64, int) { // the i-th in the order of preference
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

// fitActions returns the first actions that fit, each with its newest messages. The others stay in
// the list and are returned when these are done.
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
