package api

import "github.com/fairlead-dev/fairlead/engine"

// Texts of a channel are up to 128 KiB each, and what is not printable is six times as long in
// JSON. So one answer holds as much as a client takes, and the rest comes with the next one.
const (
	entriesBytesMax = 8 << 20 // of a page, like one of the journal
	errandsBytesMax = 4 << 20 // of all errands that are fetched at once; one is always given
	givenBytesMax   = 1 << 20 // of the messages of one errand; its text is bounded by itself
	entryBytes      = 256     // what an entry takes beside its texts
)

func weight(e *engine.ChannelEntry) int { return entryBytes + len(e.Text) + len(e.By) + len(e.Agent) }

// fitPage cuts a page that is too big: an end that was asked for by after loses its newest
// entries, any other its oldest. The entries of one change are not parted, so at least those of
// one are given.
func fitPage(page engine.ChannelPage, newest bool) engine.ChannelPage {
	list := page.Entries
	fits, room := 0, entriesBytesMax
	at := func(i int) *engine.ChannelEntry { // the i-th of those that go first
		if newest {
			return &list[len(list)-1-i]
		}
		return &list[i]
	}
	for i := range list {
		if room -= weight(at(i)); room < 0 && fits > 0 {
			break
		}
		if i+1 == len(list) || at(i).Seq != at(i+1).Seq {
			fits = i + 1
		}
	}
	if fits == len(list) {
		return page
	}
	page.More = true
	if page.Entries = list[:fits]; newest {
		page.Entries = list[len(list)-fits:]
	}
	return page
}

// fitErrands gives the first errands for which there is room, the messages of each cut to the
// newest. Those that are left come when these are done: they stay in the list until then.
func fitErrands(list []engine.ErrandView) []engine.ErrandView {
	room := errandsBytesMax
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
