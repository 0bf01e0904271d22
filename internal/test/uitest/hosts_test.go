package uitest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

const gatedAgent = "{driver: exec, command: [sh, -c, 'until [ -e go ]; do sleep 0.02; done'], workspace: %s}\n"

// aCluster is a team with five hosts: a leads, b runs a step, c is doubted, d is lost, and e drains. A session of waiter
// waits for a host.
func aCluster(t *testing.T) *uitest.Server {
	t.Helper()
	files := map[string]string{
		"one.yaml": "name: training\nsteps:\n  - id: train\n    agent: trainer\n    prompt: train.md\n",
		"train.md": "Train the model.\n",
	}
	yaml := "version: 1\nagents:\n"
	for _, name := range []string{"trainer", "drained", "lost", "waiter"} {
		yaml += "  " + name + ": " + fmt.Sprintf(gatedAgent, name)
		files[name+"/.keep"] = ""
	}
	files["fairlead.yaml"] = yaml
	s := uitest.NewLeader(t, files, &view.HostsBeside{
		Team: "harbour-api", Leader: "a", Replicated: true, EnginesMin: 3,
		Copies: []view.JournalCopy{{Host: "a", InSync: true}, {Host: "d", Lacks: 12}, {Host: "e", InSync: true}},
		Known: map[string]view.HostKnown{
			"a": {Connected: true, Version: "1.5.0"},
			"b": {Connected: true, Address: "192.168.1.7:51514", Version: "1.4.0", Lease: time.Second},
			"c": {Version: "1.4.0", Lease: 31 * time.Second},
			"d": {Lease: 8 * time.Minute}, "e": {Connected: true, Address: "192.168.1.9:40112", Version: "1.4.0", Lease: 2 * time.Second},
		},
		Waiting: []view.WaitingSession{{
			Session: "waiter-1", Agent: "waiter",
			Why: "waits for a host: a: it lacks the label tpu; b: it lacks the label tpu",
		}},
	})
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		s.Happens("",
			host.Join{
				Name: name, Boot: "boot", Engine: map[string]string{"a": "a:4222", "d": "d:4222", "e": "e:4222"}[name], Capacity: 4,
				Labels: []string{"on-" + name, []string{"ssd", "gpu", "ssd", "gpu", "arm"}[i]}, Invited: true,
			})
	}
	s.Do("POST", "/runs", strings.NewReader(`{"workflow":"one.yaml","run_id":"r1"}`))
	for agent, on := range map[string]string{"trainer": "b", "drained": "e", "lost": "d", "waiter": ""} {
		if agent != "trainer" {
			s.Command(agent, "run_once")
		}
		if !wait.Poll(func() bool {
			return strings.Contains(string(s.Do("GET", "/agents/"+agent, nil)), `"phase":"running"`)
		}) {
			t.Fatalf("%s does not run", agent)
		}
		if on != "" {
			s.Happens(agent,
				team.PlaceAsked{
					Session: agent + "-1", Needs: host.Needs{Labels: []string{"on-" + on}},
					OnLost: map[string]host.OnLost{"b": host.Restart, "d": host.Wait, "e": host.Ask}[on],
				})
		}
	}
	for _, what := range []any{host.Doubt{Name: "c"}, host.Doubt{Name: "d"}, host.Lose{Name: "d"}, host.Drain{Name: "e"}} {
		s.Happens("", what)
	}
	s.Happens("", host.Report{Token: host.Token{Session: "lost-0", Host: "d", Incarnation: 1, N: 9}, What: "ended <b>ok</b>"})
	return s
}

// onHosts plays a story of a cluster in each view. shot keeps a picture in the folder that PICTURES names, if it is set.
func onHosts(t *testing.T, place string, story func(s *uitest.Server, p *uitest.Page, shot func(name string))) {
	t.Helper()
	t.Parallel()
	for _, v := range uitest.Views {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s := aCluster(t)
			p := uitest.Browse(t)
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			p.Open(s.URL + place)
			story(s, p, func(name string) {
				if pictures := os.Getenv("PICTURES"); pictures != "" {
					p.Screenshot(filepath.Join(pictures, name+"-"+strings.ReplaceAll(v.Name, " ", "-")+".png"))
				}
			})
			p.NoConsoleErrors()
		})
	}
}

