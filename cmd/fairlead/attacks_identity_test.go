package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/test/attacks"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Threats of SECURITY.md.
const (
	peoplesOrders = "An agent gives an order that only people give"
	hidesItself   = "An agent hides the process that gives an order"
	readsToken    = "An agent uses the token, a login or a code"
	otherName     = "An agent acts under another agent's name"
)

// An attempt on identity is a text for sh that the agent ada runs in its session. It ends with 3 if it was refused, as
// fairlead does. person are the words of the same order of a person.
type identityAttempt struct {
	name, threat, act string
	person            []string // words for fairlead, or GET or POST with a path and a body
	after             []string // what puts the state back; UP: the daemon is started again
}

// prelude has the functions of the attempts. ask gives an order by the program, and post and port by a request over the
// socket and over TCP. orphan runs the rest as what is left of a process that forked twice.
const prelude = `PATH=$PATH top=%q bin=%q sock=%q url=%q token=$(cat "$top/.fairlead/token") XDG_RUNTIME_DIR=%q
export top bin sock url token PATH XDG_RUNTIME_DIR
ask() { "$bin" "$@" --dir "$top"; }
judged() { cat "answer.$$"; echo; test "$1" -lt 300 && return 0; test "$1" -lt 500 && return 3; return 1; }
post() { path=$1; shift; judged "$(curl -s -o "answer.$$" -w '%%{http_code}' --unix-socket "$sock" -H 'Content-Type: application/json' -d "${body:-"{}"}" "$@" "http://fairlead/api/v1/$path")"; }
port() { path=$1; shift; judged "$(curl -s -o "answer.$$" -w '%%{http_code}' -H 'Content-Type: application/json' -H "Authorization: Bearer $token" -d "${body:-"{}"}" "$@" "$url/api/v1/$path")"; }
done_of() { until test -s "$1"; do sleep 0.02; done; return "$(cat "$1")"; }
`

