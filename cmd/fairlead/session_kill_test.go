package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/read/view"
)

// A ward is a dispatch that the daemon runs: a coordinator that answers, or delegates and gets the result,
// and a writer. Both put the id of their session into their text, so that the test knows which session wrote
// each text in the folder.

// coordinates is MAIN's script.
const coordinates = `sessions:
  - steps:
      - expect_prompt
      - run: |
          case $PROMPT in
          *"writer is done"* | *"writer has failed"*) echo "told $SESSION.";;
          *"delegate it"*) echo '[DELEGATE] {"to": "writer", "task": "Put down what was asked for"}';;
          *) echo "kept $SESSION.";;
          esac
        says: true
`

// writes is the writer's: it works for as long as there is a file busy in its workspace.
const writes = `sessions:
  - steps:
      - expect_prompt
      - run: echo $SESSION >> "$FAIRLEAD_OUTPUTS/starts.txt"
      - run: touch at; while test -e busy; do sleep 0.02; done; rm -f at
      - run: printf made > "$FAIRLEAD_OUTPUTS/made-$SESSION.txt"
        says: true
      - say: "made {session}."
`

type ward struct {
	*rig
	folder *dispatchfolder.Folder
}

func newWard(t *testing.T) *ward {
	t.Helper()
	w := &ward{rig: newRig(t, map[string]string{
		"coordinates.script.yaml": coordinates, "writes.script.yaml": writes, "coordinator/.keep": "", "writer/.keep": "",
		"fairlead.yaml": `version: 1
dispatch: {main: coordinator, sandbox: off}
agents:
  coordinator: {description: Coordinates and answers, driver: script, script: coordinates.script.yaml, workspace: coordinator}
  writer: {description: Use to compose essays and verses, driver: script, script: writes.script.yaml, workspace: writer}
`,
	})}
	w.must("dispatch", "start", "--host", "fairlead")
	folder, err := dispatchfolder.Current(w.dir)
	if err != nil || folder == nil {
		t.Fatalf("the session is not there: %v", err)
	}
	w.folder = folder
	return w
}

// wishOf is an input of one kind, with a number of its own.
func wishOf(kind, n int) string {
	return fmt.Sprintf([]string{
		"Compose verses and an essay, number-%d.", "Good morning, number-%d.",
		"Please delegate it, number-%d.",
	}[kind%3], n)
}

// says is a person at the command line, who needs no daemon.
func (w *ward) says(text string) error {
	s, err := w.folder.Session()
	if err != nil {
		return err
	}
	in := dispatch.UserInput{Text: text, Named: policy.NamedPaths(text, nil), Match: dispatchfolder.MatchOf(dispatchfolder.Best(s, text))}
	_, _, err = w.folder.Do(time.Now(), change.Actor{Kind: "human", ID: "anna"}, in)
	return err
}

// rests says whether everything was answered, and the daemon says the same.
func (w *ward) rests(client *apiclient.Client) bool {
	s, err := w.folder.Session()
	if err != nil || s.Open != nil || len(s.Waiting) > 0 {
		return false
	}
	ctx, cancel := contextFor(rigWait)
	defer cancel()
	all, err := apiclient.Get[api.DispatchSessions](ctx, client, "/dispatch", nil)
	if err != nil || len(all.Sessions) != 1 {
		return false
	}
	is := all.Sessions[0]
	crew, err := client.Agents(ctx)
	return err == nil && is.State == s.State() && is.Phase == string(s.Phase) && is.Conversations == s.Made &&
		!slices.ContainsFunc(crew.Agents, func(a view.AgentView) bool { return a.Session != nil })
}

// faultsOfWard are what is not as it should be of everything that was said, by kind.
type faultsOfWard struct {
	inputs, doubles, output, other []string
	conversations                  int
	sessions                       map[string]bool // that said something
}

var saidBy = regexp.MustCompile(`(kept|told|made) ((?:coordinator|writer)-\d+)\.`)

