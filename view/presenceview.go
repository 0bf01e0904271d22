package view

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/crew"
)

// CrewView is who of the team exists and who is awake, as `fairlead crew --json` and GET /team
// show it.
type CrewView struct {
	Button       string         `json:"button" doc:"SUMMON, WAKE, WAKING… (disabled) or none: what a person can press now"`
	InProgress   string         `json:"in_progress" doc:"summoning, asking or waking; empty: nothing is under way"`
	Agents       []DocumentView `json:"agents" doc:"By seat; expired ones last, where they are asked for"`
	Lead         LeadView       `json:"lead" doc:"The lead's name"`
	Size         int            `json:"size" doc:"Seats that a summon fills"`
	Notices      []NoticeView   `json:"notices" doc:"What people should see, the oldest first"`
	SoulsLeftOut int            `json:"souls_left_out" doc:"So many agents are given without their soul, since the answer would be too long; ask for each by its id"`
	Head         uint64         `json:"head" doc:"The answer is the state at this sequence"`
}

// DocumentView is one agent, in the spelling of seed 001 (agent-identity), with its id. Unknown
// fields of its document stand behind the known ones in JSON, where it is given alone.
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
	LastAliveAt *string         `json:"lastAliveAt" doc:"When the lead said last that it is alive; null: never"`
	LastSession *string         `json:"lastSessionId" doc:"The lead session in which that was; null: none"`
	ID          string          `json:"id" doc:"Of its document: what its file is called"`
	Extra       json.RawMessage `json:"-"` // an object of fields that we do not know; nil: none
}

// FaceView is what a page draws an agent with.
type FaceView struct {
	Eyes  string `json:"eyes" doc:"One word; clients draw a default for words that they do not know"`
	Mouth string `json:"mouth" doc:"The same"`
}

// LeadView is the agent that answers for the team.
type LeadView struct {
	Agent      string     `json:"agent" doc:"By fairlead.yaml; empty: nobody leads"`
	Session    string     `json:"session" doc:"Its lead session; empty: none is open"`
	State      string     `json:"state" doc:"asleep, waits (for its seat), starting, unheard (it has not reported yet) or heard"`
	Why        string     `json:"why" doc:"What it waits for"`
	ReportedAt *time.Time `json:"reported_at" doc:"Its last report in this session; null: none yet"`
	Seat       int        `json:"seat"`
}

// What a lead is doing.
const (
	LeadAsleep   = "asleep"
	LeadWaits    = "waits"
	LeadStarting = "starting"
	LeadUnheard  = "unheard"
	LeadHeard    = "heard"
)

// NoticeView is something that people should see.
type NoticeView struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind" doc:"fault, ignored, refused, silent or lead"`
	Text    string    `json:"text"`
	Session string    `json:"session" doc:"Whose words it is about; empty: nobody's"`
}

const documentType = "agent-identity"

// documentView shares nothing with the document that anybody changes.
func ViewDocument(doc *crew.Document) DocumentView {
	return DocumentView{
		Type: documentType, Status: string(doc.Status), Name: wordOr(doc.Name), Color: doc.Color, ColorName: doc.ColorName,
		Gender: doc.Gender, Seat: doc.Seat, Face: FaceView(doc.Face), Soul: doc.Soul,
		CreatedAt: file.FormatTime(doc.CreatedAt), LastAliveAt: stampOr(doc.LastAliveAt), LastSession: wordOr(doc.LastSession),
		ID: string(doc.ID), Extra: doc.Extra,
	}
}

// wordOr is null for a word that there is not.
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

// fieldsOfView are those that no unknown field may stand beside.
var fieldsOfView = []string{
	"type", "status", "name", "color", "colorName", "gender", "gridPosition", "faceVariant", "individuationArtifact",
	"createdAt", "lastAliveAt", "lastSessionId", "id",
}

// MarshalJSON writes the seed's fields in their order, the id, and what we do not know, in the
// spelling that it came in.
func (d DocumentView) MarshalJSON() ([]byte, error) {
	type plain DocumentView
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(plain(d)); err != nil {
		return nil, err
	}
	if len(d.Extra) == 0 {
		return out.Bytes(), nil
	}
	out.Truncate(bytes.LastIndexByte(out.Bytes(), '}'))
	err := file.EachField(d.Extra, func(name string, value json.RawMessage, _ int64) error {
		if slices.Contains(fieldsOfView, name) {
			return nil
		}
		out.WriteByte(',')
		if err := enc.Encode(name); err != nil {
			return err
		}
		out.WriteByte(':')
		out.Write(value)
		return nil
	})
	out.WriteByte('}')
	return out.Bytes(), err
}