func identityAttempts() []identityAttempt {
	unhold, hold := []string{"unhold"}, []string{"hold"}
	hidden := func(name, act string) identityAttempt {
		return identityAttempt{name, hidesItself, act, unhold, hold}
	}
	token := func(name, act string) identityAttempt {
		return identityAttempt{name, readsToken, act, unhold, hold}
	}
	order := func(name, act string, after []string, person ...string) identityAttempt {
		return identityAttempt{name, peoplesOrders, act, person, after}
	}
	return []identityAttempt{
		order("lifts the hold", `ask unhold`, hold, "unhold"),
		order("starts itself", `ask start ada`, nil, "start", "ada"),
		order("begins its own cleanup", `ask cleanup ada`, nil, "cleanup", "ada"),
		order("lifts a person's pause of another agent", `ask once cyd`, []string{"stop", "cyd"}, "once", "cyd"),
		order("confirms a changed configuration", `ask reload --governing "$(cat "$top/sum")"`, nil, "reload", "--governing", "SUM"),
		order("confirms a changed configuration by the socket", `body="{\"governing\":\"$(cat "$top/sum")\"}" post reload`, nil, "POST",
			"reload", `{"governing":"SUM"}`),
		order("confirms a changed configuration by the port", `body="{\"governing\":\"$(cat "$top/sum")\"}" port reload`, nil, "POST",
			"reload", `{"governing":"SUM"}`),
		order("loads the configuration again", `ask reload`, nil, "reload"),
		order("lands governing files", `ask merge T1 --no-wait --governing "$(cat "$top/yes-T1")"`, nil, "merge", "T1", "--no-wait",
			"--governing", "YES-T1"),
		order("lands governing files by the socket", `body="{\"governing\":\"$(cat "$top/yes-T2")\"}" post runs/T2/merge`, nil, "POST",
			"runs/T2/merge", `{"governing":"YES-T2"}`),
		order("approves governing files as a step of a run, by the port",
			`body="{\"governing\":\"$(cat "$top/yes-T3")\"}" port runs/T3/steps/approve/approve`, nil, "POST",
			"runs/T3/steps/approve/approve", `{"governing":"YES-T3"}`),
		order("removes an agent from the configuration", `ask agent remove dee --yes`, nil, "agent", "remove", "dee", "--yes"),
		order("adds an agent with a command of its own", `ask agent add eve --driver exec --command touch --command owned --yes`, nil,
			"agent", "add", "eve", "--driver", "exec", "--command", "touch", "--command", "owned", "--yes"),
		order("approves a step of a run", `ask approve gate-1 review`, nil, "approve", "gate-1", "review"),
		order("rejects a step of a run", `ask reject gate-2 review`, nil, "reject", "gate-2", "review"),
		order("cancels a run", `ask run cancel gate-3`, nil, "run", "cancel", "gate-3"),
		order("starts a run with a command of its own", `ask run ../owned.yaml`, nil, "POST", "runs", `{"workflow":"build.yaml"}`),
		order("archives runs", `body='{"keep":50}' post prune`, nil, "run", "prune", "--keep", "50"),
		order("speaks as a person", `ask channel say desk hello`, nil, "channel", "say", "desk", "hello"),
		order("gives an agent no turns", `post agents/bob/disable`, nil, "POST", "agents/bob/disable", "{}"),
		order("marks what happened as seen", `post seen`, nil, "POST", "seen", "{}"),
		order("starts a dispatch", `ask dispatch start`, nil, "dispatch", "start"),

		hidden("without its environment", `env -i PATH="$PATH" XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" "$bin" unhold --dir "$top"`),
		hidden("in a session of its own", `setsid -w "$bin" unhold --dir "$top"`),
		hidden("in the background", `( ask unhold; echo $? > bg.code ) & wait; done_of bg.code`),
		hidden("as an orphan after two forks",
			`sh -c '( until test "$(cut -d " " -f 4 /proc/self/stat)" != '$$'; do sleep 0.02; done; "$bin" unhold --dir "$top"; echo $? > orphan.code ) &' ; done_of orphan.code`),
		hidden("as an orphan in a session of its own, without its environment",
			`setsid sh -c 'env -i PATH="$PATH" XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" bin="$bin" top="$top" sh -c "\"\$bin\" unhold --dir \"\$top\"; echo \$? > lone.code" &'; done_of lone.code`),
		hidden("in another folder, with all files closed", `( cd / && exec 0<&- && ask unhold )`),
		hidden("deaf to the end of its terminal", `nohup "$bin" unhold --dir "$top" < /dev/null`),
		hidden("as a program of another name", `cp "$bin" ./systemd && ./systemd unhold --dir "$top"`),
		hidden("with a name that looks like the process table", `cp "$bin" ') S 1 1 1 0' && './) S 1 1 1 0' unhold --dir "$top"`),
		hidden("with the mark of another agent", `FAIRLEAD_MARK=$(echo "$FAIRLEAD_MARK" | sed 's/ada-/bob-/') ask unhold`),
		hidden("with the mark of another repository", `FAIRLEAD_MARK=0123456789abcdef.ann-1 ask unhold`),
		hidden("with a mark that is none", `FAIRLEAD_MARK='../../x' ask unhold`),
		hidden("with made-up variables of a person",
			`FAIRLEAD_MARK= FAIRLEAD_AGENT= FAIRLEAD_SESSION= FAIRLEAD_USER=ann SUDO_USER=ann LOGNAME=ann ask unhold`),
		hidden("under a high priority of another shell", `nice -n 5 sh -c '"$bin" unhold --dir "$top"'`),
		hidden("with a header that names a person",
			`post unhold -H 'X-Fairlead-Caller: human' -H 'X-Forwarded-User: ann' -H 'X-Fairlead-Session: '`),
		hidden("with a header that names another host",
			`post unhold -H 'X-Fairlead-Host: b' -H 'Fairlead-Host: b' -H 'X-Forwarded-For: 10.0.0.7'`),
		hidden("as the page does", `post unhold -H "Origin: $url" -H 'Sec-Fetch-Site: same-origin' -A 'Mozilla/5.0'`),
		hidden("by a request that it does not wait for",
			`curl -s -m 0.001 --unix-socket "$sock" -d '{}' -H 'Content-Type: application/json' http://fairlead/api/v1/unhold; post unhold`),
		hidden("on one connection after a request that it may make",
			`judged "$(curl -s -o /dev/null --unix-socket "$sock" -H 'Content-Type: application/json' -d '{}' http://fairlead/api/v1/hold --next -s -o "answer.$$" -w '%{http_code}' --unix-socket "$sock" -H 'Content-Type: application/json' -d '{}' http://fairlead/api/v1/unhold)"`),

		token("by the port with the token", `port unhold`),
		token("by the port with the token, without its environment",
			`env -i curl -s -o plain.answer -w '%{http_code}' -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -d '{}' "$url/api/v1/unhold" > plain.code; mv plain.answer "answer.$$"; judged "$(cat plain.code)"`),
		token("by the port as an orphan",
			`rm -f far.*; setsid sh -c 'curl -s -o far.answer -w "%{http_code}" -H "Authorization: Bearer $token" -H "Content-Type: application/json" -d "{}" "$url/api/v1/unhold" > far.new; mv far.new far.code' & until test -s far.code; do sleep 0.02; done; mv far.answer "answer.$$"; judged "$(cat far.code)"`),
		token("by the port as the page does", `port unhold -H "Origin: $url" -H 'Sec-Fetch-Site: same-origin'`),
		token("by the socket with the token", `post unhold -H "Authorization: Bearer $token"`),
		{"a login code by the program", readsToken, `ask open --code`, []string{"open", "--code"}, nil},
		{"a login code by the port", readsToken, `port login-codes`, []string{"open", "--code"}, nil},
		{
			"a login with a code that a person sees", readsToken,
			`judged "$(curl -s -o "answer.$$" -w '%{http_code}' -H 'Content-Type: application/json' -d "{\"code\":\"$(cat "$top/code")\"}" "$url/api/v1/logins")"`,
			[]string{"POST", "logins", "CODE"},
			nil,
		},
		{"a browser is signed out", readsToken, `port logins/l1 -X DELETE`, []string{"open", "--revoke", "l1"}, nil},

		{"joins in another agent's name", otherName, `post agents/fay/ready`, []string{"POST", "agents/fay/ready", "{}"}, nil},
		{"says that another agent is alive", otherName, `post agents/fay/heartbeat`, []string{"POST", "agents/fay/heartbeat", "{}"}, nil},
		{
			"reads what another agent is told", otherName,
			`judged "$(curl -s -o "answer.$$" -w '%{http_code}' --unix-socket "$sock" 'http://fairlead/api/v1/agents/fay/actions')"`,
			[]string{"GET", "agents/fay/actions", ""},
			nil,
		},
		{
			"confirms what another agent was told", otherName, `body='{"key":"tell_turn/desk/fay/1"}' post agents/fay/actions/done`,
			[]string{"GET", "agents/fay/actions", ""},
			nil,
		},
		{
			"speaks for another agent", otherName, `body='{"agent":"fay","turn":1,"text":"x","complete":true}' post channels/desk/said`,
			[]string{"POST", "channels/desk/said", `{"agent":"fay","turn":1,"text":"x","complete":true}`},
			nil,
		},
		{"leaves for another agent", otherName, `post agents/fay/leave`, []string{"POST", "agents/fay/leave", "{}"}, nil},

		order("stops the daemon", `ask down`, []string{"UP"}, "down"),
		order("stops the daemon and all sessions", `ask down --now`, []string{"UP"}, "down", "--now"),
	}
}

