package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// largeDiffs are what the tasks T1, T2 and T3 of largeTasks change: about 5,000 rows in one file, 5,000 lines in 200
// files, and 500 lines that are longer than the page shows.
var largeDiffs = []string{"rows", "files", "wide"}

// goLine is a line of code with colours in it.
func goLine(i, version int) string {
	return fmt.Sprintf("\tif err := upload(ctx, %q, %d); err != nil { return fmt.Errorf(\"version %d: %%w\", err) } // line %d\n",
		fmt.Sprint("name-", i), i*version, version, i)
}

// largeTasks gives the three tasks, and returns when all of them wait for a person.
func largeTasks(t *testing.T) *rig {
	t.Helper()
	dir, git := taskRepo(t, ".agents\n.fairlead\nfairlead.yaml\n")
	to, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was, is := strings.Builder{}, strings.Builder{}
	for i := range 2916 { // of seven lines six are changed: 2,500 come, 2,500 go, and 416 stay
		was.WriteString(goLine(i, 1))
		if i%7 == 0 {
			is.WriteString(goLine(i, 1))
		} else {
			is.WriteString(goLine(i, 2))
		}
	}
	write(filepath.Join(dir, "rows.go"), "package rows\n"+was.String())
	write(filepath.Join(to, "rows", "rows.go"), "package rows\n"+is.String())
	for file := range 200 {
		text := strings.Builder{}
		for i := range 25 {
			text.WriteString(goLine(i, file))
		}
		write(filepath.Join(to, "files", fmt.Sprintf("file%03d.go", file)), text.String())
	}
	wide := strings.Builder{}
	for i := range 500 {
		for k := range 60 {
			fmt.Fprintf(&wide, "function f%d_%d(a,b){return a+b+%d}", i, k, k)
		}
		wide.WriteString("\n")
	}
	write(filepath.Join(to, "wide", "wide.js"), wide.String())
	git("add", "rows.go")
	git("commit", "--quiet", "-m", "code")

	s := newRigIn(t, dir, map[string]string{
		"fairlead.yaml": fmt.Sprintf("version: 1\nagents:\n  coder:\n    driver: exec\n    command: [sh, -c, 'read kind; cp -r %q/$kind/. .']\n    workspace: .\n", to),
	})
	client, err := apiclient.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, kind := range largeDiffs {
		if _, err := client.Runs.Start(t.Context(), view.RunFlags{Task: &view.TaskFlags{Text: kind}}); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "all tasks wait for a person", func() bool {
		all, err := client.Runs.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waiting := 0
		for _, r := range all {
			if r.Task.Status == view.TaskFailed {
				t.Fatalf("%s: %s", r.ID, r.Task.Why)
			}
			if r.Task.Status == view.TaskNeedsYou {
				waiting++
			}
		}
		return waiting == len(largeDiffs)
	})
	return s
}

// scroller is what scrolls on the page of a task: on a phone the whole page does.
const scroller = `(() => { const c = document.querySelector('.task-changes'); return getComputedStyle(c).overflowY === 'auto' ? c : document.querySelector('.task-page'); })()`

// glide scrolls down and back by 60 pixels a frame, 600 frames each way, then leaps 30 times. Its value are the times
// between the frames.
const glide = `new Promise(done => {
	const e = ` + scroller + `, slow = [], leaps = [];
	let last = performance.now(), n = 0, step = 60;
	const frame = () => {
		const now = performance.now(), all = n < 1200 ? slow : leaps;
		if (n > 1) all.push(now - last);
		last = now;
		if (n++ === 600) step = -60;
		if (n < 1200) e.scrollTop += step;
		else if (n % 10 === 0) e.scrollTop = (n / 10 * 7919 % 100) / 100 * e.scrollHeight;
		if (n < 1500) requestAnimationFrame(frame); else done([slow, leaps]);
	};
	requestAnimationFrame(frame);
})`

// FAIRLEAD_DIFF_MEASURED=1, or the name of one of largeDiffs, measures how long large changes take to be shown, and the frames while they
// are scrolled. The yardstick is a bare text of 5,000 lines in the same place. Timings are printed, and decide nothing.
func TestDiffMeasured(t *testing.T) {
	if os.Getenv("FAIRLEAD_DIFF_MEASURED") == "" {
		t.Skip("set FAIRLEAD_DIFF_MEASURED=1 to measure large changes in the browser")
	}
	s := largeTasks(t)
	t.Log("| changes | shown after | frames: median, 99 %, worst, over 50 ms | after leaps: median, worst | main thread, of a frame | elements at first, then | heap at first, then |")
	for _, size := range []uitest.Size{{Width: 1440, Height: 900}, uitest.Phone} {
		for i, kind := range append([]string{"bare text"}, largeDiffs...) {
			if only := os.Getenv("FAIRLEAD_DIFF_MEASURED"); i > 0 && only != "1" && only != kind {
				continue
			}
			p := uitest.Browse(t)
			p.Resize(size)
			p.Open(s.url + "#/tasks")
			p.WaitText(".board", "needs you")
			took := uitest.Eval[float64](p, fmt.Sprintf(`new Promise(done => {
				const began = performance.now();
				location.hash = '#/tasks/T%d';
				const look = () => document.querySelector('.dl-code') ? requestAnimationFrame(() => done(performance.now() - began)) : requestAnimationFrame(look);
				look();
			})`, max(1, i)))
			if i == 0 {
				uitest.Eval[bool](p,
					`(document.querySelector('.changes').innerHTML = '<pre>' + ('if err := upload(ctx, name, 1); err != nil { return err }\\n'.repeat(5000)) + '</pre>', true)`)
			}
			p.Until("the page rests", `new Promise(go => requestIdleCallback(() => go(true)))`)
			elements := func() float64 { return uitest.Eval[float64](p, `document.querySelectorAll('*').length`) }
			first, heap, busy := elements(), p.Heap(), p.Busy()
			frames := uitest.Eval[[][]float64](p, glide)
			busy = (p.Busy() - busy) / float64(len(frames[0])+len(frames[1])) * 1000
			a, b := frames[0], frames[1]
			slices.Sort(a)
			slices.Sort(b)
			slow := len(a) - sort.SearchFloat64s(a, 50)
			t.Logf("| %s, %d wide | %.0f ms | %.1f, %.1f, %.0f ms, %d of %d | %.1f, %.0f ms | %.1f ms | %.0f, %.0f | %.1f, %.1f MB |", kind,
				size.Width, took,
				a[len(a)/2], a[len(a)*99/100], a[len(a)-1], slow, len(a), b[len(b)/2], b[len(b)-1], busy, first, elements(), heap/1e6,
				p.Heap()/1e6)
		}
	}
}

