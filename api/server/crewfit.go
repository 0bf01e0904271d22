package server

import (
	"github.com/fairlead-dev/fairlead/read/view"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
)

// soulsBytesMax bounds the souls of one list. The members on seats have at most 2 MiB together; only
// a list that includes expired documents from other devices can reach this limit.
const soulsBytesMax = 8 << 20

// fitCrew removes the souls that do not fit into a list and reports how many. Members on seats come
// first, so no visible member loses its soul.
func fitCrew(view view.CrewView) view.CrewView {
	view.Agents, view.Notices = some(view.Agents), some(view.Notices)
	room := soulsBytesMax
	for i := range view.Agents {
		doc := &view.Agents[i]
		if room -= len(doc.Soul); room < 0 && doc.Soul != "" {
			doc.Soul = ""
			view.SoulsLeftOut++
		}
	}
	return view
}

// fitTranscript is fitPage for transcripts: one change may hold messages of several speakers. If the
// page is cut, Next is the sequence at which the next page continues.
func fitTranscript(page crewctl.TranscriptPage, newest bool) crewctl.TranscriptPage {
	fits, cut := fitSeqs(page.Messages, newest, func(m *crewctl.Message) (uint64, int) {
		return m.Seq, entryBytes + len(m.Text) + len(m.Speaker) + len(m.Session) + len(m.Channel)
	})
	page.Messages, page.More = some(fits), page.More || cut
	if cut {
		if page.Next = fits[len(fits)-1].Seq; newest {
			page.Next = fits[0].Seq
		}
	}
	return page
}
