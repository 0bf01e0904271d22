package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// coverage counts what Decide returned in the tests of this package.
var coverage = machinetest.NewCoverage()

// TestMain also fails if no test took some row of the table.
func TestMain(m *testing.M) {
	coverage.Main(m, machinetest.Numbered("H", 14), machinetest.Table{Rows: Table.Rows()})
}

func TestMatrix(t *testing.T) {
	golden.Check(t, filepath.Join("testdata", "matrix.txt"), Table.Matrix())
}

func encode(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var ann = change.Actor{Kind: "human", ID: "ann"}

// decide is the only way in which the tests of this package ask: it counts what was decided, checks what holds
// for every decision, and applies it. A refusal is an answer.
func decide(t testing.TB, hosts *Hosts, at time.Time, in Input) ([]change.Change, error) {
	t.Helper()
	before := encode(t, hosts)
	changes, err := hosts.Decide(at, ann, in)
	if encode(t, hosts) != before {
		t.Fatalf("%T: the decision changed the value", in)
	}
	if err != nil {
		var refusal *table.Refusal
		if len(changes) > 0 || !errors.As(err, &refusal) || refusal.Reason == "" && len(refusal.Takes) == 0 {
			t.Fatalf("%T: %v with %d changes", in, err, len(changes))
		}
		return nil, err
	}
	for _, ch := range changes {
		body, from := change.As[Body](ch.Body), State(ch.From)
		was, leases := hosts.Hosts[body.Host.Name], uint64(0)
		rule, known := Table[from][Event(ch.Trigger)]
		if !known || rule.ID != ch.Row || string(rule.To) != ch.To || body.Host.State != rule.To || "host/"+body.Host.Name != ch.Entity {
			t.Fatalf("no row of the table: %+v", ch)
		}
		if was != nil {
			if leases = was.Leases; was.State != from || body.Host.Incarnation < was.Incarnation {
				t.Fatalf("%+v became %+v", was, ch)
			}
		}
		if l := body.Lease; l != nil &&
			(from != Joined || l.N != leases+1 || l.Incarnation != was.Incarnation || l.Host != body.Host.Name || l.Boot != was.Boot) {
			t.Fatalf("%+v is leased on %+v", l, was)
		}
		coverage.Row(ch.Row)
		coverage.Pair("", ch.From, ch.Trigger)
		hosts.Apply(ch)
	}
	check(t, hosts)
	return changes, nil
}

// check is what holds at all times.
func check(t testing.TB, hosts *Hosts) {
	t.Helper()
	busy := map[string]int{}
	for session, l := range hosts.Leases {
		h := hosts.Hosts[l.Host]
		if busy[l.Host]++; session != l.Session || h == nil || l.N == 0 || l.N > h.Leases || l.Incarnation > h.Incarnation {
			t.Fatalf("%s is leased as %+v on %+v", session, l, h)
		}
		counts, _ := hosts.Counts(l.Token)
		may, _ := hosts.MayMove(session)
		if counts && may {
			t.Fatalf("the reports of %+v count, and it may move: %+v", l, h)
		}
		if h != nil && slices.ContainsFunc(h.Missing, func(m Missing) bool { return m.Token == l.Token }) {
			t.Fatalf("%+v is leased, and is missing", l)
		}
	}
	for name, h := range hosts.Hosts {
		switch {
		case h.Name != name || h.Incarnation == 0 || hosts.Busy(name) != busy[name]:
			t.Fatalf("%s is %+v with %d sessions", name, h, busy[name])
		case h.State == Draining && busy[name] == 0 && len(h.Missing) == 0:
			t.Fatalf("%s drains, and no session is left", name)
		case len(h.Late) > lateMax || len(h.Missing) > missingMax:
			t.Fatalf("%d late reports, %d missing", len(h.Late), len(h.Missing))
		case len(h.Missing) > 0 && (h.State == Left || h.RemovedBy != ""):
			t.Fatalf("it is gone for good, and is waited for: %+v", h)
		case h.State == Doubted && h.DoubtedAt.IsZero(), h.State == Joined && (!h.DoubtedAt.IsZero() || h.RemovedBy != ""):
			t.Fatalf("%+v", h)
		}
	}
	var again Hosts
	if err := json.Unmarshal([]byte(encode(t, hosts)), &again); err != nil || encode(t, again) != encode(t, hosts) {
		t.Fatalf("read back it is another value: %v", err)
	}
}

// story is a team in the hands of one test.
type story struct {
	t     *testing.T
	hosts Hosts
	at    time.Time
}

func begin(t *testing.T) *story { return &story{t: t, at: machinetest.Noon} }

func (s *story) must(ins ...Input) {
	s.t.Helper()
	for _, in := range ins {
		s.at = s.at.Add(time.Second)
		if _, err := decide(s.t, &s.hosts, s.at, in); err != nil {
			s.t.Fatalf("%T: %v", in, err)
		}
	}
}

func (s *story) refused(in Input, want string) {
	s.t.Helper()
	if _, err := decide(s.t, &s.hosts, s.at, in); err == nil || !strings.Contains(err.Error(), want) {
		s.t.Fatalf("%+v: %v, want %q", in, err, want)
	}
}

func (s *story) nothing(in Input) {
	s.t.Helper()
	if changes, err := decide(s.t, &s.hosts, s.at, in); err != nil || len(changes) > 0 {
		s.t.Fatalf("%+v: %v %v, want nothing", in, changes, err)
	}
}

func (s *story) is(name string, state State, incarnation uint64) {
	s.t.Helper()
	if h := s.hosts.Hosts[name]; h == nil || h.State != state || h.Incarnation != incarnation {
		s.t.Fatalf("%s is %+v, want %s %d", name, h, state, incarnation)
	}
}

// moves compares whether sessions may move, as "s1 s2", and whether their reports count.
func (s *story) moves(may, counts string) {
	s.t.Helper()
	var reported []string
	for _, session := range table.Names(s.hosts.Leases) {
		if ok, _ := s.hosts.Counts(s.hosts.Leases[session].Token); ok {
			reported = append(reported, session)
		}
	}
	if got := strings.Join(s.hosts.Movable(), " "); got != may || strings.Join(reported, " ") != counts {
		s.t.Fatalf("%q may move and reports of %q count, want %q and %q", got, reported, may, counts)
	}
}

func join(name, boot string) Join { return Join{Name: name, Boot: boot, Capacity: 4} }

func invited(name string) Join {
	in := join(name, "boot1")
	in.Invited = true
	return in
}

// H1, H3, H7, H8: a host joins by an invitation; its sessions have numbered leases.
func TestJoinedHostTakesSessions(t *testing.T) {
	s := begin(t)
	s.refused(join("b", "boot1"), "invitation")
	s.must(invited("b"))
	s.nothing(join("b", "boot1"))
	s.must(Place{Session: "s1", Host: "b"}, Place{Session: "s2", Host: "b", OnLost: Wait})
	s.refused(Place{Session: "s1", Host: "b"}, "is placed on b already")
	if l := s.hosts.Leases["s2"]; l.N != 2 || l.Incarnation != 1 || l.OnLost != Wait || s.hosts.Leases["s1"].OnLost != Restart {
		t.Errorf("%+v", l)
	}
	s.must(Release{Session: "s1"}, Place{Session: "s3", Host: "b"})
	s.nothing(Release{Session: "s1"})
	if l := s.hosts.Leases["s3"]; l.N != 3 || s.hosts.Busy("b") != 2 {
		t.Errorf("%+v", l)
	}
	s.must(Join{Name: "b", Boot: "boot1", Capacity: 2, Labels: []string{"gpu", "big", "gpu"}})
	s.is("b", Joined, 1)
	s.refused(Place{Session: "s4", Host: "b"}, "all 2 places are taken")
	s.refused(Place{Session: "s4", Host: "c"}, "no such host")
	s.refused(Place{Session: "s4", Host: "b", OnLost: "explode"}, "2 places")
	s.must(Release{Session: "s2"})
	s.refused(Place{Session: "s4", Host: "b", OnLost: "explode"}, "restart, ask or wait")
	s.moves("", "s3")
}

// H4, H5, H6: a silent host is doubted, then lost; only then its sessions may move, but those that wait.
func TestSilentHost(t *testing.T) {
	s := begin(t)
	s.must(invited("b"), Place{Session: "s1", Host: "b"}, Place{Session: "s2", Host: "b", OnLost: Wait})
	s.nothing(Renew{"b", 1})
	s.must(Doubt{"b"})
	s.nothing(Doubt{"b"})
	s.is("b", Doubted, 1)
	s.refused(Place{Session: "s3", Host: "b"}, "doubted")
	s.moves("", "s1 s2")
	s.nothing(Renew{"b", 7}) // of another incarnation
	s.must(Renew{"b", 1})
	s.is("b", Joined, 1)
	s.must(Doubt{"b"}, Release{Session: "s1"}, Place{Session: "s1", Host: "c"}.on(s), Join{Name: "b", Boot: "boot1", Capacity: 5})
	s.must(Place{Session: "s3", Host: "c"}, Renew{"b", 1}, Place{Session: "s4", Host: "b"})
	s.must(Lose{"b"}) // it is doubted on the way
	s.is("b", Lost, 1)
	s.nothing(Lose{"b"})
	s.moves("s4", "s1 s3")
	s.must(Release{Session: "s4"}, join("b", "boot1")) // it was only cut off
	s.is("b", Joined, 2)
	s.moves("", "s1 s2 s3") // what waits goes on
	s.must(Lose{"b"}, join("b", "boot2"))
	s.moves("s2", "s1 s3") // it has restarted: nothing waits there
}

// on makes the host of a placement first.
func (p Place) on(s *story) Place { s.must(invited(p.Host)); return p }

// H2: a machine that restarts has a new incarnation. Its sessions of before may move at once.
func TestComeBack(t *testing.T) {
	s := begin(t)
	s.must(invited("b"), Place{Session: "s1", Host: "b"}, Place{Session: "s2", Host: "b", OnLost: Wait}, join("b", "boot2"),
		Place{Session: "s3", Host: "b"})
	s.is("b", Joined, 2)
	s.moves("s1 s2", "s3")
	s.must(Doubt{"b"}, join("b", "boot3"))
	s.is("b", Joined, 3)
	s.must(Drain{"b"}, join("b", "boot4"))
	s.is("b", Draining, 4)
	s.must(Lose{"b"}, join("b", "boot4"))
	s.is("b", Draining, 5) // still draining
	s.must(Release{Session: "s1"}, Release{Session: "s2"}, Release{Session: "s3"})
	s.is("b", Draining, 5) // until it was asked what they have left
	s.fetched("b", "s1", "s2", "s3")
	s.is("b", Left, 5)
	s.refused(join("b", "boot4"), "invitation")
	s.must(invited("b"), Lose{"b"}, Remove{"b"})
	s.is("b", Left, 6)
}

// H9, H10: a draining host takes no session, and leaves when its last one has ended.
func TestDrain(t *testing.T) {
	s := begin(t)
	s.must(invited("b"), invited("c"), Place{Session: "s1", Host: "b"}, Drain{"b"})
	s.nothing(Drain{"b"})
	s.refused(Place{Session: "s2", Host: "b"}, "draining")
	s.must(Doubt{"b"})
	s.nothing(Doubt{"b"})
	s.must(Renew{"b", 1}, Join{Name: "b", Boot: "boot1", Capacity: 9})
	s.is("b", Draining, 1)
	s.must(Report{Token: Token{"s0", "b", 1, 9}, What: "late"}, Release{Session: "s1"}, Drain{"c"})
	s.is("b", Left, 1)
	s.is("c", Left, 1) // nothing ran on it
	s.refused(Drain{"d"}, "no such host")
	s.must(invited("b"), Place{Session: "s3", Host: "b"}, Doubt{"b"}, Drain{"b"})
	s.is("b", Draining, 2)
	s.must(Leave{"b"}, Release{Session: "s3"})
	s.is("b", Left, 2)
	s.must(invited("b"), Place{Session: "s4", Host: "b"}, Drain{"b"}, Lose{"b"}, Release{Session: "s4"}, join("b", "boot1"))
	s.is("b", Draining, 4) // its session was moved while it was lost
	s.fetched("b", "s4")
	s.is("b", Left, 4)
}

// H11: a host that leaves has ended its sessions.
func TestLeave(t *testing.T) {
	s := begin(t)
	s.must(invited("b"), Place{Session: "s1", Host: "b"}, Place{Session: "s2", Host: "b", OnLost: Wait}, Leave{"b"})
	s.nothing(Leave{"b"})
	s.moves("s1 s2", "")
	s.must(invited("c"), Doubt{"c"}, Leave{"c"})
	s.refused(Doubt{"c"}, "left")
}

// H12, H13: a host that is removed while sessions run on it keeps them until they have ended for certain.
func TestRemove(t *testing.T) {
	s := begin(t)
	s.must(invited("b"), Remove{"b"})
	s.is("b", Left, 1)
	s.nothing(Remove{"b"})
	s.must(invited("b"), Place{Session: "s1", Host: "b"}, Place{Session: "s2", Host: "b", OnLost: Wait}, Remove{"b"})
	s.is("b", Doubted, 2)
	s.nothing(Remove{"b"})
	s.nothing(Renew{"b", 2})
	s.refused(join("b", "boot1"), "removed by human/ann")
	s.refused(Drain{"b"}, "removed by human/ann")
	s.moves("", "")
	s.must(Lose{"b"})
	s.is("b", Left, 2)
	s.moves("s1", "") // what waits has no deadline, so it may run there still
	s.must(Release{Session: "s1"}, invited("b"))
	s.moves("", "s2")
	s.must(Doubt{"b"}, Remove{"b"}, Lose{"b"}, invited("b"))
	s.must(Drain{"b"}, Remove{"b"}, Lose{"b"}, invited("b"), Lose{"b"}, Remove{"b"}, Release{Session: "s2"})
	s.must(invited("b"), Doubt{"b"}, Remove{"b"}, Release{Session: "s2"})
	s.is("b", Left, 6)
}

// H14: a report under a lease that does not count is kept, once, and moves nothing.
func TestLateReports(t *testing.T) {
	s := begin(t)
	s.must(invited("b"), Place{Session: "s1", Host: "b"})
	token := s.hosts.Leases["s1"].Token
	s.nothing(Report{Token: token, What: "it works"})
	other := token
	other.N = 9
	s.must(Report{Token: other, What: strings.Repeat("ä", 500)}, Doubt{"b"}, Report{Token: other, What: "again"}, Lose{"b"},
		Report{Token: token, What: "it has ended"})
	s.nothing(Report{Token: token, What: "it has ended"})
	s.refused(Report{Token: Token{"s1", "x", 1, 1}, What: ""}, "no such host")
	s.is("b", Lost, 1)
	s.must(Leave{"c"}.of(s), Report{Token: Token{"s1", "c", 1, 1}, What: "after it left"})
	h := s.hosts.Hosts["b"]
	if len(h.Late) != 3 || len(h.Late[0].What) > whatMax+3 || h.Late[2].Token != token || s.hosts.Leases["s1"].Token != token {
		t.Errorf("%+v", h.Late)
	}
	for n := range uint64(lateMax) {
		s.must(Report{Token: Token{"s1", "b", 1, n + 20}, What: "late"})
	}
	if h = s.hosts.Hosts["b"]; len(h.Late) != lateMax || h.Late[0].N != 20 {
		t.Errorf("%d late reports, from %+v", len(h.Late), h.Late[0])
	}
}

// fetched reports what some sessions have left on a host, which must be missing.
func (s *story) fetched(name string, sessions ...string) {
	s.t.Helper()
	missing := s.hosts.Hosts[name].Missing
	var names []string
	for _, m := range missing {
		names = append(names, m.Session)
	}
	if !slices.Equal(names, sessions) {
		s.t.Fatalf("%q are missing on %s, want %q", names, name, sessions)
	}
	for _, m := range missing {
		s.must(Report{Token: m.Token, What: "it ended"})
	}
}

// H15: what a session of a lost host has left is missing until the host is back, or is given up. H14 keeps it.
func TestMissing(t *testing.T) {
	s := begin(t)
	s.must(invited("b"), Place{Session: "s1", Host: "b"}, Place{Session: "s2", Host: "b", OnLost: Ask},
		Place{Session: "s3", Host: "b", OnLost: Wait}, Place{Session: "s4", Host: "b"})
	early := s.hosts.Leases["s4"].Token
	s.must(Release{Session: "s1"}) // its end was reported
	s.must(Lose{"b"}, Report{Token: early, What: "before its end is in the journal"}, Release{Session: "s2", For: "run/T1/work"},
		Release{Session: "s4"})
	missing := s.hosts.Hosts["b"].Missing
	if len(missing) != 1 || missing[0].Session != "s2" || missing[0].For != "run/T1/work" || missing[0].OnLost != Ask ||
		!missing[0].At.Equal(s.at.Add(-time.Second)) {
		t.Fatalf("%+v", missing)
	}
	s.must(join("b", "boot1"))
	s.moves("", "s3")
	s.must(Report{
		Token: missing[0].Token, What: "it ended",
		Kept: Kept{Output: 7, Files: 2, Ref: "refs/x", Lacks: strings.Repeat("x", 2*notKeptMax)},
	})
	s.nothing(Report{Token: missing[0].Token, What: "it ended"})
	h := s.hosts.Hosts["b"]
	if late := h.Late[1]; len(h.Missing) > 0 || late.For != "run/T1/work" || late.Output != 7 || late.Files != 2 || late.Ref != "refs/x" ||
		len(late.Lacks) > notKeptMax+3 {
		t.Errorf("%+v", h)
	}
	s.must(join("b", "boot2"), Release{Session: "s3"}) // what waits there has ended with its machine
	s.fetched("b", "s3")

	leader := Join{Name: "l", Boot: "boot1", Capacity: 4, Invited: true, Leads: true}
	s.must(invited("l"), leader, Place{Session: "s6", Host: "l"})
	s.is("l", Joined, 1)
	leader.Boot = "boot2"
	s.must(leader, Release{Session: "s6"}) // what it left is there
	s.fetched("l")

	// The end of a session of before may be known while the host is doubted again.
	s.must(invited("d"), Place{Session: "s7", Host: "d"}, Lose{"d"}, join("d", "boot1"), Doubt{"d"}, Release{Session: "s7"})
	s.fetched("d", "s7")

	for n := range missingMax + 2 {
		name := fmt.Sprint("m", n)
		s.must(Place{Session: name, Host: "b"}, Lose{"b"}, Release{Session: name}, join("b", "boot2"))
	}
	if missing := s.hosts.Hosts["b"].Missing; len(missing) != missingMax || missing[0].Session != "m2" {
		t.Errorf("%d are missing, from %+v", len(missing), missing[0])
	}
	s.must(Drain{"b"})
	s.is("b", Draining, s.hosts.Hosts["b"].Incarnation)
	s.must(Remove{"b"}) // it is given up
	if h := s.hosts.Hosts["b"]; h.State != Left || len(h.Missing) > 0 {
		t.Errorf("%+v", h)
	}
	s.must(invited("c"), Place{Session: "s5", Host: "c"}, Remove{"c"}, Lose{"c"}, Release{Session: "s5"})
	if h := s.hosts.Hosts["c"]; h.State != Left || len(h.Missing) > 0 {
		t.Errorf("%+v", h)
	}
}

func (l Leave) of(s *story) Leave { s.must(invited(l.Name)); return l }

// TestCounts: each part of a token matters.
func TestCounts(t *testing.T) {
	s := begin(t)
	s.must(invited("b"), invited("c"), Place{Session: "s1", Host: "b"})
	right := s.hosts.Leases["s1"].Token
	for want, token := range map[string]Token{
		"":                                  right,
		"the session is over":               {"s2", "b", 1, 1},
		"the session was placed anew since": {"s1", "c", 1, 1},
	} {
		if ok, why := s.hosts.Counts(token); ok != (want == "") || why != want {
			t.Errorf("%+v: %v %q, want %q", token, ok, why, want)
		}
	}
	for _, edit := range []func(*Token){func(k *Token) { k.N++ }, func(k *Token) { k.Incarnation++ }} {
		token := right
		if edit(&token); token == right {
			t.Fatal("not edited")
		}
		if ok, _ := s.hosts.Counts(token); ok {
			t.Errorf("%+v counts", token)
		}
	}
}

// TestAnotherKey checks that a name belongs to the host that joined with it, until that one has left.
func TestAnotherKey(t *testing.T) {
	s := begin(t)
	first := Join{Name: "d", Boot: "none", Key: "U1", Invited: true}
	s.must(first)
	if changes, err := s.hosts.Decide(s.at, ann, first); err != nil || len(changes) != 0 {
		t.Errorf("it joins twice: %v, %v", changes, err)
	}
	other := first
	other.Key = "U2"
	s.refused(other, "another host of the team has this name")
	s.must(Join{Name: "d", Boot: "boot1", Capacity: 2})
	if h := s.hosts.Hosts["d"]; h.Key != "U1" || h.Capacity != 2 || h.Incarnation != 2 {
		t.Errorf("%+v", h)
	}
	s.must(Leave{"d"}, other)
	if h := s.hosts.Hosts["d"]; h.Key != "U2" || h.Incarnation != 3 {
		t.Errorf("%+v", h)
	}

	// A leader whose cluster was made anew, with the same journal, has other keys.
	s.must(Join{Name: "d", Boot: "none", Capacity: 4, Key: "U3", Invited: true, Leads: true})
	if h := s.hosts.Hosts["d"]; h.Key != "U3" || !h.Leads {
		t.Errorf("%+v", h)
	}
}

func TestWrongFacts(t *testing.T) {
	s := begin(t)
	for want, edit := range map[string]func(*Join){
		"its name must":     func(j *Join) { j.Name = "B/../x" },
		"its name":          func(j *Join) { j.Name = strings.Repeat("b", wordMax+1) },
		"the id of its":     func(j *Join) { j.Boot = "" },
		"its capacity is 0": func(j *Join) { j.Capacity, j.Invited = 0, false },
		"its key has":       func(j *Join) { j.Key = strings.Repeat("U", keyMax+1) },
		"its capacity":      func(j *Join) { j.Capacity = capacityMax + 1 },
		"it may have":       func(j *Join) { j.Labels = []string{"GPU"} },
		"32 labels":         func(j *Join) { j.Labels = slices.Repeat([]string{"a"}, labelsMax+1) },
	} {
		in := invited("b")
		edit(&in)
		s.refused(in, want)
	}
	for n := range hostsMax {
		s.hosts.Apply(change.Change{Body: &Body{Host: &Host{Name: fmt.Sprint("x", n), State: Left, Incarnation: 1}}})
	}
	s.refused(invited("b"), "the limit")
}

// Each input in each state leads to a row, to nothing or to a refusal.
func TestEveryStateAndEvent(t *testing.T) {
	states := map[State][]Input{
		None:     nil,
		Joined:   {invited("b")},
		Doubted:  {invited("b"), Place{Session: "s1", Host: "b"}, Doubt{"b"}},
		Lost:     {invited("b"), Place{Session: "s1", Host: "b"}, Lose{"b"}},
		Draining: {invited("b"), Place{Session: "s1", Host: "b"}, Drain{"b"}},
		Left:     {invited("b"), Leave{"b"}},
	}
	for _, state := range Table.States() {
		for _, in := range []Input{
			invited("b"), join("b", "boot1"), join("b", "boot2"),
			Renew{"b", 1},
			Doubt{"b"},
			Lose{"b"},
			Place{Session: "s2", Host: "b"},
			Release{Session: "s1"},
			Drain{"b"},
			Leave{"b"},
			Remove{"b"},
			Alone{"a"},
			Report{Token: Token{"s1", "b", 0, 0}, What: ""},
		} {
			s := begin(t)
			s.must(states[state]...)
			if state != None {
				s.is("b", state, 1)
			}
			_, _ = decide(t, &s.hosts, s.at, in)
		}
	}
}

// Any inputs in any order: what must hold holds after each (decide, check), and the journal gives the same.
func TestRandomOrders(t *testing.T) {
	seeds := testsize.Pick(uint64(60), 1000, 20000)
	if testsize.Race {
		seeds = 5
	}
	for seed := range seeds {
		randomly(t, rand.New(rand.NewPCG(seed, 0)), 120)
	}
}

func FuzzOrders(f *testing.F) {
	f.Add(uint64(1), 20)
	f.Fuzz(func(t *testing.T, seed uint64, n int) {
		randomly(t, rand.New(rand.NewPCG(seed, 1)), min(max(n, 0), 200))
	})
}

func randomly(t testing.TB, rnd *rand.Rand, n int) {
	var hosts, again Hosts
	numbers := map[Token]string{} // each lease has a number of its own
	for i := range n {
		name, session := []string{"a", "b", "c"}[rnd.IntN(3)], fmt.Sprint("s", rnd.IntN(12))
		var in Input
		switch rnd.IntN(16) {
		case 0, 1, 2:
			in = Join{Name: name, Boot: fmt.Sprint("boot", rnd.IntN(3)), Capacity: 1 + rnd.IntN(3), Invited: rnd.IntN(2) == 0}
		case 3:
			in = Doubt{name}
		case 4:
			in = Lose{name}
		case 5:
			in = []Input{Drain{name}, Leave{name}, Remove{name}}[rnd.IntN(3)]
		case 6, 7:
			in = Release{Session: session}
		case 8:
			in = Report{Token: Token{session, name, uint64(rnd.IntN(4)), uint64(rnd.IntN(4))}, What: fmt.Sprint(rnd.IntN(3))}
			if h := hosts.Hosts[name]; h != nil && len(h.Missing) > 0 && rnd.IntN(2) == 0 {
				in = Report{Token: h.Missing[rnd.IntN(len(h.Missing))].Token}
			}
		case 9, 10:
			in = Renew{name, uint64(rnd.IntN(5))}
		default:
			in = Place{Session: session, Host: name, OnLost: []OnLost{"", Ask, Wait}[rnd.IntN(3)]}
		}
		changes, _ := decide(t, &hosts, machinetest.Noon.Add(time.Duration(i)*time.Second), in)
		for _, ch := range changes {
			var body Body
			if err := json.Unmarshal([]byte(encode(t, ch.Body)), &body); err != nil {
				t.Fatal(err)
			}
			again.Apply(change.Change{Body: &body})
			if l := body.Lease; l != nil {
				key := Token{Host: l.Host, N: l.N}
				if other, taken := numbers[key]; taken {
					t.Fatalf("%s and %s have lease %d of %s", other, l.Session, l.N, l.Host)
				}
				numbers[key] = l.Session
			}
		}
	}
	if encode(t, hosts) != encode(t, again) {
		t.Fatalf("the journal gives another value:\n%s\n%s", encode(t, hosts), encode(t, again))
	}
}