// Of a large change only the rows near the view are drawn, wherever it is scrolled. Its other lines are text, which
// the browser's search finds. A line far below can be commented on, and the keys go from row to row.
func TestDiffLarge(t *testing.T) {
	t.Parallel()
	needsBrowser(t)
	s := largeTasks(t)
	for _, v := range uitest.Views[:2] {
		p := uitest.Browse(t)
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		few := `document.querySelectorAll('.dl').length < 1000 && document.querySelectorAll('*').length < 15000`
		inSight := func(text string) string {
			return fmt.Sprintf(`[...document.querySelectorAll('.dl')].some(e => { const r = e.getBoundingClientRect(); return e.textContent.includes(%q) && r.bottom > 0 && r.top < innerHeight; })`, text)
		}
		p.Open(s.url + "#/tasks/T1")
		p.Until("the first rows are drawn", inSight("line 1"))
		p.Until("the whole text is there", `document.querySelector('.df-rows').textContent.includes('// line 2915')`)
		p.Until("few rows are drawn", few)
		p.Until("a line far below is found by the browser's search", `window.find('// line 1700')`)
		p.Until("what is found is drawn in sight",
			`([...document.querySelectorAll('.dl, .df-far')].find(e => e.textContent.includes('// line 1700')).scrollIntoView({block: 'center'}), `+inSight("// line 1700")+`)`) // window.find does not scroll
		p.Until("few rows are drawn there", few)
		p.Until("a comment on it has a form",
			`([...document.querySelectorAll('.dl')].find(e => e.textContent.includes('// line 1700')).querySelector('button').click(), document.activeElement === document.querySelector('.comment-form textarea'))`)
		p.Press("far below")
		p.Click(".comment-form", "Add comment")
		p.WaitText(".df-rows .comment", "far below")
		for _, to := range []string{"0", "1e9", "5e4"} {
			p.Until("the page is scrolled to "+to,
				fmt.Sprintf(`(%s.scrollTop = %s, new Promise(go => requestAnimationFrame(() => go(true))))`, scroller, to))
			p.Until("the rows in sight are drawn",
				`(() => { const c = document.querySelector('.task-changes').getBoundingClientRect(); const at = document.elementFromPoint(c.left + c.width - 40, innerHeight / 2); return at?.closest('.dl'); })()`)
			p.Until("few rows are drawn after scrolling to "+to, few)
			p.Until("the comment stays where it is", `document.querySelector('.df-rows .comment')?.textContent.includes('far below')`)
		}
		p.Until("the comment is removed",
			`(document.querySelector('.comment-tools button[aria-label^=Remove]')?.click(), !document.querySelector('.df-rows .comment'))`)

		p.Until("a row has the focus",
			`([...document.querySelectorAll('.dl-no[data-row]')].find(e => e.getBoundingClientRect().top > innerHeight / 2).focus(), document.activeElement.dataset.row)`)
		row := uitest.Eval[string](p, `document.activeElement.dataset.row`)
		p.Press(strings.Repeat(kb.ArrowDown, 60))
		p.Until("the focus is 60 rows below", fmt.Sprintf(`+document.activeElement.dataset.row >= %s + 60`, row))
		p.Until("few rows are drawn after the keys", few)
		p.Until("one row is in the tab order", `document.querySelectorAll('.dl-no[tabindex="0"]').length === 1`)

		p.Open(s.url + "#/tasks/T2")
		p.Until("all files are listed", `document.querySelectorAll('.df').length === 200`)
		for _, to := range []string{"0.5", "1", "0.1"} {
			p.Until("the page is scrolled to "+to,
				fmt.Sprintf(`(%s.scrollTop = %s * %s.scrollHeight, new Promise(go => requestAnimationFrame(() => go(true))))`, scroller, to,
					scroller))
			p.Until("few rows are drawn of many files", `document.querySelectorAll('.dl').length < 1000`)
		}
		p.NoConsoleErrors()
	}
}
