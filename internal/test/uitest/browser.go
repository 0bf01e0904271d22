// Package uitest tests Mission Control in a real browser.
//
// A scenario describes the use of the page: a person opens it, presses a button, loses the
// connection. It gets a browser and a target. The target is the real server on the memory journal,
// in the test's own process (NewServer), or a daemon. Its agents are scripts, or guests that the
// test controls. A proxy in front of the server changes single answers to texts that the server
// does not accept.
//
// The one promise: a page that wrote an error to its console, broke its own policy or fails an
// accessibility rule does not pass.
package uitest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

const (
	waitMax = 60 * time.Second // longest wait for something to appear: a loaded machine is slow, not broken
)

// Size is a window's, in CSS pixels.
type Size struct{ Width, Height int64 }

// The two sizes of every scenario.
var (
	Desktop = Size{1280, 800}
	Phone   = Size{390, 844}
)

// Page is one tab with one page in it. Its methods fail the test themselves, with a description of
// the page.
type Page struct {
	t      testing.TB
	ctx    context.Context
	mu     sync.Mutex
	spoken []chromedp.ConsoleMessage

	size     Size
	pictures int             // taken by Axe
	signedIn map[string]bool // addresses of servers for which the window has a secret
}

// Lacks skips a test if something that it needs is not installed, so that Go alone suffices to try
// the project. In CI it fails the test instead.
func Lacks(t testing.TB, words string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(words)
	}
	t.Skip("LEFT OUT: " + words)
}

// Chromium returns the browser's path. If it is not installed, the test is skipped or fails.
func Chromium(t testing.TB) string {
	t.Helper()
	if testsize.Race || !testsize.CI() {
		t.Skip("looks at the page through a browser, which takes minutes; .ci/run page and FAIRLEAD_LONG=ci run it, not with the race detector")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Lacks(t, "this test looks at the page through Chromium, and there is none; install it (Debian: apt-get install chromium)")
	return ""
}

// chromium is the browser of all tests of this process. It runs while a test or KeepBrowser uses it.
var chromium struct {
	sync.Mutex
	users int
	ctx   context.Context
	stop  func()
}

// KeepBrowser lets the browser run until release is called, also between two tests. A TestMain calls it.
func KeepBrowser() (release func()) {
	chromium.Lock()
	defer chromium.Unlock()
	chromium.users++
	return sync.OnceFunc(func() {
		chromium.Lock()
		defer chromium.Unlock()
		if chromium.users--; chromium.users == 0 && chromium.ctx != nil {
			chromium.stop()
			chromium.ctx = nil
		}
	})
}

// sharedBrowser starts the browser if it does not run. Call KeepBrowser first.
func sharedBrowser(path string) (context.Context, error) {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx != nil {
		return chromium.ctx, nil
	}
	ctx, stop, err := startBrowser(path)
	if err == nil {
		chromium.ctx, chromium.stop = ctx, stop
	}
	return ctx, err
}

// startBrowser starts a browser with a new profile.
func startBrowser(path string, more ...chromedp.ExecAllocatorOption) (_ context.Context, stop func(), _ error) {
	profile, err := os.MkdirTemp("", "fairlead-browser-")
	if err != nil {
		return nil, nil, err
	}
	alloc, end := chromedp.NewExecAllocator(context.Background(), append(more,
		chromedp.ExecPath(path), chromedp.UserDataDir(profile),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-extensions", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("force-color-profile", "srgb"),
	)...)
	ctx, cancel := chromedp.NewContext(alloc)
	stop = func() { cancel(); end(); _ = os.RemoveAll(profile) }
	if err := chromedp.Do(ctx); err != nil {
		stop()
		return nil, nil, err
	}
	return ctx, stop, nil
}

// Browse opens a window with a profile of its own in the browser, and returns its only tab. With a line, all its
// requests go over that line; the page keeps the server's address. Under -short the test is skipped.
func Browse(t testing.TB, lines ...*Line) *Page {
	t.Helper()
	path := Chromium(t)
	t.Cleanup(KeepBrowser())
	browser, err := sharedBrowser(path)
	if err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return window(browser, t, lines...)
}

// BrowseAway opens a window in a browser of its own, which takes a name for this machine and trusts one certificate: that
// with this hash of its public key, in base64.
func BrowseAway(t testing.TB, name, key string) *Page {
	t.Helper()
	browser, stop, err := startBrowser(Chromium(t), chromedp.Flag("host-resolver-rules", "MAP "+name+" 127.0.0.1"),
		chromedp.Flag("ignore-certificate-errors-spki-list", key))
	if err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	t.Cleanup(stop)
	return window(browser, t)
}

// window opens a window with a profile of its own.
func window(browser context.Context, t testing.TB, lines ...*Line) *Page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(func(c *target.CreateBrowserContextParams) {
		for _, l := range lines {
			c.ProxyServer, c.ProxyBypassList = "http://"+l.ln.Addr().String(), "<-loopback>"
		}
	}))
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx, signedIn: map[string]bool{}}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a window: %v", err)
	}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			p.mu.Lock()
			p.spoken = append(p.spoken, m)
			p.mu.Unlock()
		}
	}()
	p.Resize(Desktop)
	p.Scheme("dark")
	return p
}

