package server

import (
	crewctl "github.com/fairlead-dev/fairlead/controller/crew"
	"github.com/fairlead-dev/fairlead/view"
)

// soulsBytesMax bounds the souls of one list. Those who sit on seats have 2 MiB at most among
// them; only a list that shows expired documents from other devices too comes near it.
const soulsBytesMax = 8 << 20

// fitCrew leaves out the souls for which a list has no room, and says how many. Who sits on a
// seat comes first in it, so nobody who can be seen loses his.
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

// fitTranscript is fitPage for what was said: one change may hold the words of several speakers.
// Where it cuts, the next page begins behind what is left.
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
