package app

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// fakeDriver understands lines: "usage IN OUT COST", "stop ok", "stop ok 85%" and "stop WHY"; "turn IN OUT COST",
// one line that makes two facts, the first with the offset of the line's beginning; "listening N"
// has read N bytes; "asks …" asks for permission; "deed" calls a tool; "wants TOOL {JSON}" asks
// for it with options, with the offset of the line's end as id; "withdraws ASK", "read ID", "conversation ID
// MODEL [resumed]", "limited SECONDS WHY". All else is text.
type fakeDriver struct {
	check   hook
	between hook // called between two facts of one line
	talks   bool // its agents read input
	plods   bool // but not during an answer
	resumes bool // they can resume a conversation
}

func (d *fakeDriver) Capabilities(driver.Agent, driver.Kind) driver.Capabilities {
	return driver.Capabilities{
		Input: d.talks, Prompts: d.talks, Steers: d.talks && !d.plods, Resumes: d.resumes, Asks: true,
		Answers: d.talks,
	}
}

func (d *fakeDriver) Probe(context.Context, driver.Agent) (driver.Probed, error) {
	return driver.Probed{}, driver.ErrNoProbe
}

func (d *fakeDriver) Name() string { return "fake" }

func (d *fakeDriver) Check(driver.Agent) error {
	return d.check.ask("")
}

func (d *fakeDriver) Launch(_ driver.Agent, s driver.Session) (spawn.Launch, error) {
	launch := spawn.Launch{Argv: []string{string(s.Kind), s.Resume}}
	if s.Kind == driver.Turn || s.Kind == driver.Lead || s.Prompt != "" {
		launch.Input = fakeOrder{Prompt: s.Prompt}.line()
	}
	return launch, nil
}

func (d *fakeDriver) Converse(_ driver.Agent, _ driver.Session, w driver.Wire) driver.Conversation {
	return fakeConversation{w, d}
}

func (d *fakeDriver) Outcome(_ driver.Session, exit session.Exit, stop *driver.Stop) driver.Outcome {
	switch {
	case stop != nil:
		return driver.Outcome{OK: stop.OK, Why: stop.Reason}
	case exit.Code != 0:
		return driver.Outcome{Why: fmt.Sprintf("status %d", exit.Code)}
	}
	return driver.Outcome{OK: true}
}

type fakeConversation struct {
	w driver.Wire
	d *fakeDriver
}

func (c fakeConversation) Prompt(ctx context.Context, text string) error {
	if !c.d.talks {
		return driver.ErrNoInput
	}
	return c.w.Send(ctx, fakeOrder{Prompt: text}.line())
}

func (c fakeConversation) Steer(ctx context.Context, id, text string) error {
	if !c.d.talks || c.d.plods {
		return driver.ErrNoSteer
	}
	return c.w.Send(ctx, fakeOrder{Prompt: "steer " + id + " " + text}.line())
}

func (c fakeConversation) Cancel(ctx context.Context) error {
	if !c.d.talks {
		return driver.ErrNoInput
	}
	return c.w.Send(ctx, fakeOrder{Cancel: true}.line())
}

func (c fakeConversation) Facts(ctx context.Context, from int64) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		for line, err := range driver.ReadLines(ctx, c.w, from) {
			if err != nil {
				yield(driver.Fact{}, err)
				return
			}
			for i, fact := range factsOf(line) {
				if i > 0 {
					_ = c.d.between.ask("")
				}
				if !yield(fact, nil) {
					return
				}
			}
		}
	}
}

// Answer writes the answer to a question into the session's input.
func (c fakeConversation) Answer(ctx context.Context, ask, option string) error {
	return c.w.Send(ctx, fakeOrder{Prompt: "answer " + ask + " " + option}.line())
}

func toolArgs(words []string) json.RawMessage {
	return json.RawMessage(strings.Join(words, " "))
}