func (p *Page) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitMax)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// Eval runs an expression in the page and returns its value. It awaits a promise.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	expression = strings.ReplaceAll(expression, "import('/", "import("+pageFolder+" + '")
	ctx, cancel := context.WithTimeout(p.ctx, 2*waitMax)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("evaluate %.200s: %v", expression, err)
	}
	return v
}

// pageFolder is the folder of the page's modules. A test imports them from there to get those that the page uses.
const pageFolder = `document.querySelector('script[type=module]').src.replace(/app[.]js$/, '')`

// Open goes to an address, as Visit does, and waits until the page is drawn.
func (p *Page) Open(url string) {
	p.t.Helper()
	p.Visit(url)
	p.Until("the page is drawn", `document.querySelector('.masthead') !== null`)
}

// Visit goes to an address. If the address has the token of the server as its query, the window is signed in first,
// once, and the query is left out.
func (p *Page) Visit(url string) {
	p.t.Helper()
	if base, query, ok := strings.Cut(url, "?token="); ok {
		token, place, _ := strings.Cut(query, "#")
		if url = base; place != "" {
			url += "#" + place
		}
		if !p.signedIn[base] {
			p.signIn(base, token)
		}
		p.do("leave the page", chromedp.Navigate("about:blank")) // otherwise an address that differs in its fragment only loads nothing
	}
	p.do("open "+url, chromedp.Navigate(url))
}

// Resize sets the window; below 600 pixels it is a phone with a touch screen.
func (p *Page) Resize(s Size) {
	p.t.Helper()
	options := []chromedp.EmulateViewportOption{chromedp.EmulateScale(1)}
	if s.Width < 600 {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	p.do("resize", chromedp.EmulateViewport(s.Width, s.Height, options...))
	p.size = s
}

// Fits is true if the page is not wider than its window. On a phone a page that is too wide makes
// innerWidth larger, so innerWidth cannot be used.
func Fits(p *Page) string {
	return fmt.Sprintf(`(document.documentElement.scrollWidth <= %[1]d && innerWidth <= %[1]d)`, p.size.Width)
}

// PlaceInSight is true if the link to the part of the page that is shown is in sight. The row of links
// scrolls by whole pixels, and its width may have a part of one.
const PlaceInSight = `(() => { const a = document.querySelector('.places [aria-current]')?.getBoundingClientRect(); return a && a.left > -1 && a.right < innerWidth + 1; })()`

// Scheme sets the preference of the system, dark or light, with reduced motion as in all tests.
func (p *Page) Scheme(scheme string) {
	p.t.Helper()
	p.Prefer(scheme, "reduce")
}

// Prefer sets the preferences of the system: a scheme, dark or light, and for motion reduce or
// no-preference.
func (p *Page) Prefer(scheme, motion string) {
	p.t.Helper()
	p.do("prefer "+scheme, func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
		}})
		return chromedp.Void{}, err
	})
}

// Slow3G makes the window's line as slow as 3G is at its slowest: 400 ms to an answer, 400 kbit a second.
func (p *Page) Slow3G() {
	p.t.Helper()
	p.do("a slow line", func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		const each = 400e3 / 8 // bytes a second
		all := []*network.Conditions{{Latency: 400, DownloadThroughput: each, UploadThroughput: each}}
		_, err := cdp.Call(ctx, t, network.EmulateNetworkConditionsByRule,
			network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: all})
		return chromedp.Void{}, err
	})
}

// RunFirst runs a script at the beginning of every page that is opened later, before any of the page's own.
func RunFirst(p *Page, script string) {
	p.t.Helper()
	p.do("add a script", func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return chromedp.Void{}, err
	})
}

// Until waits until an expression is true in the page.
func (p *Page) Until(what, expression string) {
	p.t.Helper()
	if !wait.Poll(func() bool { return Eval[bool](p, "!!("+expression+")") }) {
		p.failed(what)
	}
}

// failed ends the test and describes the page.
func (p *Page) failed(what string) {
	p.t.Helper()
	p.t.Fatalf("waited %v until %s; the page says: %.1500s\nthe focus is on: %s\nconsole: %v", wait.Patience, what,
		strings.Join(strings.Fields(p.Text("body")), " "), p.Focused(), p.console())
}

