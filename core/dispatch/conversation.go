package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

func (d *folderDraft) input(in UserInput) error {
	if strings.TrimSpace(in.Text) == "" {
		return d.refuse(string(InputCame), "D2", "the input is empty; say what is to be done")
	}
	if err := d.tooLong(string(InputCame), "D2", "the input", in.Text); err != nil {
		return err
	}
	if len(in.Named) > namedMax || size(in.Named) > TextBytesMax {
		return d.refuse(string(InputCame), "D2",
			fmt.Sprintf("the input names %d paths in %d bytes, the limit is %d in %d; name their folder instead", len(in.Named),
				size(in.Named), namedMax, TextBytesMax))
	}
	in.Named = slices.Clone(in.Named)
	if d.is.Ranker != "" && d.is.Host == Fairlead {
		in.Match = nil // an agent is asked to choose
	}
	if err := d.fits(InputCame, in.Match); err != nil {
		return err
	}
	if d.is.Mode == Response && d.is.Phase != Closed {
		return d.refuse(string(InputCame), "D6", "mode response takes no input: put a message into the inbox")
	}
	if d.is.Open == nil && len(d.is.Waiting) > 0 && !in.Over { // another program closed the open conversation with a line of its own
		if err := d.next(); err != nil {
			return err
		}
	}
	if d.is.Open != nil && !in.Over {
		if len(d.is.Waiting) >= waitingMax {
			return d.refuse(string(InputWaits), "D2", fmt.Sprintf("%d inputs are waiting already; wait for an answer first", waitingMax))
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

// begin opens a conversation (D2) and assigns the matching agent (D3).
func (d *folderDraft) begin(in Waiting) error {
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

// kept shortens an input for the history.
func (d *folderDraft) kept(text string) string {
	if d.is.Host == Fairlead {
		return text
	}
	return clip.Within(text, inputKept)
}

func matched(m *Match) string {
	if len(m.Terms) == 0 {
		return "matched its description"
	}
	quoted := make([]string, len(m.Terms))
	for i, t := range m.Terms {
		quoted[i] = fmt.Sprintf("%q", t)
	}
	return clip.Within("matched "+strings.Join(quoted, " + "), wordsMax)
}

func (d *folderDraft) message(in Message) error {
	if in.Name == "" || len(in.Name) > wordsMax {
		return d.refuse(string(MessageTaken), "D6", "a message needs a file name of moderate length for its answer; rename the file")
	}
	if in.Match == nil {
		return d.step(MessageUnmatched, "no description matches", func(_ *Now, body *Body) {
			body.Aside = &Aside{Message: in.Name, Ranking: clip.Within(in.Ranking, TextBytesMax)}
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

func (d *folderDraft) respond(in Respond) error {
	c := d.is.Open
	if d.over(in.Conversation) {
		return nil // it was answered by another program
	}
	if c != nil && len(c.Tasks) > 0 && !in.Over {
		return d.refuse(string(Responded), "D7",
			fmt.Sprintf("%s is still working; report its end first, or end the conversation with --over", d.is.State()))
	}
	for _, text := range []string{in.Text, in.Summary} {
		if err := d.tooLong(string(Responded), "D7", "the answer", text); err != nil {
			return err
		}
	}
	err := d.step(Responded, "response complete", func(now *Now, body *Body) {
		for _, task := range now.Open.Tasks {
			body.Entries = append(body.Entries, Entry{Kind: OfNote, Who: task.Agent, Text: "did not report its end"})
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

func (d *folderDraft) mainEnded(in MainEnded) error {
	c := d.is.Open
	if c == nil || d.over(in.Conversation) || d.is.Host != Fairlead || d.is.Mode == Response || in.Round != c.Round {
		return nil
	}
	ranked := d.is.ranks()
	if ranked || c.Called || len(c.Tasks) > 0 {
		trigger := "MAIN receives the results"
		if ranked {
			trigger = d.is.Ranker + " was asked to assign the input"
		}
		return d.step(RoundOver, trigger, func(now *Now, body *Body) {
			text, entry := clip.Within(in.Result, TextBytesMax), Entry{Kind: OfMain, Who: Main}
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
	text := clip.Within(in.Result, TextBytesMax) // refusing it would leave the user without an answer
	if !in.OK {
		text = cmp.Or(text, "MAIN failed without a reason.")
	}
	return d.respond(Respond{Text: text})
}

// next begins with the oldest waiting input.
func (d *folderDraft) next() error {
	if len(d.is.Waiting) == 0 || d.is.Phase != Ready {
		return nil
	}
	first := d.is.Waiting[0]
	d.is.Waiting = d.is.Waiting[1:] // the changes that follow are based on this one
	return d.begin(first)
}

// close ends the open conversation without an answer (D11).
func (d *folderDraft) close(event Event, why string) error {
	why = clip.Within(why, wordsMax)
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

func (d *folderDraft) interrupt(in Interrupt) error {
	if d.is.Open == nil || d.over(in.Conversation) {
		return nil
	}
	if err := d.close(Interrupted, cmp.Or(in.Why, "it was not ended")); err != nil {
		return err
	}
	return d.next()
}

// summary returns the line of messages.jsonl for an ended conversation.
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
		text += fmt.Sprintf(" (further files: at most %d)", left)
	}
	return &Summary{Conversation: c.N, Began: c.Began, Text: text, Files: files, Agents: slices.Clone(c.Used)}
}

// firstLine returns enough of a text to recognize it.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return clip.Within(strings.TrimSpace(line), 200)
}
