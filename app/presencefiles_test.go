package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
)

const crewYAML = "version: 1\nteam: {lead: julian, size: 3}\nagents:\n  julian: {driver: script, workspace: julian, script: julian.script}\n"

const leadUUID = "00000000-0000-8000-8000-00000000000a"

// newCrew returns a world with a lead of which only the output is visible.
func newCrew(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, crewYAML, map[string]string{"julian.script": "listen\n"})
	if _, err := w.engine.Agents.Hold(context.Background(), human, true, ""); err != nil { // no session begins
		t.Fatal(err)
	}
	return w
}

func (w *world) happens(what crew.Input) {
	w.t.Helper()
	if _, err := w.engine.Loop.Submit(context.Background(), sessions.ByShim, "", what); err != nil {
		w.t.Fatalf("%T: %v", what, err)
	}
}

// leads makes the lead register these members in a session.
func (w *world) leads(names ...string) {
	w.t.Helper()
	w.happens(crew.LeadBegan{Session: "julian-1", UUID: leadUUID})
	for seat, name := range names {
		w.happens(crew.Registered{Session: "julian-1", Identity: crew.Identity{
			Name: name, Seat: seat, Color: "#c9b1e8", Soul: "I am " + name + ".", Face: crew.Face{Eyes: "standard", Mouth: "gentle"},
		}})
	}
}

func (w *world) agentFile(id string) string {
	return filepath.Join(w.dir, ".fairlead", "agents", id+".json")
}

func (w *world) agentFiles() []string {
	names, _ := filepath.Glob(filepath.Join(w.dir, ".fairlead", "agents", "*"))
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return names
}

// eventually waits for a condition on the world, or fails with what it was instead.
func (w *world) eventually(what string, ok func() (bool, string)) {
	w.t.Helper()
	seen := ""
	if !wait.Poll(func() (is bool) { is, seen = ok(); return is }) {
		w.t.Fatalf("waited until %s; last seen: %s", what, seen)
	}
}

// filed waits until a file agrees with its document, and returns it.
func (w *world) filed(id string) crew.Document {
	w.t.Helper()
	var doc crew.Document
	w.eventually("the file of "+id+" says what the journal says", func() (bool, string) {
		text, err := os.ReadFile(w.agentFile(id))
		if err != nil {
			return false, err.Error()
		}
		var want []byte
		_ = w.engine.Loop.View(context.Background(), func(t *team.Team) {
			if is := t.Crew.Docs[crew.DocID(id)]; is != nil {
				want = crewdocs.WriteDocument(is)
			}
		})
		doc, _, _ = crewdocs.ReadDocument(text)
		return bytes.Equal(text, want), string(text) + "\nwant:\n" + string(want)
	})
	return doc
}

func (w *world) crew(all bool) view.CrewView {
	w.t.Helper()
	view, err := w.engine.Crew.Crew(context.Background(), all)
	if err != nil {
		w.t.Fatal(err)
	}
	return view
}

func (w *world) noticed(words string) {
	w.t.Helper()
	w.eventually("people are told "+words, func() (bool, string) {
		notices := w.crew(true).Notices
		for _, n := range notices {
			if strings.Contains(n.Text, words) {
				return true, ""
			}
		}
		return false, fmt.Sprint(notices)
	})
}

func doc(name string, seat int, more string) string {
	return fmt.Sprintf(`{"type":"agent-identity","name":%q,"gridPosition":%d,"individuationArtifact":"I am %s"%s}`, name, seat, name, more)
}

