package uitest_test

import (
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// The changes of a task are shown as soon as a read is answered, also while newer reads wait, which each change of the task begins. An
// answer that comes after that of a newer read, of another task or for another choice of what is compared, is not shown.
func TestChangesOfATaskThatChanges(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.OpenTeam(uitest.RealTarget(t, "").URL)
	got := uitest.Eval[[]string](p, `(async () => {
		const { changes, readChanges, showScope } = await import('/tasks/state.js');
		const real = window.fetch, asked = [], shown = [];
		const answer = (body) => ({ ok: true, headers: new Headers(), json: async () => body }); // it has no stream, so it takes microtasks only
		window.fetch = (url, init) => {
			if (url.includes('/comments')) return Promise.resolve(answer({ comments: [] }));
			if (!url.includes('/changes')) return real(url, init);
			return new Promise((go) => asked.push((to) => go(answer({ from: '0', to, files: [], commits: [], rounds: [] }))));
		};
		const turns = () => new Promise((go) => setTimeout(go));
		const reply = async (n, to) => { asked[n](to); await turns(); shown.push(changes.peek()?.to ?? 'none'); };
		try {
			for (let i = 0; i < 4; i++) void readChanges('T1');
			await reply(0, 'first');  // three newer reads wait
			await reply(2, 'third');
			await reply(1, 'second'); // it is older than what is shown
			showScope('all');         // the same choice again
			await reply(3, 'fourth');
			showScope('abc');         // one commit
			await reply(4, 'fifth');  // of all changes
			showScope('all');
			void readChanges('T2');
			await reply(6, 'sixth');  // of T1
			return shown;
		} finally { window.fetch = real; }
	})()`)
	if want := []string{"first", "third", "third", "fourth", "fourth", "none"}; !slices.Equal(got, want) {
		t.Errorf("after each answer the page shows %q, want %q", got, want)
	}
}
