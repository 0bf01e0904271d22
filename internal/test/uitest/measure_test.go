package uitest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// writerScript writes a thousand lines a second, twenty at a time, while the file go exists.
const writerScript = `n=0
until [ -e stop ]; do
  if [ -e go ]; then
    i=0; while [ $i -lt 20 ]; do n=$((n+1)); i=$((i+1)); echo "line $n: ok  	example.com/harbour/berth/table	0.$i s	coverage: 8$i.1% of statements in berth"; done
  fi
  sleep 0.0165
done`

const waitingScript = `until [ -e finish ]; do sleep 0.05; done; rm -f finish`

// large is a team of 200 agents, 50 runs and 10,000 changes. The agent writer has a session. Ten runs wait for a person, ten are held.
func large(t *testing.T) *uitest.Server {
	t.Helper()
	var config strings.Builder
	config.WriteString("version: 1\nagents:\n")
	files := map[string]string{
		"done.yaml": "name: nightly\nsteps:\n  - {id: build, command: [\"true\", instant]}\n  - {id: test, command: [\"true\", instant], needs: [build]}\n",
		"ask.yaml":  "name: release\nsteps:\n  - {id: build, command: [\"true\", instant]}\n  - {id: approve, command: [\"true\", instant], needs: [build], human_in_the_loop: true}\n",
	}
	for i := range 200 {
		name := fmt.Sprintf("agent-%03d", i)
		how := "command: [sleep, infinity], loop: foreign"
		if i >= 190 {
			how = fmt.Sprintf("command: [sh, -c, %q]", waitingScript)
		}
		if i == 199 {
			name, how = "writer", fmt.Sprintf("command: [sh, -c, %q]", writerScript)
		}
		fmt.Fprintf(&config, "  %s: {description: One of many, driver: exec, %s, workspace: many/%s}\n", name, how, name)
		files["many/"+name+"/agent_state.json"] = `{"desired_state":"pause","current_state":"pause"}`
	}
	files["fairlead.yaml"] = config.String()
	s := uitest.NewServer(t, files)
	for i := range 50 {
		file := "done.yaml"
		if i%5 == 0 {
			file = "ask.yaml"
		}
		var run struct {
			ID string `json:"run_id"`
		}
		if err := json.Unmarshal(s.Do("POST", "/runs", strings.NewReader(fmt.Sprintf(`{"workflow":%q}`, file))), &run); err != nil {
			t.Fatal(err)
		}
	}
	for round := 0; s.Head() < 10_000 || round%2 == 1; round++ {
		for i := range 190 {
			s.Command(fmt.Sprintf("agent-%03d", i), []string{"continuous", "pause"}[round%2])
		}
	}
	s.Command("writer", "run_once")
	return s
}

// whenShown watches the page until look is true, and stores two times in window.shown: when it
// became true, and when the frame with it was made.
const whenShown = `(() => {
	const look = () => %s;
	window.shown = new Promise((done) => {
		const check = () => {
			if (!look()) return;
			const at = Date.now();
			watch.disconnect();
			requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = () => done([at, Date.now()]); c.port2.postMessage(0); });
		};
		const watch = new MutationObserver(check);
		watch.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
	});
	return !look();
})()`

