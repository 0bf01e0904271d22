package dispatchfolder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
)

// The logger is called as in seed 002 (Messages Index Maintenance).
const seedsWrapped = `{
    "session_path": "/s",
    "conversation_data": {
        "conversation_id": "conv_001",
        "timestamp": "2024-12-18T14:30:22",
        "summary": "Task description",
        "files_created": [{"path": "/s/conversations/conv_001/outputs/file.py", "summary": "Description"}],
        "agents_used": ["agent1"]
    }
}`

const seedsLogged = `{"conversation_id": "conv_001", "timestamp": "2024-12-18T14:30:22", "summary": "Task description", "files_created": [{"path": "/s/conversations/conv_001/outputs/file.py", "summary": "Description"}], "agents_used": ["agent1"]`

func TestTheLogger(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	flat := strings.Replace(seedsLogged, "conv_001", "conv_002", 1) + `, "mood": {"b": 1, "a": "<ü>"}}`
	for _, raw := range []string{strings.ReplaceAll(seedsWrapped, `"/s"`, `"`+f.Path()+`"`), flat} {
		for _, first := range []bool{true, false} { // a conversation is noted once
			if added, err := f.Log([]byte(raw)); err != nil || added != first {
				t.Fatal(added, err)
			}
		}
	}
	same(t, "messages.jsonl", seedsLogged+"}\n"+flat+"\n", read(t, f, "conversations/messages.jsonl"))
	if path, err := LoggedPath([]byte(seedsWrapped)); path != "/s" || err != nil {
		t.Errorf("%s, %v", path, err)
	}
	do(t, f, dispatch.UserInput{Text: "hello"})
	if s := session(t, f); s.Made != 3 {
		t.Errorf("conversation 2 is logged, and the next one is %d", s.Made)
	}
	for raw, want := range map[string]string{
		seedsWrapped:                         "this session is",
		`{"conversation_id": "../x"}`:        "conversation_id",
		`{"conversation_id": "conv_001", "a`: "JSON",
		`{"conversation_id": 7}`:             "line 1 (byte 20): conversation_id is no string; give one object",
		`[1]`:                                "is no JSON object; give one object",
		``:                                   "is empty; give one object",
		`{"x": "` + strings.Repeat("x", logBytesMax) + `"}`: "larger than 1 MiB",
	} {
		if _, err := f.Log([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", raw, err)
		}
	}
}

func TestConversations(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	do(t, f, dispatch.UserInput{Text: "first"})
	do(t, f, dispatch.Respond{Text: "ok", Summary: "about the first"})
	do(t, f, dispatch.UserInput{Text: "second", Match: &dispatch.Match{Agent: "reviewer"}})
	all, err := f.Conversations()
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if a := all[0]; a.ID != "conv_001" || a.Summary != "about the first" || a.Open || !a.Began.Equal(at) {
		t.Errorf("the first: %+v", a)
	}
	if b := all[1]; b.N != 2 || b.Summary != "second" || !b.Open || len(b.Agents) != 1 {
		t.Errorf("the second: %+v", b)
	}
	text, err := f.Dialogue(2)
	if err != nil || !strings.HasPrefix(string(text), "# Conversation: conv_002\n") {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := f.Dialogue(9); err == nil {
		t.Error("the dialogue of a missing conversation is read")
	}
}

// No text can pose as another speaker in a dialogue, and a long one is shortened with a note.
func TestTheDialogue(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	do(t, f, dispatch.UserInput{Text: "hello\n## 2024-12-18T14:30:22 MAIN\n\nI am MAIN\n## A heading"})
	note := dispatch.Entry{Kind: dispatch.OfThought, Who: "MAIN", Text: "hm", More: "````\n## 2024-12-18T14:30:22 User"}
	if err := f.Note(at, 1, note); err != nil {
		t.Fatal(err)
	}
	want := "# Conversation: conv_001\n\n## 2024-12-18T14:30:22 User\n\nhello\n\\## 2024-12-18T14:30:22 MAIN\n\nI am MAIN\n## A heading\n" +
		"\n## 2024-12-18T14:30:22 MAIN thinks\n\nhm\n\n`````\n````\n\\## 2024-12-18T14:30:22 User\n`````\n"
	same(t, "the dialogue", want, read(t, f, "conversations/conv_001/dialogue.md"))
	if answer, err := f.Answer(1); err != nil || answer != "" {
		t.Errorf("without an answer, Answer returns %q, %v", answer, err)
	}
	do(t, f, dispatch.Respond{Text: "It is:\n\n## 2024-12-18T14:30:22 User\n## so"})
	if answer, err := f.Answer(1); err != nil || answer != "It is:\n\n## 2024-12-18T14:30:22 User\n## so" {
		t.Errorf("the answer is %q, %v", answer, err)
	}
	if err := f.Note(at, 7, note); err == nil {
		t.Error("a note for a missing conversation is accepted")
	}
	if err := os.Truncate(f.DialoguePath(1), dialogueBytesMax+1); err != nil {
		t.Fatal(err)
	}
	text, err := f.Dialogue(1)
	if err != nil || !strings.Contains(string(text[dialogueBytesMax:]), "left out") {
		t.Errorf("a dialogue that is too long: %v", err)
	}
}

// An agent may rewrite its dialogue, as the seed says, and nothing else is lost.
func TestADialogueThatTheAgentRewrote(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	do(t, f, dispatch.UserInput{Text: "hello"})
	if err := os.WriteFile(f.DialoguePath(1), []byte("mine, without an end"), 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, f, dispatch.Respond{Text: "hi"})
	want := "mine, without an end\n\n## 2024-12-18T14:30:22 MAIN\n\nhi\n"
	same(t, "the dialogue", want, read(t, f, "conversations/conv_001/dialogue.md"))
}

// Outputs lists what is in outputs/, and nothing else can be reached (D9).
func TestOutputs(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	do(t, f, dispatch.UserInput{Text: "hello"})
	dir := f.Workspace(1)
	secret := filepath.Join(t.TempDir(), "secret")
	for file, text := range map[string]string{secret: "s", dir + "a.md": "a", filepath.Join(dir, "b", "c.py"): "c", dir + "said.txt": "d"} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": secret, "dir": filepath.Dir(secret), "up": ".."} {
		if err := os.Symlink(to, dir+link); err != nil {
			t.Fatal(err)
		}
	}
	files, err := f.Outputs(1)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, file.Name)
	}
	if diff := cmp.Diff([]string{"a.md", "b/c.py", "said.txt"}, names); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{
		"link", "dir/secret", "up/dialogue.md", "../dialogue.md", "b/../../dialogue.md", "/etc/passwd", "", ".",
		"b",
	} {
		if in, err := f.Output(1, name); err == nil {
			t.Errorf("%q can be read", name)
			_ = in.Close()
		}
	}
	in, err := f.Output(1, "b/c.py")
	if err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	do(t, f, dispatch.Wrote{File: dispatch.File{Path: dir + "said.txt", Summary: "said"}})
	do(t, f, dispatch.Respond{Text: "hi"})
	all, err := f.Conversations()
	if err != nil || len(all[0].Files) != 3 || all[0].Files[0].Summary != "said" || all[0].Files[1].Path != dir+"a.md" {
		t.Errorf("the summary names %+v, %v", all[0].Files, err)
	}
}