// audit reads the folder and the journal. The inputs in sent were acknowledged. exact: only the daemon was killed, so
// the agents that were asked have answered everything.
func (w *ward) audit(client *apiclient.Client, sent []string, exact bool) (f faultsOfWard) {
	w.t.Helper()
	var lines []dispatchfolder.Line
	for from := int64(0); ; {
		some, next, err := w.folder.Lines(from)
		if err != nil {
			w.t.Fatal(err)
		}
		if next == from {
			break
		}
		lines, from = append(lines, some...), next
	}
	began, ended := map[string]int{}, 0
	f.sessions = map[string]bool{}
	for i := range lines {
		ch := &lines[i].Change
		body := change.As[dispatch.Body](ch.Body)
		if lines[i].Fault != "" || lines[i].Foreign {
			f.other = append(f.other, fmt.Sprintf("line %d: %s", i+1, lines[i].Fault))
		}
		if ch.Trigger == string(dispatch.InputCame) {
			began[body.Now.Open.Input]++
			f.conversations++
		}
		if sum := body.Summary; sum != nil {
			if ended++; sum.Conversation != ended {
				f.other = append(f.other, fmt.Sprintf("conv_%03d is the %d. that was closed", sum.Conversation, ended))
			}
			if exact && strings.HasPrefix(sum.Text, "Interrupted") {
				f.output = append(f.output, fmt.Sprintf("conv_%03d: %s", sum.Conversation, sum.Text))
			}
		}
	}
	for _, text := range sent {
		if began[text] != 1 {
			f.inputs = append(f.inputs, fmt.Sprintf("%q began %d conversations", text, began[text]))
		}
	}
	w.auditFiles(&f, lines, exact)
	w.auditJournal(&f, client, lines)
	return f
}

