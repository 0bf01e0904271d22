package uitest

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// Target is a server with the page, and the hooks by which a test controls it. A nil hook is not
// possible on this target; scenarios that need it are skipped with a message.
type Target struct {
	URL    string // the page; its query ?token= is the token for programs, with which Open signs the window in
	Agent  string // an idle agent that can be started
	Says   string // text that its session says by itself; empty if only Say makes it speak
	Finish func() // ends the running session

	Say           func(text string) // the running session says this
	Line          *Line             // between browser and server; it can be cut
	Refuse        func() string     // the next single session of Agent is refused with this text
	Workflow      *Workflow         // a workflow that it can run; nil: none
	Faulty        string            // a workflow with a fault in line 12, column 13
	ChannelStory  *ChannelStory     // one of its channels; nil: none
	CrewStory     *CrewStory        // a crew that it can summon; nil: none
	DispatchStory *DispatchStory    // a dispatch; nil: none
	Questions     *Questions        // an agent that asks; nil: none does

	Liar string // an idle agent whose name, description and note contain markup, control characters and overrides
}

// TalkingScript is an agent that says at the start what Says is, and then what is appended to the
// file say beside it, until the file finish exists. It removes both files, so its next session does
// not repeat what this one said.
const TalkingScript = `echo hello from a real process
touch say; sent=0
until [ -e finish ]; do
  now=$(wc -c < say)
  if [ "$now" -gt "$sent" ]; then tail -c +$((sent + 1)) say | head -c $((now - sent)); sent=$now; fi
  sleep 0.02
done
rm -f finish say; echo goodbye`

// Scenario is one use of the page.
type Scenario struct {
	Name string
	Run  func(t *testing.T, p *Page, target Target)
}

// Scenarios are the scenarios that must hold on every target, at every size.
func Scenarios() []Scenario {
	return []Scenario{
		{"start", Start},
		{"stop in mid-session", StopInMidSession},
		{"once and then", OnceAndThen},
		{"hold and release", HoldAndRelease},
		{"cut and restored", CutAndRestored},
		{"a refusal", ARefusal},
		{"keyboard alone", KeyboardAlone},
		{"hostile words", HostileWords},
		{"reading back", ReadingBack},
		{"accessible", Accessible},
		{"a run", ARun},
		{"a faulty run", FaultyRun},
		{"a run by keyboard", RunByKeyboard},
		{"runs accessible", RunsAccessible},
		{"a channel on two pages", SeenByBoth},
		{"interrupted", Interrupted},
		{"timed out", TimedOut},
		{"skipped", SkippedByHand},
		{"unheard", Unheard},
		{"a rotation by hand", RotationByHand},
		{"waited", Waited},
		{"hostile messages", HostileMessages},
		{"a channel by keyboard", ChannelByKeyboard},
		{"a channel cut and restored", ChannelCutAndRestored},
		{"channels accessible", ChannelsAccessible},
		{"a crew on two pages", SummonedAndWoken},
		{"a crew cut and restored", CrewCutAndRestored},
		{"a crew refused", CrewRefused},
		{"one is woken", OneIsWoken},
		{"a crew read", CrewRead},
		{"a crew taken in", CrewTakenIn},
		{"hostile crew", HostileCrew},
		{"a crew by keyboard", CrewByKeyboard},
		{"crew accessible", CrewAccessible},
		{"a session denied and delegated", DeniedAndDelegated},
		{"a session from here", SessionFromHere},
		{"a session cut and restored", SessionCut},
		{"a hosted session", HostedSession},
		{"hostile session", HostileSession},
		{"a session by keyboard", SessionByKeyboard},
		{"sessions accessible", SessionsAccessible},
		{"permission given", PermissionGiven},
		{"permission standing", PermissionStanding},
		{"asked in words", AskedInWords},
		{"an answer refused", AnswerRefused},
		{"asks by keyboard", AsksByKeyboard},
		{"hostile asks", HostileAsks},
		{"what is known of a program", ProgramKnown},
		{"usage", UsageShown},
		{"asks accessible", AsksAccessible},
		{"found", Found},
		{"commands by keyboard", CommandsByKeyboard},
		{"hostile words found", HostileFound},
		{"search accessible", SearchAccessible},
	}
}

