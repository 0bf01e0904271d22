package channel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// A script contains comments, input lines, a line of dashes, and the expected result. An empty line
// ends a block. The next block continues with the same channel, until `channel` creates a new one.
// A line may begin with a time of day; otherwise it happens a second after the line before.
//
//	channel NAME [mode=M] [rounds=N] [lead=A] [silence=D] [quiet]    creates new channels with this one
//	also NAME […]                                                    adds a channel
//	agents A B …            known and connected         agent A [timeout=D] [deaf] [endless]   known; endless: nothing reports the end of its answers
//	A connects | stops | crashes ["why"] | misses beats | is disabled | is enabled | hits "limit" | is under its limit
//	A joins [NAME]          A leaves [NAME]             assigned, removed
//	person says [MODE] [BYTES] [in NAME]                person grants A [now]       person skips
//	person sends it on | back                           hold | release
//	A is told               each pending action of A is done and acknowledged, in order
//	A loses its conversation  the one in which the last of these actions was delivered
//	A says [done] [ended] [turn=N] [re=N] [nothing]     done is TURN_COMPLETE
//	A passes | works | waits "why" | is ready   [turn=N]
//	time                    the next deadline passes
//	late timer              the deadline before that fires once more
func TestScripts(t *testing.T) {
	golden.Stories(t, "*.script", func(t *testing.T, script string) string { return (&stage{t: t}).play(script) })
}

type stage struct {
	t        *testing.T
	channels *Channels
	now      Now
	here     ChannelID
	last     Deadline
	told     ActionConfirmed // the last action that was delivered
	shown    map[ChannelID]string
	out      strings.Builder
}

// play runs a script and returns it with its actual results.
func (s *stage) play(script string) string {
	return machinetest.Play(script, &s.out, func(line string) bool { s.line(line); return true }, s.show)
}

func (s *stage) line(line string) {
	words := machinetest.Fields(line)
	s.now.At, words = machinetest.Next(s.now.At, words)
	switch words[0] {
	case "channel":
		s.channels, s.now, s.shown = &Channels{}, Now{At: machinetest.Noon}, map[ChannelID]string{}
		s.here = ChannelID(words[1])
		s.configure(words[1:])
	case "also":
		s.configure(words[1:])
	case "agents":
		for _, name := range words[1:] {
			s.quietly(AgentConfigured{Agent: AgentID(name)})
			s.quietly(AgentConnected{Agent: AgentID(name)})
		}
	case "agent":
		s.decide(AgentConfigured{
			Agent: AgentID(words[1]),
			Settings: AgentSettings{
				Timeout: span(words, "timeout="), NoInputMidAnswer: slices.Contains(words, "deaf"),
				NoEnd: slices.Contains(words, "endless"),
			},
		})
	case "person":
		s.person(words[1:])
	case "hold":
		s.now.Held = true
	case "release":
		s.now.Held = false
		s.decide(Released{})
	case "time":
		s.last = s.channels.Deadline(s.here)
		if s.last.At.IsZero() {
			s.t.Fatal("no deadline stands")
		}
		s.now.At = s.last.At
		s.decide(TimerFired{About: s.last})
	case "late":
		s.decide(TimerFired{About: s.last})
	default:
		s.agent(AgentID(words[0]), words[1:])
	}
}

func span(words []string, key string) time.Duration {
	for _, word := range words {
		if strings.HasPrefix(word, key) {
			d, _ := time.ParseDuration(word[len(key):])
			return d
		}
	}
	return 0
}

func number(words []string, key string, otherwise uint64) uint64 {
	for _, word := range words {
		if strings.HasPrefix(word, key) {
			n, _ := strconv.ParseUint(word[len(key):], 10, 64)
			return n
		}
	}
	return otherwise
}