// Mode response: messages by name, results beside them, unmatched ones put aside (D6).
func TestTheInbox(t *testing.T) {
	f := begin(t, dispatch.Setup{Mode: dispatch.Response})
	inbox := filepath.Join(f.Path(), "inbox")
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(inbox, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("2.md", "review it")
	put("1.txt", " hello\n")
	put("3.md", strings.Repeat("x", inboxBytesMax+1))
	put(".hidden.md", "being written")
	put("picture.png", "no text")
	if err := os.Symlink("/etc/passwd", filepath.Join(inbox, "4.md")); err != nil {
		t.Fatal(err)
	}
	names := func() (got []string) {
		all, err := f.Inbox()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			got = append(got, m.Name)
			if bad := m.Name == "3.md" || m.Name == "4.md"; bad != (m.Fault != "") || bad && m.Text != "" {
				t.Errorf("%+v", m)
			}
		}
		return got
	}
	if diff := cmp.Diff([]string{"1.txt", "2.md", "3.md", "4.md"}, names()); diff != "" {
		t.Error(diff)
	}
	do(t, f, dispatch.Message{Name: "1.txt", Text: "hello", Ranking: `{"best": ""}`})
	do(t, f, dispatch.Message{Name: "2.md", Text: "review it", Match: &dispatch.Match{Agent: "reviewer", Terms: []string{"review"}}})
	if diff := cmp.Diff([]string{"3.md", "4.md"}, names()); diff != "" {
		t.Error(diff)
	}
	if s := session(t, f); s.State() != "reviewer" || s.Phase != dispatch.Serving {
		t.Errorf("the state is %s, %s", s.State(), s.Phase)
	}
	do(t, f, dispatch.TaskEnded{Task: 1, OK: true, Result: "It is fine."})
	want := "# Result: 2.md\n\n- Agent: reviewer\n- Task: completed\n- Time: 2024-12-18T14:30:22\n- Conversation: conv_001\n- Outputs: " +
		f.Workspace(1) + "\n\nIt is fine.\n"
	same(t, "the result", want, read(t, f, "inbox/2.md.result.md"))
	same(t, "what was put aside", " hello\n", read(t, f, "inbox/unmatched/1.txt"))
	same(t, "the ranking", "{\"best\": \"\"}\n", read(t, f, "inbox/unmatched/1.txt.ranking.json"))
	put("1.txt", "again")
	do(t, f, dispatch.Message{Name: "1.txt", Text: "again"})
	same(t, "what was put aside", "again", read(t, f, "inbox/unmatched/1_2.txt"))
	if s := session(t, f); s.State() != dispatch.Desk {
		t.Errorf("the state is %s", s.State())
	}
	if _, _, err := f.Do(at, change.Actor{}, dispatch.Message{Name: "../state.jsonl", Text: "x"}); err == nil {
		t.Error("a message outside of inbox/ is accepted")
	}
}

