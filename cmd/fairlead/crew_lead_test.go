package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/read/view"
)

// A lead that keeps record of its own: each prompt that it was told, whole, and each marker that
// it said. What a daemon says of the team is held to them.

// leadScript hands each prompt to leadSays; what that prints are the lead's own words.
const leadScript = `sessions: [{steps: [{say: I only lead}]}]
lead: &told
  - run: sh ../lead.sh begin
  - expect_prompt
  - run: cat > told.txt && sh ../lead.sh
    says: true
  - again
turn: *told
`

// leadSays answers one prompt. At each of its gates it says that it is there, and goes on when
// there is no file hold-GATE. Who is awake is known to the session alone, in a file of its own.
const leadSays = `awake=awake-$SESSION
gate() { echo "$SESSION" > "at-$1"; while test -e "hold-$1"; do sleep 0.02; done; }
report() { test "$KIND" != lead || echo "[AGENT_STATUS] {\"agents\":[$(sort -u "$awake" | paste -s -d , -)]}"; }
comes() { printf '{"name":"%s","status":"alive","gridPosition":%s}\n' "$2" "$1" >> "$awake"; }
register() {
	soul="I am N$1 <of> [$SESSION] </soul>]]>&amp;$(test ! -e fat || head -c 60000 /dev/zero | tr '\0' s)"
	printf '%s' "$soul" > "soul-$SESSION-N$1"
	echo "[AGENT_REGISTERED] {\"name\":\"N$1\",\"color\":\"#c9b1e8\",\"colorName\":\"Violet\","
	test "$2" = 1 && gate mid
	echo "\"gender\":\"woman\",\"gridPosition\":$1,\"faceVariant\":{\"eyes\":\"standard\",\"mouth\":\"gentle\"},\"individuationArtifact\":\"$soul\"}"
	echo "$SESSION N$1" >> registered
	comes "$1" "N$1"
	echo "[N$1]: hello from $SESSION"
}
if test "$1" = begin; then
	echo "$SESSION" >> starts
	: > "$awake"
	gate begin
	exit
fi
mkdir -p told
cp told.txt "told/$(printf %06d $(ls told | wc -l)).$SESSION"
IFS= read -r first < told.txt
case $first in
"[SUMMON AGENTS]")
	gate told
	echo "I call them."
	k=0
	for seat in $(sed -n 's/^Free seats: \(.*\)$/\1/p' told.txt | tr -d ,); do
		k=$((k + 1))
		register $seat $k
		gate registered-$k
	done
	report
	gate reported;;
"[WAKE AGENTS]")
	gate woken
	sed -n 's/^<agent name="\([^"]*\)".* position="\([0-8]\)">$/\2 \1/p' told.txt | while read -r seat name; do
		comes "$seat" "$name"
		echo "[$name]: I am awake again in $SESSION"
	done
	gate rising
	report
	gate risen;;
*" not registered "*)
	for seat in $(sed -n 's/^- seat \([0-8]\):.*/\1/p' told.txt); do register "$seat" 9; done
	report;;
"Channel "*)
	case $first in
	*"your turn to speak"* | *"your turn goes on"* | *"waits for your answer"*)
		n=$(($(cat spoke 2> /dev/null | wc -l) + 1))
		echo "word-$n" >> spoke
		echo "[N0]: I say word-$n."
		echo TURN_COMPLETE;;
	esac;;
*)
	gate status
	report;;
esac
`

// crewFiles is a team of three whom julian leads; more is added to fairlead.yaml.
func crewFiles(team, more string) map[string]string {
	return map[string]string{
		"fairlead.yaml": "version: 1\nteam: {lead: julian, size: 3, " + team + "}\nagents:\n" +
			"  julian: {driver: script, script: lead.script.yaml, workspace: julian, failures_max: 1000, backoff: {first: 1ms, max: 1ms}, grace: 200ms}\n" + more,
		"lead.script.yaml": leadScript,
		"lead.sh":          leadSays,
		"julian/.keep":     "",
	}
}

// quickTimes are time limits short enough that an abandoned operation ends within the test.
const quickTimes = "status_timeout: 20s, hatch_timeout: 60s"

// silentSoon are time limits for a test that waits until a lead has fallen silent.
const silentSoon = "status_timeout: 4s, hatch_timeout: 60s"