// View is a combination of a size and a theme.
type View struct {
	Name   string
	Size   Size
	Scheme string
}

// AllViews are all combinations of a size and a theme, in which each part of the page is checked.
var AllViews = []View{
	{"desktop dark", Desktop, "dark"},
	{"phone light", Phone, "light"},
	{"desktop light", Desktop, "light"},
	{"phone dark", Phone, "dark"},
}

// Views are those in which the states of a story are checked: each size and each theme once, and with
// FAIRLEAD_LONG=1 all.
var Views = testsize.Pick(AllViews[:2], AllViews[:2], AllViews)

// inViews shows the page in each of Views. The test ends after the first view in which a check fails.
func inViews(p *Page) iter.Seq[View] {
	return func(check func(View) bool) {
		p.t.Helper()
		for _, v := range Views {
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			if !check(v) {
				return
			}
			if p.t.Failed() {
				p.t.Fatalf("in the view %s", v.Name)
			}
		}
	}
}

// RunAll runs every scenario on new targets, once on a desktop and once on a phone. After each the
// console must be clean.
func RunAll(t *testing.T, target func(t *testing.T) Target) { run(t, target, 1) }

// RunEach runs each scenario once, alternating between the two sizes.
func RunEach(t *testing.T, target func(t *testing.T) Target) { run(t, target, 2) }

// RunFew runs every eighth scenario, in one of the two sizes, for tests of something other than the
// page.
func RunFew(t *testing.T, target func(t *testing.T) Target) { run(t, target, 16) }

// run runs the scenarios in every view, or only some of the combinations.
func run(t *testing.T, target func(t *testing.T) Target, every int) {
	for i, s := range Scenarios() {
		for j, v := range Views[:2] {
			if (i+j)%every != 0 {
				continue
			}
			t.Run(s.Name+"/"+v.Name, func(t *testing.T) {
				to := target(t)
				var lines []*Line
				if to.Line != nil {
					lines = append(lines, to.Line)
				}
				p := Browse(t, lines...)
				p.Resize(v.Size)
				p.Scheme(v.Scheme)
				s.Run(t, p, to)
				p.NoConsoleErrors()
			})
		}
	}
}

func needs(t *testing.T, has bool, what string) {
	t.Helper()
	if !has {
		t.Skipf("this target cannot %s on purpose", what)
	}
}

// Choose shows an agent by mouse. On a phone it goes back to the team first.
func (p *Page) Choose(name string) {
	p.t.Helper()
	if Eval[bool](p, `!document.querySelector('.roster').checkVisibility()`) {
		p.Click(".agent", "Team")
	}
	p.Click(".row-head", name)
	p.WaitText("#agent-title", name)
	p.Until("the agent is in sight", `document.querySelector('#agent-title').checkVisibility()`)
}

// started opens the page, starts the target's agent, and waits for its text.
func started(p *Page, target Target) {
	p.t.Helper()
	p.OpenTeam(target.URL)
	p.Choose(target.Agent)
	p.WaitText(".agent-title .badge", "IDLE")
	p.Click(".orders", "Start Agent")
	p.WaitText(".agent-title .badge", "RUNNING")
	if target.Say != nil {
		target.Say("the first words\n")
		p.WaitText(".tape", "the first words")
	} else {
		p.WaitText(".tape", target.Says)
	}
}

// Start starts an agent, sees it run and reads its output.
func Start(t *testing.T, p *Page, target Target) {
	started(p, target)
	p.WaitText(".orders", "Stop Agent")
	if got := p.Text(".orders .order-stop"); !strings.Contains(got, "Stop Agent") {
		t.Errorf("the button of a running agent reads %q, want Stop Agent, red", got)
	}
	p.Click(".tabs", "Evidence")
	p.WaitText(".evidence", "yes")
	p.Click(".tabs", "History")
	p.WaitText(".history", "Ordered to run continuously")
	p.Until("rules are shown on request",
		`(() => { const box = document.querySelector('.history-head input'); if (!box.checked) box.click(); return [...document.querySelectorAll('.history .rule')].some(e => /^[A-Z]\d+$/.test(e.textContent)); })()`)
}

