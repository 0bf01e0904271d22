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

func isTurn(machine string) bool { return machine == "turn" }

// turnLines are what the log of turns says of a change: one line where an agent moved, else
// none. What was said, told or counted moves nobody.
func (e *Controller) TurnLines(_ context.Context, ch journal.Change) ([][]byte, error) {
	if !isTurn(ch.Machine) || ch.From == "" || ch.From == ch.To {
		return nil, nil
	}
	line, err := turnLine(ch)
	return [][]byte{line}, err
}

// turnLine is the line of a turn's change, whether or not somebody moved by it: the seed's
// words for what it has words for, else ours.
func turnLine(ch journal.Change) ([]byte, error) {
	// Of the change's data its agent alone is wanted; the rest may be a long text.
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
		channel = "" // an agent as such
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
