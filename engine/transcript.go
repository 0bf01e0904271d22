package engine

import (
	"context"
	"time"

	"github.com/fairlead-dev/fairlead/team"
)

// Message is what one speaker said in a row.
type Message struct {
	Seq     uint64    `json:"seq" doc:"Of the change in the journal; several messages may share it"`
	At      time.Time `json:"at"`
	Session string    `json:"session" doc:"In which it was said: of the lead its name on every machine; empty: by a person"`
	Speaker string    `json:"speaker"`
	Kind    string    `json:"kind" doc:"lead, agent or human"`
	Channel string    `json:"channel" doc:"Where it was said; empty: to nobody but the person who listens"`
	Text    string    `json:"text"`
}

// TranscriptQuery asks for a part of all that was said. Without Before and After it is the newest.
type TranscriptQuery struct {
	Speaker string // only what this one said
	Session string // only what was said in this session
	Text    string // only what has this in it, in upper or lower case
	Before  uint64 // only messages with a smaller Seq, the newest of them
	After   uint64 // only messages with a greater Seq, the oldest of them
	Limit   int    // messages at most; 0: 100
}

// TranscriptPage is a part of all that was said, the oldest first. Messages of one Seq are never
// parted.
type TranscriptPage struct {
	Messages []Message `json:"messages"`
	More     bool      `json:"more" doc:"There may be more, in the direction that was asked for"`
	Next     uint64    `json:"next" doc:"What to hand back to go on in that direction: as after, where after was asked for, else as before"`
	Head     uint64    `json:"head" doc:"The Seq up to which this is true"`
}

// Transcript is a part of all that was said: in lead sessions, and in channels.
func (e *Engine) Transcript(ctx context.Context, _ TranscriptQuery) (TranscriptPage, error) {
	page := TranscriptPage{Messages: []Message{}}
	err := e.look(ctx, func(*team.Team) { page.Head = e.head })
	return page, err
}
