package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/rank"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// sessionsAsked is a call of every route about sessions with MAIN, in an order in which each is
// taken.
var sessionsAsked = []askedOnce{
	{
		"start-dispatch", "POST", "/dispatch", `{"mode":"orchestrator","host":"none","path":"quay"}`,
		`"session" "name":"quay" "path" "mode":"orchestrator" "host":"none" "phase":"ready" "state":"MAIN" "began" "changed_at" "ended":"" "conversation":"" "conversations":0 "waiting":[] "lines" "line":1 "row":"D1" "type":"session_init" "lines_left_out":0 "permissions":{"can_write":["*.md" "cannot_execute" "agents" "name":"fullstack-engineer" "description" "file" "at_work":[] "conversations":[] "denials":[] "ranking":null "layers":[] "notes":[]`,
	},
	{"list-dispatches", "GET", "/dispatch", "", `"sessions" "name":"quay" "left_out":0 "denied":0 "fault":""`},
	{
		"give-input", "POST", "/dispatch/quay/input", `{"text":"hm"}`,
		`"conversation_id":"conv_001" "state":"MAIN" "workspace" "waiting":0 "now" "ranking":{"input":"hm" "best":"" "threshold" "terms" "scores"`,
	},
	{
		"delegate-task", "POST", "/dispatch/quay/delegate", `{"agent":"fullstack-engineer","text":"write it"}`,
		`"phase":"working" "shown":"[MAIN FULLSTACK_ENGINEER]" "at_work":[{"id" "agent":"fullstack-engineer" "by":"" "text":"write`,
	},
	{"finish-task", "POST", "/dispatch/quay/done", `{"text":"it is written"}`, `"phase":"talking" "trigger":"task "state":"MAIN"`},
	{
		"give-answer", "POST", "/dispatch/quay/respond", `{"text":"there you are"}`,
		`"phase":"ready" "type":"conversation_end" "agents":["fullstack-engineer"]`,
	},
	{"get-dispatch", "GET", "/dispatch/quay", "", `"name":"quay" "actor":{"kind":"human","id":"sam "foreign":false "more_files":0`},
	{
		"get-conversation", "GET", "/dispatch/quay/conversations/1", "",
		`"n":1 "id":"conv_001" "began" "summary":"hm" "open":false "dialogue":"# "dialogue_left_out":0 "outputs":[] "outputs_left_out":0`,
	},
	{"read-output-file", "GET", "/dispatch/quay/conversations/1/outputs/hello.py?limit=5", "", "print"},
	{
		"check-policy", "POST", "/policy/check",
		`{"state":"MAIN","tool":"Write","input":{"file_path":"a.py","content":"x"},"session":"quay"}`,
		`"decision" "reason" "delegate_to" "row"`,
	},
	{"rank-input", "POST", "/route", `{"text":"write a Python script","session":"quay"}`, `"best" "reason" "threshold" "terms" "scores"`},
	{"end-dispatch", "POST", "/dispatch/quay/end", `{"note":"enough"}`, `"phase":"closed" "ended":"enough" "type":"session_end"`},
}

// ofSessions says whether a route is about sessions with MAIN.
func ofSessions(rt route) bool {
	return slices.ContainsFunc(dispatchRoutes(), func(mine route) bool { return mine.ID == rt.ID })
}