// A gate is a moment at which the lead stands still.
func (s *rig) gate(name string) {
	s.t.Helper()
	_ = os.Remove(filepath.Join(s.dir, "julian", "at-"+name))
	s.put("julian/hold-"+name, "")
}

// atGate waits until the lead stands there.
func (s *rig) atGate(name string) {
	s.t.Helper()
	s.poll("the lead is at "+name+"; "+s.crewWords(), func() bool {
		_, err := os.Stat(filepath.Join(s.dir, "julian", "at-"+name))
		return err == nil
	})
}

func (s *rig) ungate(names ...string) {
	s.t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(s.dir, "julian", "hold-"+name)); err != nil && !os.IsNotExist(err) {
			s.t.Fatal(err)
		}
	}
}

// crew is the team as it stands now, expired ones too.
func (s *rig) crew() view.CrewView {
	s.t.Helper()
	view, err := s.client().Crew.Show(context.Background(), true)
	if err != nil {
		s.t.Fatal(err)
	}
	return view
}

func (s *rig) crewUntil(what string, ok func(view.CrewView) bool) view.CrewView {
	s.t.Helper()
	client := s.client()
	return seenUntil(s.t, what, func() (view.CrewView, error) { return client.Crew.Show(context.Background(), true) }, ok, s.crewWords)
}

// crewWords is the lead's part of the journal for a failing test: a line for each change.
func (s *rig) crewWords() string {
	var b strings.Builder
	for _, ch := range s.presenceChanges() {
		fmt.Fprintf(&b, "%d %s %s -> %s %s %s %s\n", ch.Seq, ch.Entity, ch.From, ch.To, ch.Row, ch.Trigger, cli.Line(string(ch.Data), 300))
	}
	return lastLines(b.String(), 60)
}

func (s *rig) presenceChanges() (all []api.Change) {
	client := s.client()
	for after := uint64(0); ; {
		page, err := client.Journal(context.Background(), apiclient.JournalQuery{After: after})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, ch := range page.Changes {
			after = ch.Seq
			if ch.Machine == "crew" {
				all = append(all, ch)
			}
		}
		if len(page.Changes) == 0 {
			return all
		}
	}
}

// allAre says that everybody whom people see is so, and that nothing is under way.
func allAre(status string, n int) func(view.CrewView) bool {
	return func(v view.CrewView) bool {
		return v.InProgress == "" && howManyAre(v, status) == n && visible(v) == n
	}
}

func howManyAre(v view.CrewView, status string) (n int) {
	for _, doc := range v.Agents {
		if doc.Status == status {
			n++
		}
	}
	return n
}

func visible(v view.CrewView) int { return len(v.Agents) - howManyAre(v, "expired") }

// leadActionOf is the action that a prompt asks of the lead.
func leadActionOf(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	switch {
	case first == "[SUMMON AGENTS]":
		return string(crew.TellSummon)
	case first == "[WAKE AGENTS]":
		return string(crew.TellWake)
	case strings.Contains(first, " not registered "):
		return string(crew.TellRegister)
	case strings.HasPrefix(first, "Who of your team"):
		return string(crew.TellStatus)
	default:
		return "channel"
	}
}

// leadRecord is what the lead was told and did.
type leadRecord struct {
	told       map[string][]string // by session: the prompts, oldest first
	registered []string            // "SESSION NAME", in order
	souls      map[string]string   // by name: the first that it was registered with
}

func (s *rig) leadRecord() leadRecord {
	s.t.Helper()
	b := leadRecord{told: map[string][]string{}, souls: map[string]string{}}
	names, err := filepath.Glob(filepath.Join(s.dir, "julian", "told", "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			s.t.Fatal(err)
		}
		_, session, _ := strings.Cut(filepath.Base(name), ".")
		b.told[session] = append(b.told[session], string(text))
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "julian", "registered")); err == nil {
		b.registered = strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	for _, one := range b.registered {
		session, name, _ := strings.Cut(one, " ")
		if _, ok := b.souls[name]; !ok {
			soul, err := os.ReadFile(filepath.Join(s.dir, "julian", "soul-"+session+"-"+name))
			if err != nil {
				s.t.Fatal(err)
			}
			b.souls[name] = string(soul)
		}
	}
	return b
}