// Text returns the visible text of the first element that a CSS selector finds.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	return Eval[string](p, fmt.Sprintf(`(document.querySelector(%q)?.innerText ?? '').slice(0, 20000)`, selector))
}

// WaitText waits until the visible text of an element contains the text, regardless of case.
func (p *Page) WaitText(selector, text string) {
	p.t.Helper()
	says := fmt.Sprintf(`[...document.querySelectorAll(%q)].some(e => (e.innerText ?? '').toLowerCase().includes(%s))`, selector,
		quote(strings.ToLower(text)))
	if !wait.Poll(func() bool { return Eval[bool](p, says) }) {
		p.t.Logf("%s reads: %.1500s", selector,
			strings.Join(strings.Fields(Eval[string](p,
				fmt.Sprintf(`[...document.querySelectorAll(%q)].map(e => e.innerText ?? '').join(' | ')`, selector))), " "))
		p.failed(fmt.Sprintf("%s reads %q", selector, text))
	}
}

// WaitGone waits until no such element contains the text.
func (p *Page) WaitGone(selector, text string) {
	p.t.Helper()
	p.Until(fmt.Sprintf("%s no longer reads %q", selector, text),
		fmt.Sprintf(`![...document.querySelectorAll(%q)].some(e => (e.innerText ?? '').toLowerCase().includes(%s))`, selector,
			quote(strings.ToLower(text))))
}

// standing is the position of an element after it has stopped moving, because a page that redraws
// itself moves the button that a test is about to press. If it moves once more before the mouse
// arrives, the click has no effect, and pressMissed reports that.
const standing = `(async () => {
	const frame = () => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)));
	for (let looks = 0, was = ''; ; looks++) {
		const b = %s;
		if (b) {
			b.scrollIntoView({block: 'nearest'});
			const r = b.getClientRects()[0] ?? b.getBoundingClientRect(), at = [r.x + r.width / 2, r.y + r.height / 2];
			if (at.join() === was || looks > 20) {
				let missed = false;
				const one = new AbortController();
				const look = (e) => { if (!b.contains(e.target)) { missed = true; e.preventDefault(); e.stopImmediatePropagation(); } else if (e.type === 'click') one.abort(); };
				for (const kind of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'touchstart', 'touchend']) addEventListener(kind, look, {capture: true, passive: false, signal: one.signal});
				window.pressMissed = () => { one.abort(); return missed; };
				return at;
			}
			was = at.join();
		}
		await frame();
	}
})()`