// auditFiles holds each conversation's own files to what the history says of it.
func (w *ward) auditFiles(f *faultsOfWard, lines []dispatchfolder.Line, exact bool) {
	w.t.Helper()
	index, err := os.ReadFile(filepath.Join(w.folder.Path(), "conversations", "messages.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	closed := 0
	for _, line := range lines {
		if change.As[dispatch.Body](line.Change.Body).Summary != nil {
			closed++
		}
	}
	if n := strings.Count(string(index), "\n"); n != closed {
		f.other = append(f.other, fmt.Sprintf("%d conversations are closed, and messages.jsonl has %d lines", closed, n))
	}
	for n := 1; n <= closed; n++ {
		text, err := w.folder.Dialogue(n)
		if err != nil {
			w.t.Fatal(err)
		}
		said := map[string]int{}
		for _, m := range saidBy.FindAllStringSubmatch(string(text), -1) {
			if said[m[0]] == 0 && f.sessions[m[2]] {
				f.doubles = append(f.doubles, fmt.Sprintf("%q stands in conv_%03d, and in one before", m[0], n))
			}
			said[m[0]]++
			f.sessions[m[2]] = true
			if most := map[string]int{"made": 2}[m[1]]; said[m[0]] > max(most, 1) { // as the result, and as the answer
				f.doubles = append(f.doubles, fmt.Sprintf("%q stands %d times in conv_%03d", m[0], said[m[0]], n))
			}
		}
		starts, _ := os.ReadFile(filepath.Join(w.folder.Workspace(n), "starts.txt"))
		begun := strings.Fields(string(starts))
		if len(begun) > 1 {
			f.doubles = append(f.doubles, fmt.Sprintf("conv_%03d was written by %v", n, begun))
		}
		if !exact {
			continue
		}
		asked := strings.Contains(string(text), "Compose") || strings.Contains(string(text), "delegate it")
		if asked != (len(begun) == 1) {
			f.output = append(f.output, fmt.Sprintf("conv_%03d was written by %v:\n%s", n, begun, text))
		}
		for _, id := range begun {
			_, err := os.Stat(filepath.Join(w.folder.Workspace(n), "made-"+id+".txt"))
			if err != nil || !strings.Contains(string(text), "made "+id+".") || !f.sessions[id] ||
				!strings.Contains(string(index), "made-"+id+".txt") {
				f.output = append(f.output, fmt.Sprintf("what %s made is not all in conv_%03d: %v\n%s", id, n, err, text))
			}
		}
		if strings.Contains(string(text), "delegate it") && !strings.Contains(string(text), "told coordinator-") ||
			strings.Contains(string(text), "Good morning") && !strings.Contains(string(text), "kept coordinator-") {
			f.output = append(f.output, fmt.Sprintf("conv_%03d has no answer of MAIN:\n%s", n, text))
		}
	}
}

// auditJournal wants each line of the folder once in the journal, in order, and one process at most for
// each work.
func (w *ward) auditJournal(f *faultsOfWard, client *apiclient.Client, lines []dispatchfolder.Line) {
	w.t.Helper()
	at, works := 0, map[team.Purpose]map[string]bool{}
	for after := uint64(0); ; {
		ctx, cancel := contextFor(rigWait)
		page, err := client.Journal(ctx, apiclient.JournalQuery{After: after})
		cancel()
		if err != nil {
			w.t.Fatal(err)
		}
		if len(page.Changes) == 0 {
			break
		}
		for _, ch := range page.Changes {
			after = ch.Seq
			var data struct {
				Dispatch *team.DispatchSet `json:"dispatch"`
				Session  *team.Session     `json:"session"`
			}
			if err := json.Unmarshal(ch.Data, &data); err != nil {
				w.t.Fatal(err)
			}
			if set := data.Dispatch; set != nil && set.Body != nil {
				if at >= len(lines) || lines[at].End != set.Read {
					f.other = append(f.other,
						fmt.Sprintf("change %d of the journal is byte %d of the folder, and line %d was to be next", ch.Seq, set.Read,
							at+1))
				}
				at++
			}
			if s := data.Session; s != nil && ch.To == "running" && s.For.Kind == team.PurposeDispatch {
				if works[s.For] == nil {
					works[s.For] = map[string]bool{}
				}
				works[s.For][s.ID] = true
			}
		}
	}
	if at != len(lines) {
		f.other = append(f.other, fmt.Sprintf("the journal has %d lines of the folder's %d", at, len(lines)))
	}
	for forWhom, ids := range works {
		if len(ids) > 1 {
			f.doubles = append(f.doubles, fmt.Sprintf("%v ran for %s", ids, forWhom))
		}
	}
}

// D3, D7 and J1 on real processes: the daemon is killed while an agent works for a conversation, while MAIN's
// delegation is under way, and while people speak to the folder without it. Each input is answered once, by
// the processes that were at it.
func TestKilledDaemonOfASession(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	client := w.client()
	var sent []string
	says := func(kind int) {
		t.Helper()
		text := wishOf(kind, len(sent))
		if err := w.says(text); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, text)
	}
	w.put("writer/busy", "")
	kinds := []int{0, 2}
	for _, kind := range kinds {
		says(kind)
		w.poll("the writer is at work", func() bool {
			_, err := os.Stat(filepath.Join(w.dir, "writer", "at"))
			return err == nil
		})
		w.kill()
		says(1) // it waits, and only the folder records it
		w.drop("writer/busy")
		w.up()
		w.poll("all of it is answered", func() bool { return w.rests(client) })
		w.put("writer/busy", "")
	}
	w.drop("writer/busy")
	f := w.audit(client, sent, true)
	if all := slices.Concat(f.inputs, f.doubles, f.output, f.other); len(all) > 0 || f.conversations != len(sent) {
		t.Errorf("%d conversations of %d inputs: %s", f.conversations, len(sent), strings.Join(all, "\n"))
	}

	// An audit that finds nothing is worth something where it finds what was tampered with.
	dialogue := w.folder.DialoguePath(1)
	text, err := os.ReadFile(dialogue)
	if err != nil {
		t.Fatal(err)
	}
	again := saidBy.FindString(string(text))
	if err := os.WriteFile(dialogue, append(text, "\n"+again+"\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	starts, err := os.ReadFile(filepath.Join(w.folder.Workspace(1), "starts.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.folder.Workspace(1), "made-"+strings.TrimSpace(string(starts))+".txt")); err != nil {
		t.Fatal(err)
	}
	f = w.audit(client, append(sent, "said to nobody"), true)
	if len(f.inputs) != 1 || len(f.doubles) != 1 || len(f.output) != 1 || len(f.other) != 0 {
		t.Errorf("of a word that stands there twice, a file that is gone and an input that is lost it finds %q, %q and %q", f.doubles,
			f.output, f.inputs)
	}
}