// lateness causes events one after the other and returns how long each took from the journal to the
// page and to its frame, in milliseconds. do causes one event and returns its entity.
func lateness(t *testing.T, s *uitest.Server, p *uitest.Page, times int, look func(n int) string,
	do func(n int) string,
) (drawn, framed []float64) {
	t.Helper()
	for n := range times {
		before := s.Head()
		if !uitest.Eval[bool](p, fmt.Sprintf(whenShown, look(n))) {
			t.Fatalf("event %d is shown before it happens: %s; the page says: %.3000s", n, look(n), p.Text("body"))
		}
		entity := do(n)
		shown := uitest.Eval[[]float64](p, `Promise.race([window.shown, new Promise(go => setTimeout(() => go([0, 0]), 20000))])`)
		if shown[0] == 0 {
			t.Fatalf("event %d is not shown: %s", n, look(n))
		}
		var page struct {
			Changes []struct {
				Seq     uint64
				Entity  string
				Time    time.Time
				To      string
				Trigger string
			}
		}
		if err := json.Unmarshal(s.Do("GET", fmt.Sprintf("/journal?after=%d&limit=200", before), nil), &page); err != nil {
			t.Fatal(err)
		}
		var at float64
		for _, c := range page.Changes {
			if strings.HasPrefix(c.Entity, entity) && float64(c.Time.UnixMicro())/1000 <= shown[0] {
				at = float64(c.Time.UnixMicro()) / 1000
			}
		}
		if at == 0 {
			t.Fatalf("no change of %s", entity)
		}
		drawn, framed = append(drawn, shown[0]-at), append(framed, shown[1]-at)
	}
	slices.Sort(drawn)
	slices.Sort(framed)
	return drawn, framed
}

// frames measures the times between the frames of four seconds.
const frames = `new Promise((done) => {
	const all = [], began = performance.now();
	let last = began;
	requestAnimationFrame(function frame() {
		const now = performance.now();
		all.push(now - last);
		last = now;
		if (now - began < 4000) requestAnimationFrame(frame); else done(all.slice(2));
	});
})`

// TestPageMeasured measures how soon an event is on the screen of a large team, and the frames
// while an agent writes a thousand lines a second, if FAIRLEAD_PAGE_MEASURED is 1, wide or phone.
// The yardstick of the frames is the same page while the agent writes nothing. Timings are printed
// and not checked.
func TestPageMeasured(t *testing.T) {
	if os.Getenv("FAIRLEAD_PAGE_MEASURED") == "" {
		t.Skip("set FAIRLEAD_PAGE_MEASURED=1 to measure the page of a large team")
	}
	s := large(t)
	const times = 40
	state := func(n int) string { return []string{"continuous", "pause"}[n%2] }
	not := func(n int) string { return []string{"", "!"}[n%2] }
	for _, size := range []uitest.Size{{Width: 1440, Height: 900}, uitest.Phone} {
		if only := os.Getenv("FAIRLEAD_PAGE_MEASURED"); only == "wide" && size == uitest.Phone || only == "phone" && size != uitest.Phone {
			continue
		}
		p := uitest.Browse(t)
		p.Resize(size)
		report := func(what string, drawn, framed []float64) {
			t.Logf("| %s, %d wide | %.0f, %.0f ms | %.0f, %.0f ms |", what, size.Width, drawn[len(drawn)/2], drawn[len(drawn)-1],
				framed[len(framed)/2], framed[len(framed)-1])
		}
		order := func(agent string) func(int) string {
			return func(n int) string { s.Command(agent, state(n)); return "control/" + agent }
		}
		rest := func() { p.Until("the page sends no more requests", pageRests) }

		t.Log("| event | in the page: median, worst | with its frame: median, worst |")
		p.Open(s.URL + "#/now")
		p.WaitText(".now-head", "need you")
		p.WaitText(".now-rows", "writer")
		rest()
		drawn, framed := lateness(t, s, p, times, func(n int) string {
			return not(n) + `!!document.querySelector('[aria-labelledby=now-next]')?.textContent.includes('agent-005')`
		}, order("agent-005"))
		report("an order, in Next up", drawn, framed)
		needs := uitest.Eval[int](p, `parseInt(document.querySelector('#now-title').textContent)`)
		drawn, framed = lateness(t, s, p, times/4, func(n int) string {
			return fmt.Sprintf(`document.querySelector('#now-title').textContent.startsWith('%d ')`, needs+n+1)
		}, func(int) string {
			var run struct {
				ID string `json:"run_id"`
			}
			if err := json.Unmarshal(s.Do("POST", "/runs", strings.NewReader(`{"workflow":"ask.yaml"}`)), &run); err != nil {
				t.Fatal(err)
			}
			return "run/" + run.ID
		})
		report("an approval, in Needs you", drawn, framed)
		drawn, framed = lateness(t, s, p, times/4, func(n int) string {
			return not(n) + `!!document.querySelector('[aria-labelledby=now-working]')?.textContent.includes('agent-19` +
				fmt.Sprint(1+n/2%5) + `')`
		}, func(n int) string {
			agent := fmt.Sprintf("agent-19%d", 1+n/2%5)
			if n%2 == 0 {
				s.Command(agent, "run_once")
			} else {
				s.Put("many/"+agent+"/finish", "")
			}
			return "session/" + agent
		})
		report("a session starts and ends, in Working", drawn, framed)
		p.Open(s.URL + "#/agents")
		p.WaitText(".roster", "agent-005")
		rest()
		drawn, framed = lateness(t, s, p, times, func(n int) string {
			return not(n) +
				`[...document.querySelectorAll('.row')].some(e => e.textContent.includes('agent-005') && e.textContent.includes('starting'))`
		}, order("agent-005"))
		report("an order, in the list", drawn, framed)
		p.Open(s.URL + "#/agents/agent-005/history")
		p.Until("its changes are shown", `document.querySelector('.change-list .change')`)
		rest()
		drawn, framed = lateness(t, s, p, times, func(n int) string {
			return fmt.Sprintf(`+document.querySelector('.change-list .change').dataset.seq > %d`, s.Newest("control/agent-005"))
		}, order("agent-005"))
		report("an order, in the history", drawn, framed)

		measureFrames(t, s, p, size)
		p.NoConsoleErrors()
	}
}

