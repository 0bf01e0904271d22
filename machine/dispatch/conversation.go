package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

func (d *draft) input(in UserInput) error {
	if strings.TrimSpace(in.Text) == "" {
		return d.refuse(string(InputCame), "D2", "an input without words begins nothing; say what is to be done")
	}
	if err := d.tooLong(string(InputCame), "D2", "the input", in.Text); err != nil {
		return err
	}
	if len(in.Named) > namedMax || size(in.Named) > TextBytesMax {
		return d.refuse(string(InputCame), "D2", fmt.Sprintf("the input names %d paths in %d bytes, and the most is %d in %d; name the folder that they are in", len(in.Named), size(in.Named), namedMax, TextBytesMax))
	}
	in.Named = slices.Clone(in.Named)
	if d.is.Ranker != "" && d.is.Host == Fairlead {
		in.Match = nil // an agent is asked
	}
	if err := d.fits(InputCame, in.Match); err != nil {
		return err
	}
	if d.is.Mode == Response && d.is.Phase != Closed {
		return d.refuse(string(InputCame), "D6", "in mode response there is nobody to talk to: put a message into the inbox")
	}
	if d.is.Open == nil && len(d.is.Waiting) > 0 && !in.Over { // somebody else closed what was open, by a line of his own
		if err := d.next(); err != nil {
			return err
		}
	}
	if d.is.Open != nil && !in.Over {
		if len(d.is.Waiting) >= waitingMax {
			return d.refuse(string(InputWaits), "D2", fmt.Sprintf("%d inputs wait already; wait for an answer first", waitingMax))
		}
		if err := d.room(InputWaits, "D2", len(in.Text)+size(in.Named)); err != nil {
			return err
		}
		return d.step(InputWaits, "input waits", func(now *Now, _ *Body) {
			now.Waiting = append(now.Waiting, Waiting{Text: in.Text, Named: in.Named, Match: in.Match, At: d.at})
		})
	}
	if d.is.Open != nil {
		if err := d.close(Interrupted, "interrupted by the next input"); err != nil {
			return err
		}
	}
	return d.begin(Waiting{Text: in.Text, Named: in.Named, Match: in.Match})
}

// begin opens a conversation (D2), and puts in charge who fits (D3).
func (d *draft) begin(in Waiting) error {
	err := d.step(InputCame, "user input", func(now *Now, body *Body) {
		now.Made++
		now.Open = &Conversation{N: now.Made, Began: d.at, Input: d.kept(in.Text), Named: in.Named}
		body.Entries = []Entry{{Kind: OfUser, Who: "User", Text: in.Text}}
	})
	if err != nil || in.Match == nil {
		return err
	}
	return d.charge(Delegated, false, in.Match.Agent, Task{Text: d.kept(in.Text)}, matched(in.Match), "")
}

// kept is an input as the history repeats it.
func (d *draft) kept(text string) string {
	if d.is.Host == Fairlead {
		return text
	}
	return short(text, inputKept)
}

func matched(m *Match) string {
	if len(m.Terms) == 0 {
		return "matched its description"
	}
	quoted := make([]string, len(m.Terms))
	for i, t := range m.Terms {
		quoted[i] = fmt.Sprintf("%q", t)
	}
	return short("matched "+strings.Join(quoted, " + "), wordsMax)
}

func (d *draft) message(in Message) error {
	if in.Name == "" || len(in.Name) > wordsMax {
		return d.refuse(string(MessageTaken), "D6", "a message without a name, or with a very long one, has no place for its answer; give its file another name")
	}
	if in.Match == nil {
		return d.step(MessageUnmatched, "nobody's description fits", func(_ *Now, body *Body) {
			body.Aside = &Aside{Message: in.Name, Ranking: short(in.Ranking, TextBytesMax)}
		})
	}
	if err := d.tooLong(string(MessageTaken), "D6", "the message", in.Text); err != nil {
		return err
	}
	if err := d.fits(MessageTaken, in.Match); err != nil {
		return err
	}
	return d.step(MessageTaken, matched(in.Match), func(now *Now, body *Body) {
		now.Made++
		now.Open = &Conversation{
			N: now.Made, Began: d.at, Input: in.Text, Message: in.Name, Asked: 1, Used: []string{in.Match.Agent},
			Tasks: []Task{{ID: 1, Agent: in.Match.Agent, Text: in.Text, Began: d.at}},
		}
		body.Entries = []Entry{{Kind: OfUser, Who: in.Name, Text: in.Text}}
	})
}