// TestHostsPage checks the page of the hosts, and the host beside a session wherever one is shown. Changes of hosts are
// shown at once.
func TestHostsPage(t *testing.T) {
	onHosts(t, "", func(s *uitest.Server, p *uitest.Page, shot func(string)) {
		card := func(name string) string { return ".host:has(#host-" + name + ")" }
		p.WaitText(".now-facts", "on b")
		p.WaitText(".now-rows", "b: it lacks the label tpu")
		p.Press("l")
		for name, words := range map[string][]string{
			"a": {"joined", "leader", "it leads the team", "0 of 4 places"},
			"b": {
				"joined", "1 of 4 places for sessions are taken", "renewed", "gpu", "trainer", "train of",
				"begins elsewhere if the host is lost", "fairlead 1.4.0 at 192.168.1.7:51514",
			},
			"c": {"doubted", "its renewals stopped", "not connected"},
			"d": {"lost", "waiting for it (on_lost: wait): lost-1", "1 late report"},
			"e": {"draining", "as human/you asked", "a person is asked if the host is lost"},
		} {
			for _, word := range words {
				p.WaitText(card(name), word)
			}
		}
		p.WaitText(".host-mixed", "The leader has version 1.5.0 of Fairlead; b has 1.4.0, c has 1.4.0, e has 1.4.0.")
		p.WaitText(".host-waiting", "1 session waits for a host")
		p.WaitText(".host-waiting", "b: it lacks the label tpu")
		p.WaitText(".host-invite", "fairlead host invite --engine")
		p.WaitText(".host-journal",
			"The journal is replicated by the engine hosts a, d, e. Its copies are on a, d, e: the copy on d lacks 12 messages, or does not answer.")
		p.Axe()
		p.Until("nothing is wider than the window", uitest.Fits(p))
		shot("hosts-page")

		// An order is given after a question, and its effect comes with the change.
		p.Click(card("b"), "Drain")
		p.WaitText("dialog", "Its 1 session will finish")
		p.Axe()
		shot("hosts-drain")
		p.Click("dialog", "Keep it")
		p.WaitText(card("b"), "joined")
		p.Click(card("b"), "Drain")
		p.Click("dialog", "Drain the Host")
		p.WaitText(card("b"), "draining")
		p.WaitText(card("b"), "leaves when its session trainer-1 has ended")
		p.Until("the focus is on the heading, as the button has gone", `document.activeElement.id === 'hosts-title'`)
		p.Click(card("c"), "Remove")
		p.Click("dialog", "Remove the Host")
		p.WaitText(card("c"), "left")
		p.WaitText(card("c"), "it needs a new invitation")
		p.Until("a host that has left has no orders", `document.querySelector('`+card("c")+` button') === null`)
		p.Until("the leader has no orders", `document.querySelector('`+card("a")+` .order') === null`)
		s.Happens("", host.Join{Name: "f", Boot: "boot", Capacity: 1, Invited: true})
		p.WaitText(card("f"), "joined")

		// What waits no more is shown no more.
		beside := *s.Beside.Load()
		beside.Waiting = nil
		s.Beside.Store(&beside)
		s.Happens("", host.Join{Name: "f", Boot: "boot", Capacity: 2})
		p.Until("nothing waits", `document.querySelector('.host-waiting') === null`)

		p.Click(card("b"), "trainer")
		p.WaitText(".node", "running, on b")
		p.Until("the step names its host", `[...document.querySelectorAll('.step-fact')].some(f => f.textContent === 'Hostb')`)
		run := uitest.Eval[string](p, `location.hash.split('/')[2]`)
		beside.Waiting = []view.WaitingSession{{
			Session: "trainer-1", Agent: "trainer", Run: run, Step: "train",
			Why: "waits for a host: b is full",
		}}
		s.Beside.Store(&beside)
		s.Happens("", host.Join{Name: "f", Boot: "boot", Capacity: 3})
		p.WaitText(".step", "waits for a host: b is full")
		p.Open(s.URL + "#/agents/trainer/output")
		p.WaitText(".figures", "waits for a host: b is full")
		p.WaitText(".figures", "on b")
		p.Open(s.URL + "#/agents")
		p.WaitText(".roster", "on b")
		shot("hosts-team")
	})
}

