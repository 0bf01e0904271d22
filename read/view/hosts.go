package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/core/team"
)

// Hosts are the machines on which a team's sessions run, as `fairlead hosts --json` and GET /hosts show them.
type Hosts struct {
	On     bool   `json:"on" doc:"The team may have several hosts: fairlead cluster init was run"`
	Team   string `json:"team,omitempty" doc:"The team's name, as its hosts know it"`
	Leader string `json:"leader,omitempty" doc:"The host that leads: it decides"`

	Replicated bool `json:"replicated,omitempty" doc:"The journal is on three of the engine hosts; otherwise on the leader alone"`

	Unreplicated *Unreplicated `json:"unreplicated,omitempty" doc:"Of a team with two engine hosts or more: why the journal is not replicated"`

	Copies []JournalCopy `json:"copies,omitempty" doc:"The copies of a replicated journal, by host, as they were some seconds ago"`

	Hosts   []Host           `json:"hosts" doc:"By name; one that left stays"`
	Waiting []WaitingSession `json:"waiting" doc:"Sessions that are placed nowhere yet"`
	Mixed   string           `json:"mixed,omitempty" doc:"Which hosts have another version of Fairlead than the leader; empty: none, as far as is known"`
	Past
}

// JournalCopy is one of the copies of a replicated journal.
type JournalCopy struct {
	Host   string `json:"host"`
	InSync bool   `json:"in_sync" doc:"It has all that is acknowledged, as far as is known"`
	Lacks  uint64 `json:"lacks,omitempty" doc:"How many messages it lacks"`
}

// Host is one of them.
type Host struct {
	Name       string          `json:"name"`
	State      string          `json:"state" enum:"joined,doubted,lost,draining,left"`
	Why        string          `json:"why" doc:"What it is doing, or what to do"`
	Leader     bool            `json:"leader,omitempty" doc:"It leads the team"`
	Engine     bool            `json:"engine,omitempty" doc:"It is an engine host: it also keeps the journal"`
	Labels     []string        `json:"labels"`
	Capacity   int             `json:"capacity" doc:"Sessions at one time"`
	Sessions   []PlacedSession `json:"sessions" doc:"Placed on it, by id"`
	Version    string          `json:"version,omitempty" doc:"Of Fairlead on it; empty: it has not said since the leader began"`
	Lacks      []string        `json:"lacks,omitempty" doc:"What it has not, as it says: room on its disk, or programs and variables that agents with a host use. It gets no session that needs them"`
	Foreign    string          `json:"foreign,omitempty" doc:"Why its version of Fairlead and the leader's cannot work together"`
	Address    string          `json:"address,omitempty" doc:"From which it is connected"`
	Connected  bool            `json:"connected"`
	LeaseAgeMS int64           `json:"lease_age_ms" doc:"Since the leader saw its last renewal; -1: it has seen none"`
	JoinedAt   time.Time       `json:"joined_at" doc:"When it joined or came back"`
	DoubtedAt  time.Time       `json:"doubted_at,omitzero" doc:"When its renewals had stopped"`
	LostAt     time.Time       `json:"lost_at,omitzero"`
	DrainedBy  string          `json:"drained_by,omitempty"`
	RemovedBy  string          `json:"removed_by,omitempty"`
	Missing    []PlacedSession `json:"missing" doc:"Sessions that ended with its loss: what it still has of them is fetched when it is back"`
	Behind     int             `json:"behind,omitempty" doc:"Of an engine host: runs whose newest files are not on it, so that they would wait if it led now"`
	Differs    bool            `json:"differs,omitempty" doc:"Of an engine host: its fairlead.yaml differs from the leader's, so it cannot lead"`
	Branches   bool            `json:"branches,omitempty" doc:"It has led, and may have branches with commits that are not on the leader"`
	Left       []string        `json:"left,omitempty" doc:"Of the leader: branches that lack commits of a host that led before, and why. If there are more than 100, the last one says how many more"`
	Late       []LateReport    `json:"late" doc:"What came of sessions that had ended with its loss, oldest first; that changed nothing. Without those of archived runs"`
}