// describeAgents puts two descriptions into a repository.
func describeAgents(t testing.TB, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"fullstack-engineer": "Use to write and run programs: Python scripts, web servers.",
		"tech-writer":        "Use to write manuals and release notes.",
	} {
		file := filepath.Join(dir, ".claude", "agents", name+".md")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, fmt.Appendf(nil, "---\nname: %s\ndescription: %q\n---\nYou do.\n", name, text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// writeOutput puts a file among the outputs of a session's first conversation.
func writeOutput(t testing.TB, dir, session, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, session, "conversations", "conv_001", "outputs", name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sessionAt begins a session in a repository, behind the server's back.
func sessionAt(t testing.TB, dir, name string, setup dispatch.Setup) *dispatchfolder.Folder {
	t.Helper()
	if len(setup.Agents) == 0 {
		setup.Agents = []dispatch.Description{{Name: "fullstack-engineer", Text: "Use to write and run programs: Python scripts."}}
	}
	f, _, err := dispatchfolder.Create(filepath.Join(dir, ".claude", "agent-state-machine", name), setup, dispatchfolder.Options{Repo: dir})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func tellFolder(t testing.TB, f *dispatchfolder.Folder, in dispatch.Input) {
	t.Helper()
	if _, _, err := f.Do(time.Now(), change.Actor{Kind: "agent", ID: "main"}, in); err != nil {
		t.Fatal(err)
	}
}

// A session with a denied write, delegated, done, as programs read it: what was done instead stands
// beside what was denied, and what another program adds is there at the next look.
func TestSessionStory(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	ctx := t.Context()
	describeAgents(t, s.dir)
	begun, err := client.Post[api.DispatchView](ctx, c, "/dispatch", api.DispatchStartBody{Mode: "", Host: "none", Path: ""})
	if err != nil || begun.Session.State != "MAIN" || len(begun.Agents) < 2 ||
		!strings.HasPrefix(begun.Session.Path, filepath.Join(s.dir, ".claude")) {
		t.Fatalf("%+v, %v", begun, err)
	}
	name := begun.Session.Name
	told, err := client.Post[api.DispatchInputResult](ctx, c, "/dispatch/"+name+"/input",
		api.DispatchInputBody{Text: "hm <b>&</b>\nsecond line"})
	if err != nil || told.ConversationID != "conv_001" || told.State != "MAIN" ||
		told.Workspace != filepath.Join(begun.Session.Path, "conversations/conv_001/outputs")+"/" {
		t.Fatalf("%+v, %v", told, err)
	}
	f, err := dispatchfolder.Open(begun.Session.Path)
	if err != nil {
		t.Fatal(err)
	}
	tellFolder(t, f,
		dispatch.Deny{
			Tool: "Write", Call: "hello.py", Row: "D8", Reason: "MAIN cannot", Delegate: "fullstack-engineer",
			Capability: "write Python",
		})
	if view, err := client.Get[api.DispatchView](ctx, c, "/dispatch/"+name, nil); err != nil || len(view.Denials) != 1 ||
		view.Denials[0].Then != nil || view.Session.Denied != 1 || view.Denials[0].By != "MAIN" {
		t.Fatalf("%+v, %v", view.Denials, err)
	}
	view, err := client.Post[api.DispatchView](ctx, c, "/dispatch/"+name+"/delegate",
		api.DispatchDelegateBody{Agent: "fullstack-engineer", Text: "write hello.py"})
	if err != nil || view.Session.State != "fullstack-engineer" || view.Permissions.CanWrite[0] != "*" ||
		view.AtWork[0].Text != "write hello.py" {
		t.Fatalf("%+v, %v", view, err)
	}
	if then := view.Denials[0].Then; then == nil || then.Shown != "[MAIN → FULLSTACK_ENGINEER]" || then.Conversation != "conv_001" {
		t.Errorf("instead of what was denied: %+v", then)
	}
	if waits, err := client.Post[api.DispatchInputResult](ctx, c, "/dispatch/"+name+"/input",
		api.DispatchInputBody{Text: "and then?"}); err != nil || waits.Waiting != 1 || waits.ConversationID != "" ||
		waits.Now.Waiting[0].Text != "and then?" {
		t.Errorf("%+v, %v", waits, err)
	}
	if err := os.WriteFile(filepath.Join(told.Workspace, "hello.py"), []byte("print('hello')\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tellFolder(t, f, dispatch.Wrote{File: dispatch.File{Path: filepath.Join(told.Workspace, "hello.py"), Summary: "says hello"}})
	_, done := client.Post[api.DispatchView](ctx, c, "/dispatch/"+name+"/done", api.DispatchDoneBody{Failed: false, Text: "written"})
	answered, err := client.Post[api.DispatchView](ctx, c, "/dispatch/"+name+"/respond", api.DispatchRespondBody{Text: "there it is"})
	if err := errors.Join(done, err); err != nil || answered.Session.Conversation != "conv_002" || len(answered.Waiting) != 0 {
		t.Fatalf("%+v, %v", answered.Session, err)
	}
	talk, err := talkOf(ctx, c, name, 1)
	if err != nil || talk.Summary != "hm <b>&</b>" || talk.Open || !slices.Equal(talk.Agents, []string{"fullstack-engineer"}) ||
		!strings.HasPrefix(talk.Dialogue, "# Conversation: conv_001\n") || !strings.Contains(talk.Dialogue, "there it is") {
		t.Errorf("%+v, %v", talk, err)
	}
	if len(talk.Files) != 1 || talk.Files[0].Output != "hello.py" || len(talk.Outputs) != 1 || talk.Outputs[0].Bytes != 15 {
		t.Errorf("%+v, %+v", talk.Files, talk.Outputs)
	}
	if text, err := plainText(ctx, c, "/dispatch/"+name+"/conversations/1/outputs/hello.py"); err != nil || text != "print('hello')\n" {
		t.Errorf("%q, %v", text, err)
	}
	ended, err := client.Post[api.DispatchView](ctx, c, "/dispatch/"+name+"/end", api.NoteBody{Note: "enough"})
	if err != nil || ended.Session.Phase != "closed" || !strings.HasPrefix(ended.Session.Ended, "enough") {
		t.Errorf("%+v, %v", ended.Session, err)
	}
	var refused *client.Refused
	if _, err := client.Post[api.DispatchInputResult](ctx, c, "/dispatch/"+name+"/input",
		api.DispatchInputBody{Text: "more"}); !errors.As(err, &refused) {
		t.Errorf("said to a closed session: %v", err)
	}
	var p *api.Problem
	if _, err := client.Get[api.DispatchView](ctx, c, "/dispatch/unknown", nil); !errors.As(err, &p) || p.Status != 404 ||
		!slices.Contains(p.Known, name) {
		t.Errorf("%v", err)
	}
	if _, err := talkOf(ctx, c, name, 9); !errors.As(err, &p) || p.Status != 404 || p.Known[0] != "conv_001" {
		t.Errorf("%v", err)
	}
}

// The open ones come first; a folder that is broken is there with what is wrong with it, and two of
// one name can be told apart.
func TestSessionList(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	tellFolder(t, sessionAt(t, s.dir, "a", dispatch.Setup{}), dispatch.End{Why: "done"})
	sessionAt(t, s.dir, "b", dispatch.Setup{Host: dispatch.Claude})
	other := filepath.Join(t.TempDir(), "b")
	if _, _, err := dispatchfolder.Create(other, dispatch.Setup{Mode: dispatch.Response}, dispatchfolder.Options{Repo: s.dir}); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(s.dir, ".claude", "agent-state-machine", "c")
	if err := errors.Join(os.MkdirAll(broken, 0o755),
		os.WriteFile(filepath.Join(broken, "state.jsonl"), []byte("no json\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	list, err := client.Get[api.DispatchSessions](t.Context(), c, "/dispatch", nil)
	if err != nil || len(list.Sessions) != 4 {
		t.Fatalf("%+v, %v", list, err)
	}
	of := map[string]api.DispatchSession{}
	for _, one := range list.Sessions {
		if _, twice := of[one.Name]; twice || !strings.HasPrefix(one.Name, filepath.Base(one.Path)) {
			t.Errorf("%q is the name of two, or of none: %+v", one.Name, one)
		}
		of[one.Name] = one
		if view, err := client.Get[api.DispatchView](t.Context(), c, "/dispatch/"+one.Name, nil); err != nil ||
			view.Session.Path != one.Path {
			t.Errorf("%s: %+v, %v", one.Name, view.Session, err)
		}
	}
	if list.Sessions[2].Phase == "ready" || list.Sessions[0].Phase == "closed" || of["a"].Ended != "done" || of["c"].Fault == "" {
		t.Errorf("%+v", list.Sessions)
	}
	var refused *client.Refused
	for name, one := range of {
		if one.Host != "claude" {
			continue
		}
		if _, err := client.Post[api.DispatchInputResult](t.Context(), c, "/dispatch/"+name+"/input",
			api.DispatchInputBody{Text: "x"}); !errors.As(err, &refused) || !strings.Contains(refused.Refusal.Reason, "Claude Code") {
			t.Errorf("said past the program: %v", err)
		}
	}
}

// Another program's lines are marked, what was not believed is said, and a history that was
// replaced by a shorter one is read anew.
func TestForeignHistory(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	f := sessionAt(t, s.dir, "quay", dispatch.Setup{})
	history := filepath.Join(f.Path(), "state.jsonl")
	write := func(flags int, text string) {
		t.Helper()
		file, err := os.OpenFile(history, flags|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	first, err := os.ReadFile(history)
	if err != nil {
		t.Fatal(err)
	}
	write(os.O_APPEND,
		`{"timestamp":"2026-11-21T15:00:00","type":"transition","state":"fullstack-engineer","trigger":"<i>","previous":"MAIN"}`+"\n"+
			`{"type":"dance"}`+"\n")
	view, err := client.Get[api.DispatchView](t.Context(), c, "/dispatch/quay", nil)
	if err != nil || view.Session.State != "fullstack-engineer" || len(view.Lines) != 3 || !view.Lines[1].Foreign ||
		view.Lines[1].Trigger != "<i>" || len(view.Notes) != 1 {
		t.Fatalf("%+v %q, %v", view.Lines, view.Notes, err)
	}
	for range 2 * dispatchLinesMax {
		tellFolder(t, f, dispatch.Deny{Tool: "Write", Reason: "no"})
	}
	view, err = client.Get[api.DispatchView](t.Context(), c, "/dispatch/quay", nil)
	if err != nil || len(view.Lines) != dispatchLinesMax || view.LinesLeftOut != 3+dispatchLinesMax ||
		len(view.Denials) != dispatchDenialsMax || view.Session.Denied != 2*dispatchLinesMax {
		t.Errorf("%d lines, %d left out, %d denials, %v", len(view.Lines), view.LinesLeftOut, len(view.Denials), err)
	}
	write(os.O_TRUNC, string(first))
	if view, err := client.Get[api.DispatchView](t.Context(), c, "/dispatch/quay", nil); err != nil || len(view.Lines) != 1 ||
		len(view.Denials) != 0 {
		t.Errorf("%+v, %v", view, err)
	}
}

// A file of an agent is served as bytes that no browser runs; no name reaches anything outside of
// outputs/, and no link is followed.
func TestOutputFiles(t *testing.T) {
	s := serve(t)
	f := sessionAt(t, s.dir, "quay", dispatch.Setup{})
	tellFolder(t, f, dispatch.UserInput{Text: "x"})
	outputs := f.Workspace(1)
	secret := filepath.Join(t.TempDir(), "secret")
	odd := "a \"b\"\u202e<script>é.html"
	for name, text := range map[string]string{
		filepath.Join(outputs, odd):              "<script>alert(1)</script>",
		filepath.Join(outputs, "below", "x.txt"): "deep", secret: "secret",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(secret, filepath.Join(outputs, "link")),
		os.Symlink(filepath.Dir(secret), filepath.Join(outputs, "folder"))); err != nil {
		t.Fatal(err)
	}
	at := api.Base + "/dispatch/quay/conversations/1/outputs/"
	text, h := s.want(t, 200, "GET", at+url.PathEscape(odd), "")
	for name, want := range map[string]string{
		"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": apiPolicy,
		"Cache-Control":       "no-store",
		"Content-Disposition": "attachment; filename=a__b___script__.html", "X-Fairlead-Size": "25",
	} {
		if h.Get(name) != want || text != "<script>alert(1)</script>" {
			t.Errorf("%s is %q, %q", name, h.Get(name), text)
		}
	}
	if text, _ := s.want(t, 200, "GET", at+"below%2Fx.txt?limit=2", ""); text != "de" {
		t.Errorf("%q", text)
	}
	for _, name := range []string{
		"link", "folder%2fsecret", "..%2f..%2f..%2fstate.jsonl", "%2fetc%2fpasswd", "below%2f..%2fbelow%2fx.txt", "below", "nothing", "%00",
		"a%0d%0aX:1", strings.Repeat("a", 1025),
		"%2e%2e%2fdialogue.md", "below%2f%2fx.txt", ".",
	} {
		text, _ := s.answer(t, "GET", at+name)
		if text.status < 400 || text.status > 499 || strings.Contains(text.body, "secret") && !strings.Contains(name, "secret") {
			t.Errorf("%s: %d %.200s", name, text.status, text.body)
		}
	}
}

type textAnswer struct {
	status int
	body   string
}

func (s *served) answer(t testing.TB, method, path string) (textAnswer, http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	s.SocketHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
	return textAnswer{w.Code, w.Body.String()}, w.Header()
}

// However much was said, an answer is bounded, cut at a character, and says so.
func TestLongDialogue(t *testing.T) {
	s := serve(t)
	f := sessionAt(t, s.dir, "quay", dispatch.Setup{})
	tellFolder(t, f, dispatch.UserInput{Text: "x"})
	if err := os.WriteFile(f.DialoguePath(1), []byte("# Conversation: conv_001\n"+strings.Repeat("é", dialogueBytesMax)+"\xff\nthe end"),
		0o644); err != nil {
		t.Fatal(err)
	}
	talk, err := talkOf(t.Context(), dial(t, s), "quay", 1)
	if err != nil || talk.DialogueLeftOut < dialogueBytesMax || len(talk.Dialogue) > dialogueBytesMax+2 ||
		!utf8.ValidString(talk.Dialogue) || !strings.HasSuffix(talk.Dialogue, "\uFFFD\nthe end") ||
		strings.HasPrefix(talk.Dialogue, "\uFFFD") {
		t.Errorf("%d bytes, %d left out, %v", len(talk.Dialogue), talk.DialogueLeftOut, err)
	}
}

// X10: an agent in one of Fairlead's sessions may not begin or end a dispatch, or send input to it, and
// neither may a caller that cannot be identified. All of them may read, and ask what would be allowed.
func TestAgentsEndNoSession(t *testing.T) {
	dir := newWorkspace(t)
	h := New(Options{Engine: supervise(t, memory.New(), dir, pair).App, User: "sam", Dir: dir}).SocketHandler()
	f := sessionAt(t, dir, "quay", dispatch.Setup{})
	tellFolder(t, f, dispatch.UserInput{Text: "x"})
	tellFolder(t, f, dispatch.Delegate{Agent: "fullstack-engineer", Text: "y"})
	before, err := os.ReadFile(filepath.Join(f.Path(), "state.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{
		"give-input": `{"text":"z"}`, "delegate-task": `{"agent":"fullstack-engineer","text":"z"}`,
		"check-policy": `{"tool":"Bash","input":{"command":"ls"}}`, "rank-input": `{"text":"z"}`, "start-dispatch": `{"host":"none"}`,
	}
	for _, who := range []caller.Caller{{Session: "coder-17"}, {Session: "coder@r1-2"}, {Unseen: true}} {
		for _, rt := range dispatchRoutes() {
			path := strings.NewReplacer("{name}", "quay", "{n}", "1", "{file}", "none").Replace(rt.Path)
			w := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(as(t, who), rt.Method, api.Base+path, strings.NewReader(bodies[rt.ID]))
			req.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(w, req)
			switch {
			case rt.ID == "read-output-file":
				if w.Code != 404 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			case rt.Method == http.MethodGet || rt.ID == "check-policy" || rt.ID == "rank-input":
				if w.Code != 200 {
					t.Errorf("%+v: %s: %d %s", who, rt.ID, w.Code, w.Body)
				}
			case w.Code != 409 || problemText(t, w.Body.String()).Refusal.Row != "X10":
				t.Errorf("%+v: %s: %d %s", who, rt.ID, w.Code, w.Body)
			case who.Session != "" && !strings.Contains(w.Body.String(), "only people start and end sessions"):
				t.Errorf("the reason is another's: %s", w.Body)
			}
		}
	}
	after, err := os.ReadFile(filepath.Join(f.Path(), "state.jsonl"))
	list, listed := dispatchfolder.List(dir)
	if err := errors.Join(err, listed); err != nil || string(before) != string(after) || len(list) != 1 {
		t.Errorf("something changed: %d sessions, %v", len(list), err)
	}
}

// What is not understood is a fault of the request, and changes nothing.
func TestSessionInputs(t *testing.T) {
	s := serve(t)
	f := sessionAt(t, s.dir, "quay", dispatch.Setup{})
	sessionAt(t, s.dir, "tray", dispatch.Setup{Mode: dispatch.Response})
	for _, c := range []struct {
		method, path, body string
		status             int
		words              string
	}{
		{"POST", "/dispatch", `{"mode":"chaos"}`, 422, "body.mode"},
		{"POST", "/dispatch", `{"host":"claude"}`, 422, "body.host"},
		{"POST", "/dispatch", `{"where":"x"}`, 422, "body.where"},
		{"POST", "/dispatch", `{"path":"a\u0000b","host":"none"}`, 422, "body.path"},
		{"POST", "/dispatch", `{"path":"` + f.Path() + `"}`, 409, "never uses an existing folder"},
		{"POST", "/dispatch/quay/input", "", 400, "body"},
		{"POST", "/dispatch/quay/input", `{}`, 422, "body"},
		{"POST", "/dispatch/quay/input", `{"text":""}`, 422, "body.text"},
		{"POST", "/dispatch/quay/input", `{"text":"  \n"}`, 409, "the input is empty"},
		{"POST", "/dispatch/quay/input", `{"text":"` + strings.Repeat("a", 65537) + `"}`, 422, "body.text"},
		{"POST", "/dispatch/quay/input", `{"text":"` + strings.Repeat("é", 40_000) + `"}`, 409, "put it into a file"},
		{"POST", "/dispatch/tray/input", `{"text":"x"}`, 409, "inbox"},
		{"POST", "/dispatch/unknown/input", `{"text":"x"}`, 404, "quay"},
		{"POST", "/dispatch/quay/delegate", `{"agent":"unknown","text":"x"}`, 409, "unknown"},
		{"POST", "/dispatch/quay/done", "", 409, "no agent has a task"},
		{"POST", "/dispatch/quay/respond", "", 409, "cannot take responded"},
		{"GET", "/dispatch/..", "", 404, `".."`},
		{"GET", "/dispatch/a%2fb", "", 422, "path.name"},
		{"GET", "/dispatch/quay%00", "", 422, "path.name"},
		{"GET", "/dispatch/quay/conversations/0", "", 422, "path.n"},
		{"GET", "/dispatch/quay/conversations/x", "", 422, "path.n"},
		{"GET", "/dispatch/quay/conversations/1", "", 404, "conv_001"},
		{"DELETE", "/dispatch/quay", "", 405, "it supports GET"},
		{"POST", "/policy/check", `{"input":{}}`, 422, "body"},
		{"POST", "/policy/check", `{"tool":"Write","input":[]}`, 422, "body.input"},
		{"POST", "/policy/check", `{"tool":"Write","session":"unknown"}`, 404, "quay"},
		{"POST", "/route", `{"text":""}`, 422, "body.text"},
	} {
		text, h := s.want(t, c.status, c.method, api.Base+c.path, c.body)
		p := problemText(t, text)
		found := strings.Contains(p.Detail, c.words)
		for _, fault := range p.Errors {
			found = found || fault.Location == c.words
		}
		if !found || h.Get("Content-Type") != api.ProblemType || len(text) > 4000 {
			t.Errorf("%s %.60s %.60s: wants %q\n%.1000s", c.method, c.path, c.body, c.words, text)
		}
	}
	if is, err := f.Session(); err != nil || is.Line != 1 {
		t.Errorf("something was said: %+v, %v", is.Now, err)
	}
}

// Everything that can happen to a session has a word for its line.
func TestLineTypes(t *testing.T) {
	for phase, row := range dispatch.Table {
		for event := range row {
			if dispatchfolder.TypeOf(event) == "" {
				t.Errorf("%s in %s has none", event, phase)
			}
		}
	}
}

// Whose work something is, and what a state may do, as a program asks it.
func TestAskedOfPolicy(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	describeAgents(t, s.dir)
	for state, want := range map[string]string{"": "deny", "MAIN": "deny", "fullstack-engineer": "allow"} {
		for _, session := range []string{"", "quay"} {
			call := map[string]any{"state": state, "tool": "Bash", "input": json.RawMessage(`{"command":"go vet ./..."}`)}
			if session != "" {
				call["session"] = session
				if _, err := client.Get[api.DispatchView](t.Context(), c, "/dispatch/"+session, nil); err != nil {
					sessionAt(t, s.dir, session, dispatch.Setup{})
				}
			}
			got, err := client.Post[api.PolicyVerdict](t.Context(), c, "/policy/check", call)
			if err != nil || got.Decision != want || want == "deny" && (got.Row != "D8" || got.Reason == "") {
				t.Errorf("%s in %q: %+v, %v", state, session, got, err)
			}
		}
	}
	r, err := client.Post[rank.Ranking](t.Context(), c, "/route", api.RouteBody{Text: "Write a hello world Python script", Session: ""})
	if err != nil || r.Scores == nil || r.Terms == nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// FuzzSessionBodies: whatever is said to a session is taken, refused or a fault of the request, and
// its folder stays one.
func FuzzSessionBodies(f *testing.F) {
	var paths []string
	for _, rt := range dispatchRoutes() {
		if rt.Method == http.MethodPost && rt.ID != "start-dispatch" && rt.ID != "end-dispatch" { // it stays open
			paths = append(paths, strings.NewReplacer("{name}", "quay").Replace(rt.Path))
		}
	}
	for i := range paths {
		for _, body := range []string{
			"", "{}", "null", `{"text":"write /tmp/a.py"}`, `{"text":"a\u0000b\ud800"}`, `{"agent":"fullstack-engineer","text":"x"}`,
			`{"failed":true,"text":"x"}`, `{"note":"why"}`,
			`{"tool":"Bash","input":{"command":"ls | sh"}}`, `{"tool":"Write","input":{"file_path":7}}`,
			`{"tool":"Task","state":"x","session":"quay"}`, `{"text":"x"}{}`, `[]`, "\xff", `{"text":` + strings.Repeat("[", 5000),
		} {
			f.Add(uint8(i), body)
		}
	}
	dir := f.TempDir()
	folder := sessionAt(f, dir, "quay", dispatch.Setup{})
	handler := New(Options{Engine: supervise(f, memory.New(), dir, pair).App, User: "sam", Dir: dir}).SocketHandler()
	f.Fuzz(func(t *testing.T, route uint8, body string) {
		path := paths[int(route)%len(paths)]
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		req := httptest.NewRequestWithContext(ctx, http.MethodPost, api.Base+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		if w.Code >= 500 {
			t.Fatalf("%s %q: %d %s", path, body, w.Code, w.Body)
		}
		if w.Code >= 400 {
			problemText(t, w.Body.String())
		}
		if _, err := folder.Session(); err != nil {
			t.Fatalf("%s %q: %v", path, body, err)
		}
	})
}

// A session that the daemon has taken in is called as the journal calls it, and what the daemon
// knows of its own agents stands in it.
func TestHostedView(t *testing.T) {
	t.Parallel()
	s := serveTeam(t, memory.New(), newWorkspace(t), pair+"dispatch: {main: coder}\n")
	c := dial(t, s)
	if _, err := c.Hold(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	started, err := client.Post[api.DispatchView](t.Context(), c, "/dispatch", api.DispatchStartBody{Host: "fairlead", Path: "quay"})
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the controller has taken it in", func() bool {
		all, err := s.sup.Dispatch.Folders(t.Context())
		return err == nil && len(all) == 1
	})
	all, err := s.sup.Dispatch.Folders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := all[0].Name
	if _, err := client.Post[api.DispatchInputResult](t.Context(), c, "/dispatch/"+name+"/input",
		api.DispatchInputBody{Text: "Write code for the quay"}); err != nil {
		t.Fatal(err)
	}
	var view api.DispatchView
	wait.Until(t, "MAIN waits for the hold to end", func() bool {
		view, err = client.Get[api.DispatchView](t.Context(), c, "/dispatch/"+name, nil)
		return err != nil || len(view.WaitsFor) > 0
	})
	if err != nil || view.Session.Name != name || view.Session.Path != started.Session.Path || !strings.Contains(view.WaitsFor[0], "held") {
		t.Errorf("%+v, %v", view, err)
	}
	var refused *client.Refused
	if _, err := client.Post[api.DispatchView](t.Context(), c, "/dispatch/"+name+"/respond",
		api.DispatchRespondBody{Text: "x"}); !errors.As(err, &refused) || !strings.Contains(refused.Refusal.Reason, "give it an input") {
		t.Errorf("said past the agents: %v", err)
	}
}