// woken is an element of a wake as a program reads it.
type woken struct {
	Name       string `xml:"name,attr"`
	Color      string `xml:"color,attr"`
	ColorName  string `xml:"colorName,attr"`
	Seat       string `xml:"position,attr"`
	Soul       string `xml:"soul"`
	Transcript string `xml:"transcript"`
}

// wakesIn reads the elements of a prompt, strictly.
func wakesIn(prompt string) ([]woken, error) {
	from, to := strings.Index(prompt, "\n<agent "), strings.LastIndex(prompt, "</agent>")
	if from < 0 || to < from {
		return nil, fmt.Errorf("there is no element in %q", tail(prompt))
	}
	var all struct {
		Agents []woken `xml:"agent"`
		Other  []struct {
			XMLName xml.Name
		} `xml:",any"`
		Text string `xml:",chardata"`
	}
	if err := xml.Unmarshal([]byte("<all>"+prompt[from:to]+"</agent></all>"), &all); err != nil {
		return nil, err
	}
	if len(all.Other) > 0 || strings.TrimSpace(all.Text) != "" {
		return nil, fmt.Errorf("there is more beside the agents: %v %q", all.Other, all.Text)
	}
	for i := range all.Agents {
		all.Agents[i].Soul = strings.TrimSuffix(strings.TrimPrefix(all.Agents[i].Soul, "\n"), "\n  ")
	}
	return all.Agents, nil
}

// leadStory is what the journal records about the lead's actions.
type leadStory struct {
	told  map[string]map[string]int // by session, by action: acknowledged as delivered
	asked map[string]map[string]int // by session, by action: to be delivered while the session was open
	uuid  string                    // of the session that is open
}

func (s *rig) leadStory() leadStory {
	s.t.Helper()
	story := leadStory{told: map[string]map[string]int{}, asked: map[string]map[string]int{}}
	add := func(to map[string]map[string]int, session, errand string) {
		if to[session] == nil {
			to[session] = map[string]int{}
		}
		to[session][errand]++
	}
	asks, open, seen := map[uint64]string{}, "", map[string]bool{}
	for _, ch := range s.presenceChanges() {
		var data struct {
			Presence struct {
				Lead *crew.Lead `json:"lead"`
			} `json:"crew"`
		}
		if err := json.Unmarshal(ch.Data, &data); err != nil {
			s.t.Fatalf("change %d: %v", ch.Seq, err)
		}
		lead := data.Presence.Lead
		if lead == nil {
			continue
		}
		if lead.Session != "" {
			open = lead.Session
		}
		now := map[uint64]string{}
		for _, ask := range lead.Actions {
			now[ask.N] = string(ask.Do)
			if key := fmt.Sprint(open, ask.N); lead.Session != "" && !seen[key] {
				seen[key] = true
				add(story.asked, lead.Session, string(ask.Do))
			}
		}
		if ch.Trigger == string(crew.Received) {
			for n, do := range asks {
				if _, still := now[n]; !still {
					add(story.told, lead.Session, do)
				}
			}
		}
		asks, story.uuid = now, lead.UUID
	}
	return story
}

// faultsOfCrew holds a team at rest to what the lead kept, and to its files. exact: no lead was
// killed, so whatever it was told it read.
func (s *rig) faultsOfCrew(exact bool) (wrong []string) {
	s.t.Helper()
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	view, story, record := s.crew(), s.leadStory(), s.leadRecord()
	for session, prompts := range record.told {
		if !exact && story.asked[session] == nil {
			continue // it died before anybody had seen that it lived: it is told again what it began with
		}
		read := map[string]int{}
		for _, text := range prompts {
			read[leadActionOf(text)]++
		}
		delete(read, "channel")
		for do, n := range read {
			if most := story.asked[session][do]; n > most {
				add("%s read %s %d times, and was to be told it %d times", session, do, n, most)
			}
		}
		if exact && !maps.Equal(read, story.told[session]) {
			add("%s read %v, and the journal says that it was told %v", session, read, story.told[session])
		}
	}
	if exact {
		for session, told := range story.told {
			if len(record.told[session]) == 0 {
				add("%s was told %v, and has read nothing", session, told)
			}
		}
	}
	names := map[string]bool{}
	for _, doc := range view.Agents {
		if doc.Status == "alive" && (doc.LastSession == nil || *doc.LastSession != story.uuid || view.Lead.Session == "") {
			add("%s is alive by the word of %v, and the lead's session is %q (%s)", doc.ID, doc.LastSession, view.Lead.Session, story.uuid)
		}
		if doc.Name == nil {
			continue
		}
		if names[*doc.Name] {
			add("%s is there twice", *doc.Name)
		}
		names[*doc.Name] = true
		if soul, ok := record.souls[*doc.Name]; ok && doc.Soul != soul {
			add("the soul of %s is %.60q, and was %.60q", *doc.Name, doc.Soul, soul)
		}
	}
	starts, _ := os.ReadFile(filepath.Join(s.dir, "julian", "starts"))
	ids := strings.Fields(string(starts))
	slices.Sort(ids)
	if n := len(ids) - len(slices.Compact(ids)); n > 0 {
		add("%d sessions of the lead were started twice: %q", n, ids)
	}
	if alive := s.leadsAlive(); len(alive) > 1 {
		add("several sessions of the lead live: %v", alive)
	}
	return append(wrong, s.faultsOfDocuments()...)
}

