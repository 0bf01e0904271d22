package controller

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine"
)

// led has an agent of the bubble lead a team of three.
func (b *bubble) led(lead string) {
	b.driver.talks = true
	b.conf.Team.Lead, b.conf.Team.Size = lead, 3
	b.conf.Team.StatusTimeout, b.conf.Team.HatchTimeout = 30*time.Second, 5*time.Minute
}

var crewNames = map[int]string{0: "Lyra", 1: "Kael", 2: "Mira"}

// leader is what a lead knows, and how it does what it is told. Its team lives in its session, and
// nowhere else.
type leader struct {
	*ledger
	inside sync.Mutex       // an old session may still be at it when the next one begins
	awake  map[string][]int // seats, by session
	ill    func(s *fakeSession, prompt string) (handled bool)
}

func newLeader() *leader { return &leader{ledger: newLedger(), awake: map[string][]int{}} }

var wokenName = regexp.MustCompile(`<agent name="([^"]*)"`)

// leads is the life of a lead session.
func (l *leader) leads(s *fakeSession) {
	for {
		text, cancel, ok := s.next(24 * time.Hour)
		if !ok {
			s.say("stop ok")
			return
		}
		if !cancel {
			l.tell(s.id, text)
			if l.ill == nil || !l.ill(s, text) {
				l.does(s, text)
			}
		}
		if !s.say("listening %d", s.read()) {
			return
		}
	}
}

func (l *leader) does(s *fakeSession, text string) {
	switch {
	case strings.HasPrefix(text, "[SUMMON AGENTS]\n"):
		l.say(s, "Come, all of you.")
		for seat := range 3 {
			s.lasts(time.Second)
			if s.isOver() {
				return
			}
			l.marks(s, registering(seat))
			l.has(s.id, seat)
			l.say(s, "[%s]: I am %s.", crewNames[seat], crewNames[seat])
		}
	case strings.HasPrefix(text, "[WAKE AGENTS]\n"):
		for _, m := range wokenName.FindAllStringSubmatch(text, -1) {
			s.lasts(time.Second)
			for seat, name := range crewNames {
				if name == m[1] {
					l.has(s.id, seat)
				}
			}
			l.say(s, "[%s]: I am back.", m[1])
		}
	case strings.HasPrefix(text, "Channel "):
		l.say(s, "All is well TURN_COMPLETE")
		return
	}
	s.lasts(time.Second)
	l.marks(s, l.status(s.id))
	l.say(s, "That is all.")
}

// has records that the member in a seat is awake in a session.
func (l *leader) has(session string, seat int) {
	l.inside.Lock()
	defer l.inside.Unlock()
	if !slices.Contains(l.awake[session], seat) {
		l.awake[session] = append(l.awake[session], seat)
	}
}

// marks says what is no conversation.
func (l *leader) marks(s *fakeSession, text string) { s.say("%s", text) }

func (l *leader) status(session string) string {
	l.inside.Lock()
	defer l.inside.Unlock()
	list := []string{}
	for _, seat := range l.awake[session] {
		list = append(list, fmt.Sprintf(`{"name":%q,"status":"alive","gridPosition":%d}`, crewNames[seat], seat))
	}
	return `[AGENT_STATUS] {"agents":[` + strings.Join(list, ",") + `]}`
}

// registering is a marker over several lines, as a lead writes it that likes to be read.
func registering(seat int) string {
	name := crewNames[seat]
	return fmt.Sprintf("[AGENT_REGISTERED] {\n  \"name\": %q, \"color\": \"#c9b1e8\", \"colorName\": \"Violet Heaven\", \"gender\": \"woman\",\n"+
		"  \"gridPosition\": %d, \"faceVariant\": {\"eyes\": \"standard\", \"mouth\": \"gentle\"},\n  \"individuationArtifact\": \"I am %s, and say TURN_COMPLETE.\"\n}", name, seat, name)
}

// crew is who the team is, in words: Lyra alive, and so on, by seat.
func (b *bubble) crew() string {
	b.t.Helper()
	view, err := b.engine.Crew(b.t.Context(), false)
	if err != nil {
		b.t.Fatal(err)
	}
	words := []string{view.Button}
	for _, one := range view.Agents {
		name := "?"
		if one.Name != nil {
			name = *one.Name
		}
		words = append(words, name+" "+one.Status)
	}
	return strings.Join(words, ", ")
}

func (b *bubble) isCrew(want string) {
	b.t.Helper()
	if got := b.crew(); got != want {
		b.t.Errorf("the team is %q, not %q", got, want)
	}
}

// notices are what people were told, in words.
func (b *bubble) notices() string {
	b.t.Helper()
	view, err := b.engine.Crew(b.t.Context(), false)
	if err != nil {
		b.t.Fatal(err)
	}
	var words []string
	for _, n := range view.Notices {
		words = append(words, n.Kind+": "+n.Text)
	}
	return strings.Join(words, "\n")
}

// wakes and summons give an order that must be taken.
func (b *bubble) summons() {
	b.t.Helper()
	if _, err := b.engine.Summon(b.t.Context(), human); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bubble) wakes(who ...string) {
	b.t.Helper()
	if _, err := b.engine.Wake(b.t.Context(), human, who); err != nil {
		b.t.Fatal(err)
	}
}

// keptWords are what was said in lead sessions, as the journal has it, in lines.
func (b *bubble) keptWords() (kept []string) {
	b.t.Helper()
	for _, rec := range b.history() {
		ch, err := loop.ChangeOf(rec)
		if err != nil {
			b.t.Fatal(err)
		}
		body := ch.Body.Presence
		if body == nil || body.Words == nil {
			continue
		}
		who := ""
		if body.Words.Speaker != "julian" {
			who = "[" + body.Words.Speaker + "]: "
		}
		for i, line := range strings.Split(body.Words.Text, "\n") {
			if i > 0 {
				who = ""
			}
			kept = append(kept, who+line)
		}
	}
	return kept
}

// heardOnce holds that every word of the lead is kept once, in order, and no marker among them.
func (b *bubble) heardOnce(l *leader) {
	b.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if said, kept := l.said["julian"], b.keptWords(); !slices.Equal(said, kept) {
		b.t.Errorf("julian said\n%q, and the journal has\n%q", said, kept)
	}
	if err := b.engineTeamIsReplayed(); err != nil {
		b.t.Error(err)
	}
}

func isRefusal(err error) bool {
	var refusal *machine.Refusal
	return errors.As(err, &refusal)
}