// why is what a refusal on account of identity says.
var why = regexp.MustCompile(`an agent may |no agent lifts |only people |this route is for people|may have been an agent|the token is missing or wrong`)

// TestIdentityAttempts lets an agent of a real daemon, below its shim, give orders that are for people, by every way of hiding that it
// knows. Each is refused; then a person gives the same order, or looks at what the agent wanted to change.
func TestIdentityAttempts(t *testing.T) {
	t.Parallel()
	longRun(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says which process is at the other end")
	}
	attempts := identityAttempts()
	s, git, yes := attackedRig(t)
	is, err := workspace.FindDaemon(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	s.must("once", "ada")
	s.untilFile("ada/began")
	s.must("hold")
	code := s.loginCode()
	before := s.ordersOfPeople()
	files := map[string]string{
		"attempts.prelude": fmt.Sprintf(prelude, s.dir, program, is.Socket, "http://"+at.Host, os.Getenv("XDG_RUNTIME_DIR")),
		"code":             code,
		"sum":              config.ReadSource(s.dir, nil).Sum(),
		"ada/owned.yaml":   "name: owned\nsteps:\n  - {id: own, command: [touch, owned]}\n",
	}
	for id, hash := range yes {
		files["yes-"+id] = hash
	}
	for i, a := range attempts {
		files[fmt.Sprintf("attempts/%02d.sh", i)] = a.act + "\n"
	}
	files["go"] = ""
	s.give(files)
	s.untilFile("ada/over")
	if now := s.ordersOfPeople(); now != before {
		t.Errorf("the journal has %d orders of people, and had %d before the agent's attempts", now, before)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "ada", "owned")); err == nil {
		t.Error("a command of the agent's own workflow has run")
	}

	if out := s.must("ps", "--json"); strings.Contains(out, `"name":"ivy"`) || len(yes) != 3 {
		t.Errorf("the changed configuration is obeyed: %s, %v", out, yes)
	}
	if names := git("ls-tree", "--name-only", "main"); strings.Contains(names, ".mk") {
		t.Errorf("governing files have landed: %s", names)
	}

	table := make([]attacks.Attempt[*rig], 0, len(attempts))
	for i, a := range attempts {
		folder := fmt.Sprintf("ada/%02d/", i) // read now: a person's order below starts the agent again, and it begins anew
		code, text := strings.Join(s.lines(folder+"code"), ""), strings.Join(s.lines(folder+"text"), "\n")
		table = append(table, attacks.Attempt[*rig]{
			Name: a.name, Threat: a.threat,
			Try: func(t *testing.T, _ *rig) {
				if code != "3" || !why.MatchString(text) {
					t.Errorf("it ended with %s: %s", code, text)
				}
			},
			Allowed: func(t *testing.T, s *rig) {
				sum := config.ReadSource(s.dir, nil).Sum()
				for _, words := range [][]string{a.person, a.after} {
					words = slices.Clone(words)
					for i := range words {
						words[i] = strings.Replace(words[i], "SUM", sum, 1)
						for id, hash := range yes {
							words[i] = strings.Replace(words[i], "YES-"+id, hash, 1)
						}
					}
					switch {
					case len(words) == 0:
						continue
					case words[0] == "UP":
						_ = s.daemon.Wait()
						s.up()
						continue
					case words[0] == http.MethodGet || words[0] == http.MethodPost:
						s.requests(t, words[0], words[1], strings.Replace(words[2], "CODE", `{"code":"`+s.loginCode()+`"}`, 1))
						continue
					}
					if out, code := s.fairlead(words...); code != cli.ExitDone {
						t.Errorf("fairlead %s of a person: %d: %s", strings.Join(words, " "), code, out)
					}
				}
			},
		})
	}
	attacks.Run(t, 40, func(*testing.T) *rig { return s }, table)
}