func factsOf(line driver.Line) []driver.Fact {
	words := strings.Fields(string(line.Bytes))
	last := driver.Fact{Kind: driver.Said, Text: line.Text(), Offset: line.End}
	if len(words) == 0 {
		return []driver.Fact{last}
	}
	usage := func() change.Usage {
		in, _ := strconv.ParseInt(words[1], 10, 64)
		out, _ := strconv.ParseInt(words[2], 10, 64)
		cost, _ := strconv.ParseFloat(words[3], 64)
		return change.Usage{InputTokens: in, OutputTokens: out, CostUSD: cost}
	}
	switch {
	case words[0] == "usage" && len(words) == 4:
		return []driver.Fact{{Kind: driver.UsageReported, Usage: usage(), Offset: line.End}}
	case words[0] == "turn" && len(words) == 4:
		return []driver.Fact{{Kind: driver.UsageReported, Usage: usage(), Offset: line.Start}, last}
	case words[0] == "listening" && len(words) == 2:
		input, _ := strconv.ParseInt(words[1], 10, 64)
		return []driver.Fact{{Kind: driver.Listening, Input: input, Offset: line.End}}
	case words[0] == "asks":
		return []driver.Fact{{Kind: driver.PermissionAsked, Text: strings.Join(words[1:], " "), Ask: driver.Ask{ID: "1"}, Offset: line.End}}
	case words[0] == "calls" && len(words) > 2: // calls TOOL {JSON}
		return []driver.Fact{{Kind: driver.ToolCalled, Tool: words[1], Args: toolArgs(words[2:]), Offset: line.End}}
	case words[0] == "wants" && len(words) > 2: // wants TOOL {JSON}; wants TOOL cut=NAME {JSON}
		var cut []string
		if name, is := strings.CutPrefix(words[2], "cut="); is {
			cut, words = []string{name}, slices.Delete(words, 2, 3)
		}
		ask := driver.Ask{
			ID: strconv.FormatInt(line.End, 10),
			Options: []driver.Option{
				{ID: "always", Kind: "allow_always"},
				{ID: "yes", Kind: "allow_once"},
				{ID: "no", Kind: "reject_once"},
			},
		}
		return []driver.Fact{{
			Kind: driver.PermissionAsked, Tool: words[1], Args: toolArgs(words[2:]), Cut: cut, Ask: ask, Offset: line.End,
		}}
	case words[0] == "withdraws" && len(words) == 2:
		return []driver.Fact{{Kind: driver.PermissionWithdrawn, Ask: driver.Ask{ID: words[1]}, Offset: line.End}}
	case words[0] == "conversation" && len(words) > 2:
		c := driver.Conversed{
			ID: words[1], Model: words[2], Program: "fake 1.0", Enforced: "asks before it writes",
			Resumed: len(words) > 3,
		}
		return []driver.Fact{{Kind: driver.ConversationNamed, Conversation: &c, Offset: line.End}}
	case words[0] == "limited" && len(words) > 1:
		fact := driver.Fact{Kind: driver.RateLimited, Text: strings.Join(words[2:], " "), Offset: line.End}
		if n, err := strconv.Atoi(words[1]); err == nil && n > 0 {
			fact.Until = time.Now().Add(time.Duration(n) * time.Second)
		}
		return []driver.Fact{fact}
	case words[0] == "read" && len(words) == 2:
		return []driver.Fact{{Kind: driver.TextRead, Ask: driver.Ask{ID: words[1]}, Offset: line.End}}
	case words[0] == "thinks":
		return []driver.Fact{{Kind: driver.Thought, Text: strings.Join(words[1:], " "), Offset: line.End}}
	case words[0] == "deed":
		return []driver.Fact{{Kind: driver.ToolCalled, Tool: "sh", Offset: line.End}}
	case words[0] == "stop" && len(words) == 3 && strings.HasSuffix(words[2], "%"):
		full, _ := strconv.Atoi(strings.TrimSuffix(words[2], "%"))
		return []driver.Fact{{
			Kind: driver.Stopped, Stop: &driver.Stop{OK: words[1] == "ok", Reason: words[1]}, Context: full,
			Offset: line.End,
		}}
	case words[0] == "alone" && len(words) > 1: // it ends well with this text alone
		return []driver.Fact{{
			Kind: driver.Stopped, Stop: &driver.Stop{OK: true, Reason: "completed", Alone: strings.Join(words[1:], " ")},
			Offset: line.End,
		}}
	case words[0] == "stop" && len(words) > 1:
		return []driver.Fact{{
			Kind: driver.Stopped, Stop: &driver.Stop{OK: words[1] == "ok", Reason: strings.Join(words[1:], " ")},
			Offset: line.End,
		}}
	}
	return []driver.Fact{last}
}