func TestDocumentsFollowTheJournal(t *testing.T) {
	t.Parallel()
	w := newCrew(t)
	w.leads("Lyra", "Kael")
	w.happens(crew.Reported{Session: "julian-1", Agents: []crew.Listed{{Name: "Lyra", Status: "alive", Seat: 0}}})
	if got := w.filed("agent-1"); got.Status != crew.Alive || got.LastSession != leadUUID || got.Soul != "I am Lyra." {
		t.Errorf("%+v", got)
	}
	if got := w.filed("agent-2"); got.Status != crew.Sleeping {
		t.Errorf("%+v", got)
	}
	if err := os.Remove(w.agentFile("agent-1")); err != nil {
		t.Fatal(err)
	}
	w.filed("agent-1") // written again
	if err := os.Rename(filepath.Dir(w.agentFile("agent-1")), filepath.Join(w.dir, "gone")); err != nil {
		t.Fatal(err)
	}
	w.filed("agent-1")
	w.filed("agent-2")
	old, err := os.ReadFile(w.agentFile("agent-1"))
	if err != nil {
		t.Fatal(err)
	}
	w.happens(crew.Reported{Session: "julian-1"})
	w.filed("agent-1")
	w.stop() // as after a crash between the append and the write:
	w.write(".fairlead/agents/agent-1.json", string(old))
	if err := os.Remove(w.agentFile("agent-2")); err != nil {
		t.Fatal(err)
	}
	w.start()
	<-w.engine.Loop.Ready()
	w.filed("agent-1")
	if got := w.crew(true).Notices; len(got) != 0 {
		t.Errorf("a file that Fairlead wrote counts as another program's: %+v", got)
	}
	if got := w.filed("agent-2"); got.Status != crew.Unknown {
		t.Errorf("after a start: %+v", got)
	}
	for _, name := range w.agentFiles() {
		if !strings.HasSuffix(name, ".json") && name[0] != '.' { // the lock and what was replaced lately are hidden
			t.Errorf("left: %s", name)
		}
	}
}

func TestFilesOfOthersAreImported(t *testing.T) {
	t.Parallel()
	w := newCrew(t)
	w.leads("Lyra")
	w.filed("agent-1")
	folder := ".fairlead/agents/"
	w.write(folder+"mira.json", doc("Mira", 5, `,"status":"alive","mood":{"is":"<calm>"},"lastSessionId":"elsewhere"`))
	if got := w.filed("mira"); got.Status != crew.Unknown || got.Name != "Mira" || got.LastSession != "elsewhere" ||
		!bytes.Contains(got.Extra, []byte("calm")) {
		t.Errorf("P13: %+v", got)
	}
	w.write(folder+"noor.json", doc("Noor", 6, ""))
	if got := w.filed("noor"); got.Status != crew.Unknown {
		t.Errorf("P12: %+v", got)
	}
	w.write(folder+"what a name.json", doc("Odd", 7, `,"status":"sleeping"`))
	if got := w.filed("agent-2"); got.Name != "Odd" || got.Status != crew.Sleeping {
		t.Errorf("another name: %+v", got)
	}
	w.took("crew/mira", "P13")
	w.took("crew/noor", "P12")

	// Unknown fields are imported; the other fields are the lead's to report.
	text, err := os.ReadFile(w.agentFile("agent-1"))
	if err != nil {
		t.Fatal(err)
	}
	w.write(folder+"agent-1.json",
		strings.Replace(strings.Replace(string(text), `"alive"`, `"sleeping"`, 1), `"type"`, `"note": 7, "type"`, 1))
	w.eventually("the note is taken in", func() (bool, string) {
		view, err := w.engine.Crew.Document(context.Background(), "Lyra")
		return string(view.Extra) == `{"note":7}`, fmt.Sprintf("%+v %v", view, err)
	})
	if got := w.filed("agent-1"); got.Status != crew.Alive || string(got.Extra) != `{"note":7}` {
		t.Errorf("X7: %+v", got)
	}
	w.noticed("the lead reports which agents are awake")

	// An unusable file is kept under a name that says why.
	w.write(folder+"lyra2.json", doc("Other", 0, "")) // an occupied seat
	w.write(folder+"broken.json", `{"type":"agent-identity",`)
	w.write(folder+"agent-1.json", "")
	w.noticed("seat 0 is taken")
	w.noticed("broken.json")
	w.eventually("all three are aside", func() (bool, string) {
		names := fmt.Sprint(w.agentFiles())
		return strings.Contains(names, "lyra2.json.refused-") && strings.Contains(names, "broken.json.corrupt-") &&
			strings.Contains(names, "agent-1.json.corrupt-") && strings.Contains(names, "what a name.json.imported-"), names
	})
	w.filed("agent-1")
	w.stop()
	w.start() // the next start finds no new file
	<-w.engine.Loop.Ready()
	for _, id := range []string{"agent-1", "agent-2", "mira", "noor"} {
		w.filed(id)
	}
	if got := w.crew(true); len(got.Agents) != 4 {
		t.Errorf("%+v", got.Agents)
	}
}

