package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// prelude has functions for the scripts below: seeded random numbers, texts, and cuts of them.
const prelude = `
	const random = (seed) => () => { seed = (seed * 1664525 + 1013904223) >>> 0; return seed / 4294967296; };
	const make = (rnd, alphabet, n) => { let s = ''; while (s.length < n) s += alphabet[Math.floor(rnd() * alphabet.length)]; return s; };
	const cut = (rnd, s) => { const parts = []; for (let i = 0; i < s.length;) { const n = 1 + Math.floor(rnd() * 9); parts.push(s.slice(i, i + n)); i += n; } return parts; };`

// TestParsersOnAnyBytes checks the page's parsers with a thousand random streams each: the position
// of a cut has no effect, no markup or control character gets through, and nothing grows without
// limit.
func TestParsersOnAnyBytes(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	for name, script := range map[string]string{
		"terminal": `
			const { Terminal, LINE_CHARS_MAX } = await import('/agents/ansi.js');
			const alphabet = ['a', 'ü', '☂', '\n', '\r', '\b', '\x1b', '[', ']', '31', 'm', ';', '\x07', '\\', 'P', '\x9b', '\x90', '\x9c', '\u202e', '\x00', '\t', '(', 'B', '<b>'];
			const read = (parts) => { const t = new Terminal(); const lines = parts.flatMap(x => t.write(x)); return JSON.stringify([lines, t.line]); };
			for (let seed = 1; seed <= 1000; seed++) {
				const rnd = random(seed); const s = make(rnd, alphabet, 120);
				const whole = read([s]), parts = read(cut(rnd, s));
				if (whole !== parts) return 'seed ' + seed + ': cut differently, read differently: ' + JSON.stringify(s) + '\n' + whole + '\n' + parts;
				if (/[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/.test(JSON.parse(whole).flat().map(l => l.text).join(''))) return 'seed ' + seed + ': a control came through: ' + whole;
			}
			const long = new Terminal(); for (let i = 0; i < 1000; i++) long.write('x'.repeat(10000));
			if (long.line.text.length > LINE_CHARS_MAX || long.line.more + long.line.text.length !== 1e7) return 'a long line is not counted right: ' + long.line.text.length + ' + ' + long.line.more;
			return '';`,
		"events": `
			const { Parser } = await import('/shell/sse.js');
			const alphabet = ['data: ', 'data:', 'id: 7', 'event: change', ': ping', '\n', '\n\n', '\r\n', '{"a":1}', ':', 'x', ' '];
			const read = (parts) => { const p = new Parser(); return JSON.stringify(parts.flatMap(x => p.write(x))); };
			for (let seed = 1; seed <= 1000; seed++) {
				const rnd = random(seed); const s = make(rnd, alphabet, 160);
				if (read([s]) !== read(cut(rnd, s))) return 'seed ' + seed + ': cut differently, read differently: ' + JSON.stringify(s);
			}
			const ok = read(['event: change\nid: 3\ndata: {"a":\ndata: 1}\n\n: ping\n\ndata: y\r\n\r\n']);
			if (ok !== '[{"event":"change","id":"3","data":"{\\"a\\":\\n1}"},{"event":"message","id":"3","data":"y"}]') return 'read wrong: ' + ok;
			try { const p = new Parser(); for (;;) p.write('x'.repeat(1 << 20)); } catch (e) { return e.message.includes('longer') ? '' : String(e); }`,
		"channel": `
			const { blocksOf, piecesOf, turnLine, initials } = await import('/channels/words.js');
			const kinds = ['human', 'turn', 'aside', 'late', 'moved', 'moved', 'moved', 'notice', 'warning', 'strange'];
			const rows = ['T1', 'T2', 'T4', 'T5', 'T7', 'T9', 'T10', 'T11', 'T12', 'T15', 'T17', 'T22', 'T23', 'N3', ''];
			const states = ['OFFLINE', 'IDLE', 'QUEUED', 'ACTIVE', 'WAITING', ''];
			const alphabet = ['a', '\n', '\t', '\r\n', '\x1b[31m', '\u202e', '` + "```" + `', '\x00', '<b>', '` + "`" + `', '\ud800'];
			for (let seed = 1; seed <= 1000; seed++) {
				const rnd = random(seed); const pick = (list) => list[Math.floor(rnd() * list.length)];
				const list = [];
				for (let i = 0; i < 40; i++) list.push({ seq: i + 1, at: new Date(1e12 + i * 1e7 * rnd()).toISOString(), kind: pick(kinds), n: i, by: pick(['a', 'b', '']), text: make(rnd, alphabet, 30), turn: Math.floor(rnd() * 3), row: pick(rows), agent: pick(['a', 'b', 'c']), from: pick(states), to: pick(states), state: pick(['queued', 'answered', 'odd']) });
				const blocks = blocksOf(list);
				const drawn = blocks.flatMap(b => b.type === 'notice' ? [b.entry] : b.type === 'words' ? b.list : []);
				const said = list.filter(e => e.kind !== 'moved');
				if (drawn.length !== said.length || new Set(drawn).size !== said.length) return 'seed ' + seed + ': ' + said.length + ' were said, ' + drawn.length + ' are drawn';
				if (new Set(blocks.map(b => b.key)).size !== blocks.length) return 'seed ' + seed + ': two blocks have one key';
				if (drawn.some((e, i) => i > 0 && e.seq < drawn[i - 1].seq)) return 'seed ' + seed + ': out of order';
				for (const b of blocks) if (b.type === 'turns' && /[\u0000-\u001f\u202e]/.test(JSON.stringify(turnLine(b.list).notes))) return 'seed ' + seed + ': a control came through a line of turns';
				const text = make(rnd, alphabet, 300), shown = piecesOf(text).map(p => p.text).join('');
				if (/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/.test(shown)) return 'seed ' + seed + ': a control came through: ' + JSON.stringify(shown);
				if ([...shown].filter(c => c === 'a').length < [...text.split('\n').filter(l => !/^\s{0,3}` + "```" +
			`/.test(l)).join('')].filter(c => c === 'a').length) return 'seed ' + seed + ': words are lost';
				initials(text);
			}
			if (initials('hand-07') !== 'H7' || initials('night-watch') !== 'NW' || initials('coder') !== 'CO' || initials('') !== '?') return 'initials: ' + [initials('hand-07'), initials('night-watch'), initials('coder'), initials('')];
			const line = turnLine([{ agent: 'coder', from: 'ACTIVE', to: 'QUEUED', row: 'T9' }, { agent: 'reviewer', from: 'QUEUED', to: 'ACTIVE', row: 'T4', turn: 3 }, { agent: 'reviewer', from: 'ACTIVE', to: 'QUEUED', row: 'T22' }, { agent: 'tester', from: 'QUEUED', to: 'ACTIVE', row: 'T4', turn: 4 }]);
			const told = JSON.stringify(line);
			return told === '{"turn":"turns 3–4","chain":["coder","reviewer","tester"],"notes":["coder out of time","reviewer passed"]}' ? '' : told;`,
		"text": `
			const { plain, reveal } = await import('/shell/text.js');
			for (let code = 0; code < 0x11000; code++) {
				if (code >= 0xd800 && code <= 0xdfff) continue;
				const shown = reveal(String.fromCodePoint(code));
				if (/[\p{Cc}\u202a-\u202e\u2066-\u2069\u200e\u200f]/u.test(shown)) return 'U+' + code.toString(16) + ' comes through as ' + JSON.stringify(shown);
			}
			if (!reveal('\ud800x').startsWith('\u27e8')) return 'half a character comes through';
			if (plain('x'.repeat(1e6)).length > 401) return 'a long text is not cut';
			if (plain({a: '\u202e'}) !== '{"a":"⟨RLO⟩"}') return 'an object reads ' + plain({a: '\u202e'});
			return '';`,
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := uitest.Eval[string](p, `(async () => {`+prelude+script+`})()`); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	p.NoConsoleErrors()
}
