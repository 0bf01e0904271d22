package crew

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/table"
)

const idBytesMax = 64

// isID reports whether a document may have this id, which is also a file name.
func isID(id DocID) bool {
	for i := range len(id) {
		c := id[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return id != "" && len(id) <= idBytesMax
}

// reserved are the other journal entities of the crew.
var reserved = map[DocID]bool{"lead": true, "words": true}

// imported imports a document that another program wrote. It makes no agent alive, because only the
// lead reports that, and it replaces no agent.
func (d *crewDraft) imported(in Imported) error {
	if is := d.crew.Docs[in.ID]; is != nil {
		if in.Document.Name == "" || in.Document.Name == is.Name {
			return d.importedAgain(in)
		}
		in.ID = "" // another machine gave this id to another agent
	}
	doc := in.Document
	refuse := func(row, reason string) error {
		return &table.Refusal{Subject: subjectOf(in), Event: "imported", State: string(None), Row: row, Reason: reason}
	}
	event := importEvent(in)
	switch {
	case len(d.crew.Docs) >= docsMax:
		return refuse("P13", fmt.Sprintf("there are %d documents, which is the limit", docsMax))
	case noMemberSeat(doc.Seat) != "":
		return refuse("P13", fmt.Sprintf("gridPosition is %d; use 0 to %d except %d, which is the lead's", doc.Seat, SeatMax, LeadSeat))
	case event != ImportedHatching && event != ImportedExpired && strings.TrimSpace(doc.Name) == "":
		return refuse("P13", "it has no name; only a hatching document may have none")
	}
	if here := d.onSeat(doc.Seat); here != nil && event != ImportedExpired {
		if here.Name == doc.Name && doc.Name != "" {
			return refuse("P11", fmt.Sprintf("%s exists already, as %s", quoted(doc.Name), here.ID))
		}
		return refuse("P11", fmt.Sprintf("seat %d is taken by %s", doc.Seat, quoted(nameOf(here))))
	}
	with := named{
		Identity: doc.Identity, CreatedAt: earlier(doc.CreatedAt, d.now.At), LastAliveAt: earlier(doc.LastAliveAt, d.now.At),
		LastSession: doc.LastSession, Extra: doc.Extra,
	}
	id := in.ID
	if !isID(id) || reserved[id] {
		id = d.newID()
		with.Made = d.made
	}
	return d.move(id, event, with)
}

func subjectOf(in Imported) string {
	if in.From != "" {
		return in.From
	}
	return "a document"
}

func nameOf(doc *Document) string {
	if doc.Name == "" {
		return string(doc.ID)
	}
	return doc.Name
}

// earlier limits a time from another clock to the current time.
func earlier(at, now time.Time) time.Time {
	if at.After(now) {
		return now
	}
	return at
}

func importEvent(in Imported) Event {
	if in.Bare {
		return ImportedBare
	}
	switch in.Document.Status {
	case Alive:
		return ImportedAwake
	case Sleeping:
		return ImportedAsleep
	case Hatching:
		if in.Document.Name != "" {
			return ImportedUnknown // any other word
		}
		return ImportedHatching
	case Expired:
		return ImportedExpired
	default:
		return ImportedUnknown
	}
}

// importedAgain imports another program's write to the file of a known document. It takes only the
// unknown fields. The status is reported by the lead and is written again. The identity belongs to
// the agent: a document with a different identity is refused, and a copy is kept.
func (d *crewDraft) importedAgain(in Imported) error {
	is, doc := d.doc(in.ID), &in.Document
	if doc.Identity != is.Identity {
		return &table.Refusal{
			Subject: subjectOf(in), Event: string(ImportedAgain), State: string(is.Status), Row: "X5",
			Reason: fmt.Sprintf("it contradicts the identity of %s; name, seat, face and soul are set only once", quoted(nameOf(is))),
		}
	}
	if !bytes.Equal(is.Extra, doc.Extra) {
		if err := d.move(in.ID, ImportedAgain, named{Extra: doc.Extra}); err != nil {
			return err
		}
	}
	if doc.Status == is.Status && doc.LastSession == is.LastSession && !in.Bare {
		return nil
	}
	words := fmt.Sprintf("another program wrote %s; only its unknown fields were taken, because the lead reports which agents are awake",
		subjectOf(in))
	return d.leadStep(Noticed, step{Notice: d.notice(NoticeRefused, words, "")})
}