func (s *stage) configure(words []string) {
	set := DefaultSettings()
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "mode":
			set.Mode = Mode(value)
		case "rounds":
			set.RoundsMax, _ = strconv.Atoi(value)
		case "lead":
			set.Lead = AgentID(value)
		case "silence":
			set.AutoDetectEnd, set.AutoDetectSilence = true, span(words, "silence=")
		case "quiet":
			set.AnnounceTimeouts, set.AnnounceDisconnect = false, false
		default:
			s.t.Fatalf("no such setting: %s", word)
		}
	}
	s.quietly(ChannelConfigured{Channel: ChannelID(words[0]), Settings: set})
}

func (s *stage) channelOf(words []string) ChannelID {
	if last := len(words) - 1; last >= 0 && s.channels.ByID[ChannelID(words[last])] != nil {
		return ChannelID(words[last])
	}
	return s.here
}

func (s *stage) person(words []string) {
	id := s.channelOf(words)
	switch words[0] {
	case "says":
		in := HumanSpoke{Channel: id, By: "ada", Bytes: 10}
		for _, word := range words[1:] {
			if n, err := strconv.Atoi(word); err == nil {
				in.Bytes = n
			} else if word != "in" && ChannelID(word) != id {
				in.Mode = Mode(word)
			}
		}
		s.decide(in)
	case "grants":
		s.decide(GrantAsked{Channel: id, Agent: AgentID(words[1]), Now: slices.Contains(words, "now")})
	case "skips":
		s.decide(SkipAsked{Channel: id, Turn: number(words, "turn=", 0)})
	case "sends":
		s.decide(OverrideAsked{Channel: id, GoOn: words[2] == "on"})
	default:
		s.t.Fatalf("a person cannot do that: %v", words)
	}
}

func (s *stage) agent(name AgentID, words []string) {
	id := s.channelOf(words)
	token := Token{Channel: id, Agent: name, Turn: number(words, "turn=", s.channels.ByID[id].Head.Turn)}
	switch strings.Join(words[:min(len(words), 2)], " ") {
	case "connects":
		s.decide(AgentConnected{name})
	case "stops":
		s.decide(AgentGone{Agent: name, How: Disconnected})
	case "misses beats":
		s.decide(AgentBeatsMissed{Agent: name, Last: s.now.At.Add(-30 * time.Second)})
	case "misses one":
		s.decide(AgentBeatsMissed{Agent: name, Last: s.now.At.Add(-20 * time.Second)})
	case "is disabled":
		s.decide(DisableAsked{name})
	case "is enabled":
		s.decide(EnableAsked{name})
	case "is told":
		s.tell(name)
	case "loses its":
		s.decide(ActionForgotten(s.told))
	case "is ready":
		s.decide(WaitOver{token})
	case "is under":
		s.decide(LimitLifted{name})
	default:
		s.agentActs(name, id, token, words)
	}
}

func (s *stage) agentActs(name AgentID, id ChannelID, token Token, words []string) {
	switch words[0] {
	case "joins":
		s.decide(AssignAsked{Channel: id, Agent: name})
	case "leaves":
		s.decide(RemoveAsked{Channel: id, Agent: name})
	case "crashes":
		s.decide(AgentGone{Agent: name, How: Crashed, Why: strings.Join(words[1:], " ")})
	case "hits":
		s.decide(LimitHit{Agent: name, Limit: words[1]})
	case "passes":
		s.decide(PassAsked{token})
	case "works":
		s.decide(Worked{token})
	case "ends":
		s.decide(FinishAsked{Token: token, Pass: slices.Contains(words, "passing")})
	case "waits":
		s.decide(WaitAskedFor{Token: token, Why: words[1]})
	case "says":
		in := Said{Token: token, Bytes: 20, Re: number(words, "re=", 0)}
		in.Complete, in.Ended = slices.Contains(words, "done"), slices.Contains(words, "ended") || slices.Contains(words, "done")
		if slices.Contains(words, "nothing") {
			in.Bytes = 0
		}
		s.decide(in)
	default:
		s.t.Fatalf("%s cannot do that: %v", name, words)
	}
}

