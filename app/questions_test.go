package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/listen"
	"github.com/fairlead-dev/fairlead/work/questions"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// replies records the answers that sessions received, in order.
type replies struct {
	mu   sync.Mutex
	said map[string][]string
}

func (r *replies) add(s *fakeSession, answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said == nil {
		r.said = map[string][]string{}
	}
	r.said[s.id] = append(r.said[s.id], answer)
}

func (r *replies) of(session string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.said[session])
}

// asksFor returns a session that asks for one call after another, waits for each answer, and
// succeeds.
func (r *replies) asksFor(calls ...string) func(*fakeSession) {
	return func(s *fakeSession) {
		for _, call := range calls {
			if !s.say("wants %s", call) {
				return
			}
			s.mu.Lock()
			own := fmt.Sprintf("answer %d ", len(s.out)) // a repeated question has the same name
			s.mu.Unlock()
			for {
				text, cancel, ok := s.next(24 * time.Hour)
				if !ok {
					return
				}
				if cancel {
					text = "cancel"
				}
				if cancel || strings.HasPrefix(text, own) {
					r.add(s, text[strings.LastIndexByte(text, ' ')+1:])
					break
				}
			}
		}
		s.say("stop ok")
	}
}

func (b *bubble) open1(kind question.Kind) view.QuestionView {
	b.t.Helper()
	open, err := b.engine.Questions.Questions(b.t.Context())
	if err != nil || len(open) != 1 || open[0].Kind != string(kind) {
		b.t.Fatalf("open questions: %+v, %v; want one %s", open, err, kind)
	}
	return open[0]
}

func (b *bubble) answer(id string, a view.QuestionAnswer) {
	b.t.Helper()
	if _, err := b.engine.Questions.AnswerQuestion(b.t.Context(), human, id, a); err != nil {
		b.t.Fatal(err)
	}
	b.settle()
}

func (b *bubble) noneOpen() {
	b.t.Helper()
	if open, err := b.engine.Questions.Questions(b.t.Context()); err != nil || len(open) != 0 {
		b.t.Errorf("open questions: %+v, %v", open, err)
	}
}

func (b *bubble) checkReceived(r *replies, session string, want ...string) {
	b.t.Helper()
	if got := r.of(session); !slices.Equal(got, want) {
		b.t.Errorf("%s was answered %q, want %q", session, got, want)
	}
}

const makeCall = `Bash {"command":"make"}`

// Q1, Q3, Q6, X10: a permission question is in the inbox with its agent and call, and its answer
// reaches the program. A second answer, and one of an agent, are refused.
func TestPermissionByAPerson(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		r, mail := &replies{}, b.notifies(notice.Target{Name: "phone", Events: notice.Usual(), PerHour: 100})
		b.host.play = r.asksFor(makeCall)
		b.agent("coder").Permissions = config.Permissions{Timeout: 30 * time.Minute}
		b.start()
		b.command("coder", "run_once")
		b.after(time.Second)
		q := b.open1(question.Permission)
		if q.Agent != "coder" || q.Tool != "Bash" || q.Call != "make" || q.ExpiresAt == nil || q.Otherwise != "deny" || !q.MayStand ||
			len(q.Options) != 3 {
			t.Errorf("got %+v", q)
		}
		inbox, err := b.engine.Status.Inbox(t.Context())
		if err != nil || len(inbox) != 1 || inbox[0].Kind != "permission" || inbox[0].Question == nil || inbox[0].Agent != "coder" {
			t.Errorf("the inbox is %+v, %v", inbox, err)
		}
		if mails := mail.all(); len(mails) != 1 || mails[0].Agent != "coder" || mails[0].Page != "#/inbox/q1" ||
			strings.Contains(fmt.Sprint(mails), "make") {
			t.Errorf("notices: %+v", mails)
		}
		if v := b.view("coder"); v.Asks != 1 || v.AsksWhat == "" {
			t.Errorf("the agent is shown as %+v", v)
		}
		if why, err := b.engine.Status.Why(t.Context(), "coder"); err != nil || !strings.Contains(why.Verdict, "waits for a person") {
			t.Errorf("why says %q, %v", why.Verdict, err)
		}
		var refused *table.Refusal
		if _, err := b.engine.Questions.AnswerQuestion(t.Context(), change.Actor{Kind: "agent", ID: "coder"}, q.ID,
			view.QuestionAnswer{Allow: true}); !errors.As(err, &refused) || refused.Row != "X10" {
			t.Errorf("an agent's answer returns %v", err)
		}
		b.answer(q.ID, view.QuestionAnswer{Allow: true})
		b.checkReceived(r, "coder-1", "yes")
		b.noneOpen()
		if is, err := b.engine.Questions.QuestionByID(t.Context(), q.ID); err != nil || is.State != "told" || is.Allow == nil || !*is.Allow ||
			is.By != "human/tester" {
			t.Errorf("afterwards the question is %+v, %v", is, err)
		}
		if _, err := b.engine.Questions.AnswerQuestion(t.Context(), human, q.ID, view.QuestionAnswer{}); !errors.As(err, &refused) {
			t.Errorf("a second answer returns %v", err)
		}
		var unknown *team.Unknown
		if _, err := b.engine.Questions.AnswerQuestion(t.Context(), human, "q99", view.QuestionAnswer{}); !errors.As(err, &unknown) {
			t.Errorf("an answer to an unknown question returns %v", err)
		}
		b.is("coder", "pause", "pause")
		if got := b.rows("question/q1"); got != "Q1 Q3 Q6" {
			t.Errorf("the question has the rows %s", got)
		}
	})
}

