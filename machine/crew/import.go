package crew

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/machine"
)

const idBytesMax = 64

// isID says whether a document may be called so: it is a file's name.
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

// reserved are names beside those of documents in the journal.
var reserved = map[DocID]bool{"lead": true, "words": true}

// imported takes in a document that somebody else wrote. Who is alive is for the lead to say, so
// nobody becomes alive by it; and nobody is replaced by it.
func (d *draft) imported(in Imported) error {
	if is := d.crew.Docs[in.ID]; is != nil {
		if in.Document.Name == "" || in.Document.Name == is.Name {
			return d.importedAgain(in)
		}
		in.ID = "" // another machine has given its name to somebody else
	}
	doc := in.Document
	refuse := func(row, reason string) error {
		return &machine.Refusal{Subject: subjectOf(in), Event: "imported", State: string(None), Row: row, Reason: reason}
	}
	event := importEvent(in)
	switch {
	case len(d.crew.Docs) >= docsMax:
		return refuse("P13", fmt.Sprintf("there are %d documents, which is the most", docsMax))
	case doc.Seat < 0 || doc.Seat > SeatMax || doc.Seat == LeadSeat:
		return refuse("P13", fmt.Sprintf("gridPosition is %d; there are 0 to %d, and %d is the lead's", doc.Seat, SeatMax, LeadSeat))
	case event != ImportedHatching && event != ImportedExpired && strings.TrimSpace(doc.Name) == "":
		return refuse("P13", "it has no name; only one that hatches has none")
	}
	if here := d.onSeat(doc.Seat); here != nil && event != ImportedExpired {
		if here.Name == doc.Name && doc.Name != "" {
			return refuse("P11", fmt.Sprintf("%s is here already, as %s", quoted(doc.Name), here.ID))
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

// earlier is a time from elsewhere, where clocks may be wrong: never after ours.
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
			return ImportedUnknown // it is somebody
		}
		return ImportedHatching
	case Expired:
		return ImportedExpired
	default:
		return ImportedUnknown
	}
}

// importedAgain takes in what somebody wrote into the file of one that we know: fields that we do
// not know. Who is awake is the lead's to say, and is written again as it is; who somebody is, is
// its own, so that a document which says otherwise is not taken in at all, and is kept.
func (d *draft) importedAgain(in Imported) error {
	is, doc := d.doc(in.ID), &in.Document
	if doc.Identity != is.Identity {
		return &machine.Refusal{
			Subject: subjectOf(in), Event: string(ImportedAgain), State: string(is.Status), Row: "X5",
			Reason: fmt.Sprintf("it says otherwise who %s is, and a name, a seat, a face and a soul are set once", quoted(nameOf(is))),
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
	words := fmt.Sprintf("somebody else wrote %s; only fields that Fairlead does not know are taken from it, since the lead says who is awake", subjectOf(in))
	return d.leadStep(Noticed, step{Notice: d.notice(NoticeRefused, words, "")})
}
