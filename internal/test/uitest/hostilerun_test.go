package uitest_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// hostileWorkflow has a step that prints lie.txt and continues, and two steps that wait for a
// person.
const hostileWorkflow = `name: hostile
steps:
  - {id: ask, command: [sh, workflows/step.sh], human_in_the_loop: true, input_schema: {type: object, required: [risk], properties: {risk: {type: string}}}}
  - {id: ask-json, command: [sh, workflows/step.sh], human_in_the_loop: true, input_schema: {type: object, required: [risk], properties: {risk: {type: string}}}}
  - {id: work, command: [sh, -c, 'cat lie.txt; while [ -e lie.txt ]; do sleep 0.05; done']}
`

// TestHostileRun checks that any text of a workflow or a report is shown as text, in every part of
// the page.
func TestHostileRun(t *testing.T) {
	t.Parallel()
	lie, err := json.Marshal(uitest.Lie)
	if err != nil {
		t.Fatal(err)
	}
	form := `{"type":"object","properties":{` + string(lie) + `:{"type":"string","title":` + string(lie) + `,"description":` + string(lie) +
		`},"__proto__":{"enum":[` + string(lie) + `]}}}`
	loose := `{"type":"object","properties":{"a":{"type":"array","title":` + string(lie) + `}}}`
	lies := func(step any, schemas map[string]string) {
		of, _ := step.(map[string]any)
		for _, field := range []string{
			"agent", "last_error", "waits_for", "report_path", "prompt_path", "bad_input", "denied", "why",
			"workflow_name",
		} {
			of[field] = uitest.Lie
		}
		if of["id"] == "work" {
			of["agent"] = "" // a step's output belongs to a session, an agent's output to the agent
		}
		of["artifacts"], of["logs"], of["metrics"] = []string{uitest.Lie}, []string{uitest.Lie}, map[string]string{uitest.Lie: uitest.Lie}
		for _, field := range []string{"id", "step_id"} {
			if id, _ := of[field].(string); schemas[id] != "" {
				of["input_schema"] = schemas[id]
			}
		}
	}
	each := func(list any, change func(any)) {
		all, _ := list.([]any)
		for _, one := range all {
			change(one)
		}
	}
	for _, v := range uitest.Views[:2] {
		t.Run(v.Name, func(t *testing.T) {
			files := uitest.RunFiles()
			files["fairlead.yaml"], files["lie.txt"] = uitest.OneAgent["fairlead.yaml"], uitest.Lie+"\n"
			files["hostile.yaml"] = hostileWorkflow
			s := uitest.NewServer(t, files)
			var run struct {
				ID string `json:"run_id"`
			}
			if err := json.Unmarshal(s.Do("POST", "/runs", strings.NewReader(`{"workflow":"hostile.yaml","pause_for_human_input":true}`)),
				&run); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, "both steps wait for a person", func() bool {
				return strings.Count(string(s.Do("GET", "/inbox", nil)), `"step_id"`) == 2
			})
			schemas, proxy := map[string]string{"ask": form, "ask-json": loose}, s.Intercept()
			lying := func(run any) {
				of, _ := run.(map[string]any)
				of["workflow_name"], of["by"], of["why"] = uitest.Lie, uitest.Lie, uitest.Lie
				each(of["steps"], func(step any) { lies(step, schemas) })
			}
			proxy.Edit("/runs", func(body map[string]any) { each(body["runs"], lying) })
			proxy.Edit("/runs/"+run.ID, func(body map[string]any) { lying(body) })
			proxy.Edit("/inbox", func(body map[string]any) {
				each(body["items"], func(item any) {
					lies(item, schemas)
					of, _ := item.(map[string]any)
					of["since"] = map[bool]string{true: "2026-02-16T00:00:00Z", false: "2026-02-17T00:00:00Z"}[of["step_id"] == "ask"]
				})
				items, _ := body["items"].([]any)
				slices.SortFunc(items, func(a, b any) int {
					return cmp.Compare(fmt.Sprint(a.(map[string]any)["step_id"]), fmt.Sprint(b.(map[string]any)["step_id"]))
				})
			})
			p := uitest.Browse(t)
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			p.Open(s.URL + "#/runs")
			clean := func(where string) { t.Helper(); showsText(t, p, where) }
			p.WaitText(".run-rows", "<img src=x")
			clean("the list")
			p.Click(".run-rows", "<img src=x")
			p.WaitText("#run-title", "\u27e8RLO\u27e9")
			for _, step := range []string{"work", "ask-json", "ask"} {
				p.Click(".graph .graph-sheet", step+"\n")
				p.WaitText("#step-title", step)
				p.WaitText(".step-facts", "<img src=x")
				p.WaitText(".metrics", "<img src=x")
				clean(step)
			}
			p.Click(".graph .graph-sheet", "work\n")
			p.WaitText(".tape", "<img src=x onerror")
			clean("what a step says")
			p.Click(".run-forms", "Timeline")
			p.WaitText(".time-rows", "ask-json")
			clean("the timeline")
			p.Click(".places", "Inbox")
			p.WaitText(".inbox", "<img src=x")
			p.WaitText(".inbox label", "<img src=x")
			clean("the inbox")
			p.Click(".inbox-item:last-child .answer-foot", "Approve")
			p.WaitText(".entry-fault", "an answer is needed")
			p.NoConsoleErrors()
		})
	}
}

