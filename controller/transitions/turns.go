package transitions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/controller/channels"

	"github.com/fairlead-dev/fairlead/journal"
	machineturn "github.com/fairlead-dev/fairlead/machine/channel"
	"github.com/fairlead-dev/fairlead/transitionlog"
)

// TurnLines returns the line of a change for the log of turns; none if no agent's state changed.
func (c *Controller) TurnLines(_ context.Context, ch journal.Change) ([][]byte, error) {
	if ch.Machine != "turn" || ch.From == "" || ch.From == ch.To {
		return nil, nil
	}
	line, err := turnLine(ch)
	return [][]byte{line}, err
}

// turnLine returns the line of a turn's change, with the seed's trigger if it has one, else
// Fairlead's.
func turnLine(ch journal.Change) ([]byte, error) {
	// Only the agent is needed; the rest of the data may be a long text.
	var data struct {
		Turn struct {
			Agent string `json:"agent"`
		} `json:"turn"`
	}
	if err := json.Unmarshal(ch.Data, &data); err != nil {
		return nil, fmt.Errorf("read change %d of %s: %w", ch.Seq, ch.Entity, err)
	}
	channel, ok := strings.CutPrefix(ch.Entity, channels.ChannelPrefix)
	if !ok {
		channel = "" // the agent itself, not its part in a channel
	}
	trigger := ch.Trigger
	fact := machineturn.Change{At: ch.Time, From: machineturn.State(ch.From), To: machineturn.State(ch.To), Trigger: machineturn.Event(ch.Trigger)}
	if line, moved := fact.Line(); moved {
		trigger = line.Trigger
	}
	return transitionlog.Line(transitionlog.Entry{
		At: ch.Time, AgentID: data.Turn.Agent, From: ch.From, To: ch.To, Trigger: trigger, Channel: channel,
		Machine: ch.Machine, Entity: ch.Entity, Row: ch.Row, Actor: transitionlog.Actor(ch.Actor), Seq: ch.Seq,
	}), nil
}