// Click clicks, with a real mouse, the first visible and enabled button, link, tab or option inside
// the selector whose text or label contains the text.
func (p *Page) Click(within, text string) {
	p.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll(%q)].flatMap(e => [...e.querySelectorAll('button, a, [role=tab], [role=option], option, summary, label.mode')])
		.find(b => (b.innerText + ' ' + (b.getAttribute('aria-label') ?? '')).toLowerCase().includes(%s) && b.checkVisibility() && b.getAttribute('aria-disabled') !== 'true')`, within, quote(strings.ToLower(text)))
	p.Until(fmt.Sprintf("there is %q to press in %s", text, within), find)
	for range pressesMax {
		at := Eval[[]float64](p, fmt.Sprintf(standing, find))
		p.do("press "+text, chromedp.MouseClickXY(at[0], at[1]))
		if !Eval[bool](p, `(() => { const missed = window.pressMissed?.() ?? false; delete window.pressMissed; return missed; })()`) {
			return
		}
	}
	p.t.Fatalf("%d presses missed %q in %s: something covers it", pressesMax, text, within)
}

// pressesMax is how often a button that moves away from the mouse is clicked.
const pressesMax = 20

// Press types keys, in the spelling of the chromedp kb package. A key and its character are one
// event, as on a keyboard: a character that is sent later would reach the element that has the
// focus by then.
func (p *Page) Press(keys string) {
	p.t.Helper()
	p.do("type "+keys, func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		for _, r := range keys {
			events := kb.Encode(r)
			if len(events) == 3 {
				events[0].Text, events[0].UnmodifiedText = events[1].Text, events[1].UnmodifiedText
				events = []*input.DispatchKeyEventParams{events[0], events[2]}
			}
			for _, e := range events {
				if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, *e); err != nil {
					return chromedp.Void{}, err
				}
			}
		}
		return chromedp.Void{}, nil
	})
}

// Focused describes the element that has the focus, for failure messages: its tag, class and text.
func (p *Page) Focused() string {
	p.t.Helper()
	return Eval[string](p,
		`(() => { const e = document.activeElement; return e ? [e.tagName.toLowerCase(), e.id, e.className, (e.getAttribute('aria-label') ?? e.innerText ?? '').slice(0, 60)].join(' ').replace(/\s+/g, ' ').trim() : ''; })()`)
}

// Screenshot writes the window to a PNG file and creates its folder.
func (p *Page) Screenshot(path string) {
	p.t.Helper()
	Eval[bool](p, `document.fonts.ready.then(() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(() => go(true)))))`)
	ctx, cancel := context.WithTimeout(p.ctx, waitMax)
	defer cancel()
	shot, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		res, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
		return res.Data, err
	})
	if err != nil {
		p.t.Fatalf("take a picture: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatalf("take a picture: %v", err)
	}
	if err := os.WriteFile(path, shot, 0o644); err != nil {
		p.t.Fatalf("take a picture: %v", err)
	}
}

// Heap returns the memory that the page's script uses after a garbage collection.
func (p *Page) Heap() float64 {
	p.t.Helper()
	p.do("collect garbage", func(ctx context.Context, t *chromedp.Target) (v chromedp.Void, err error) {
		_, err = cdp.Call(ctx, t, heapprofiler.CollectGarbage, cdp.Empty{})
		return v, err
	})
	return metric(p, "JSHeapUsedSize")
}

// Busy returns how long the page's main thread has run, in seconds, without other programs.
func (p *Page) Busy() float64 {
	p.t.Helper()
	return metric(p, "TaskDuration")
}

func metric(p *Page, name string) (value float64) {
	p.t.Helper()
	p.do("read "+name, func(ctx context.Context, t *chromedp.Target) (v chromedp.Void, err error) {
		if _, err = cdp.Call(ctx, t, performance.Enable,
			performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
			return v, err
		}
		res, err := cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
		for _, m := range res.Metrics {
			if m.Name == name {
				value = m.Value
			}
		}
		return v, err
	})
	return value
}

func (p *Page) console() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, m := range p.spoken {
		all = append(all, m.String())
	}
	return all
}

// NoConsoleErrors fails if the page logged an error or a warning, threw, or violated its policy.
// Messages of the browser about answers of the API (409, or no answer while the line is cut) are
// expected in scenarios.
func (p *Page) NoConsoleErrors() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.spoken {
		bad := m.IsException() || m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning
		if bad && (m.Source != "network" || !strings.Contains(m.URL, "/api/v1/")) {
			p.t.Errorf("the page's console: %s (%s:%d, %s)", m, m.URL, m.Line, m.Source)
		}
	}
}

// OpenTeam opens the team instead of the landing page.
func (p *Page) OpenTeam(url string) {
	p.t.Helper()
	p.Open(url + "#/agents")
	// until then the masthead moves, and with it what a test is about to press
	p.Until("the page is live", `document.querySelector('.line-live')`)
}

// quote returns a Go string as a JavaScript literal. JSON is a subset of it.
func quote(s string) string { return string(encode.JSON(s)) }

// UIDir returns the folder ui of the repository. Tests run in the folder of their package, so the
// root is the first parent that contains go.mod.
func UIDir() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(fmt.Sprintf("uitest: find the working folder: %v", err))
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "ui")
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			panic("uitest: no parent of the working folder holds go.mod")
		}
		dir = parent
	}
}

// Axe runs axe-core on the page and fails for each broken rule, with the elements that break it. It
// is loaded through the debugger, so the page's policy need not allow it. With PICTURES=folder in
// the environment it also takes a picture of what it checks.
func (p *Page) Axe() {
	p.t.Helper()
	if dir := os.Getenv("PICTURES"); dir != "" {
		p.pictures++
		p.Screenshot(filepath.Join(dir, fmt.Sprintf("%s-%02d.png", strings.ReplaceAll(p.t.Name(), "/", "-"), p.pictures)))
	}
	if !Eval[bool](p, `window.axe !== undefined`) { // half a megabyte; once a page is enough
		source, err := os.ReadFile(filepath.Join(UIDir(), "node_modules", "axe-core", "axe.min.js"))
		if err != nil {
			Lacks(p.t, "the rules of accessibility are not here; fetch them with (cd ui && npm ci --ignore-scripts)")
		}
		Eval[bool](p, string(source)+"\n;true")
	}
	type node struct {
		Target  []any  `json:"target"`
		Summary string `json:"failureSummary"`
	}
	broken := Eval[[]struct {
		ID    string `json:"id"`
		Help  string `json:"help"`
		Nodes []node `json:"nodes"`
	}](p, `axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => ({id: v.id, help: v.help,
		nodes: v.nodes.slice(0, 4).map(n => ({target: n.target.map(String), failureSummary: n.failureSummary}))})))`)
	for _, b := range broken {
		var where []string
		for _, n := range b.Nodes {
			where = append(where, fmt.Sprintf("  %v\n    %s", n.Target, strings.ReplaceAll(n.Summary, "\n", "\n    ")))
		}
		p.t.Errorf("axe: %s: %s\n%s", b.ID, b.Help, strings.Join(where, "\n"))
	}
}
