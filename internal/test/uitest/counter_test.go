package uitest_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// fakeCounter plays an agent that asks.
func fakeCounter(fake *uitest.Fake) *uitest.Counter {
	soon := func(d time.Duration) *time.Time { at := time.Now().Add(d).UTC(); return &at }
	rm := uitest.Question{
		Kind: "permission", Agent: "coder", Session: "coder-3", What: "run rm -rf build", Why: "no rule allows it", Tool: "Bash", Call: `{"command":"rm -rf build","description":"Tidy up"}`,
		Hints: []string{"it deletes files"}, Options: []uitest.Choice{{ID: "once", Kind: "allow_once"}, {ID: "no", Kind: "reject_once"}}, MayStand: true, Otherwise: "deny",
	}
	return &uitest.Counter{
		Agent: "coder",
		Ask: func() string {
			q := rm
			q.ExpiresAt = soon(30 * time.Minute)
			return fake.Ask(q)
		},
		Write: func() {
			fake.Ask(uitest.Question{
				Kind: "permission", Agent: "coder", Session: "coder-3", What: "write ../notes.md", Tool: "Write", Call: `{"file_path":"/work/notes.md","content":"one\ntwo"}`, Paths: []string{"/work/notes.md"},
				Hints: []string{"outside of its workspace: /work/notes.md"}, Options: []uitest.Choice{{ID: "a", Kind: "allow_once"}, {ID: "b", Kind: "allow_once_and_mode", Label: "Yes, and stop asking for edits"}, {ID: "c", Kind: "reject_once"}},
			})
		},
		InWords: func() string {
			return fake.Ask(uitest.Question{
				Kind: "question", Agent: "coder", Session: "coder-3", What: "Which branch?\nBoth are green.", FreeText: true, ExpiresAt: soon(time.Hour),
				Options: []uitest.Choice{{ID: "main", Label: "main"}, {ID: "next", Label: "next"}},
			})
		},
		Resume: func() {
			fake.Ask(uitest.Question{
				Kind: "resume", Agent: "coder", Session: "coder-4", What: "its conversation ses_1 would go on with another model", Differs: []string{"model m1 → m2"},
				Options: []uitest.Choice{{ID: "resume", Label: "Go on all the same"}, {ID: "fresh", Label: "Begin anew"}},
			})
		},
		Withdraw: fake.Withdraw,
		Refuse: func() string {
			fake.RefuseAnswer("somebody else is just answering it")
			return "somebody else is just answering it"
		},
		Heard: func(_ *testing.T, id string) string { return fake.AnsweredAsk(id) },
		Know: func() {
			fake.Edit("coder", func(a *uitest.Agent) {
				a.Says = &uitest.Says{Text: "reading the tests", At: time.Now().Add(-time.Minute)}
				a.LimitedUntil, a.LimitedWhy, a.Denied = soon(20*time.Minute), "429: too many requests", 2
				a.Conversation = &uitest.Conversation{ID: "ses_1a2b", Model: "scripted/m1", Mode: "build", Program: "opencode 1.18.33", Enforced: "asks before it writes and runs", Resumed: true, At: time.Now()}
			})
		},
		Use: func() {
			fake.Use(
				[]uitest.UsageRow{{Agent: "coder", Sessions: 12, In: 1_200_000, Out: 34_000, Cost: 12.34}, {Agent: "reviewer", Sessions: 3, In: 1000, Out: 20}},
				[]uitest.UsageRow{{Agent: "coder", Day: "2026-11-21", Sessions: 2, In: 1000, Out: 34, Cost: 0.12}, {Agent: "coder", Day: "2026-11-20", Sessions: 10, In: 1_199_000, Out: 33_966, Cost: 12.22}},
				[]uitest.UsageRow{{Run: "run1", Workflow: "plan-code-review", Sessions: 5, In: 70_000, Out: 900, Cost: 1.5}},
			)
		},
		Lie: func() {
			lies := []uitest.Choice{{ID: uitest.Lie, Kind: uitest.Lie, Label: uitest.Lie}, {ID: "__proto__", Kind: "__proto__"}, {ID: "x", Kind: "toString", Label: uitest.Lie}}
			for _, kind := range []string{"permission", "question", "resume"} {
				fake.Ask(uitest.Question{
					Kind: kind, Agent: "coder", Session: uitest.Lie, What: uitest.Lie + "\n" + uitest.Lie, Why: uitest.Lie, Tool: "mcp__" + uitest.Lie + "__" + uitest.Lie, Call: `{"command":"` + "\\u202e\\u001b[31m<img src=x>" + `","__proto__":{"polluted":1}}`,
					Paths: []string{uitest.Lie}, Hints: []string{uitest.Lie}, Differs: []string{uitest.Lie}, Options: lies, FreeText: true, MayStand: true, Otherwise: uitest.Lie,
				})
			}
			id := fake.Ask(uitest.Question{Kind: "permission", Agent: "coder", Tool: uitest.Lie, Call: uitest.Lie})
			fake.Stand(id)
			fake.Edit("coder", func(a *uitest.Agent) {
				a.Says, a.LimitedUntil, a.LimitedWhy = &uitest.Says{Text: uitest.Lie}, soon(time.Hour), uitest.Lie
				a.Conversation = &uitest.Conversation{ID: uitest.Lie, Model: uitest.Lie, Mode: uitest.Lie, Program: uitest.Lie, Enforced: uitest.Lie}
			})
			row := []uitest.UsageRow{{Agent: uitest.Lie, Day: uitest.Lie, Run: uitest.Lie, Workflow: uitest.Lie, Cost: 1e9}}
			fake.Use(row, row, row)
		},
	}
}