func (d *draft) respond(in Respond) error {
	c := d.is.Open
	if d.over(in.Conversation) {
		return nil // it was answered by somebody else
	}
	if c != nil && len(c.Tasks) > 0 && !in.Over {
		return d.refuse(string(Responded), "D7", fmt.Sprintf("%s is at work; say first that it is done, or end the conversation over it", d.is.State()))
	}
	for _, text := range []string{in.Text, in.Summary} {
		if err := d.tooLong(string(Responded), "D7", "the answer", text); err != nil {
			return err
		}
	}
	err := d.step(Responded, "response complete", func(now *Now, body *Body) {
		for _, task := range now.Open.Tasks {
			body.Entries = append(body.Entries, Entry{Kind: OfNote, Who: task.Agent, Text: "was not seen to end"})
		}
		if in.Text != "" {
			body.Entries = append(body.Entries, Entry{Kind: OfMain, Who: Main, Text: in.Text})
		}
		body.Summary = now.Open.summary(in.Summary, in.Files)
		now.Open = nil
	})
	if err != nil {
		return err
	}
	return d.next()
}

func (d *draft) mainEnded(in MainEnded) error {
	c := d.is.Open
	if c == nil || d.over(in.Conversation) || d.is.Host != Fairlead || d.is.Mode == Response || in.Round != c.Round {
		return nil
	}
	ranked := d.is.ranks()
	if ranked || c.Called || len(c.Tasks) > 0 {
		trigger := "MAIN is told what came of it"
		if ranked {
			trigger = d.is.Ranker + " was asked whose work it is"
		}
		return d.step(RoundOver, trigger, func(now *Now, body *Body) {
			text, entry := short(in.Result, TextBytesMax), Entry{Kind: OfMain, Who: Main}
			if ranked {
				entry = Entry{Kind: OfNote, Who: d.is.Ranker}
			}
			if entry.Text = text; text != "" {
				body.Entries = append(body.Entries, entry)
			}
			now.Open.Round++
			now.Open.Called = false
		})
	}
	text := short(in.Result, TextBytesMax) // a refusal would leave the user without an answer for ever
	if !in.OK {
		text = cmp.Or(text, "MAIN failed, and did not say why.")
	}
	return d.respond(Respond{Text: text})
}

// next begins with the input that waits the longest.
func (d *draft) next() error {
	if len(d.is.Waiting) == 0 || d.is.Phase != Ready {
		return nil
	}
	first := d.is.Waiting[0]
	d.is.Waiting = d.is.Waiting[1:] // what follows is one change, and says so
	return d.begin(first)
}

// close ends the conversation that is open without an answer (D11).
func (d *draft) close(event Event, why string) error {
	why = short(why, wordsMax)
	return d.step(event, why, func(now *Now, body *Body) {
		c := now.Open
		body.Summary = c.summary("Interrupted ("+why+"): "+firstLine(c.Input), nil)
		body.Entries = append(body.Entries, Entry{Kind: OfNote, Text: "interrupted: " + why})
		if c.Message != "" {
			body.Reply = &Reply{Message: c.Message, Agent: strings.Join(c.Used, ", "), Text: "interrupted: " + why}
		}
		now.Open = nil
	})
}

func (d *draft) interrupt(in Interrupt) error {
	if d.is.Open == nil || d.over(in.Conversation) {
		return nil
	}
	if err := d.close(Interrupted, cmp.Or(in.Why, "nobody ended it")); err != nil {
		return err
	}
	return d.next()
}

// summary is what messages.jsonl says of a conversation that is over.
func (c *Conversation) summary(text string, more []File) *Summary {
	files, left := slices.Clone(c.Files), c.More
	for _, f := range more {
		f = f.cut()
		switch {
		case f.Path == "" || slices.ContainsFunc(files, func(is File) bool { return is.Path == f.Path }):
		case len(files) >= filesMax:
			left++
		default:
			files = append(files, f)
		}
	}
	text = cmp.Or(text, firstLine(c.Input))
	if left > 0 {
		text += fmt.Sprintf(" (files that were made beside those named: at most %d)", left)
	}
	return &Summary{Conversation: c.N, Began: c.Began, Text: text, Files: files, Agents: slices.Clone(c.Used)}
}

// firstLine is enough of a text to know it again.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return short(strings.TrimSpace(line), 200)
}
