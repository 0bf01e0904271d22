package uitest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// fakeNotifications replaces the browser's notifications, which no headless browser shows, and
// simulates a hidden page.
const fakeNotifications = `(async () => {
	window.shown = []; window.asked = 0; window.away = false; window.forgotten = [];
	Object.defineProperty(document, 'hidden', { configurable: true, get: () => window.away });
	window.Notification = class {
		static permission = 'default';
		static async requestPermission() { window.asked++; this.permission = 'granted'; return 'granted'; }
		constructor(title, options) { this.title = title; Object.assign(this, options); window.shown.push(this); }
		close() { this.closed = true; }
	};
	const m = await import('/inbox/browsernotices.js');
	m.permission.value = 'default';
	return true;
})()`

// TestNotices checks the browser's own notifications: none before a person switched them on, only
// while the page is hidden, once for all tabs, and a click opens the card. A target that cannot be
// reached is shown.
func TestNotices(t *testing.T) {
	t.Parallel()
	for _, view := range uitest.Views {
		t.Run(view.Name, func(t *testing.T) {
			t.Parallel()
			target := uitest.RealQuestions(t)
			q := target.Questions
			p := uitest.Browse(t)
			p.Resize(view.Size)
			p.Scheme(view.Scheme)
			p.Open(target.URL + "#/inbox")
			p.WaitText(".receivers", "Notices")
			uitest.Eval[bool](p, fakeNotifications)
			p.WaitText(".receivers", "Notify me in this browser")
			until := func(n int) { p.Until(fmt.Sprintf("%d notifications", n), fmt.Sprintf(`window.shown.length >= %d`, n)) }
			count := func() int { return uitest.Eval[int](p, `window.shown.length`) }
			away := func(is bool) {
				uitest.Eval[bool](p, fmt.Sprintf(`(window.away = %v, document.dispatchEvent(new Event('visibilitychange')), true)`, is))
			}

			away(true)
			first := q.Ask()
			p.WaitText(".inbox-list", first)
			away(false)
			if uitest.Eval[int](p, `window.asked`) != 0 || count() != 0 {
				t.Error("the browser was asked, or something shown, before the person wanted it")
			}
			p.Click(".receivers", "Notify me in this browser")
			p.WaitText(".receivers", "Show notifications of this browser")
			p.Axe()

			seen := q.Ask() // while the page is visible
			p.WaitText(".inbox-list", seen)
			away(true)
			second := q.Ask()
			until(1)
			told := uitest.Eval[string](p, `window.shown.map((n) => n.title + ': ' + n.body).join('; ')`)
			if told != "coder waits for you: "+second+": it asks" || strings.Contains(told, "rm -rf") {
				t.Errorf("shown: %s", told)
			}
			// Another tab of this browser records the next one first, so this tab shows nothing.
			uitest.Eval[bool](p, `(() => {
				window.claims = 0;
				const request = navigator.locks.request.bind(navigator.locks);
				Object.defineProperty(navigator.locks, 'request', { configurable: true, value: async (name, take) => { await request(name, take); const mine = await request(name, take); window.claims++; return mine; } });
				return true; })()`)
			q.Ask()
			p.Until("the tab asks whether another tab has shown the notification", `window.claims >= 1`)
			if n := uitest.Eval[int](p, `new Promise((done) => setTimeout(() => done(window.shown.length)))`); n != 1 {
				t.Errorf("%d notifications, though another tab had shown it", n)
			}

			p.Open(target.URL + "#/usage")
			uitest.Eval[bool](p, fakeNotifications)
			uitest.Eval[bool](p,
				`(async () => { (await import('/inbox/browsernotices.js')).permission.value = 'granted'; window.away = true; return true; })()`)
			p.Until("the inbox is known", `(async () => (await import('/runs/state.js')).inbox.value.length >= 4)()`)
			last := q.Ask()
			until(1)
			uitest.Eval[bool](p, `(window.away = false, window.shown[0].onclick(), true)`)
			p.Until("the card has the focus",
				fmt.Sprintf(`location.hash === '#/inbox/%s' && (document.activeElement?.closest('.inbox-item')?.textContent ?? '').includes('%s')`, last, last))
			if !uitest.Eval[bool](p, `window.shown[0].closed`) {
				t.Error("the notification stays")
			}
			p.Open(target.URL + "#/inbox/q99")
			p.WaitText(".inbox", "q99 does not wait any more")
			p.Axe()
			p.NoConsoleErrors()
		})
	}
}

// TestReceiversOnThePage checks that a target that cannot be reached is announced once, and shown
// with its reason as long as that lasts.
func TestReceiversOnThePage(t *testing.T) {
	t.Parallel()
	for _, view := range uitest.Views {
		t.Run(view.Name, func(t *testing.T) {
			t.Parallel()
			s := uitest.NewServer(t, map[string]string{
				"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: script, script: s.yaml, failures_max: 1}\nnotify:\n  targets:\n    phone: {url: 'ntfy://h/x'}\n    lost: {url: 'ntfy://h/y'}\n",
				"s.yaml":        "steps:\n  - crash\n",
			})
			p := uitest.Browse(t)
			p.Resize(view.Size)
			p.Scheme(view.Scheme)
			p.Open(s.URL + "#/inbox")
			p.WaitText(".receivers", "reached phone ntfy")
			s.Do("POST", "/agents/coder/start", strings.NewReader(`{}`))
			p.WaitText(".notes", "Failed: notices to lost")
			p.WaitText(".notes", "connection refused; see that the host can be reached from here")
			p.WaitText(".receivers", "not reached lost ntfy")
			if n := uitest.Eval[int](p, `document.querySelectorAll('.note').length`); n != 1 {
				t.Errorf("said %d times", n)
			}
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			p.NoConsoleErrors()
		})
	}
}