// tell does an agent's actions until none is pending.
func (s *stage) tell(name AgentID) {
	for range 100 {
		actions := s.channels.Actions(s.here, s.now)
		i := slices.IndexFunc(actions, func(t Action) bool { return t.Token.Agent == name })
		if i < 0 {
			return
		}
		fmt.Fprintf(&s.out, "  -> %s", actions[i].Key)
		if g := actions[i].Given; g.To > 0 {
			fmt.Fprintf(&s.out, " with %d-%d", g.From, g.To)
			for _, n := range g.But {
				fmt.Fprintf(&s.out, " not %d", n)
			}
		}
		s.out.WriteByte('\n')
		s.told = ActionConfirmed{Token: actions[i].Token, Do: actions[i].Do, N: actions[i].N}
		s.decide(s.told)
	}
	s.t.Fatal("a hundred actions without an end")
}

func (s *stage) quietly(in Input) {
	changes, err := decide(s.t, s.channels, in, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, ch := range changes {
		s.channels.Apply(journaled(s.t, ch))
	}
}

func (s *stage) decide(in Input) {
	changes, err := decide(s.t, s.channels, in, s.now)
	switch {
	case err != nil:
		fmt.Fprintf(&s.out, "refused: %v\n", err)
	case len(changes) == 0:
		s.out.WriteString("nothing\n")
	}
	for _, ch := range changes {
		s.channels.Apply(journaled(s.t, ch))
		s.tellChange(&ch)
	}
}

func (s *stage) tellChange(ch *change.Change) {
	id, set := Of(ch), change.As[Set](ch.Body)
	body := &set.Body
	where := ""
	if id != s.here && id != "" {
		where = " in #" + string(id)
	}
	if ch.From != "" {
		fmt.Fprintf(&s.out, "%-34s %-4s %s%s\n", fmt.Sprintf("%s %s -> %s", set.Agent, ch.From, ch.To), ch.Row, ch.Trigger, where)
	} else {
		fmt.Fprintf(&s.out, "%-34s %-4s %s%s\n", strings.TrimSpace(string(set.Agent)+" ."), ch.Row, ch.Trigger, where)
	}
	if p := body.Post; p != nil {
		fmt.Fprintf(&s.out, "  message %d, %s, by %s\n", p.N, p.Kind, p.By)
	}
	for _, m := range body.Messages {
		fmt.Fprintf(&s.out, "  message %d is %s (%s)\n", m.N, m.State, m.Row)
	}
	for i, text := range []string{body.Say, body.Warn, body.Why} {
		if text != "" {
			fmt.Fprintf(&s.out, "  %s: %s\n", []string{"says", "warns", "why"}[i], text)
		}
	}
}

// show prints the state of each channel that changed.
func (s *stage) show() {
	for _, id := range sorted(s.channels.ByID) {
		c := s.channels.ByID[id]
		h := &c.Head
		text := fmt.Sprintf("#%s:", id)
		if h.Holder != "" {
			text += fmt.Sprintf(" %s %s turn=%d", h.Holder, s.channels.StateOf(h.Holder, id), h.Turn)
		} else if h.Parked != "" {
			text += " parked (" + string(h.Parked) + ")"
		}
		if !h.Lease.Answered.IsZero() {
			text += ", has answered"
		}
		if h.Aside.Message != 0 {
			text += fmt.Sprintf(", %s answers %d", h.Aside.Agent, h.Aside.Message)
		}
		for _, name := range c.Queue() {
			text += " | " + string(name)
		}
		if d := s.channels.Deadline(id); !d.At.IsZero() {
			text += fmt.Sprintf("; %s until %s", d.What, d.At.Format("15:04:05"))
		}
		if text != s.shown[id] {
			s.out.WriteString("= " + text + "\n")
		}
		s.shown[id] = text
	}
}
