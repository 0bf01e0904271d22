package view

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// CrewView is the crew as `fairlead crew --json` and GET /crew show it: which agents exist, and which
// are awake.
type CrewView struct {
	Button       string         `json:"button" doc:"SUMMON, WAKE, WAKING… (disabled) or none: the button that the page offers"`
	InProgress   string         `json:"in_progress" doc:"summoning, asking or waking; empty: none of them"`
	Agents       []DocumentView `json:"agents" doc:"By seat; expired ones, if requested, last"`
	Lead         LeadView       `json:"lead" doc:"The lead's name"`
	Size         int            `json:"size" doc:"Seats that a summon fills"`
	Notices      []NoticeView   `json:"notices" doc:"Notices for people, oldest first"`
	SoulsLeftOut int            `json:"souls_left_out" doc:"Number of agents whose soul is left out because the answer would be too long; request each by its id"`
	Head         uint64         `json:"head" doc:"The answer is the state at this sequence"`
}

// DocumentView is one agent's document, in the spelling of seed 001 (agent-identity), with its id. In
// the JSON of a single document, unknown fields follow the known ones.
type DocumentView struct {
	Type        string          `json:"type" doc:"agent-identity"`
	Status      string          `json:"status" doc:"hatching, alive, sleeping, unknown or expired"`
	Name        *string         `json:"name" doc:"null while it hatches"`
	Color       string          `json:"color" doc:"As '#rrggbb'; written by the agent, so check it before use"`
	ColorName   string          `json:"colorName"`
	Gender      string          `json:"gender" doc:"In the agent's own words"`
	Seat        int             `json:"gridPosition" doc:"0 to 8; 4 is the lead's"`
	Face        FaceView        `json:"faceVariant"`
	Soul        string          `json:"individuationArtifact" doc:"Its soul, whole"`
	CreatedAt   string          `json:"createdAt" doc:"When its placeholder was made; UTC, milliseconds"`
	LastAliveAt *string         `json:"lastAliveAt" doc:"When the lead last reported it alive; null: never"`
	LastSession *string         `json:"lastSessionId" doc:"The lead session of that report; null: none"`
	ID          string          `json:"id" doc:"Id of its document, which is also its file name"`
	Extra       json.RawMessage `json:"-"` // object with the unknown fields; nil: none
}

// FaceView describes the face that the page draws for an agent.
type FaceView struct {
	Eyes  string `json:"eyes" doc:"One word; clients draw a default for words that they do not know"`
	Mouth string `json:"mouth" doc:"One word, as for eyes"`
}

// LeadView is the agent that leads the crew.
type LeadView struct {
	Agent      string     `json:"agent" doc:"According to fairlead.yaml; empty: no agent leads"`
	Session    string     `json:"session" doc:"Its lead session; empty: none is open"`
	State      string     `json:"state" doc:"asleep, waits (for its slot), starting, unheard (it has not reported yet) or heard"`
	Why        string     `json:"why" doc:"What it waits for"`
	ReportedAt *time.Time `json:"reported_at" doc:"Its last report in this session; null: none yet"`
	Seat       int        `json:"seat"`
}

// The states of a lead.
const (
	LeadAsleep   = "asleep"
	LeadWaits    = "waits"
	LeadStarting = "starting"
	LeadUnheard  = "unheard"
	LeadHeard    = "heard"
)

// NoticeView is a notice for people.
type NoticeView struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind" doc:"fault, ignored, refused, silent or lead"`
	Text    string    `json:"text"`
	Session string    `json:"session" doc:"The session whose output caused it; empty: none"`
}

const documentType = "agent-identity"

// ViewDocument converts a document. The view shares no memory with the document that later changes modify.
func ViewDocument(doc *crew.Document) DocumentView {
	return DocumentView{
		Type: documentType, Status: string(doc.Status), Name: wordOr(doc.Name), Color: doc.Color, ColorName: doc.ColorName,
		Gender: doc.Gender, Seat: doc.Seat, Face: FaceView(doc.Face), Soul: doc.Soul,
		CreatedAt: file.FormatTime(doc.CreatedAt), LastAliveAt: stampOr(doc.LastAliveAt), LastSession: wordOr(doc.LastSession),
		ID: string(doc.ID), Extra: doc.Extra,
	}
}

// wordOr returns nil, JSON's null, for an empty word.
func wordOr(word string) *string {
	if word == "" {
		return nil
	}
	return &word
}

func stampOr(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	return wordOr(file.FormatTime(at))
}

// fieldsOfView are the known fields; an unknown field of the same name is left out.
var fieldsOfView = []string{
	"type", "status", "name", "color", "colorName", "gender", "gridPosition", "faceVariant", "individuationArtifact",
	"createdAt", "lastAliveAt", "lastSessionId", "id",
}

// MarshalJSON writes the seed's fields in their order, the id, and the unknown fields as they were
// read.
func (d DocumentView) MarshalJSON() ([]byte, error) {
	type plain DocumentView
	known := encode.JSON(plain(d))
	if len(d.Extra) == 0 {
		return known, nil
	}
	var extra file.Fields
	if err := file.Unpack(d.Extra, &extra); err != nil {
		return nil, err
	}
	extra = slices.DeleteFunc(extra, func(f file.Field) bool { return slices.Contains(fieldsOfView, f.Name) })
	if len(extra) == 0 {
		return known, nil
	}
	rest, err := file.Pack(extra)
	if err != nil {
		return nil, err
	}
	return slices.Concat(known[:len(known)-1], []byte{','}, rest[1:]), nil
}
