package uitest_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestAskParsers checks the functions that turn questions into texts and buttons with any input:
// they throw no error, let no control character through, and give each option that is not a plain
// yes or no its own button.
func TestAskParsers(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
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