const pageRests = `new Promise(go => requestIdleCallback(() => go(true)))`

// measureFrames prints the frames of three places while the agent writer is silent and while it writes.
func measureFrames(t *testing.T, s *uitest.Server, p *uitest.Page, size uitest.Size) {
	t.Helper()
	t.Log("| page, 4 s | frames: median, 99 %, worst, over 50 ms | main thread, of a frame |")
	for _, place := range [][2]string{{"now", ".now-rows"}, {"agents/writer/output", ".tape"}, {"agents/writer/history", ".change-list"}} {
		p.Open(s.URL + "#/" + place[0])
		p.Until("the page is shown",
			`document.querySelector('`+place[1]+`') && document.querySelector('.tape .sheet')?.childElementCount !== 0`)
		for _, writes := range []bool{false, true} {
			words := "no output"
			if writes {
				words = "1,000 lines a second"
				s.Put("many/writer/go", "")
				if place[1] == ".tape" {
					p.WaitText(".tape .sheet", "line ")
				}
			}
			p.Until("the page sends no more requests", pageRests)
			shown := func() int {
				return uitest.Eval[int](p,
					`+(/line (\d+):/.exec(document.querySelector('.tape .sheet')?.lastElementChild?.textContent ?? '')?.[1] ?? 0)`)
			}
			lines, began, busy := shown(), time.Now(), p.Busy()
			all := uitest.Eval[[]float64](p, frames)
			busy = (p.Busy() - busy) / float64(len(all)) * 1000
			rate := float64(shown()-lines) / time.Since(began).Seconds() // of the lines on the page, if it shows them
			slices.Sort(all)
			slow, _ := slices.BinarySearch(all, 50)
			t.Logf("| %s, %d wide, %s (%.0f new lines a second on the page) | %.1f, %.1f, %.0f ms, %d of %d | %.1f ms |", place[0],
				size.Width, words, rate, all[len(all)/2], all[len(all)*99/100], all[len(all)-1], len(all)-slow, len(all), busy)
		}
		if err := os.Remove(s.Dir + "/many/writer/go"); err != nil {
			t.Fatal(err)
		}
	}
}