// StopInMidSession checks that a stop interrupts nothing, and that the page shows the request until
// the session has ended.
func StopInMidSession(t *testing.T, p *Page, target Target) {
	needs(t, target.Finish != nil, "let a session finish")
	started(p, target)
	p.Click(".orders", "Stop Agent")
	p.WaitText(".agent-title", "stopping after this session")
	p.WaitText(".agent-title .badge", "STOPPING")
	target.Finish()
	p.WaitText(".agent-title .badge", "IDLE")
	p.WaitText(".orders", "Start Agent")
	p.WaitText(".tape", "Session ended")
	p.WaitGone(".agent-title", "stopping")
}

// OnceAndThen checks that a single session that is requested while another runs is recorded, shown,
// and run afterwards. A person who does not want to wait can end the running one; the page offers
// that after a stop.
func OnceAndThen(t *testing.T, p *Page, target Target) {
	needs(t, target.Finish != nil, "let a session finish")
	started(p, target)
	p.Click(".orders", "Run Single Session")
	p.WaitText(".agent-title", "then: run once")
	p.Click(".orders", "Keep Running")
	p.WaitGone(".agent-title", "then: run once")
	p.WaitGone(".orders", "End This Session")
	p.Click(".orders", "Stop Agent")
	p.WaitText(".agent-title", "stopping after this session")
	p.Click(".orders", "End This Session")
	p.WaitText(".agent-title .badge", "IDLE")
	p.WaitGone(".orders", "End This Session")
}

// HoldAndRelease checks that the switch asks first, explains itself, and shows both states.
func HoldAndRelease(t *testing.T, p *Page, target Target) {
	p.OpenTeam(target.URL)
	p.WaitText(".roster", target.Agent)
	p.Click(".masthead", "Hold team")
	p.WaitText("dialog", "Current sessions finish")
	p.Click("dialog", "Hold the team")
	p.WaitText(".banners", "The team is held")
	p.Click(".banners", "Release")
	p.WaitText("dialog", "starts again")
	p.Click("dialog", "Release the team")
	p.WaitGone(".banners", "held")
}

// CutAndRestored checks that a page without a connection says since when, offers nothing, and
// catches up by itself.
func CutAndRestored(t *testing.T, p *Page, target Target) {
	needs(t, target.Line != nil && target.Finish != nil, "cut the line")
	started(p, target)
	p.Click(".orders", "Stop Agent")
	p.WaitText(".agent-title", "stopping after this session")
	Eval[bool](p, `(window.notReloaded = true)`)
	target.Line.Cut()
	p.WaitText(".banners", "Cut off since")
	p.Until("the team is dimmed", `Number(getComputedStyle(document.querySelector('.deck')).opacity) < 1`)
	p.Until("no order can be given", `[...document.querySelectorAll('.order')].every(b => b.getAttribute('aria-disabled') === 'true')`)
	target.Finish() // while the page has no connection
	target.Line.Restore()
	p.WaitGone(".banners", "Cut off")
	p.WaitText(".agent-title .badge", "IDLE")
	p.WaitText(".tape", "Session ended")
	p.Until("the page was not loaded again", `window.notReloaded`)
	p.Until("orders can be given again", `!document.querySelector('.order-start').hasAttribute('aria-disabled')`)
}

// ARefusal checks that a refusal is shown in its own text until it is dismissed.
func ARefusal(t *testing.T, p *Page, target Target) {
	needs(t, target.Refuse != nil, "refuse")
	p.OpenTeam(target.URL)
	p.Choose(target.Agent)
	words := target.Refuse()
	p.Click(".orders", "Run Single Session")
	p.WaitText(".notes", "Refused")
	p.WaitText(".notes", words)
	p.WaitText(".agent-title .badge", "IDLE")
	p.Click(".notes", "Dismiss")
	p.WaitGone(".notes", "Refused")
}

// tabsMax is how often Tab may be pressed until an element is reached.
const tabsMax = 24