// showsText checks that hostile words are text on the page, without control characters, and fit into it.
func showsText(t *testing.T, p *uitest.Page, where string) {
	t.Helper()
	if uitest.Eval[bool](p,
		`document.querySelector('main img, main script, dialog img') !== null || document.title.includes('owned') || ({}).polluted !== undefined`) {
		t.Errorf("%s: text became markup", where)
	}
	if raw := uitest.Eval[string](p,
		`document.body.textContent + [...document.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => a.value)).join('')`); strings.ContainsAny(raw, "\x1b\x07\u202e\x00") {
		t.Errorf("%s: a control or an override reached the page as itself", where)
	}
	if uitest.Eval[bool](p, "!"+uitest.Fits(p)) {
		t.Errorf("%s: the page is wider than the window", where)
	}
}

// TestRunParsers checks the functions from schemas to forms and answers, from steps to drawings,
// and from changes to spans, with any input: nothing is lost silently, nothing hangs, and input
// that fits no form is requested as JSON.
func TestRunParsers(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	for name, script := range map[string]string{
		"forms": `
			const { formOf, answerOf, touched } = await import('/inbox/form.js');
			for (const none of ['{', '[]', 'null', '3', '{"type":"array"}', '{"type":"object","properties":{"a":{"type":"object"}}}', '{"properties":{"a":{"enum":[{}]}}}',
				'{"anyOf":[],"properties":{}}', '{"properties":{"a":true}}', '{"properties":[]}', JSON.stringify({properties: Object.fromEntries([...Array(41).keys()].map(i => ['f' + i, {type: 'string'}]))})])
				if (formOf(none) !== null) return none + ' became a form';
			if (formOf('').fields.length !== 0 || formOf(undefined).approved) return 'no schema is yes or no';
			const f = formOf('{"required":["n"],"properties":{"approved":{"type":"boolean"},"n":{"type":"integer"},"x":{"type":"number","default":1.5},"c":{"enum":["a",null,2]},"b":{"type":"boolean"},"__proto__":{"type":"string"},"toString":{"type":"string"}}}');
			if (!f.approved || f.fields.length !== 6 || f.fields[1].first !== '1.5') return JSON.stringify(f);
			const bad = answerOf(f.fields, {n: '1.2'});
			if (bad.faults.length !== 1 || answerOf(f.fields, {}).faults[0].words !== 'is needed' || answerOf(f.fields, {n: 'x'}).faults.length !== 1) return JSON.stringify(bad);
			const good = JSON.stringify(answerOf(f.fields, {n: '3', c: '1', b: true, ['__proto__']: 'text'}).answer);
			if (!good.startsWith('{"n":3,"x":1.5,"c":null,"b":true')) return good;
			if (touched(f.fields, {}) || !touched(f.fields, {n: '1'})) return 'touched';
			return '';`,
		"drawings": `
			const { draw, NODE, pathOf, middle } = await import('/runs/graph.js');
			let seed = 7; const rnd = () => { seed = (seed * 1664525 + 1013904223) >>> 0; return seed / 4294967296; };
			for (const n of [0, 1, 2, 30, 119, 121, 1500]) for (const down of [true, false]) {
				const nodes = [...Array(n).keys()].map(i => ({ id: 's' + i, loop: i > 2 && rnd() < 0.05 ? 's' + Math.floor(rnd() * i) : '', needs: i === 0 ? ['nobody'] : [...new Set([...Array(Math.floor(rnd() * 3)).keys()].map(() => 's' + Math.floor(rnd() * i)))] }));
				const began = performance.now(); const d = await draw(nodes, down); const took = performance.now() - began;
				if (took > 60000) return n + ' steps took ' + took;
				if (d.places.size !== n) return n + ' steps, ' + d.places.size + ' places';
				const seen = new Set();
				for (const p of d.places.values()) {
					if (!(p.x >= 0 && p.y >= 0 && p.x + NODE.width <= d.width && p.y + NODE.height <= d.height)) return 'a step is off the sheet';
					const at = Math.round(p.x) + ' ' + Math.round(p.y); if (seen.has(at)) return n + ': two steps in one place'; seen.add(at);
				}
				for (const e of [...d.edges, ...d.loops]) if (!pathOf(e.points, e.points.length === 4) || pathOf(e.points, false).includes('NaN')) return 'an edge has no way';
				for (const e of d.loops) { const m = middle(e.points); if (!(m.x <= d.width && m.y <= d.height)) return 'a count is off the sheet'; }
			}
			const circle = await draw([...Array(200).keys()].map(i => ({ id: 'c' + i, needs: ['c' + ((i + 1) % 200)], loop: '' })), false);
			return circle.places.size === 200 ? '' : 'a circle is not drawn';`,
		"spans": `
			const { addTrail, spans, movesOf, forgetTrail } = await import('/runs/trail.js');
			for (const odd of [{entity: 'run/r'}, {entity: 'run'}, {entity: 'run/r/s', data: {run: {}}}, {entity: 'run/r', data: {run: {reset: {moves: 3}}}}, {entity: 'run/r/s', data: null}])
				if (movesOf(odd).length) return 'something was read in ' + JSON.stringify(odd);
			let seq = 1; const at = (s) => new Date(1e12 + s * 1000).toISOString();
			const step = (from, to, attempts, iteration = 0) => ({ seq: seq++, time: at(seq), entity: 'run/r/code', from, to, data: { run: { step: { value: { attempts, iteration } } } } });
			addTrail([step('PENDING', 'RUNNING', 1), step('RUNNING', 'PENDING', 1), step('PENDING', 'RUNNING', 2), step('RUNNING', 'COMPLETED', 2),
				{ seq: seq++, time: at(seq), entity: 'run/r', from: '', to: 'PENDING', data: { run: { reset: { moves: [{ step: 'code', from: 'COMPLETED' }] } } } },
				step('PENDING', 'RUNNING', 1, 1), step('RUNNING', 'WAITING_ON_HUMAN', 1, 1)]);
			const list = spans('r', 'code'); const told = list.map(s => s.kind + s.attempt + s.iteration + s.outcome + (s.to === null ? '…' : '')).join(' ');
			if (told !== 'work10PENDING work20COMPLETED work11WAITING_ON_HUMAN wait11…') return told;
			forgetTrail(); return spans('r', 'code').length ? 'not forgotten' : '';`,
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := uitest.Eval[string](p, `(async () => {`+script+`})()`); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	p.NoConsoleErrors()
}