// Q2, Q4: rules answer at once; a denial has priority over an allowance, and X10 over both. A call
// without a rule is answered by the timeout. Denied calls are in the session's result.
func TestPermissionByRules(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		call      string
		otherwise config.Otherwise
		want      string
		rows      string
		rule      string
	}{
		"allowed": {call: `Bash {"command":"git status -s"}`, want: "yes", rows: "Q2 Q6", rule: "allow Bash(git *)"},
		"denied":  {call: `Bash {"command":"git push"}`, want: "no", rows: "Q2 Q6", rule: "deny Bash(git push*)"},
		"of the team's tools": {
			call: `mcp__fairlead__say {"text":"hello"}`, want: "yes", rows: "Q2 Q6",
			rule: "allow mcp__fairlead__say",
		},
		"X10": {
			call: `Write {"file_path":".git/hooks/pre-commit","content":"x"}`, want: "no", rows: "Q2 Q6",
			rule: "X10",
		},
		"a command that is cut": {call: `Bash cut=command {"command":"git status"}`, want: "no", rows: "Q1 Q4 Q6"},
		"denied, and cut":       {call: `Bash cut=command {"command":"git push"}`, want: "no", rows: "Q2 Q6", rule: "deny Bash(git push*)"},
		"a content that is cut": {
			call: `Write cut=content {"file_path":"a.txt","content":"long"}`, want: "yes", rows: "Q2 Q6",
			rule: "allow Write(**)",
		},
		"a path that is cut": {call: `Write cut=file_path {"file_path":"a.txt"}`, want: "no", rows: "Q1 Q4 Q6"},
		"no rule":            {call: makeCall, want: "no", rows: "Q1 Q4 Q6"},
		"no rule, allow":     {call: makeCall, otherwise: config.OtherwiseAllow, want: "yes", rows: "Q1 Q4 Q6"},
		"no command, allow":  {call: `Bash {"x":1}`, otherwise: config.OtherwiseAllow, want: "no", rows: "Q1 Q4 Q6"},
		"title, allow": {
			call: `Bash cut=command {"command":"make it"}`, otherwise: config.OtherwiseAllow, want: "no",
			rows: "Q1 Q4 Q6",
		},
		"title, denied": {
			call: `Bash cut=command {"command":"git push"}`, otherwise: config.OtherwiseAllow, want: "no", rows: "Q2 Q6",
			rule: "deny Bash(git push*)",
		},
		"no tool, allow": {call: `other {"x":1}`, otherwise: config.OtherwiseAllow, want: "no", rows: "Q1 Q4 Q6"},
		"cut path, allow": {
			call: `Write cut=file_path {"file_path":"b.txt"}`, otherwise: config.OtherwiseAllow, want: "yes",
			rows: "Q1 Q4 Q6",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				r := &replies{}
				b.host.play = r.asksFor(tt.call)
				b.agent("coder").MCP = true
				b.agent("coder").Permissions = config.Permissions{
					Allow: []string{"Bash(git *)", "Write(**)"}, Deny: []string{"Bash(git push*)"}, Timeout: 10 * time.Minute,
					Otherwise: tt.otherwise,
				}
				b.start()
				b.command("coder", "run_once")
				b.after(9 * time.Minute)
				if waits := strings.HasPrefix(tt.rows, "Q1"); (b.view("coder").Asks == 1) != waits {
					t.Errorf("the question waits for a person: %v", !waits)
				}
				b.after(2 * time.Minute)
				b.checkReceived(r, "coder-1", tt.want)
				q := b.replayed().Questions.Questions["q1"]
				if got := b.rows("question/q1"); got != tt.rows || q == nil || !strings.HasPrefix(q.Rule, tt.rule) {
					t.Errorf("rows %s, answer %+v", got, q)
				}
				past := b.replayed().Agents["coder"].Past[0]
				if denied := tt.want == "no"; strings.Contains(past.Why, "1 call was denied") != denied || (past.Denied == 1) != denied ||
					past.Outcome != control.OK {
					t.Errorf("the session is %+v", past)
				}
			})
		})
	}
}

