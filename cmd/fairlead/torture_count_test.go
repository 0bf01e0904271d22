package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// body is one process of this workspace. It is found by what the kernel shows of its
// environment, without asking Fairlead anything.
type body struct {
	pid     int
	start   string
	session string
	shim    bool
	command string
}

// markOf is how the marks of a workspace begin; package shim says so in its doc.
func markOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:8]) + "."
}

func agentIn(session string) string { return session[:max(0, strings.LastIndexByte(session, '-'))] }

func (l *load) census() []body {
	proc, err := os.Open("/proc")
	if err != nil {
		panic(err) // Linux has it
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1) // a glob would look at each process twice
	if err != nil {
		panic(err)
	}
	var all []body
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue // no process
		}
		env, err := os.ReadFile("/proc/" + name + "/environ")
		if err != nil {
			continue // it has exited, or belongs to another user
		}
		b := body{pid: pid}
		var ok bool
		if b.session, ok = sessionIn(env, "FAIRLEAD_SHIM", l.mark); ok {
			b.shim = true
		} else if b.session, ok = sessionIn(env, "FAIRLEAD_MARK", l.mark); !ok {
			continue
		}
		if b.command, _, b.start = statOf(b.pid); b.start != "" {
			all = append(all, b)
		}
	}
	return all
}

func sessionIn(env []byte, name, mark string) (string, bool) {
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := strings.CutPrefix(string(kv), name+"="); ok {
			for one := range strings.SplitSeq(value, ",") {
				if session, ok := strings.CutPrefix(one, mark); ok {
					return session, true
				}
			}
		}
	}
	return "", false
}

// statOf gives a process's command, state and start time; nothing where it is none, or a zombie.
func statOf(pid int) (command, state, start string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if err != nil || open < 0 || end < open {
		return "", "", ""
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", "", ""
	}
	return string(text[open+1 : end]), fields[0], fields[19]
}

func (b body) lives() bool {
	_, _, start := statOf(b.pid)
	return start != "" && start == b.start
}

// count stops the load for a moment and compares what is said with what is.
func (l *load) count() {
	l.gate.Lock()
	defer l.gate.Unlock()
	l.readJournal()
	l.countCommands()
	l.countStatuses()
	l.countStrays()
	l.countSessions()
	l.readJournal()
	for _, id := range l.begun {
		if !l.known[id] && !l.torn {
			l.wrong(&l.tally.Other, "%s was started, and the journal has never opened it", id)
		}
	}
	l.begun = l.begun[:0]
	l.countOutput()
}

// lastWords is what a daemon that does not answer has said, where it is no more.
func (l *load) lastWords() string {
	if !l.hasGone() {
		return "the daemon lives"
	}
	err := l.rig.daemon.Wait()
	l.rig.daemon = nil
	return fmt.Sprintf("the daemon ended by %v and said: %s", err, l.rig.heard)
}

func (l *load) team() (view.TeamView, error) {
	ctx, cancel := contextFor(rigWait)
	defer cancel()
	return l.client.Agents(ctx)
}

// readJournal reads what is new in it.
func (l *load) readJournal() {
	l.t.Helper()
	for {
		ctx, cancel := contextFor(rigWait)
		page, err := l.client.Journal(ctx, apiclient.JournalQuery{After: l.after})
		cancel()
		if err != nil {
			l.t.Fatalf("round %d: read the journal: %v; %s; %s", l.round, err, l.damaged, l.lastWords())
		}
		for _, ch := range page.Changes {
			var data struct {
				Session struct {
					ID    string `json:"id"`
					Bytes int64  `json:"bytes"`
				} `json:"session"`
				Control struct {
					Value struct {
						Wish struct {
							Note string `json:"note"`
						} `json:"desired"`
					} `json:"value"`
				} `json:"control"`
			}
			if err := json.Unmarshal(ch.Data, &data); err != nil {
				l.t.Fatalf("round %d: change %d: %v", l.round, ch.Seq, err)
			}
			l.found[data.Control.Value.Wish.Note] = true
			if id := data.Session.ID; id != "" {
				l.known[id] = true
				if ch.To == "none" {
					l.ended[id] = data.Session.Bytes
				}
			}
			l.after = ch.Seq
		}
		if len(page.Changes) == 0 {
			return
		}
	}
}

// countCommands wants every acknowledged order in the journal, and the last one to stand.
func (l *load) countCommands() {
	for note, seq := range l.notes {
		switch {
		case l.found[note]:
		case l.torn:
			l.tally.Cut++
		default:
			l.wrong(&l.tally.Commands, "%q was acknowledged as change %d; the journal does not have it; %s", note, seq, l.damaged)
		}
	}
	clear(l.notes)
	clear(l.found)
	var wrong []string
	l.within(func(view view.TeamView) bool {
		wrong = wrong[:0]
		for _, a := range view.Agents {
			w := l.wants[a.Name]
			if !w.any && a.DesiredState != w.desired && !slices.Contains(w.perhaps, a.DesiredState) {
				wrong = append(wrong,
					fmt.Sprintf("%s: %s is wanted, and it says %s (%s by %s)", a.Name, w.desired, a.DesiredState, a.Note, a.SetBy))
			}
		}
		return len(wrong) == 0
	})
	for _, words := range wrong {
		if l.torn {
			l.tally.Cut++
			continue
		}
		l.wrong(&l.tally.Commands, "%s; %s", words, l.damaged)
	}
	view, err := l.team()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, a := range view.Agents {
		*l.wants[a.Name] = wish{desired: a.DesiredState}
	}
}