// TestLateReportsPage checks what the page shows of a session that was lost with its host: before the host is back, while it is
// asked, and what came late.
func TestLateReportsPage(t *testing.T) {
	onHosts(t, "#/hosts", func(s *uitest.Server, p *uitest.Page, shot func(string)) {
		card := ".host:has(#host-d)"
		p.WaitText(card, "waiting for it (on_lost: wait): lost-1")
		s.Happens("", host.Join{Name: "d", Boot: "another", Capacity: 4, Labels: []string{"on-d", "gpu"}})
		s.Happens("", host.Lose{Name: "d"})
		s.Happens("", host.Release{Session: "lost-1", For: "run/r1/train"})
		p.WaitText(card, "Fetched when it is back, without effect")
		p.WaitText(card, "what it still has of these is fetched when it is back, and changes nothing: lost-1")
		p.WaitText(card+" .host-missing", "train of")
		p.Axe()
		s.Happens("", host.Join{Name: "d", Boot: "another", Capacity: 4, Labels: []string{"on-d", "gpu"}})
		p.WaitText(card, "Being fetched, without effect")
		s.Happens("", host.Report{
			Token: host.Token{Session: "lost-1", Host: "d", Incarnation: 1, N: 1}, What: "it ended with exit status 3",
			Kept: host.Kept{Output: 512, Files: 1, Ref: "refs/fairlead/late/r1/train/lost-1", Lacks: "its <b>soul</b>"},
		})
		p.Until("nothing is missing", `document.querySelector('.host-missing') === null`)
		p.WaitText(card, "2 late reports that changed nothing")
		p.Click(card, "2 late reports that changed nothing")
		for _, words := range []string{
			"train of", "it ended with exit status 3", "512 bytes of output", ".fairlead/hosts/late/r1/lost-1",
			"refs/fairlead/late/r1/train/lost-1", "not kept: its <b>soul</b>",
		} {
			p.WaitText(card+" .host-late", words)
		}
		p.Axe()
		p.Until("nothing is wider than the window", uitest.Fits(p))
		shot("late")
	})
}

// TestHostLostQuestion answers the question about a lost host on the page.
func TestHostLostQuestion(t *testing.T) {
	t.Parallel()
	s := aCluster(t)
	p := uitest.Browse(t)
	p.Open(s.URL + "#/inbox")
	s.Happens("trainer", question.Ask{Question: question.Question{
		Kind: question.HostLost, Agent: "trainer", Session: "trainer-1", Ask: "lost/trainer-0/1/1",
		What: "host d was lost with trainer-0: begin the step elsewhere, or wait for d?", Why: "its agent has on_lost: ask",
		Options: []question.Option{
			{ID: "elsewhere", Label: "begin elsewhere, with the files that were fetched"},
			{ID: "wait", Label: "wait until d is back"},
		},
	}})
	p.WaitText(".ask-form", "begin elsewhere, with the files that were fetched")
	p.WaitText("main", "waits: the host of its step was lost")
	p.WaitText("main", "host d was lost with trainer-0")
	p.Until("only its options answer it", `document.querySelector('.ask-form textarea, .ask-form input') === null`)
	p.Axe()
	p.Click(".ask-form", "wait until d is back")
	if !wait.Poll(func() bool {
		return strings.Contains(string(s.Do("GET", "/journal?limit=1000", nil)), `"option":"wait"`)
	}) {
		t.Error("the answer is not in the journal")
	}
	p.NoConsoleErrors()
}