// Q2, Q7: a saved answer answers the next similar question, in this session or always, until it is
// revoked.
func TestSavedAnswers(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		r := &replies{}
		b.host.play = r.asksFor(makeCall, makeCall, `Bash {"command":"make clean"}`)
		b.start()
		b.command("coder", "run_once")
		b.settle()
		b.answer(b.open1(question.Permission).ID, view.QuestionAnswer{Allow: true, Scope: "session"})
		b.answer(b.open1(question.Permission).ID, view.QuestionAnswer{Scope: "always"}) // for make clean; the second one was answered by it
		b.checkReceived(r, "coder-1", "yes", "yes", "no")
		standing, err := b.engine.Questions.SavedAnswers(t.Context())
		if err != nil || len(standing) != 1 || standing[0].Allow || standing[0].Session != "" || standing[0].Call != "make clean" {
			t.Fatalf("saved answers: %+v, %v; one for a session must end with it", standing, err)
		}
		b.command("coder", "run_once")
		b.settle()
		b.answer(b.open1(question.Permission).ID, view.QuestionAnswer{Allow: true, Scope: "always"})
		b.checkReceived(r, "coder-2", "yes", "yes", "no")
		if _, err := b.engine.Questions.RevokeSavedAnswer(t.Context(), human, "s2"); err != nil {
			t.Fatal(err)
		}
		var unknown *team.Unknown
		if _, err := b.engine.Questions.RevokeSavedAnswer(t.Context(), human, "s2"); !errors.As(err, &unknown) {
			t.Errorf("a second revocation returns %v", err)
		}
		b.command("coder", "run_once")
		b.settle()
		if q := b.open1(question.Permission); q.Call != "make clean" {
			t.Errorf("the agent asks for %s", q.Call)
		}
	})
}

// Q5: a question ends when its program withdraws it or its session ends.
func TestQuestionWithdrawn(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.host.play = func(s *fakeSession) {
			s.say("wants %s", makeCall)
			s.lasts(time.Minute)
			s.say("withdraws %d", len("wants "+makeCall)+1)
			s.lasts(time.Minute)
			s.say("wants %s", makeCall)
			s.lasts(time.Minute)
			s.say("stop ok")
		}
		b.start()
		b.command("coder", "run_once")
		b.settle()
		b.open1(question.Permission)
		b.after(time.Minute + time.Second)
		b.noneOpen()
		b.after(time.Minute)
		b.open1(question.Permission)
		b.after(time.Minute)
		b.noneOpen()
		for id, why := range map[string]string{"q1": "the program does not want to know any more", "q2": "its session is over"} {
			if q := b.replayed().Questions.Questions[id]; q == nil || q.State != question.Withdrawn || !strings.Contains(q.Ended, why) {
				t.Errorf("%s is %+v", id, q)
			}
		}
	})
}

// TestTooManyQuestions checks that a question above the limit is denied at once, because it would
// wait forever.
func TestTooManyQuestions(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		const many = 70
		r := &replies{}
		b.host.play = func(s *fakeSession) {
			for i := range many {
				s.say(`wants Bash {"command":"make %d"}`, i)
			}
			for text, _, ok := s.next(24 * time.Hour); ok; text, _, ok = s.next(24 * time.Hour) {
				if strings.HasPrefix(text, "answer ") {
					r.add(s, text[strings.LastIndexByte(text, ' ')+1:])
				}
			}
		}
		b.start()
		b.command("coder", "run_once")
		b.after(time.Second)
		open, err := b.engine.Questions.Questions(t.Context())
		no := r.of("coder-1")
		if err != nil || len(open) == 0 || len(open)+len(no) != many || slices.Contains(no, "yes") {
			t.Errorf("%d are open, %d were denied, of %d; %v", len(open), len(no), many, err)
		}
	})
}