// within asks until it is so, and says whether it came to be so in a moment.
func (l *load) within(so func(view.TeamView) bool) bool {
	l.t.Helper()
	for began := time.Now(); ; pass(10 * time.Millisecond) {
		view, err := l.team()
		if err != nil {
			l.t.Fatalf("round %d: ask for the team: %v; %s; %s", l.round, err, l.damaged, l.lastWords())
		}
		if so(view) {
			return true
		}
		if time.Since(began) > moment {
			return false
		}
	}
}

// countStatuses wants each agent's status to be so, in one look at least.
func (l *load) countStatuses() {
	cleared := map[string]bool{}
	said := map[string]string{}
	l.within(func(view view.TeamView) bool {
		seen := l.census()
		for _, a := range view.Agents {
			if !cleared[a.Name] {
				said[a.Name] = l.doubt(a, seen)
				cleared[a.Name] = said[a.Name] == ""
			}
		}
		for _, b := range seen {
			if b.shim {
				l.held++
			}
		}
		return len(cleared) > 0 && !slices.Contains(slices.Collect(maps.Values(cleared)), false)
	})
	for name, ok := range cleared {
		if !ok {
			l.wrong(&l.tally.Statuses, "%s: %s; %s", name, said[name], l.damaged)
		}
	}
}

// doubt says what of an agent's status is not so; nothing where all of it is.
func (l *load) doubt(a view.AgentView, seen []body) string {
	live := ""
	for _, b := range seen {
		if agentIn(b.session) == a.Name && !b.shim && b.lives() {
			live = fmt.Sprintf("process %d (%s) of %s lives", b.pid, b.command, b.session)
		}
	}
	text, err := os.ReadFile(filepath.Join(l.rig.dir, a.Name, "agent_state.json"))
	var file struct {
		Desired string `json:"desired_state"`
		Current string `json:"current_state"`
	}
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	switch {
	case err != nil:
		return "its file: " + err.Error()
	case file.Current != a.CurrentState || file.Desired != a.DesiredState:
		return fmt.Sprintf("the file says %s/%s and ps %s/%s", file.Desired, file.Current, a.DesiredState, a.CurrentState)
	case a.DesiredState == "pause" && a.Badge != view.BadgeIdle, a.DesiredState == "continuous" && a.Badge != view.BadgeRunning:
		return fmt.Sprintf("it is wanted %s, and says %s", a.DesiredState, a.Badge)
	case a.Badge == view.BadgeIdle && live != "":
		return "it says IDLE, and " + live
	case a.Badge == view.BadgeRunning && a.Session == nil:
		return "it says RUNNING without a session"
	case a.Badge == view.BadgeRunning && a.Session.Phase != "running":
		return fmt.Sprintf("it says RUNNING, and %s is %s", a.Session.ID, a.Session.Phase)
	case a.Badge == view.BadgeRunning &&
		!slices.ContainsFunc(seen, func(b body) bool { return b.pid == a.Session.PID && b.session == a.Session.ID && b.lives() }):
		return fmt.Sprintf("it says RUNNING, and process %d of %s is dead", a.Session.PID, a.Session.ID)
	case a.Doubt != "":
		return "it doubts itself: " + a.Doubt
	}
	return ""
}

// countStrays checks that no process lives without a shim.
func (l *load) countStrays() {
	for began := time.Now(); ; pass(20 * time.Millisecond) {
		strays, err := shim.Strays(l.rig.dir)
		if err != nil {
			l.t.Fatalf("round %d: %v", l.round, err)
		}
		if len(strays) == 0 {
			return
		}
		if time.Since(began) > moment {
			for _, p := range strays {
				l.wrong(&l.tally.Strays, "process %d (%s) of %s lives, and nobody holds it", p.PID, p.Command, p.Session)
			}
			return
		}
	}
}

// countSessions wants each session started once. A journal that was begun anew counts from 1
// again; what is left of the dead sessions of those names was put aside then, and a name may
// have been started once more for each.
func (l *load) countSessions() {
	for _, name := range tortureAgents {
		text, err := os.ReadFile(filepath.Join(l.rig.dir, name, "starts"))
		if err != nil {
			continue // it has not got so far
		}
		all := strings.Fields(string(text))
		for i, id := range all[l.starts[name]:] {
			before := 0
			for _, other := range all[:l.starts[name]+i] {
				if other == id {
					before++
				}
			}
			if before > len(l.aside(id)) {
				l.wrong(&l.tally.Doubles, "%s was started twice", id)
			}
		}
		l.begun = append(l.begun, all[l.starts[name]:]...)
		l.tally.Sessions += len(all) - l.starts[name]
		l.starts[name] = len(all)
	}
}

func TestCensusKnowsMarks(t *testing.T) {
	t.Parallel()
	const env = "A=b\x00FAIRLEAD_MARK=77.x-1,abc.ada-3\x00"
	if got, ok := sessionIn([]byte(env), "FAIRLEAD_MARK", "abc."); !ok || got != "ada-3" {
		t.Errorf("%q, %v", got, ok)
	}
	if _, ok := sessionIn([]byte(env), "FAIRLEAD_MARK", "bc."); ok {
		t.Error("another workspace's mark was taken for ours")
	}
}