// From questions to words and buttons: whatever comes, nothing throws, nothing that lies comes through,
// and an answer that is not a plain one keeps a button of its own.
func TestAskParsers(t *testing.T) {
	p := uitest.Browse(t)
	p.Open(uitest.NewFake("t").Serve(t))
	for name, script := range map[string]string{
		"calls": `
			const { callOf, block } = await import('/inbox/words.js');
			for (const [call, chief, rest] of [['', '', ''], [undefined, '', ''], [3, '', ''], ['ls -l', 'ls -l', ''], ['[1]', '[1]', ''], ['null', 'null', ''], ['{"command":"ls"}', 'ls', ''],
				['{"file_path":"a","content":"b"}', 'a', 'b'], ['{"command":3}', '', '{\n  "command": 3\n}'], ['{}', '', ''], ['{"toString":"x"}', '', '{\n  "toString": "x"\n}']]) {
				const got = callOf(call);
				if (got.chief !== chief || got.written + got.rest !== rest) return call + ': ' + JSON.stringify(got);
			}
			if (/[\u0000-\u0009\u000b-\u001f\u202e]/.test(block('a\u202eb\r\n\tc\u001b[31m'))) return 'a control comes through';
			if (block('x\n'.repeat(1000)).split('\n').length > 202 || block('y'.repeat(1e6)).length > 12100) return 'a long call is not cut';
			return '';`,
		"choices": `
			const { choices, wants, untilWhen, limitedUntil, maySayYes } = await import('/inbox/words.js');
			if (!maySayYes({options: [{id: 'a', kind: 'allow_once'}]}) || maySayYes({options: [{id: 'a', kind: 'allow_once_and_mode'}]}) || maySayYes({})) return 'a plain yes';
			const q = (kind, ...options) => ({ id: 'q1', kind, agent: 'a', state: 'open', asked_at: '', options });
			const ids = (x) => choices(x).map(c => c.id + c.allow).join(' ');
			if (ids(q('permission', {id: 'a', kind: 'allow_once'}, {id: 'r', kind: 'reject_once'})) !== '') return 'plain answers have plain buttons';
			if (ids(q('permission', {id: 'a', kind: 'allow_once'}, {id: 'b', kind: 'allow_once'}, {id: 'm', kind: 'allow_once_and_mode'}, {id: 'o', kind: 'other'})) !== 'atrue btrue mtrue onull') return ids(q('permission', {id: 'a', kind: 'allow_once'}, {id: 'b', kind: 'allow_once'}));
			if (ids(q('question', {id: 'a', kind: 'allow_once'})) !== 'atrue' || ids({...q('resume'), options: null}) !== '') return 'others';
			for (const [tool, words] of [['Bash', 'wants to run a command'], ['', 'wants to do something'], ['__proto__', 'wants to use __proto__'], ['mcp__fairlead__say', 'wants to use say of fairlead'], ['mcp__a_b__c__d', 'wants to use c__d of a_b']])
				if (wants({...q('permission'), tool}) !== words) return tool + ': ' + wants({...q('permission'), tool});
			const at = new Date(1e12 + 90e3).toISOString();
			if (untilWhen({...q('permission'), expires_at: at, otherwise: 'allow'}, 1e12) !== 'is allowed in 1m 30s without an answer') return untilWhen({...q('permission'), expires_at: at, otherwise: 'allow'}, 1e12);
			if (untilWhen({...q('permission'), expires_at: at}, 2e12) !== 'is denied now: no answer came') return 'late';
			if (untilWhen({...q('question'), expires_at: 'soon'}, 0) !== 'waits until a person answers') return 'for ever';
			return Number.isNaN(limitedUntil({limited_until: at}, 2e12)) && limitedUntil({limited_until: at}, 1e12) === 1e12 + 90e3 ? '' : 'limit';`,
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := uitest.Eval[string](p, `(async () => {`+script+`})()`); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	p.NoConsoleErrors()
}

// TestAskPictures draws what agents ask, for people to look at; see TestPictures.
func TestAskPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("draws for people to look at; say where with PICTURES=folder")
	}
	fake := uitest.Crew()
	c := fakeCounter(fake)
	c.Ask()
	c.Write()
	c.InWords()
	c.Resume()
	fake.Stand(c.Ask())
	c.Know()
	c.Use()
	p := uitest.Browse(t)
	url := fake.Serve(t)
	for _, v := range uitest.Views {
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		for _, place := range []string{"inbox", "usage", "agent/coder/output"} {
			p.Open(url + "/#/" + place)
			p.Until("it is shown", `document.querySelector('main')?.innerText.length > 100`)
			p.Screenshot(filepath.Join(dir, "asks-"+v.Name+"-"+filepath.Dir(place)+"-"+filepath.Base(place)+".png"))
		}
	}
}