// TestQuestionInATurn checks that a question during a turn is T10, which ends with its answer, and
// that a question that a rule answers does not pause the turn.
func TestQuestionInATurn(t *testing.T) {
	t.Parallel()
	inBubble(t, "ada bob", func(t *testing.T, b *bubble) {
		b.inOneChannel("ada", "bob")
		b.agent("ada").Permissions = config.Permissions{Allow: []string{"Read"}}
		b.host.play = func(s *fakeSession) {
			asked := false
			for _, _, ok := s.next(time.Hour); ok; _, _, ok = s.next(time.Hour) {
				if agentIn(s.id) == "ada" && !asked {
					asked = true
					s.say(`wants Read {"file_path":"a.go"}`)
					s.next(time.Hour)
					s.say("wants %s", makeCall)
					s.next(time.Hour)
				}
				s.say("done TURN_COMPLETE")
				s.say("listening %d", s.read())
			}
			s.say("stop ok")
		}
		b.start()
		b.retrySay("please make it", "")
		b.after(2 * time.Second)
		q := b.open1(question.Permission)
		shown, err := b.engine.Channels.Channel(t.Context(), "reviews")
		if err != nil || shown.Holder != "ada" || b.view("ada").Turn["reviews"] != "WAITING" {
			t.Errorf("the channel is %+v, ada is %v, %v", shown, b.view("ada").Turn, err)
		}
		if got := strings.Count(b.rows("channel/reviews"), "T10"); got != 1 {
			t.Errorf("T10 occurs %d times", got)
		}
		b.after(2 * time.Minute) // longer than the limit of a turn
		b.answer(q.ID, view.QuestionAnswer{Allow: true})
		b.after(5 * time.Second)
		if rows := b.rows("channel/reviews"); !strings.Contains(rows, "T12") || strings.Contains(rows, "T9") ||
			!strings.Contains(rows, "T7") {
			t.Errorf("the channel has the rows %s", rows)
		}
		b.noneOpen()
	})
}

// TestKeyOf checks that the key of a call contains everything that makes it another call, and no
// description of it.
func TestKeyOf(t *testing.T) {
	t.Parallel()
	same := func(a, b string) bool {
		key := func(text string) string {
			tool, args, _ := strings.Cut(text, " ")
			return listen.KeyOf(policy.Call{Tool: tool, Dir: "/w", Input: []byte(args)}, nil)
		}
		return key(a) != "" && key(a) == key(b)
	}
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`Bash {"command":"make"}`, `Bash {"description":"build","command":"make","timeout":5}`, true},
		{`Bash {"command":"make"}`, `Bash {"command":"make","workdir":"/etc"}`, false},
		{`Bash {"command":"make"}`, `Bash {"command":"make","env":{"CC":"x"}}`, false},
		{`Bash {"command":"make"}`, `Bash {"command":"make "}`, false},
		{`Bash {"cmd":"make"}`, `Bash {"cmd":"make"}`, false}, // the command is not known
		{`Write {"file_path":"a","content":"1"}`, `Write {"content":"2","file_path":"a"}`, true},
		{`Write {"file_path":"a"}`, `Write {"file_path":"b"}`, false},
		{`Write {"file_path":"a"}`, `Edit {"file_path":"a"}`, false},
		{`Read {}`, `Read {}`, false},
		{`WebFetch {"url":"u","n":1}`, `WebFetch {"n": 1, "url": "u"}`, true},
		{`WebFetch {"url":"u"}`, `WebFetch {"url":"v"}`, false},
	} {
		if got := same(tt.a, tt.b); got != tt.same {
			t.Errorf("%s and %s are the same: %v", tt.a, tt.b, got)
		}
	}
}

// TestKeyOfOtherFiles checks that a saved answer applies only to the files that were asked about,
// at their locations then, and never to a tool with an unknown name.
func TestKeyOfOtherFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := func(paths ...string) string {
		return listen.KeyOf(policy.Call{Tool: "Edit", Dir: dir, Input: []byte(`{"file_path":"a"}`)}, paths)
	}
	alone := key()
	if two := key(dir+"/a", dir+"/b"); alone == "" || two == alone || two == key(dir+"/a", dir+"/c") || two != key(dir+"/b", dir+"/a") {
		t.Error("calls with other files have the same key")
	}
	if err := os.Symlink("/etc/hosts", filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if key() == alone {
		t.Error("a call with a link instead of the file has the same key")
	}
	patch := func(paths ...string) string {
		return listen.KeyOf(policy.Call{Tool: "Edit", Dir: dir, Input: []byte(`{"patchText":"x"}`)}, paths)
	}
	if two := patch(dir+"/x", dir+"/y"); patch() != "" || two == "" || two != patch(dir+"/y", dir+"/x") || two == patch(dir+"/x") {
		t.Error("a patch has a key by its files")
	}
	if key := listen.KeyOf(policy.Call{Tool: "other", Dir: dir, Input: []byte(`{"x":1}`)}, nil); key != "" {
		t.Errorf("an unknown tool has the key %s", key)
	}
}

