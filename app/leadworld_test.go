package app

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

// led makes an agent of the bubble lead a crew of three.
func (b *bubble) led(lead string) {
	b.driver.talks = true
	b.conf.Team.Lead, b.conf.Team.Size = lead, 3
	b.conf.Team.StatusTimeout, b.conf.Team.HatchTimeout = 30*time.Second, 5*time.Minute
}

var crewNames = map[int]string{0: "Lyra", 1: "Kael", 2: "Mira"}

// scriptedLead plays a lead. Its members live in its session.
type scriptedLead struct {
	*promptLedger
	inside sync.Mutex       // an old session may still run when the next one begins
	awake  map[string][]int // session → seats of its members
	ill    func(s *fakeSession, prompt string) (handled bool)
}

func newScriptedLead() *scriptedLead {
	return &scriptedLead{promptLedger: newPromptLedger(), awake: map[string][]int{}}
}

var wokenName = regexp.MustCompile(`<agent name="([^"]*)"`)

// leads runs a lead session.
func (l *scriptedLead) leads(s *fakeSession) {
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

func (l *scriptedLead) does(s *fakeSession, text string) {
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

// has records that the member on a seat is awake in a session.
func (l *scriptedLead) has(session string, seat int) {
	l.inside.Lock()
	defer l.inside.Unlock()
	if !slices.Contains(l.awake[session], seat) {
		l.awake[session] = append(l.awake[session], seat)
	}
}

// marks says a text that is not part of the conversation.
func (l *scriptedLead) marks(s *fakeSession, text string) { s.say("%s", text) }

func (l *scriptedLead) status(session string) string {
	l.inside.Lock()
	defer l.inside.Unlock()
	list := []string{}
	for _, seat := range l.awake[session] {
		list = append(list, fmt.Sprintf(`{"name":%q,"status":"alive","gridPosition":%d}`, crewNames[seat], seat))
	}
	return `[AGENT_STATUS] {"agents":[` + strings.Join(list, ",") + `]}`
}

// registering returns a marker over several lines.
func registering(seat int) string {
	name := crewNames[seat]
	return fmt.Sprintf("[AGENT_REGISTERED] {\n  \"name\": %q, \"color\": \"#c9b1e8\", \"colorName\": \"Violet Heaven\", \"gender\": \"woman\",\n"+
		"  \"gridPosition\": %d, \"faceVariant\": {\"eyes\": \"standard\", \"mouth\": \"gentle\"},\n  \"individuationArtifact\": \"I am %s, and say TURN_COMPLETE.\"\n}", name, seat, name)
}

// crew returns the crew as text by seat: Lyra alive, and so on.
func (b *bubble) crew() string {
	b.t.Helper()
	view, err := b.engine.Crew.Crew(b.t.Context(), false)
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
		b.t.Errorf("the crew is %q, want %q", got, want)
	}
}

// notices returns the notices as text.
func (b *bubble) notices() string {
	b.t.Helper()
	view, err := b.engine.Crew.Crew(b.t.Context(), false)
	if err != nil {
		b.t.Fatal(err)
	}
	var words []string
	for _, n := range view.Notices {
		words = append(words, n.Kind+": "+n.Text)
	}
	return strings.Join(words, "\n")
}

// wakes and summons give an order that must be accepted.
func (b *bubble) summons() {
	b.t.Helper()
	if _, err := b.engine.Crew.Summon(b.t.Context(), human); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bubble) wakes(who ...string) {
	b.t.Helper()
	if _, err := b.engine.Crew.Wake(b.t.Context(), human, who); err != nil {
		b.t.Fatal(err)
	}
}

// keptWords returns the lines of lead sessions as the journal has them.
func (b *bubble) keptWords() (kept []string) {
	b.t.Helper()
	for _, rec := range b.history() {
		ch, err := loop.ChangeOf(rec)
		if err != nil {
			b.t.Fatal(err)
		}
		body := change.As[crew.Body](ch.Body)
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

// checkWordsOnce checks that every line of the lead is stored once, in order, and without markers.
func (b *bubble) checkWordsOnce(l *scriptedLead) {
	b.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if said, kept := l.said["julian"], b.keptWords(); !slices.Equal(said, kept) {
		b.t.Errorf("julian said\n%q, but the journal has\n%q", said, kept)
	}
	if err := b.engineTeamIsReplayed(); err != nil {
		b.t.Error(err)
	}
}

func isRefusal(err error) bool {
	var refusal *table.Refusal
	return errors.As(err, &refusal)
}