func TestHostileFilesAreHarmless(t *testing.T) {
	t.Parallel()
	w := newCrew(t)
	w.leads("Lyra")
	w.filed("agent-1")
	folder := ".fairlead/agents/"
	w.write(folder+"large.json", doc("Large", 1, `,"x":"`+strings.Repeat("x", 10<<20)+`"`))
	w.write(folder+"deep.json", doc("Deep", 2, `,"x":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)))
	w.write(folder+"extra.json", doc("Extra", 3, `,"x":"`+strings.Repeat("<", 60<<10)+`"`))
	w.write("elsewhere.json", doc("Linked", 3, ""))
	if err := os.Symlink(filepath.Join(w.dir, "elsewhere.json"), w.agentFile("linked")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.agentFile("folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		w.write(fmt.Sprintf("%sflood-%03d.json", folder, n), doc("Lyra", 0, ""))
	}
	w.eventually("they are put aside", func() (bool, string) {
		names := fmt.Sprint(w.agentFiles())
		return strings.Count(names, ".refused-") == 100 && strings.Contains(names, "large.json.corrupt-") &&
			strings.Contains(names, "deep.json.corrupt-") && strings.Contains(names, "extra.json.corrupt-"), names
	})
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link, w.agentFile("agent-1")); err != nil { // at once: a removed file is written again
		t.Fatal(err)
	}
	w.write(folder+"mira.json", doc("Mira", 5, ""))
	w.filed("mira") // a stuck file does not delay the others
	if link, err := os.Readlink(w.agentFile("agent-1")); err != nil || link != "/etc/passwd" {
		t.Errorf("the link: %q %v", link, err)
	}
	if err := os.Remove(w.agentFile("agent-1")); err != nil {
		t.Fatal(err)
	}
	w.filed("agent-1")
	if got := w.crew(true); len(got.Agents) != 2 || len(got.Notices) > 20 {
		t.Errorf("%+v", got)
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "elsewhere.json")); err != nil || !strings.Contains(string(text), "Linked") {
		t.Errorf("the target of the link: %s %v", text, err)
	}
}

// TestDocumentWhileFairleadWrites checks that another program that writes a document at the same
// time as Fairlead loses no field of its own.
func TestDocumentWhileFairleadWrites(t *testing.T) {
	t.Parallel()
	w := newCrew(t)
	w.leads("Lyra")
	w.filed("agent-1")
	for n := range 15 {
		text, err := os.ReadFile(w.agentFile("agent-1"))
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		fields["count"] = n
		text, _ = json.Marshal(fields)
		// Fairlead writes while the other program writes in place, as the programs of the seed do
		w.happens(crew.Reported{Session: "julian-1", Agents: []crew.Listed{{Name: "Lyra", Status: "alive", Seat: 0}}})
		written := -1 // how many files were moved aside when it wrote
		w.eventually("its field is taken in", func() (bool, string) {
			// A machine may stop the writer after it has truncated the file, so long that the empty file is moved aside.
			aside, err := filepath.Glob(w.agentFile("agent-1") + ".corrupt-*")
			if err == nil && len(aside) > written {
				written = len(aside)
				err = os.WriteFile(w.agentFile("agent-1"), text, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			view, err := w.engine.Crew.Document(context.Background(), "agent-1")
			return string(view.Extra) == fmt.Sprintf(`{"count":%d}`, n), fmt.Sprintf("%d: %s %v", n, view.Extra, err)
		})
	}
	if got := w.filed("agent-1"); got.Name != "Lyra" || got.Status != crew.Alive {
		t.Errorf("%+v", got)
	}
}

func TestImportDocument(t *testing.T) {
	t.Parallel()
	w := newCrew(t)
	ctx := context.Background()
	view, err := w.engine.Crew.ImportDocument(ctx, human, []byte(doc("Mira", 5, `,"id":"elsewhere-7","mood":"<calm>","status":"alive"`)))
	if err != nil || view.ID != "agent-1" || view.Status != "unknown" || *view.Name != "Mira" {
		t.Fatalf("%+v %v", view, err)
	}
	text, err := json.Marshal(view)
	if err != nil || !strings.HasPrefix(string(text), `{"type":"agent-identity","status":"unknown","name":"Mira",`) ||
		strings.Contains(string(text), "elsewhere") {
		t.Errorf("%s %v", text, err)
	}
	var back map[string]any
	if err := json.Unmarshal(text, &back); err != nil || back["mood"] != "<calm>" || back["id"] != "agent-1" || back["lastAliveAt"] != nil {
		t.Errorf("%v %v", back, err)
	}
	w.filed("agent-1")
	var bad *crewctl.BadDocument
	var refused *table.Refusal
	if _, err := w.engine.Crew.ImportDocument(ctx, human, []byte(`{"type":"cat"}`)); !errors.As(err, &bad) {
		t.Errorf("%v", err)
	}
	if _, err := w.engine.Crew.ImportDocument(ctx, human, []byte(doc("Mira", 5, ""))); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	if _, err := w.engine.Crew.ImportDocument(ctx, human, []byte(doc("Mira", 4, ""))); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}

// TestDocumentsThatComeTogetherHaveOneLimit checks that files that arrive together are imported up
// to the same limit as files that arrive one after the other.
func TestDocumentsThatComeTogetherHaveOneLimit(t *testing.T) {
	t.Parallel()
	if testsize.Race {
		t.Skip("17 MiB of JSON take half a minute with the race detector, and one hand reads them")
	}
	w := newCrew(t)
	soul := strings.Repeat("s", 250<<10)
	away := filepath.Join(w.dir, "away")
	if err := os.Mkdir(away, 0o700); err != nil {
		t.Fatal(err)
	}
	const files = 70 // 17 MiB
	for n := range files {
		text := fmt.Sprintf(`{"type":"agent-identity","status":"expired","name":null,"gridPosition":0,"individuationArtifact":%q}`, soul)
		if err := os.WriteFile(filepath.Join(away, fmt.Sprintf("old-%02d.json", n)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Dir(w.agentFile("x"))
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		t.Fatal(err)
	}
	for n := range files {
		name := fmt.Sprintf("old-%02d.json", n)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(away, name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	most := crewctl.DocumentBytesAll / len(soul)
	w.eventually("what has room is taken in, and the rest is kept aside", func() (bool, string) {
		aside := strings.Count(fmt.Sprint(w.agentFiles()), ".corrupt-")
		here := len(w.crew(true).Agents)
		return aside == files-most && here == most, fmt.Sprintf("%d are here and %d aside, want %d and %d", here, aside, most, files-most)
	})
}

// stuckDocuments is a folder in which no file can be moved aside.
type stuckDocuments struct{ outside.Documents }

func (stuckDocuments) PutAside(crewdocs.Seen, string) (string, error) {
	return "", errors.New("the file system is read-only")
}

// TestStuckDocumentIsReportedOnce checks that a file that can neither be imported nor moved aside
// is reported once, although every look finds it again.
func TestStuckDocumentIsReportedOnce(t *testing.T) {
	t.Parallel()
	p := crewctl.NewDocumentFiles(newCrew(t).engine.Crew, stuckDocuments{})
	found := crewdocs.Seen{Name: "mira", Sum: "1"}
	said := 0
	for range 5 {
		if p.PutAside(found, "corrupt", "it is no document") != "" {
			said++
		}
	}
	found.Sum = "2" // another content
	if p.PutAside(found, "corrupt", "it is no document") != "" {
		said++
	}
	if said != 2 {
		t.Errorf("reported %d times", said)
	}
}