// tabTo presses Tab until an expression about the focused element e is true, and checks that each stop can be seen.
func (p *Page) tabTo(what, expression string) {
	p.t.Helper()
	for range tabsMax {
		p.Press(kb.Tab)
		if Eval[bool](p,
			`(() => { const e = document.activeElement; return e !== document.body && getComputedStyle(e).outlineStyle === 'none' && getComputedStyle(e.closest('.row, .run-row, .channel-row, .mode, .composer-box, .seat') ?? e).outlineStyle === 'none'; })()`) {
			p.t.Errorf("the focus cannot be seen on: %s", p.Focused())
		}
		if Eval[bool](p, `(() => { const e = document.activeElement; return !!(`+expression+`); })()`) {
			return
		}
	}
	p.t.Fatalf("%d times Tab do not reach %s; the focus is on: %s", tabsMax, what, p.Focused())
}

// KeyboardAlone opens, starts, reads and stops an agent without a mouse.
func KeyboardAlone(t *testing.T, p *Page, target Target) {
	p.OpenTeam(target.URL)
	p.WaitText(".roster", target.Agent)
	p.tabTo("the team", `e.classList.contains('row-name')`)
	p.Press(kb.Home)
	onAgent := fmt.Sprintf(`document.activeElement.classList.contains('row-name') && document.activeElement.innerText.trim() === %s`,
		quote(target.Agent))
	for range 40 {
		if Eval[bool](p, onAgent) {
			break
		}
		p.Press(kb.ArrowDown)
	}
	p.Until("the arrow keys reach the agent", onAgent)
	p.tabTo("its button", `e.dataset.verb === 'start'`)
	p.Press(kb.Enter)
	p.WaitText(".row-chosen .badge", "RUNNING")
	p.Until("the focus stays on the agent's button", `document.activeElement.dataset.verb === 'stop'`)
	p.Press("?")
	p.WaitText("dialog", "Keys and words")
	p.Until("the sheet has the focus", `document.querySelector('dialog:modal')?.contains(document.activeElement)`)
	p.Press(kb.Escape)
	p.Until("the sheet is closed", `!document.querySelector('dialog')`)
	p.Until("the focus is back", `document.activeElement.dataset.verb === 'stop'`)
	p.Press("2")
	p.WaitText(".evidence", "yes")
	p.Press("1")
	p.Until("the output is shown", `document.querySelector('.tape')`)
	p.Until("the last order has finished, and another one can be given",
		`document.querySelector('.orders .order-stop') && !document.querySelector('.orders .order[aria-disabled]')`)
	p.Press("x")
	p.WaitText(".agent-title", "stopping after this session")
	p.Press("/")
	p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
}

// Accessible checks that the page breaks no rule of axe in any state, at any size, in either theme.
func Accessible(t *testing.T, p *Page, target Target) {
	started(p, target)
	for v := range inViews(p) {
		p.Choose(target.Agent)
		for _, tab := range []string{"Evidence", "History", "Output"} {
			p.Click(".tabs", tab)
			p.Until("the tab is shown", fmt.Sprintf(`document.querySelector('.panel-%s')?.innerText.length > 20`, strings.ToLower(tab)))
			p.Axe()
		}
		if v.Size == Phone {
			p.Click(".agent", "Team")
			p.Until("the team is shown", `document.querySelector('.roster').checkVisibility()`)
			p.Axe()
		}
		p.Press("?")
		p.WaitText("dialog", "Keys and words")
		p.Axe()
		p.Press(kb.Escape)
		p.Until("the sheet is closed", `!document.querySelector('dialog')`)
		p.Press("h")
		p.WaitText("dialog", "Hold the team?")
		p.Axe()
		p.Press(kb.Escape)
		p.Until("the question is closed", `!document.querySelector('dialog')`)
	}
}

// palette is the palette of a page.
type palette struct{ *Page }

// finds opens the palette, types, and waits until a result contains a text.
func (p palette) finds(query, words string) {
	p.t.Helper()
	p.Press("/")
	p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
	p.replaces("#find", query)
	// The index follows a few seconds later, so the query is repeated.
	p.Until("the message is found", fmt.Sprintf(`(() => {
		if ([...document.querySelectorAll('.find-result')].some(e => e.innerText.includes(%s))) return true;
		const f = document.querySelector('#find');
		if (!(window.askedAt > Date.now() - 500)) { window.askedAt = Date.now(); f.dispatchEvent(new InputEvent('input', {bubbles: true})); }
		return false;
	})()`, quote(words)))
}

