package prompts

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	// TurnPromptBytesMax bounds a channel prompt: it fits a small model's context and holds more than an hour
	// of conversation.
	TurnPromptBytesMax = 256 << 10

	// turnMembersMax bounds the names in a prompt; more are counted. It equals the largest channel.
	turnMembersMax = 128
)

// TurnInput holds the data of a channel prompt; each function says what it uses. Names and texts are
// untrusted and may hold anything.
type TurnInput struct {
	Channel string
	Agent   string     // the receiver
	Turn    uint64     // the turn's number; 0: the answer needs no turn
	Members []string   // the channel's participants, with or without Agent
	Holder  string     // the agent that has the turn; empty: none
	Said    []TurnLine // oldest first
	LeftOut uint64     // number of earlier messages that are not in Said
	Waits   time.Duration
	HTTP    bool // the agent acts by HTTP requests, not by its output
}

// TurnLine is one message.
type TurnLine struct {
	N     uint64 // its number in the channel
	By    string
	Human bool
	Late  bool // sent without having the turn
	Text  string
}

// ForTurn tells an agent that it has the turn: the channel's participants, the messages since its last turn,
// and how to end the turn (SPEC Turn, T4). Waits is the turn's timeout; 0: none. The prompt has at most
// TurnPromptBytesMax bytes. The newest messages are kept first, left-out ones are counted, and a single
// message that is too long is cut and says so.
func ForTurn(told TurnInput) string {
	head := told.title("it is your turn to speak") + told.company() + "\n"
	return told.frame(head, true, "Now speak. "+told.acts()+told.time("The turn ends automatically %s after you received this message."))
}

// ForAside tells an agent that a person interrupted and waits for its answer (T17). Said is that message.
// Holder has the turn that is paused: the agent itself or another one. Waits is the time to answer; 0: as
// long as the turn lasts.
func ForAside(told TurnInput) string {
	still := "Your own turn is paused until you have answered.\n"
	if told.Holder != told.Agent {
		still = fmt.Sprintf("The turn of %s is paused until you have answered.\n", nameOr(told.Holder, "the agent that has it"))
	}
	told.Turn = 0
	told.alone()
	return told.frame(told.title("a person interrupted, and waits for your answer")+still, false,
		told.answer("Answer that person now")+told.time("Answer within %s."))
}

// ForMessage gives an agent a person's message: with Turn, during that turn of the agent; without one,
// because the message goes to all participants at once. Said is that message.
func ForMessage(told TurnInput) string {
	told.alone()
	if told.Turn != 0 {
		return told.frame(told.title("a person said something while you have the turn"), false,
			"Take it into account. Your turn continues, and ends as described before.\n")
	}
	tail := told.answer("Answer if it concerns you")
	if told.HTTP {
		tail += "If it does not concern you, send the same request with an empty text.\n"
	} else {
		tail += "If it does not concern you, say TURN_PASS and nothing else.\n"
	}
	return told.frame(told.title("a person said something to everybody at once"), false, tail)
}

// ToContinue tells an agent that its turn continues, after a pause or after a person was answered (T12, T15).
// Waits is the remaining time; 0: no limit.
func ToContinue(told TurnInput) string {
	told.Said, told.LeftOut = nil, 0
	return told.frame(told.title("your turn goes on; you no longer have to wait"), false,
		"Now continue. "+told.acts()+told.time("The turn ends automatically in %s."))
}

// alone keeps only the last message.
func (told *TurnInput) alone() {
	told.Said, told.LeftOut = told.Said[max(0, len(told.Said)-1):], 0
}

// title is the first line: the channel, the agent, the occasion.
func (told *TurnInput) title(what string) string {
	turn := ""
	if told.Turn != 0 {
		turn = fmt.Sprintf(", turn %d", told.Turn)
	}
	return fmt.Sprintf("Channel %s%s: %s. You are %s.\n", name(told.Channel), turn, what, name(told.Agent))
}

// company lists the other participants.
func (told *TurnInput) company() string {
	var others []string
	for _, member := range told.Members {
		if member != told.Agent {
			others = append(others, name(member))
		}
	}
	more := ""
	if n := len(others) - turnMembersMax; n > 0 {
		others, more = others[:turnMembersMax], fmt.Sprintf(" and %d more", n)
	}
	if len(others) == 0 {
		return "No other agent is in the channel. People read and write there at any time.\n"
	}
	return fmt.Sprintf("Also in the channel: %s%s. People read and write there at any time.\n", strings.Join(others, ", "), more)
}