// A repository of one machine has no hosts in its navigation, and their page says how to begin.
// The page says on which hosts the journal is, as far as that is known.
func TestJournalWords(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	got := uitest.Eval[[]string](p, `(async () => {
		const { journalWords } = await import('/hosts/words.js');
		const hosts = [{ name: 'a', engine: true }, { name: 'b', engine: true }, { name: 'c', engine: true, state: 'left' }, { name: 'd' }];
		return [{ hosts: [hosts[0], hosts[3]] }, { hosts, unreplicated: { why: 'The journal is on a alone.' } }, { hosts, replicated: true }, { hosts, replicated: true, copies: [{ host: 'a', in_sync: true }] }].map(journalWords);
	})()`)
	want := []string{
		"",
		"The journal is on a alone.",
		"The journal is replicated by the engine hosts a, b. It is not known whether its copies are in sync.",
		"The journal is replicated by the engine hosts a, b. Its copies are on a, in sync.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestNoHostsPage(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL + "#/hosts")
	p.WaitText(".hosts-page", "fairlead cluster init")
	p.Until("the navigation has no hosts", `![...document.querySelectorAll('.place')].some(a => a.textContent.includes('Hosts'))`)
	p.Axe()
	p.NoConsoleErrors()
}

// TestHostsReducer compares the page's reducer of changes of hosts with the server, after each change.
func TestHostsReducer(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		uitest.Lacks(t, "this test runs the page's reducer in node, and there is none")
	}
	s := aCluster(t)
	var snapshots []json.RawMessage
	var heads []uint64
	look := func() {
		heads = append(heads, s.Head())
		snapshots = append(snapshots, s.Do("GET", "/hosts", nil))
	}
	look()
	first, _ := json.Marshal(heads[0])
	for _, what := range []any{
		host.Renew{Name: "c", Incarnation: 1},
		host.Join{Name: "d", Boot: "boot", Capacity: 4},
		host.Join{Name: "b", Boot: "boot", Capacity: 2, Labels: []string{"x"}},
		host.Join{Name: "a0", Boot: "boot", Capacity: 9, Invited: true},
		host.Remove{Name: "e"},
		host.Drain{Name: "a0"},
		host.Leave{Name: "c"},
		host.Report{Token: host.Token{Session: "b-7", Host: "b", Incarnation: 1, N: 9}, What: "ended"},
		host.Release{Session: "drained-1"},
		host.Lose{Name: "d"},
		host.Release{Session: "lost-1", For: "run/r1/train"},
		host.Join{Name: "d", Boot: "boot", Capacity: 4},
		host.Report{Token: host.Token{Session: "lost-1", Host: "d", Incarnation: 1, N: 1}, What: "it ended with exit status 0"},
	} {
		s.Happens("", what)
		look()
	}
	s.Happens("waiter", team.PlaceAsked{Session: "waiter-1"})
	look()
	input, err := json.Marshal(map[string]any{
		"snapshots": snapshots, "heads": heads,
		"journal": json.RawMessage(s.Do("GET", "/journal?limit=1000&after="+string(first), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "--input-type=module", "--eval", `
		import { reduceHosts } from `+fmt.Sprintf("%q", "file://"+filepath.Join(uitest.UIDir(), "static", "hosts", "words.js"))+`;
		import { readFileSync } from 'node:fs';
		const { snapshots, heads, journal } = JSON.parse(readFileSync(0, 'utf8'));
		let at = heads[0], is = snapshots[0];
		const out = heads.map((head) => {
			for (const ch of journal.changes) if (ch.seq > at && ch.seq <= head) is = reduceHosts(is, ch);
			at = head;
			return is.hosts;
		});
		process.stdout.write(JSON.stringify(out));`)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(input)), os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("run the reducer: %v", err)
	}
	var reduced [][]view.Host
	if err := json.Unmarshal(text, &reduced); err != nil {
		t.Fatal(err)
	}
	for i, raw := range snapshots {
		var want view.Hosts
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		for _, hosts := range [][]view.Host{want.Hosts, reduced[i]} { // what the journal does not have
			for n := range hosts {
				h := &hosts[n]
				h.Why, h.Connected, h.LeaseAgeMS, h.Version, h.Address = "", false, 0, "", ""
				for k := range h.Sessions {
					h.Sessions[k].Since, h.Sessions[k].Run, h.Sessions[k].Step = time.Time{}, "", ""
				}
				for k := range h.Late {
					h.Late[k].Kept = "" // a sentence of the server
				}
			}
		}
		if diff := cmp.Diff(want.Hosts, reduced[i]); diff != "" {
			t.Errorf("after %d changes (-server +reducer):\n%s", i, diff)
		}
	}
}
