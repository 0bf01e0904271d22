package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
)

// julianScript is what the configuration has to name; the test itself plays the lead.
const julianScript = "description: leads\nsteps: [{say: hello}]\nturn: [expect_prompt, {say: yes}, again]\n"

// julian is a lead that the test plays: it does what it is told, when it may.
type julian struct {
	host *stage
	may  chan struct{} // one for each thing that it is told
	mu   sync.Mutex
	read []string // what it was told, in order
}

// withLead serves a real engine whose team julian leads.
func withLead(t testing.TB, j journal.Journal, yaml string) (*client.Client, *julian) {
	t.Helper()
	dir := newWorkspace(t)
	if err := os.WriteFile(filepath.Join(dir, "julian.script.yaml"), []byte(julianScript), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveTeam(t, j, dir, yaml)
	lead := &julian{host: s.sup.host, may: make(chan struct{}, 64)}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { lead.serve(ctx, &all) })
	t.Cleanup(func() { s.stop(); s.sup.end(); cancel(); all.Wait() })
	return dial(t, s), lead
}

func (l *julian) serve(ctx context.Context, all *sync.WaitGroup) {
	for {
		select {
		case p := <-l.host.came:
			all.Go(func() { l.lead(ctx, p) })
		case <-ctx.Done():
			return
		}
	}
}

// lead answers its input in one session, until the session ends. At first no other agent is awake.
func (l *julian) lead(ctx context.Context, p *player) {
	awake := map[string]int{}
	for {
		var words speech.Order
		select {
		case input := <-p.told:
			if err := json.Unmarshal([]byte(input), &words); err != nil {
				panic(err) // the driver is ours
			}
		case <-p.done:
			return
		case <-ctx.Done():
			return
		}
		l.mu.Lock()
		l.read = append(l.read, words.Text)
		l.mu.Unlock()
		select {
		case <-l.may:
		case <-p.done:
			return
		case <-ctx.Done():
			return
		}
		input, _ := p.Input()
		p.say(answerOf(words.Text, awake) + fmt.Sprintf("{\"type\":\"listening\",\"input\":%d}\n", input))
	}
}

var wanted = regexp.MustCompile(`<agent name="([^"]+)" [^>]*position="(\d)"`)

// answerOf is what julian says to a prompt.
func answerOf(prompt string, awake map[string]int) string {
	var out strings.Builder
	switch {
	case strings.HasPrefix(prompt, "[SUMMON AGENTS]"):
		out.WriteString("I have a letter for you.\n")
		for seat, name := range []string{"Lyra", "Kael"} {
			awake[name] = seat
			fmt.Fprintf(&out,
				`[AGENT_REGISTERED] {"name":%q,"color":"#c9b1e8","colorName":"Violet Heaven","gender":"woman","gridPosition":%d,"faceVariant":{"eyes":"standard","mouth":"gentle"},"individuationArtifact":"I am %s."}`+"\n", name, seat, name)
			fmt.Fprintf(&out, "[%s]: Good morning.\n", name)
		}
	case strings.HasPrefix(prompt, "[WAKE AGENTS]"):
		for _, m := range wanted.FindAllStringSubmatch(prompt, -1) {
			awake[m[1]] = int(m[2][0] - '0')
			fmt.Fprintf(&out, "[%s]: I am back.\n", m[1])
		}
	}
	var here []string
	for name, seat := range awake {
		here = append(here, fmt.Sprintf(`{"name":%q,"status":"alive","gridPosition":%d}`, name, seat))
	}
	slices.Sort(here)
	return out.String() + `[AGENT_STATUS] {"agents":[` + strings.Join(here, ",") + "]}\n"
}

// The reference's example of a team, line by line, with a real engine. What is asked without an
// order is asked until it is so: a lead takes its time.
func TestTeamByTheBook(t *testing.T) {
	t.Parallel()
	yaml, lines := inBook(referenceCrew)
	c, lead := withLead(t, memory.New(), yaml)
	asked := 0
	for i, line := range lines {
		if !strings.HasPrefix(line, "ask ") {
			continue
		}
		asked++
		want := ""
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "{") {
			want = lines[i+1]
		}
		order := strings.Contains(line, "-X POST")
		why, said := asBook(t, c, line, want)
		if order && why != "" {
			t.Fatalf("%s\nis answered with\n%s\n%s", line, said, why)
		}
		for range 4 { // it may answer all that there is to be told until the next order
			if order {
				lead.may <- struct{}{}
			}
		}
		if why != "" && !wait.Poll(func() bool { why, said = asBook(t, c, line, want); return why == "" }) {
			t.Fatalf("%s\nis answered with\n%s\n%s\nthe lead was told %q", line, said, why, lead.read)
		}
	}
	if asked != strings.Count(referenceCrew, "\nask ") {
		t.Errorf("%d requests were made", asked)
	}
}

