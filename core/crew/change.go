package crew

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// The entities of changes. That of a document is its id.
const (
	docPrefix   = "crew/"
	LeadEntity  = docPrefix + "lead"
	WordsEntity = docPrefix + "words"
)

// DocOf returns the document that a change is about; empty: it is about the lead, or what was said in its session.
func DocOf(ch *change.Change) DocID {
	if ch.Entity == LeadEntity || ch.Entity == WordsEntity {
		return ""
	}
	return DocID(strings.TrimPrefix(ch.Entity, docPrefix))
}

// Body is what Apply needs. Every value in it is absolute, so Apply needs no table.
type Body struct {
	Doc    *DocSet `json:"doc,omitempty"`
	Lead   *Lead   `json:"lead,omitempty"`
	Notice *Notice `json:"notice,omitempty"`
	Words  *Words  `json:"words,omitempty"` // text spoken in the lead session; it changes nothing
}

// JSONKey is the key of a change in the journal.
func (*Body) JSONKey() string { return "crew" }

// DocSet is the new state of an agent's document. The journal holds a soul once.
type DocSet struct {
	Status      Status          `json:"status"`
	Identity    *Identity       `json:"identity,omitempty"` // if it is set by this change
	CreatedAt   time.Time       `json:"created_at,omitzero"`
	LastAliveAt time.Time       `json:"last_alive_at,omitzero"`
	LastSession string          `json:"last_session,omitempty"`
	Extra       json.RawMessage `json:"extra,omitempty"`
	Sum         string          `json:"sum,omitempty"`  // identity of the file that this change makes
	Made        uint64          `json:"made,omitempty"` // the number in its id, if Fairlead chose the id
}

// Words is what one speaker said in a lead session.
type Words struct {
	Session string `json:"session"` // its UUID
	Speaker string `json:"speaker"`
	Text    string `json:"text"`
}

// Apply applies a change.
func (c *Crew) Apply(ch change.Change) {
	body := change.As[Body](ch.Body)
	switch {
	case body.Doc != nil:
		c.setDoc(DocOf(&ch), body.Doc)
	case body.Lead != nil:
		c.Lead = *body.Lead
	case body.Notice != nil, body.Words != nil:
	default:
		panic(fmt.Sprintf("crew: a change of %s by row %s is empty", ch.Entity, ch.Row))
	}
	if body.Notice != nil {
		c.Notices = append(c.Notices[:len(c.Notices):len(c.Notices)], *body.Notice)
		if len(c.Notices) > noticesMax {
			c.Notices = c.Notices[len(c.Notices)-noticesMax:]
		}
	}
}

func (c *Crew) setDoc(id DocID, set *DocSet) {
	next := Document{ID: id}
	if was := c.Docs[id]; was != nil {
		next = *was
	}
	next.Status, next.CreatedAt, next.LastAliveAt, next.LastSession, next.Extra = set.Status, set.CreatedAt, set.LastAliveAt,
		set.LastSession, set.Extra
	if set.Identity != nil {
		next.Identity = *set.Identity
	}
	if set.Sum != "" && !slices.Contains(next.Sums, set.Sum) {
		next.Sums = append(next.Sums[:len(next.Sums):len(next.Sums)], set.Sum)
		if len(next.Sums) > sumsMax {
			next.Sums = next.Sums[len(next.Sums)-sumsMax:]
		}
	}
	if c.Docs == nil {
		c.Docs = map[DocID]*Document{}
	}
	c.Docs[id] = &next
	c.Made = max(c.Made, set.Made)
}