// acts explains how to end a turn. No line ends with an act's keyword, so that an agent that repeats the
// prompt does not end its turn.
func (told *TurnInput) acts() string {
	if told.HTTP {
		post, who := "- "+told.post(), `{"agent":`+quoteJSON(told.Agent)+`,"turn":`+strconv.FormatUint(told.Turn, 10)
		return "Each of these is a request whose body is JSON:\n" +
			post + "said " + who + `,"text":"…"} says something to the channel; more may follow;` + "\n" +
			post + "said " + who + `,"text":"…","complete":true} says something and ends your turn: the next agent has the turn;` + "\n" +
			post + "pass " + who + "} when you have nothing to add: the next agent has the turn;\n" +
			post + "wait " + who + `,"why":"…"} when you wait for something: you keep the turn meanwhile;` + "\n" +
			post + "go-on " + who + "} when you no longer have to wait.\n" +
			"Messages after the end of the turn are kept and shown as late.\n"
	}
	return "Your answer is shown in the channel. At the very end of it write one of these words:\n" +
		"- TURN_COMPLETE when you are done: the next agent has the turn;\n" +
		"- TURN_PASS alone when you have nothing to add: nothing is shown, and the next agent has the turn;\n" +
		"- TURN_WAIT when you wait for something: say before it what you wait for; you keep the turn meanwhile.\n" +
		"Messages after the end of the turn are kept and shown as late.\n"
}

// answer explains how to answer without having the turn.
func (told *TurnInput) answer(ask string) string {
	if !told.HTTP {
		return ask + ": what you say is shown in the channel. It needs no turn and no word at its end.\n"
	}
	var re uint64
	if len(told.Said) > 0 {
		re = told.Said[len(told.Said)-1].N
	}
	return ask + ", with a request whose body is JSON; it needs no turn:\n" +
		"- " + told.post() + fmt.Sprintf(`said {"agent":%s,"turn":0,"re":%d,"text":"…","ended":true}`, quoteJSON(told.Agent), re) + "\n"
}

// post is the beginning of a request; its act and body follow.
func (told *TurnInput) post() string {
	return "POST /api/v1/channels/" + url.PathEscape(shortLine(told.Channel)) + "/"
}

func (told *TurnInput) time(words string) string {
	if told.Waits <= 0 {
		return ""
	}
	return fmt.Sprintf(words, inWords(told.Waits)) + "\n"
}

// frame puts as many messages as fit between head and tail.
func (told *TurnInput) frame(head string, sinceLast bool, tail string) string {
	said, leftOut := told.fit(TurnPromptBytesMax - len(head) - len(tail) - frameBytes)
	size := len(head) + len(tail) + frameBytes
	for _, one := range said {
		size += len(one) + 1
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(head)
	switch {
	case sinceLast && len(said) == 0 && leftOut == 0:
		b.WriteString("Nothing was said since your last turn.\n\n")
	case sinceLast:
		b.WriteString("What was said since your last turn, oldest first. " + quoteNote)
	case len(said) > 0:
		b.WriteString("\n" + quoteNote)
	default:
		b.WriteString("\n")
	}
	if leftOut > 0 {
		fmt.Fprintf(&b, "Earlier messages that are left out: %d.\n\n", leftOut)
	}
	for _, one := range said {
		b.WriteString(one)
		b.WriteByte('\n')
	}
	b.WriteString(tail)
	return b.String()
}

const (
	quoteNote  = "Lines that begin with \">\" were written by the participant that is named above them, not by Fairlead.\n\n"
	frameBytes = 512 // upper bound of what frame adds to head, messages and tail

	headerBytes = 64 // of a message without the name: the longest header, and what quote adds

	// turnCutBytesMin is the least that is kept of a message that is too long; less would be useless.
	turnCutBytesMin = 4 << 10
)

// fit renders the newest messages that fit, in order, and counts the others.
func (told *TurnInput) fit(room int) (said []string, leftOut uint64) {
	whole := room
	leftOut = told.LeftOut + uint64(len(told.Said))
	for _, line := range slices.Backward(told.Said) {
		one := line.render(whole)
		if tooLong := len(one) > whole; tooLong && room >= turnCutBytesMin {
			said = append(said, line.cut(room-1))
			leftOut--
			break
		}
		if len(one)+1 > room {
			break
		}
		said = append(said, one)
		room -= len(one) + 1
		leftOut--
	}
	slices.Reverse(said)
	return said, leftOut
}

// render formats a message for a prompt. It stops after more than most bytes.
func (l *TurnLine) render(most int) string {
	var b strings.Builder
	b.Grow(headerBytes + len(l.By) + min(len(l.Text)+len(l.Text)/16, max(0, most)))
	l.header(&b)
	quote(&b, l.Text, most)
	return b.String()
}

// cut returns the beginning of a message that is too long, in at most most bytes.
func (l *TurnLine) cut(most int) string {
	note := fmt.Sprintf("(Message %d has %d bytes and is cut here.)\n", l.N, len(l.Text))
	var b strings.Builder
	l.header(&b)
	quote(&b, l.Text, most-len(note)-1)
	text := b.String()
	text = strings.TrimSuffix(clip.To(text, most-len(note)-1), "\n")
	return text + "\n" + note
}

func (l *TurnLine) header(b *strings.Builder) {
	from := " from an agent, "
	switch {
	case l.Human:
		from = " from a person, "
	case l.Late:
		from = " from an agent without the turn, "
	}
	var digits [20]byte
	b.WriteByte('#')
	b.Write(strconv.AppendUint(digits[:0], l.N, 10))
	b.WriteString(from)
	b.WriteString(name(l.By))
	b.WriteString(":\n")
}

func quoteJSON(s string) string {
	text, err := json.Marshal(shortLine(s))
	if err != nil {
		panic("prompt: a string does not encode as JSON: " + err.Error())
	}
	return string(text)
}