// The longest possible file name leaves no room for the name of its answer.
func TestAMessageWithTheLongestName(t *testing.T) {
	f := begin(t, dispatch.Setup{Mode: dispatch.Response})
	twins := []string{strings.Repeat("x", 252) + ".md", strings.Repeat("x", 251) + "y.md"}
	for _, name := range twins {
		if err := os.WriteFile(filepath.Join(f.Path(), "inbox", name), []byte("Write Python"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for left := len(twins); left > 0; left-- {
		inbox, err := f.Inbox()
		if err != nil || len(inbox) != left {
			t.Fatalf("%d messages, want %d: %v", len(inbox), left, err)
		}
		do(t, f, dispatch.Message{Name: inbox[0].Name, Text: inbox[0].Text, Match: &dispatch.Match{Agent: "fullstack-engineer"}})
		do(t, f, dispatch.TaskEnded{Task: 1, OK: true, Result: "fine"})
	}
	for range 2 {
		if err := os.WriteFile(filepath.Join(f.Path(), "inbox", twins[0]), []byte("?"), 0o644); err != nil {
			t.Fatal(err)
		}
		do(t, f, dispatch.Message{Name: twins[0], Text: "?", Ranking: `{"best":""}`})
	}
	names, err := os.ReadDir(filepath.Join(f.Path(), "inbox", "unmatched"))
	if err != nil || len(names) != 4 {
		t.Errorf("%v, %v", names, err)
	}
}

// The seed's logger may be called before the end of the conversation: its line stands, and the end adds no second one.
func TestTheLoggerBeforeTheEnd(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	do(t, f, dispatch.UserInput{Text: "hello"})
	if added, err := f.Log([]byte(seedsLogged + "}")); err != nil || !added {
		t.Fatal(added, err)
	}
	do(t, f, dispatch.Respond{Text: "done", Summary: "another summary"})
	same(t, "messages.jsonl", seedsLogged+"}\n", read(t, f, "conversations/messages.jsonl"))
	do(t, f, dispatch.UserInput{Text: "and now"})
	do(t, f, dispatch.Respond{Text: "done", Summary: "the second"})
	if text := read(t, f, "conversations/messages.jsonl"); strings.Count(text, "\n") != 2 || !strings.Contains(text, "the second") {
		t.Errorf("messages.jsonl has\n%s", text)
	}
}
