package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestNowWords checks the functions behind the page Now with any input: the one-sentence summary,
// what counts as next, and the order.
func TestNowWords(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	for name, script := range map[string]string{
		"headline": `
			const { headline, tabTitle, badge } = await import('/now/words.js');
			const say = (o) => { const h = headline({ needs: 0, working: 0, held: false, known: true, live: true, ...o }); return h.act + ' ' + h.rest; };
			for (const [o, want] of [[{}, 'Nothing needs you. Nothing is running.'], [{ needs: 1, working: 1 }, '1 thing needs you. 1 agent is working.'],
				[{ needs: 2, working: 3 }, '2 things need you. 3 agents are working.'], [{ working: 2, held: true }, 'Nothing needs you. The team is held.'],
				[{ known: false, needs: 4 }, 'Asking Fairlead\u2026 '], [{ live: false, needs: 4 }, 'Cut off: this is what was known. ']])
				if (say(o) !== want) return say(o);
			const title = (o) => tabTitle({ needs: 0, running: 1, look: 0, lost: false, team: 't', ...o });
			for (const [o, want] of [[{}, '1 running \u00b7 t'], [{ needs: 2, look: 1 }, '(2) 2 need you, 1 to look at, 1 running \u00b7 t'], [{ needs: 1, lost: true }, '(1) cut off, 1 needs you, 1 running \u00b7 t']])
				if (title(o) !== want) return title(o);
			if (badge(0) !== '' || badge(-1) !== '') return 'a badge without a number';
			for (const [n, text] of [[1, '>1</text>'], [9, '>9</text>'], [10, '>9+</text>'], [1e9, '>9+</text>']])
				if (!decodeURIComponent(badge(n)).includes(text)) return 'badge ' + n;
			return '';`,
		"next": `
			const { nextUp } = await import('/now/words.js');
			const run = (id, s, status, task, more) => ({ run_id: id, workflow_name: 'w', status, stage: 'driven', created_at: new Date(1e12 + s * 1000).toISOString(), updated_at: '', waits: ['gate "x" is closed'], task, ...more });
			const task = (status, why) => ({ status, title: status, why });
			const runs = [run('T2', 2, 'running', task('blocked', 'it waits until T1 has landed')), run('T1', 1, 'running', task('queued', 'its agent works')), run('T3', 3, 'running', task('working')), run('T4', 4, 'waiting', task('needs_you')),
				run('w', 5, 'waiting'), run('p', 6, 'waiting', undefined, { stage: 'paused' }), run('n', 7, 'waiting'), run('over', 8, 'completed'), run('T5', 9, 'running', task('pr_open'))];
			const agent = (name, status, reason = '') => ({ agent: { name }, status, reason, why: 'why' });
			const got = nextUp(runs, [agent('z', 'rate_limited'), agent('a', 'backing_off'), agent('i', 'idle', 'paused'), agent('q', 'idle', 'queued'), agent('r', 'running')], new Set(['n', 'T4'])).map(x => x.key + ' ' + x.status).join('; ');
			const want = 'run/T1 queued; run/T2 blocked; run/w waiting; run/p paused; run/T5 pr_open; agent/a backing_off; agent/q idle; agent/z rate_limited';
			return got === want ? '' : got;`,
		"working": `
			const { atWork, countWork, workFor } = await import('/now/words.js');
			const all = [{ agent: 'a', session_id: 'a-1', status: 'running' }, { agent: 'a', session_id: 'a-2', status: 'running' }, { session_id: 's@r-1', status: 'running' }, { agent: 'b', status: 'waiting' }, { agent: 'c', status: 'rate_limited' }, { agent: 'd', session_id: 'd-1', status: 'unknown' }];
			if (atWork(all).length !== 4 || countWork(all) !== 3) return atWork(all).length + ' rows, ' + countWork(all) + ' agents';
			for (const [w, want] of [[{ agent: 'a', title: 'T' }, 'T'], [{ title: 'T', step_id: 'check', run_id: 'T1' }, 'check'], [{ run_id: 'r', step_id: 's', workflow_name: 'w' }, 's of w'], [{ purpose: 'lead' }, 'leads the crew'], [{ purpose: 'control', says: 'x\u202e' }, 'x\u27e8RLO\u27e9'], [{}, '']])
				if (workFor(w) !== want) return JSON.stringify(w) + ': ' + workFor(w);
			return '';`,
		"cards": `
			const { needLook, holdsUp, outcomes, lastLines } = await import('/inbox/words.js');
			const i = (kind, more) => ({ id: 'x', kind, run_id: '', step_id: '', workflow_name: '', since: '', why: '', ...more });
			for (const [item, want] of [[i('step'), 'Approval'], [i('step', { task: {} }), 'Review'], [i('permission'), 'Permission'], [i('question'), 'Question'], [i('failed'), 'Gave up'], [i('run'), 'Failed'], [i('run', { task: { failed_step: 'land' } }), 'Did not land'], [i('limit'), 'Limit'], [i('__proto__'), 'Question']])
				if (needLook(item).label !== want) return item.kind + ': ' + needLook(item).label;
			for (const [blocks, want] of [[null, ''], [['T1'], 'holds up T1'], [['T1', 'T2'], 'holds up T1 and T2'], [['1', '2', '3', '4', '5', '6'], 'holds up 1, 2, 3, 4 and 2 more'], [['a\u202eb'], 'holds up a\u27e8RLO\u27e9b']])
				if (holdsUp(i('step', { blocks })) !== want) return holdsUp(i('step', { blocks }));
			if (holdsUp(i('limit', { blocks: ['a'] })) !== 'stops a') return 'a limit';
			const o = outcomes(i('step', { then: ['a', 'b'], back_to: 'c' })), e = outcomes(i('step'));
			if (o.yes !== 'a, b begin' || o.no !== 'the run goes back to c' || e.yes !== 'the run completes' || e.no !== 'the step fails, and the run with it') return JSON.stringify([o, e]);
			if (lastLines('a\nb\nc\n\n', 2) !== 'b\nc' || lastLines('', 3) !== '' || /[\u0000-\u0009\u001b]/.test(lastLines('x\u001b[31m\ty', 2))) return 'last lines';
			return lastLines('y'.repeat(1e6), 2).length < 12_100 ? '' : 'a long line is not cut';`,
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := uitest.Eval[string](p, `(async () => {`+script+`})()`); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	p.NoConsoleErrors()
}
