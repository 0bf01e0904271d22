package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/ui/uitest"
)

// The page's readers of foreign bytes are held to what must be true of any
// bytes, with a thousand streams from a seed each: where a stream is cut makes
// no difference, nothing that acts comes through, and nothing grows without end.
func TestParsersOnAnyBytes(t *testing.T) {
	p := uitest.Browse(t)
	p.Open(uitest.NewFake("t").Serve(t))
	const prelude = `
		const random = (seed) => () => { seed = (seed * 1664525 + 1013904223) >>> 0; return seed / 4294967296; };
		const make = (rnd, alphabet, n) => { let s = ''; while (s.length < n) s += alphabet[Math.floor(rnd() * alphabet.length)]; return s; };
		const cut = (rnd, s) => { const parts = []; for (let i = 0; i < s.length;) { const n = 1 + Math.floor(rnd() * 9); parts.push(s.slice(i, i + n)); i += n; } return parts; };`
	for name, script := range map[string]string{
		"terminal": `
			const { Terminal, LINE_CHARS_MAX } = await import('/ansi.js');
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
			const { Parser } = await import('/sse.js');
			const alphabet = ['data: ', 'data:', 'id: 7', 'event: change', ': ping', '\n', '\n\n', '\r\n', '{"a":1}', ':', 'x', ' '];
			const read = (parts) => { const p = new Parser(); return JSON.stringify(parts.flatMap(x => p.write(x))); };
			for (let seed = 1; seed <= 1000; seed++) {
				const rnd = random(seed); const s = make(rnd, alphabet, 160);
				if (read([s]) !== read(cut(rnd, s))) return 'seed ' + seed + ': cut differently, read differently: ' + JSON.stringify(s);
			}
			const ok = read(['event: change\nid: 3\ndata: {"a":\ndata: 1}\n\n: ping\n\ndata: y\r\n\r\n']);
			if (ok !== '[{"event":"change","id":"3","data":"{\\"a\\":\\n1}"},{"event":"message","id":"3","data":"y"}]') return 'read wrong: ' + ok;
			try { const p = new Parser(); for (;;) p.write('x'.repeat(1 << 20)); } catch (e) { return e.message.includes('longer') ? '' : String(e); }`,
		"talk": `
			const { blocksOf, piecesOf, turnLine, initials } = await import('/talkwords.js');
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
				if ([...shown].filter(c => c === 'a').length < [...text.split('\n').filter(l => !/^\s{0,3}` + "```" + `/.test(l)).join('')].filter(c => c === 'a').length) return 'seed ' + seed + ': words are lost';
				initials(text);
			}
			if (initials('hand-07') !== 'H7' || initials('night-watch') !== 'NW' || initials('coder') !== 'CO' || initials('') !== '?') return 'initials: ' + [initials('hand-07'), initials('night-watch'), initials('coder'), initials('')];
			const line = turnLine([{ agent: 'coder', from: 'ACTIVE', to: 'QUEUED', row: 'T9' }, { agent: 'reviewer', from: 'QUEUED', to: 'ACTIVE', row: 'T4', turn: 3 }, { agent: 'reviewer', from: 'ACTIVE', to: 'QUEUED', row: 'T22' }, { agent: 'tester', from: 'QUEUED', to: 'ACTIVE', row: 'T4', turn: 4 }]);
			const told = JSON.stringify(line);
			return told === '{"turn":"turns 3–4","chain":["coder","reviewer","tester"],"notes":["coder out of time","reviewer passed"]}' ? '' : told;`,
		"faces": `
			const { colorOf, cutOf, eyesOf, mouthOf, paletteOf, lightness, EYES, MOUTHS, CUTS } = await import('/face.js');
			const alphabet = ['wide', 'Soft', ' ', '-', '__proto__', 'constructor', '<b>', '\u202e', '\x00', 'ü', '#', 'c9b1e8', 'FFF', ';', 'url(x)', 'toString', '\n'];
			for (let seed = 1; seed <= 1000; seed++) {
				const rnd = random(seed); const s = make(rnd, alphabet, Math.floor(rnd() * 40));
				if (!EYES.includes(eyesOf(s)) || !MOUTHS.includes(mouthOf(s)) || !CUTS.includes(cutOf(s))) return 'seed ' + seed + ': no drawing for ' + JSON.stringify(s);
				if (eyesOf(s) !== eyesOf(s) || mouthOf(s) !== mouthOf(s)) return 'seed ' + seed + ': another face the second time';
				const color = colorOf(s, s);
				if (!/^#[0-9a-f]{6}$/.test(color)) return 'seed ' + seed + ': ' + JSON.stringify(s) + ' became the colour ' + color;
				for (const c of Object.values(paletteOf(color))) if (!/^#[0-9a-f]{6}$/.test(c)) return 'seed ' + seed + ': no colour: ' + c;
			}
			for (let n = 0; n < 4096; n++) {
				const hex = '#' + [n >> 8, (n >> 4) & 15, n & 15].map(v => v.toString(16).repeat(2)).join(''), p = paletteOf(hex);
				const [a, b] = [lightness(p.skin), lightness(p.ink)].sort((x, y) => x - y);
				if ((b + 0.05) / (a + 0.05) < 3) return 'the eyes of ' + hex + ' cannot be seen: ' + p.ink;
			}
			for (const v of [null, undefined, 7, {}, [], true]) if (!EYES.includes(eyesOf(v)) || !/^#/.test(colorOf(v, 'x'))) return 'nothing for ' + String(v);
			const told = [eyesOf('standard'), mouthOf('gentle'), eyesOf('WINKING'), mouthOf('a wry smile'), eyesOf(''), colorOf('#C9B1E8', 'Lyra')].join();
			return told === 'standard,gentle,wink,smirk,standard,#c9b1e8' ? '' : told;`,
		"crew": `
			const crew = await import('/crew.js'); const { evidenceOf, headline, leadWords, nameOf } = await import('/crewwords.js');
			const statuses = ['hatching', 'alive', 'sleeping', 'unknown', 'expired', 'dancing', '', 7, null];
			const any = [null, undefined, 7, '', 'Lyra', '\u202e', {}, [], '2026-02-16T00:00:00.000Z', true];
			for (let seed = 1; seed <= 300; seed++) {
				const rnd = random(seed); const pick = (list) => list[Math.floor(rnd() * list.length)];
				crew.forgetCrew();
				const doc = (id, seat, status) => ({ id, status, name: 'N' + id, color: '', colorName: '', gender: '', gridPosition: seat, faceVariant: { eyes: '', mouth: '' }, individuationArtifact: '', createdAt: '2026-02-16T00:00:00.000Z', lastAliveAt: null, lastSessionId: null });
				const truth = new Map();
				let head = 10;
				const view = () => ({ button: 'WAKE', in_progress: '', agents: [...truth.values()], lead: { agent: 'julian', session: '', state: 'asleep', why: '', reported_at: null, seat: 4 }, size: 8, notices: null, head });
				for (let i = 0; i < 4; i++) truth.set('a' + i, doc('a' + i, i, 'alive'));
				crew.applyCrew(view());
				for (let i = 0; i < 30; i++) {
					const id = 'a' + Math.floor(rnd() * 6), status = pick(statuses.slice(0, 5)), odd = rnd() < 0.2, late = rnd() < 0.2;
					head++;
					const set = odd ? { status: pick(statuses), identity: rnd() < 0.5 ? { name: pick(any), color: pick(any), seat: pick(any), face: pick(any), soul: pick(any) } : undefined, created_at: pick(any), last_alive_at: pick(any) }
						: { status, created_at: '2026-02-16T00:00:00.000Z', ...(truth.has(id) ? {} : { identity: { name: 'N' + id, seat: Number(id.slice(1)) } }) };
					const change = { seq: late ? 5 : head, entity: 'presence/' + id, machine: 'presence', data: pick([{ presence: { doc: set } }, { presence: { doc: set } }, {}, undefined, { presence: { notice: {} } }]) };
					const old = crew.documentCell(id)?.peek();
					crew.noteCrew([change]);
					if (late && crew.documentCell(id)?.peek() !== old) return 'seed ' + seed + ': a change that is older than what is shown was believed';
					for (const m of crew.members.value) { const d = crew.documentCell(m).value; evidenceOf(d, rnd() < 0.5, 1e12); nameOf(d); if (d.status === 'expired') return 'seed ' + seed + ': an expired one is shown'; }
					if (new Set(crew.members.value).size !== crew.members.value.length) return 'seed ' + seed + ': somebody is shown twice';
					headline(crew.crew.value, crew.lead.value, crew.tally.value, true);
				}
				const before = crew.members.value.join();
				crew.applyCrew({ ...view(), head: 3, agents: [] });
				if (crew.members.value.join() !== before) return 'seed ' + seed + ': an answer that is older than a change was believed';
				head++;
				crew.applyCrew(view());
				const want = [...truth.keys()].join();
				if (crew.members.value.join() !== want) return 'seed ' + seed + ': after a new answer are shown ' + crew.members.value.join() + ', want ' + want;
			}
			for (const state of ['asleep', 'waits', 'starting', 'unheard', 'heard', 'odd', '']) leadWords({ agent: 'j', session: '', state, why: '', reported_at: null, seat: 4 }, true, 1e12);
			return '';`,
		"text": `
			const { plain, reveal } = await import('/text.js');
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