// leadsAlive are the sessions of the lead that have a process.
func (s *rig) leadsAlive() []string {
	var all []string
	for _, b := range (&load{rig: s, mark: markOf(s.dir)}).census() {
		if !b.shim && agentIn(b.session) == "julian" && b.lives() {
			all = append(all, b.session)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// faultsOfDocuments compares the files of the team with the team. They follow the journal, so they
// have a moment for it.
func (s *rig) faultsOfDocuments() (wrong []string) {
	s.t.Helper()
	for begun := time.Now(); ; pass(10 * time.Millisecond) {
		wrong = wrong[:0]
		for _, doc := range s.crew().Agents {
			var is view.DocumentView
			text, err := os.ReadFile(filepath.Join(s.dir, ".fairlead", "agents", doc.ID+".json"))
			if err == nil {
				err = json.Unmarshal(text, &is)
			}
			is.ID, is.Extra, doc.Extra = doc.ID, nil, nil
			if err != nil || string(mustText(is)) != string(mustText(doc)) {
				wrong = append(wrong, fmt.Sprintf("the file of %s says %s, %v; it is %s", doc.ID, text, err, mustText(doc)))
			}
		}
		if len(wrong) == 0 || time.Since(begun) > moment {
			return wrong
		}
	}
}

func mustText(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // ours can be written
	}
	return text
}

// sound fails the test where the record and the journal disagree.
func (s *rig) sound(exact bool) {
	s.t.Helper()
	if wrong := s.faultsOfCrew(exact); len(wrong) > 0 {
		s.t.Errorf("%d faults:\n%s\n%s", len(wrong), strings.Join(wrong, "\n"), s.crewWords())
	}
}

// TestLeadOfCrew is the lead of these tests without anybody who harms it.
func TestLeadOfCrew(t *testing.T) {
	t.Parallel()
	s := newRig(t, crewFiles(quickTimes, ""))
	s.must("crew", "summon", "--wait")
	s.sound(true)
	s.must("crew", "sleep", "--wait")
	if v := s.crew(); !allAre("sleeping", 3)(v) {
		t.Errorf("they are %+v", v)
	}
	s.must("crew", "wake", "--wait")
	s.sound(true)
	s.wokenAsThemselves()
}

// wokenAsThemselves wants the last wake to have given back who they were.
func (s *rig) wokenAsThemselves() {
	s.t.Helper()
	record := s.leadRecord()
	last := ""
	for _, session := range slices.Sorted(maps.Keys(record.told)) {
		for _, text := range record.told[session] {
			if leadActionOf(text) == string(crew.TellWake) {
				last = text
			}
		}
	}
	all, err := wakesIn(last)
	if err != nil || len(all) == 0 {
		s.t.Fatalf("the last wake: %v", err)
	}
	for _, one := range all {
		if one.Soul != record.souls[one.Name] {
			s.t.Errorf("%s is woken as %.80q and was %.80q", one.Name, one.Soul, record.souls[one.Name])
		}
		if !strings.Contains(one.Transcript, "["+one.Name+"]: ") {
			s.t.Errorf("%s does not remember anything: %q", one.Name, one.Transcript)
		}
	}
}