// asBook asks what a line says, and says in what the answer differs from the line below it.
func asBook(t *testing.T, c *client.Client, line, want string) (why, said string) {
	t.Helper()
	said = askAsWritten(t, c, line)
	if want == "" {
		return "", said
	}
	var wants, got any
	if err := json.Unmarshal([]byte(want), &wants); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	if err := json.Unmarshal([]byte(said), &got); err != nil {
		t.Fatalf("%s: %v", said, err)
	}
	return holds(got, wants), said
}

// What cannot be had of a team is refused in words, with a real engine.
func TestTeamRefusals(t *testing.T) {
	yaml, _ := inBook(referenceCrew)
	c, lead := withLead(t, memory.New(), yaml)
	ctx := t.Context()
	refused := func(what string, err error, row string) {
		t.Helper()
		var no *client.Refused
		if !errors.As(err, &no) || no.Refusal.Row != row || no.Refusal.Reason == "" {
			t.Errorf("%s: %v, want a refusal by %s", what, err, row)
		}
	}
	_, early := c.Crew.Wake(ctx, nil)
	refused("nobody is there to be woken", early, "P8")
	if _, err := c.Hold(ctx, "lunch"); err != nil {
		t.Fatal(err)
	}
	_, held := c.Crew.Summon(ctx)
	refused("held", held, "X8")
	if _, err := c.Unhold(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Crew.Summon(ctx); err != nil {
		t.Fatal(err)
	}
	_, twice := c.Crew.Summon(ctx)
	refused("summoned twice", twice, "P1")
	lead.may <- struct{}{}
	wait.Until(t, "they hatch", func() bool {
		view, err := c.Crew.Show(ctx, false)
		return err == nil && view.Button == "none"
	})
	_, taken := c.Crew.Import(ctx, []byte(`{"type":"agent-identity","status":"alive","name":"Mira","gridPosition":0}`))
	refused("a seat that is taken", taken, "P11")
	_, seat := c.Crew.Import(ctx, []byte(`{"type":"agent-identity","status":"alive","name":"Mira","gridPosition":4}`))
	refused("the lead's seat", seat, "P13")
	var p *api.Problem
	for bad, status := range map[string]int{
		`{}`: 422, `{"type":"note"}`: 422, `{"type":"agent-identity","name":7}`: 422,
		`{"type":"agent-identity","type":"agent-identity"}`: 400,
	} {
		if _, err := c.Crew.Import(ctx, []byte(bad)); !errors.As(err, &p) || p.Status != status || len(p.Errors) != 1 {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := c.Crew.Wake(ctx, []string{"unknown"}); !errors.As(err, &p) || p.Status != 404 || !slices.Contains(p.Known, "Lyra") {
		t.Errorf("%v", err)
	}
	if _, err := c.Crew.Document(ctx, "unknown"); !errors.As(err, &p) || p.Status != 404 || !slices.Contains(p.Known, "Lyra") {
		t.Errorf("%v", err)
	}
	if soul, err := plainText(ctx, c, "/crew/agents/Kael/soul"); err != nil || soul != "I am Kael." {
		t.Errorf("%q, %v", soul, err)
	}
	var rows []string
	for ch, err := range c.Events(ctx, client.EventsQuery{Entity: "crew/agent-1"}) {
		if err != nil {
			t.Fatal(err)
		}
		if rows = append(rows, ch.Machine+" "+ch.Row+" "+ch.To); ch.To == "alive" {
			break
		}
	}
	if got := strings.Join(rows, "|"); got != "crew P1 hatching|crew P2 alive" {
		t.Errorf("a page is told %s", got)
	}
	page, err := c.Crew.Transcript(ctx, crewctl.TranscriptQuery{Text: "GOOD MORNING", Limit: 1})
	if err != nil || len(page.Messages) != 1 || page.Messages[0].Speaker != "Kael" {
		t.Fatalf("%+v, %v", page, err)
	}
	older, err := c.Crew.Transcript(ctx, crewctl.TranscriptQuery{Text: "good morning", Before: page.Next})
	if err != nil || len(older.Messages) != 1 || older.Messages[0].Speaker != "Lyra" {
		t.Errorf("%+v, %v", older, err)
	}
}

// Without a lead there is no team, and that is said.
func TestNoLead(t *testing.T) {
	c := dial(t, real(t, memory.New()))
	view, err := c.Crew.Show(t.Context(), true)
	if err != nil || view.Lead.Agent != "" || view.Agents == nil || view.Notices == nil {
		t.Errorf("%+v, %v", view, err)
	}
	_, summon := c.Crew.Summon(t.Context())
	_, wake := c.Crew.Wake(t.Context(), nil)
	for what, err := range map[string]error{"summon": summon, "wake": wake} {
		var no *client.Refused
		if !errors.As(err, &no) || !strings.Contains(err.Error(), "lead") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