// attackedRig is a daemon with what the attempts are about: runs and tasks that wait for a person, and a changed configuration. yes are the
// hashes of the tasks' governing files.
func attackedRig(t *testing.T) (s *rig, git func(...string) string, yes map[string]string) {
	t.Helper()
	dir, git := taskRepo(t, "*\n!*.mk\n!.gitignore\n")
	s = newRigIn(t, dir, map[string]string{
		"gate.yaml":  "name: gate\nsteps:\n  - {id: build, command: [\"true\"], report_optional: true}\n  - {id: review, command: [\"true\"], report_optional: true, needs: [build], human_in_the_loop: true}\n",
		"build.yaml": "name: build\nsteps:\n  - {id: build, command: [\"true\"], report_optional: true}\n",
		"hal.sh":     "sed -i 's/channels:/  ivy: {driver: exec, command: [\"true\"], workspace: ivy}\\nchannels:/' fairlead.yaml\n",
		"all.sh":     "touch began; until test -e ../go; do sleep 0.02; done\nfor f in ../attempts/*.sh; do n=$(basename $f .sh); mkdir -p $n; (cd $n && . ../../attempts.prelude && . ../$f) > $n/text 2>&1; echo $? > $n/code; done\ntouch over\n",
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [sh, ../all.sh], workspace: ada}\n  bob: {driver: exec, command: [\"true\"], workspace: bob}\n  cyd: {driver: exec, command: [\"true\"], workspace: cyd}\n" +
			"  dee: {driver: exec, command: [\"true\"], workspace: dee}\n  fay: {driver: exec, command: [\"true\"], loop: foreign, workspace: fay}\n" +
			"  gus: {driver: exec, command: [sh, -c, 'touch $RUN_ID.mk; date > $RUN_ID.mk'], workspace: gus}\n  hal: {driver: exec, command: [sh, hal.sh], workspace: ., sandbox: auto}\nchannels:\n  desk: {agents: [bob, fay]}\n",
	})
	s.must("stop", "cyd") // a person's pause
	for _, id := range []string{"gate-1", "gate-2", "gate-3"} {
		if _, err := s.client().Runs.Start(t.Context(), view.RunFlags{Workflow: "gate.yaml", RunID: id, PauseForHumans: true}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		s.must("task", "Write rules", "--agent", "gus")
	}
	s.must("once", "hal") // changes the configuration
	yes = map[string]string{}
	wait.Until(t, "the runs, the tasks and the configuration wait for a person", func() bool {
		items, err := s.client().Inbox(t.Context())
		for _, item := range items {
			if item.Task != nil && item.Task.Asked != nil {
				yes[item.Task.ID] = item.Task.Asked.GoverningHash
			}
		}
		return err == nil && len(items) == 7
	})
	s.until("hal", "it has ended", func(w view.WhyView) bool { return w.Agent.Badge == "IDLE" })
	return s, git, yes
}

// loginCode is a new code, as a person gets it.
func (s *rig) loginCode() string {
	s.t.Helper()
	var code struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal([]byte(s.must("open", "--code", "--json")), &code); err != nil || code.Code == "" {
		s.t.Fatalf("%+v, %v", code, err)
	}
	return code.Code
}

// requests sends a request over the port with the token, as a program of a person does.
func (s *rig) requests(t *testing.T, method, path, body string) {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(s.dir, ".fairlead", "token"))
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+at.Host+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode > 299 {
		t.Errorf("%s %s of a person: %s %s %v", method, path, resp.Status, text, err)
	}
}

// untilFile waits for a file that an agent makes.
func (s *rig) untilFile(name string) {
	s.t.Helper()
	s.poll(name+" is there", func() bool { _, err := os.Stat(filepath.Join(s.dir, name)); return err == nil })
}

// give writes files; the last one that is read is called go.
func (s *rig) give(files map[string]string) {
	s.t.Helper()
	write := func(name string) {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[name]), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	for name := range files {
		if name != "go" {
			write(name)
		}
	}
	write("go")
}

// ordersOfPeople counts the changes whose actor is a person.
func (s *rig) ordersOfPeople() (n int) {
	s.t.Helper()
	page, err := s.client().Journal(s.t.Context(), apiclient.JournalQuery{Limit: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range page.Changes {
		if c.Actor.Kind == "human" {
			n++
		}
	}
	return n
}