// PlacedSession is a session that is placed on a host.
type PlacedSession struct {
	Session string    `json:"session"`
	Agent   string    `json:"agent"`
	Run     string    `json:"run,omitempty"`
	Step    string    `json:"step,omitempty"`
	Since   time.Time `json:"since" doc:"When it was opened"`
	OnLost  string    `json:"on_lost" enum:"restart,ask,wait" doc:"What happens to it if the host is lost"`
}

// WaitingSession is a session for which no host has a place.
type WaitingSession struct {
	Session string `json:"session"`
	Agent   string `json:"agent"`
	Run     string `json:"run,omitempty"`
	Step    string `json:"step,omitempty"`
	Why     string `json:"why" doc:"For each host why it cannot take the session"`
}

// LateReport is what came too late of a session: after its host was lost.
type LateReport struct {
	Session     string    `json:"session"`
	Agent       string    `json:"agent"`
	Run         string    `json:"run,omitempty"`
	Step        string    `json:"step,omitempty"`
	What        string    `json:"what" doc:"How it ended: from the host; untrusted"`
	OutputBytes int64     `json:"output_bytes,omitempty" doc:"Bytes of its output that came late, at the end of it"`
	Files       int       `json:"files,omitempty" doc:"Reports and artifacts that differ from those here, in .fairlead/hosts/late/RUN/SESSION"`
	Ref         string    `json:"ref,omitempty" doc:"Of its folder, if that has something that had not come before"`
	Lacks       string    `json:"lacks,omitempty" doc:"What could not be kept, and why"`
	Kept        string    `json:"kept" doc:"The same in words: what was kept, and where"`
	At          time.Time `json:"at"`
}

// Words say in one line what came late, and that it changed nothing.
func (l *LateReport) Words(host string) string {
	of := l.Session
	if l.Run != "" {
		of += " (" + l.Step + " of " + l.Run + ")"
	}
	return fmt.Sprintf("%s was lost with %s; late, and without effect: %s; kept: %s", of, host, cmp.Or(l.What, "how it ended is not known"),
		l.Kept)
}

// agentOf is the agent of a session that is over.
func agentOf(session string) string { return session[:max(0, strings.LastIndexByte(session, '-'))] }

// lateReport shows one.
func lateReport(l *host.Late) LateReport {
	v := LateReport{
		Session: l.Session, Agent: agentOf(l.Session), What: l.What, OutputBytes: l.Output, Files: l.Files, Ref: l.Ref,
		Lacks: l.Lacks, At: l.At,
	}
	v.Run, v.Step = team.StepNamed(l.For)
	var kept []string
	if l.Output > 0 {
		kept = append(kept, fmt.Sprintf("%d bytes of output", l.Output))
	}
	if l.Files > 0 {
		kept = append(kept, fmt.Sprintf("%d of its reports and artifacts in .fairlead/hosts/late/%s/%s", l.Files, v.Run, l.Session))
	}
	if l.Ref != "" {
		kept = append(kept, "its folder at "+l.Ref)
	}
	if v.Kept = "nothing new"; len(kept) > 0 {
		v.Kept = strings.Join(kept, ", ")
	}
	if l.Lacks != "" {
		v.Kept += "; not kept: " + l.Lacks
	}
	return v
}

// HostKnown is what is known of a host beside the journal.
type HostKnown struct {
	Connected bool
	Address   string
	Version   string
	Foreign   string        // why there can be no connection with its version; empty: there can
	Differs   bool          // its fairlead.yaml differs from the leader's
	Behind    int           // runs whose newest files are not there
	Lease     time.Duration // since its last renewal was seen; negative: none was
}

// Left is a branch that lacks commits of a host that led before.
type Left struct {
	Host, Branch string
	Why          string // and what a person can do
	Since        time.Time
}

