package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestCrewOnAnyDocuments checks that any document has a face, the same each time, with visible
// eyes; and that changes and answers in any order never replace newer data by older.
func TestCrewOnAnyDocuments(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	for name, script := range map[string]string{
		"faces": `
			const { colorOf, cutOf, eyesOf, mouthOf, paletteOf, lightness, EYES, MOUTHS, CUTS } = await import('/crew/face.js');
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
			const crew = await import('/crew/state.js'); const { evidenceOf, headline, leadWords, nameOf } = await import('/crew/words.js');
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
					const change = { seq: late ? 5 : head, entity: 'crew/' + id, machine: 'crew', data: pick([{ crew: { doc: set } }, { crew: { doc: set } }, {}, undefined, { crew: { notice: {} } }]) };
					const old = crew.documentCell(id)?.peek();
					crew.applyCrewChanges([change]);
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
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := uitest.Eval[string](p, `(async () => {`+prelude+script+`})()`); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	p.NoConsoleErrors()
}