// replaces replaces the text of a field.
func (p palette) replaces(selector, text string) {
	p.t.Helper()
	Eval[bool](p.Page,
		fmt.Sprintf(`(() => { const f = document.querySelector(%s); f.value = ''; f.dispatchEvent(new InputEvent('input', {bubbles: true})); f.focus(); return true; })()`, quote(selector)))
	p.Press(text)
}

// walks presses the arrow key until an option with a text is chosen, and then Enter.
func (p palette) walks(words string) {
	p.t.Helper()
	for range 60 {
		if Eval[bool](p.Page,
			fmt.Sprintf(`(document.getElementById(document.querySelector('#find')?.getAttribute('aria-activedescendant'))?.innerText ?? '').includes(%s)`, quote(words))) {
			p.Press(kb.Enter)
			p.Until("the palette is closed", `!document.querySelector('.find')`)
			return
		}
		p.Press(kb.ArrowDown)
	}
	p.t.Fatalf("no option has %q: %s", words, p.Text(".find-list"))
}

// Found checks that an agent's text is found, that the words are marked, and that the result opens
// at its line.
func Found(t *testing.T, p *Page, target Target) {
	needs(t, target.Say != nil && target.Liar == "" && target.Agent != "", "say something")
	started(p, target)
	target.Say("first line of many\nthe harbour pilot retries the upload of crates\nsomething after it\n")
	p.WaitText(".tape", "something after it")
	palette{p}.finds("pilot upload", "the harbour pilot retries the upload")
	p.Until("the words are marked",
		`['pilot', 'upload'].every(w => [...document.querySelectorAll('.find-result mark')].some(m => m.textContent === w))`)
	palette{p}.walks("the harbour pilot")
	p.Until("the address names the line",
		fmt.Sprintf(`/^#\/agents\/%s\/output\/%s-\d+\/\d+$/.test(location.hash)`, target.Agent, target.Agent))
	p.Until("the line is marked and in view", `(() => {
		const e = document.querySelector('.tape .spot');
		if (!e || !e.textContent.includes('the harbour pilot')) return false;
		const r = e.getBoundingClientRect(), box = document.querySelector('.tape').getBoundingClientRect();
		return r.top >= box.top - 1 && r.bottom <= box.bottom + 1;
	})()`)
	if Eval[bool](p, `document.querySelector('.tape .sheet').innerText.includes('first line of many')`) {
		t.Error("the output does not begin with the line that was found")
	}
	p.Click(".tape", "Show the newest output")
	p.WaitText(".tape", "first line of many")
	p.Until("the address names no line", `!/\d+$/.test(location.hash)`)
	if target.ChannelStory != nil {
		p.openChannel(target)
		p.say("where did we talk about barnacles?", "queue")
		p.WaitText(".say-human", "barnacles")
		p.Press(kb.Escape)
		palette{p}.finds("barnacle", "barnacles")
		palette{p}.walks("barnacles")
		p.Until("the address names the entry", fmt.Sprintf(`/^#\/channels\/%s\/\d+$/.test(location.hash)`, target.ChannelStory.Name))
		p.Until("the entry is marked", `document.querySelector('.entries .spot')?.innerText.includes('barnacles')`)
	}
	palette{p}.finds("opened running", "opened")
	palette{p}.walks("opened → running")
	p.WaitText(".history-spot", "started")
}