// LeftMax is how many of these branches are named at a time.
const LeftMax = 100

// named are the branches to name. In the place of more there is one that has no name, and says how many.
func named(left []Left) []Left {
	if len(left) <= LeftMax {
		return left
	}
	more := left[LeftMax]
	more.Branch, more.Why = "", moreLeft(len(left)-LeftMax)
	return append(slices.Clone(left[:LeftMax]), more)
}

// moreLeft says that there are n more branches than are named.
func moreLeft(n int) string {
	what := fmt.Sprintf("%d more branches lack", n)
	if n == 1 {
		what = "1 more branch lacks"
	}
	return what + fmt.Sprintf(" commits of hosts that led before; %d are named at a time", LeftMax)
}

// HostsBeside is what the leader of a cluster knows of it beside the journal. The caller may change the list.
type HostsBeside struct {
	Team, Leader string
	Known        map[string]HostKnown // by the host's name
	Waiting      []WaitingSession
	Placed       map[string]string // by session: why it has its host
	Left         []Left            // branches that lack commits of a host that led before
	Copies       []JournalCopy
	EnginesMin   int  // engine hosts that a replicated journal needs
	Replicated   bool // the journal is on three of the engine hosts
	Unreplicated cluster.Unreplicated
}

// HostsOf shows the hosts of a team. session describes a session that is placed; archived reports that a run is.
func HostsOf(t *host.Hosts, beside HostsBeside, session func(id string) PlacedSession, archived func(run string) bool) Hosts {
	all := Hosts{
		On: true, Team: beside.Team, Leader: beside.Leader, Replicated: beside.Replicated, Copies: beside.Copies, Hosts: []Host{},
		Waiting: append([]WaitingSession{}, beside.Waiting...),
	}
	placed := map[string][]PlacedSession{}
	for id, lease := range t.Leases {
		if lease.Home && lease.Host == beside.Leader {
			continue // as all sessions of one machine
		}
		one := session(id)
		one.Session, one.OnLost = id, string(lease.OnLost)
		placed[lease.Host] = append(placed[lease.Host], one)
	}
	for _, name := range t.Names() {
		h := t.Hosts[name]
		v := Host{
			Name: name, State: string(h.State), Leader: name == beside.Leader, Engine: h.Engine != "", Labels: Some(h.Labels),
			Capacity: h.Capacity, Sessions: []PlacedSession{},
			LeaseAgeMS: -1, JoinedAt: h.JoinedAt, DoubtedAt: h.DoubtedAt, LostAt: h.LostAt, DrainedBy: h.DrainedBy, RemovedBy: h.RemovedBy,
			Branches: h.Branches && h.Engine != "" && beside.Replicated, Missing: []PlacedSession{}, Late: []LateReport{},
		}
		for _, l := range h.Lacks {
			v.Lacks = append(v.Lacks, l.String())
		}
		if beside.Known == nil { // of an earlier moment
			v.Connected = h.DoubtedAt.IsZero()
		}
		if is, ok := beside.Known[name]; ok {
			v.Connected, v.Address, v.Version, v.Foreign = is.Connected, is.Address, is.Version, is.Foreign
			v.Behind, v.Differs = is.Behind, is.Differs
			if is.Lease >= 0 && !v.Leader { // a leader renews nothing
				v.LeaseAgeMS = is.Lease.Milliseconds()
			}
		}
		if v.Leader {
			for _, l := range named(beside.Left) {
				v.Left = append(v.Left, l.Why)
			}
		}
		v.Sessions = append(v.Sessions, placed[name]...)
		slices.SortFunc(v.Sessions, func(a, b PlacedSession) int { return cmp.Compare(a.Session, b.Session) })
		for i := range h.Late {
			if l := lateReport(&h.Late[i]); l.Run == "" || !archived(l.Run) {
				v.Late = append(v.Late, l)
			}
		}
		for _, m := range h.Missing {
			one := PlacedSession{Session: m.Session, Agent: agentOf(m.Session), Since: m.At, OnLost: string(m.OnLost)}
			one.Run, one.Step = team.StepNamed(m.For)
			v.Missing = append(v.Missing, one)
		}
		v.Why = v.why(beside.Known == nil)
		all.Hosts = append(all.Hosts, v)
	}
	all.Mixed, all.Unreplicated = all.mixed(), all.unreplicated(beside.Unreplicated)
	return all
}