// TestOwnTools checks that the team's own tools are allowed where they are offered, and no other
// tools of a server with that name.
func TestOwnTools(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tool    string
		offered bool
		allowed bool
	}{
		{"mcp__fairlead__turn_complete", true, true},
		{"mcp__fairlead__who_is_here", true, true},
		{"mcp__fairlead__turn_complete", false, false},
		{"mcp__fairlead__run_shell", true, false},
		{"mcp__fairlead__say__x", true, false},
		{"mcp__fairlead2__say", true, false},
	} {
		rules, err := questions.ReadPermissions(&config.Agent{Name: "coder", MCP: tt.offered})
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := rules.Verdict(policy.Call{Tool: tt.tool, Dir: "/w"}, nil, "/w"); v.Allow != tt.allowed {
			t.Errorf("%s, offered %t: %+v", tt.tool, tt.offered, v)
		}
	}
}

// TestCallsWithoutAsking checks that the session's result reports a call that the program made
// without asking although its rules deny it. A program that announces a call before it asks counts
// as asking.
func TestCallsWithoutAsking(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		r := &replies{}
		asks := r.asksFor(`Bash {"command":"git push"}`)
		b.agent("coder").Permissions = config.Permissions{Deny: []string{"Bash(git push*)"}}
		b.host.play = func(s *fakeSession) {
			s.say(`calls Bash {"command":"git status"}`)
			s.say(`calls Bash {"command":"git push"}`)
			if s.id == "coder-1" {
				asks(s)
				return
			}
			s.say(`calls Write {"file_path":".git/config","content":"x"}`)
			s.say("stop ok")
		}
		b.start()
		for range 2 {
			b.command("coder", "run_once")
			b.after(time.Second)
		}
		past := b.replayed().Agents["coder"].Past
		if len(past) != 2 || strings.Contains(past[0].Why, sessions.NotAsked) || past[0].Denied != 1 {
			t.Errorf("a program that asked: %+v", past)
		}
		if why := past[1].Why; !strings.Contains(why, sessions.NotAsked) ||
			!strings.Contains(why, "Bash git push (deny Bash(git push*))") || !strings.Contains(why, "Write .git/config (X10") {
			t.Errorf("a program that did not ask: %s", why)
		}
		if strings.Count(b.logged.String(), "did not ask for what its rules deny") == 0 {
			t.Error("the log does not say it")
		}
	})
}

// FuzzCall checks arbitrary calls. None causes a panic, a rule never allows cut arguments, and the
// same call has the same key.
func FuzzCall(f *testing.F) {
	f.Add("Bash", `{"args":{"command":"git status"}}`)
	f.Add("Bash", `{"args":{"command":"git status"},"cut":["command"]}`)
	f.Add("Write", `{"args":{"file_path":".git/x","content":"#!/bin/sh"},"cut":["content"]}`)
	f.Add("run", `{"args":{"command":["a"]}}`)
	f.Add("mcp__fairlead__say", `{"args":{"text":"x"}}`)
	f.Add("", `[1`)
	rules, err := questions.ReadPermissions(&config.Agent{
		Name:        "coder",
		Permissions: config.Permissions{Allow: []string{"Bash(git *)", "Write", "Read"}, Deny: []string{"Bash(rm *)"}},
	})
	if err != nil {
		f.Fatal(err)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, tool, raw string) {
		fact := driver.Fact{Kind: driver.PermissionAsked, Tool: tool}
		if json.Unmarshal([]byte(raw), &fact) != nil {
			fact = driver.Fact{Kind: driver.PermissionAsked, Tool: tool}
		}
		call := listen.CallOf(fact)
		call.Dir, call.Unread = dir, listen.CutIn(fact)
		if v, _ := rules.Verdict(call, nil, dir); v.Allow && v.Rule == "" {
			t.Errorf("%+v is allowed by no rule", call)
		}
		if a, b := listen.KeyOf(call, nil), listen.KeyOf(call, nil); a != b {
			t.Errorf("%+v has the keys %s and %s", call, a, b)
		}
		names := listen.CutIn(fact)
		if v, _ := rules.Verdict(call, nil, dir); len(names) > 0 && v.Allow {
			t.Errorf("%v is not completely known, but allowed by %s", names, v.Rule)
		}
		questions.Shown(call.Input)
	})
}