// CommandsByKeyboard opens pages and gives orders from the palette, without a pointer.
func CommandsByKeyboard(t *testing.T, p *Page, target Target) {
	needs(t, target.Finish != nil && target.Says != "" && target.Liar == "", "start an agent")
	p.OpenTeam(target.URL)
	p.WaitText(".roster", target.Agent)
	open := func(query, words string) {
		t.Helper()
		p.Press("/")
		p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
		palette{p}.replaces("#find", query)
		palette{p}.walks(words)
	}
	open("usag", "Usage")
	p.Until("usage is shown", `location.hash === '#/usage'`)
	open("rns", "Runs")
	p.Until("the runs are shown", `location.hash.startsWith('#/runs')`)
	open(target.Agent+" hist", target.Agent+": history")
	p.Until("the history is shown", fmt.Sprintf(`location.hash === '#/agents/%s/history'`, target.Agent))
	open("start "+target.Agent, "Start Agent: "+target.Agent)
	p.WaitText(".agent-title .badge", "RUNNING")
	open("stop agent "+target.Agent, "Stop Agent: "+target.Agent)
	p.WaitText(".agent-title", "stopping after this session")
	target.Finish()
	p.WaitText(".agent-title .badge", "IDLE")
	open("hold", "Hold the team")
	p.WaitText("dialog", "Hold the team?")
	p.Until("the dialog has the focus", `document.querySelector('dialog').contains(document.activeElement)`)
	p.Press(kb.Escape)
	p.Until("the dialog is closed", `!document.querySelector('dialog')`)
	open("new task", "New task")
	p.Until("the dialog of a task is open",
		`location.hash === '#/tasks' && document.querySelector('dialog:has(textarea)')?.contains(document.activeElement)`)
	p.Press(kb.Escape)
	p.Until("the dialog is closed", `!document.querySelector('dialog')`)
	p.Press("/")
	p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
	p.Press(kb.Escape)
	p.Until("the palette is closed", `!document.querySelector('dialog')`)
	Eval[bool](p, `(dispatchEvent(new KeyboardEvent('keydown', {key: 'k', ctrlKey: true, cancelable: true})), true)`)
	p.Until("Ctrl K opens the palette", `document.activeElement.id === 'find'`)
}

// HostileFound checks that text that tries to be markup or control characters is found and shown as
// text, and that a link of the server that leads elsewhere opens nothing.
func HostileFound(t *testing.T, p *Page, target Target) {
	needs(t, target.Say != nil && target.Liar == "", "say something")
	started(p, target)
	target.Say("barque <img src=x onerror=\"document.title='owned'\"> </script> \u202eover\n")
	p.WaitText(".tape", "barque")
	palette{p}.finds("barque img", "<img src=x")
	if Eval[bool](p, `document.querySelector('.find img, .find script') !== null || document.title.includes('owned')`) {
		t.Error("words became markup")
	}
	if Eval[bool](p, `/[\u202e\u0007\u001b]/.test(document.querySelector('.find').textContent)`) {
		t.Error("an override reached the page as itself")
	}
	bad := Eval[[]string](p,
		`import('/search/words.js').then(m => ['javascript:alert(1)', 'https://elsewhere/', '//x', '#/a b', '#"x', null, 7, '#/agents/x'].map(l => m.linkOf(l)).filter(Boolean))`)
	if len(bad) != 1 || bad[0] != "#/agents/x" {
		t.Errorf("links that are followed: %q", bad)
	}
	pieces := Eval[string](p,
		`import('/search/words.js').then(m => m.piecesOf('a\u{1f6a2}bcd', [[1, 2], [1, 3], [3, 99], [2, 4]]).map(x => (x.hit ? '[' : '') + x.text + (x.hit ? ']' : '')).join('|'))`)
	if pieces != "a|[\U0001f6a2]|[bc]|d" {
		t.Errorf("pieces: %s", pieces)
	}
}

// SearchAccessible checks that the palette breaks no rule of axe, at any size, in either theme.
func SearchAccessible(t *testing.T, p *Page, target Target) {
	needs(t, target.Say != nil && target.Liar == "", "say something")
	started(p, target)
	target.Say("the dredger clears the channel\n")
	p.WaitText(".tape", "dredger")
	for range inViews(p) {
		p.Press("/")
		p.Until("the palette has the focus", `document.activeElement.id === 'find'`)
		palette{p}.replaces("#find", " ")
		p.WaitText(".find-list", "Usage")
		p.Axe()
		p.Press(kb.Escape)
		p.Until("the palette is closed", `!document.querySelector('dialog')`)
		palette{p}.finds("dredger", "dredger clears")
		p.Until("the options name the chosen one",
			`document.getElementById(document.querySelector('#find').getAttribute('aria-activedescendant'))?.getAttribute('aria-selected') === 'true'`)
		p.Axe()
		p.Until("nothing is wider than the window",
			Fits(p)+` && document.querySelector('.find').getBoundingClientRect().right <= innerWidth && document.querySelector('.find-list').scrollWidth <= document.querySelector('.find-list').clientWidth`)
		palette{p}.walks("dredger clears")
		p.Until("the line is marked", `document.querySelector('.tape .spot')`)
		p.Axe()
	}
}