// mixed names the hosts with another version than the leader's.
func (all *Hosts) mixed() string {
	leaders := ""
	for i := range all.Hosts {
		if all.Hosts[i].Leader {
			leaders = all.Hosts[i].Version
		}
	}
	var others []string
	for i := range all.Hosts {
		if h := &all.Hosts[i]; h.Other(leaders) {
			others = append(others, h.Name+" has "+h.Version)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("The leader has version %s of Fairlead; %s. Hosts and their leader need the same protocol, so install one version on all machines.", leaders, strings.Join(others, ", "))
}

// Other reports whether a host has another version of Fairlead than the leader's.
func (v *Host) Other(leaders string) bool {
	return v.Version != "" && leaders != "" && v.Version != leaders && v.State != string(host.Left)
}

// why says what a host is doing, or what to do. past: it is of an earlier moment.
func (v *Host) why(past bool) string {
	text := v.does(past)
	switch {
	case v.Behind == 1 && v.State != string(host.Left):
		text += "; the newest files of 1 run are not yet on it"
	case v.Behind > 1 && v.State != string(host.Left):
		text += fmt.Sprintf("; the newest files of %d runs are not yet on it", v.Behind)
	}
	if v.Differs && v.State != string(host.Left) {
		text += "; its fairlead.yaml differs from the leader's, so it cannot lead: `fairlead cluster status` there prints the command that writes the leader's file"
	}
	switch n := len(v.Left); {
	case n == 0:
	case n == 1:
		text += "; a branch lacks commits of a host that led before"
	case n > LeftMax:
		text += fmt.Sprintf("; more than %d branches lack commits of hosts that led before", LeftMax)
	default:
		text += fmt.Sprintf("; %d branches lack commits of hosts that led before", n)
	}
	switch {
	case !v.Branches || v.Leader || v.State == string(host.Left):
	case v.Connected:
		text += "; it has led, and its branches may have commits that the leader's branches lack"
	default:
		text += "; it has led; commits that no other machine has are fetched when it is back"
	}
	if len(v.Lacks) > 0 && v.State == string(host.Joined) {
		text = strings.Join(v.Lacks, ", ") + ": it gets no session that needs that; " + text
	}
	return text
}

func (v *Host) does(past bool) string {
	busy, leads := len(v.Sessions), "it leads the team"
	if past {
		leads = "it led the team"
	}
	if v.Foreign != "" && v.State != string(host.Left) {
		return v.Foreign
	}
	switch host.State(v.State) {
	case host.Joined:
		switch {
		case v.Leader && busy == 0:
			return leads
		case v.Leader:
			return fmt.Sprintf("%s; %d of %d places for sessions are taken", leads, busy, v.Capacity)
		case !v.Connected && v.LeaseAgeMS < 0:
			return "it has not connected since the leader began; `fairlead up` on it connects it"
		case !v.Connected:
			return fmt.Sprintf("it is not connected; without a renewal it is doubted after %s", seconds(host.DoubtAfter))
		case busy >= v.Capacity:
			return "it is full; further sessions for it wait"
		}
		return fmt.Sprintf("%d of %d places for sessions are taken", busy, v.Capacity)
	case host.Doubted:
		if v.RemovedBy != "" {
			return fmt.Sprintf("removed by %s; its sessions end by their deadline, within %s", v.RemovedBy, seconds(host.EndAfter))
		}
		return v.silence() + "; it gets no new session"
	case host.Draining:
		switch {
		case !v.DoubtedAt.IsZero():
			return v.silence() + "; it was draining"
		case v.DrainedBy != "":
			return fmt.Sprintf("it gets no new session, as %s asked, and leaves when %s", v.DrainedBy, v.lastEnds())
		}
		return "it gets no new session, and leaves when " + v.lastEnds()
	case host.Lost:
		return strings.Join(append(append(v.waits(), v.missing()...),
			"`fairlead up` on it brings it back; `fairlead host remove "+v.Name+"` gives it up"), "; ")
	case host.Left:
		text := "it has left"
		if v.RemovedBy != "" {
			text = "removed by " + v.RemovedBy
		}
		return strings.Join(append([]string{text}, append(v.waits(), "it needs a new invitation to join again")...), "; ")
	}
	return ""
}

func (v *Host) silence() string {
	return fmt.Sprintf("its renewals stopped; its sessions end by their own deadline, %s after the last one, and it is lost after %s",
		seconds(host.EndAfter), seconds(host.LostAfter))
}

func (v *Host) lastEnds() string {
	if len(v.Sessions) == 1 {
		return "its session " + v.Sessions[0].Session + " has ended"
	}
	return fmt.Sprintf("its %d sessions have ended", len(v.Sessions))
}

// missing says what a lost host may still have.
func (v *Host) missing() []string {
	if len(v.Missing) == 0 {
		return nil
	}
	var ids []string
	for _, s := range v.Missing[:min(len(v.Missing), missingShown)] {
		ids = append(ids, s.Session)
	}
	if more := len(v.Missing) - len(ids); more > 0 {
		ids = append(ids, fmt.Sprintf("%d more", more))
	}
	return []string{"what it still has of these is fetched when it is back, and changes nothing: " + strings.Join(ids, ", ")}
}

const missingShown = 10

// waits says which sessions of a lost host are not replaced.
func (v *Host) waits() []string {
	var ids []string
	for _, s := range v.Sessions {
		if s.OnLost == string(host.Wait) {
			ids = append(ids, s.Session)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return []string{"waiting for it (on_lost: wait): " + strings.Join(ids, ", ")}
}

func seconds(t host.BootTime) string { return fmt.Sprintf("%d s", time.Duration(t)/time.Second) }

// HostOfSession is the name of the host on which a session is placed; empty: it is one of the leader's machine, and was
// not placed.
func HostOfSession(t *team.Team, id string) string { return t.Hosts.Leases[id].Host }

// AwayWords say what a run waits for whose newest files are on the previous leader; empty: they are here.
func AwayWords(t *team.Team, run string) string {
	away := t.Notes[run].Away
	if away == "" {
		return ""
	}
	gone := ""
	if h := t.Hosts.Hosts[away]; h == nil || h.State == host.Left {
		gone = "has left the team"
	} else if h.Engine == "" {
		gone = "is no engine host any longer"
	}
	if gone != "" {
		return fmt.Sprintf("its newest files are on %s, which led before and %s; `fairlead run resume %s` lets it go on with the files that are here", away, gone, run)
	}
	if t.Notes[run].Settings.Outside {
		return fmt.Sprintf("it works in a worktree outside of the repository on %s, which led before. It goes on when %s leads again: `fairlead cluster lead %s`; `fairlead run resume %s` begins its worktree here, at its branch, without what is not committed", away, away, away, run)
	}
	if !t.Notes[run].Settings.OwnFolder {
		return fmt.Sprintf("it works in the folder of the repository on %s, which led before, and not in a worktree of its own. It goes on when %s leads again: `fairlead cluster lead %s`; `fairlead run resume %s` lets it go on in the folder here", away, away, away, run)
	}
	return fmt.Sprintf("its newest files are on %s, which led before, and have not arrived here. It goes on when %s is back; `fairlead run resume %s` lets it go on with the files that are here", away, away, run)
}
