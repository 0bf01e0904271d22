package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
	"github.com/fairlead-dev/fairlead/engine/loop"
)

const batchMax = 256 // requests of one append

var (
	errVoid    = errors.New("it does not count")
	errRefused = errors.New("it may not start")
)

// lead is the leader's part of a daemon: the only place where something is decided. As in the package loop, it
// decides a batch in memory, appends it, and only then answers. A message that another one has overtaken ends it.
type lead struct {
	p        *peer
	team     *team.Team
	hosts    host.Hosts
	chain    journal.Chain
	versions map[string]uint64
	place    uint64 // messages that it has read or appended
	epoch    uint64
	won      bool // its DaemonStarted is stored
	last     time.Time
	touched  team.Touched
	notes    map[string]bool // orders that are decided

	queue   []request
	records []journal.Change // of this batch; those before done are stored
	ends    []end            // of the requests in it
	done    int
	busy    bool
	failed  bool // a message of another leader was stored in its place

	unplaced map[string]string            // open sessions without a lease → agent
	homes    map[string]string            // agent → host of its last session, which has its worktree
	watches  map[string]*watch            // by host
	grants   map[string]host.BootTime     // by session
	asks     map[host.Token]*question     // that wait in the queue: one for each session
	pauses   map[string]map[string]func() // answers that wait for a grant to end, by agent and note
}

type request struct {
	do     func() error
	answer func(stored bool, err error)
}

type end struct {
	records int
	err     error
	answer  func(stored bool, err error)
}

// question is one of a host that waits in the queue.
type question struct {
	grant  func(epoch uint64)
	refuse func()
}

type watch struct {
	host.Watch
	incarnation uint64
	asks        bool // the lease is being closed
}

// newLead makes the state from the mirror.
func newLead(p *peer) *lead {
	l := &lead{
		p: p, team: team.New(nil), versions: map[string]uint64{}, notes: map[string]bool{}, place: uint64(p.pos), chain: p.chain,
		unplaced: map[string]string{}, homes: map[string]string{}, watches: map[string]*watch{}, grants: map[string]host.BootTime{},
		asks: map[host.Token]*question{}, pauses: map[string]map[string]func(){},
	}
	for _, m := range p.w.engine.log[:p.pos] {
		for i := range m.records {
			r := &m.records[i]
			l.versions[r.Entity], l.last = r.Version, r.Time
			if r.Machine == hostMachine {
				l.hosts.Apply(changeOf(r))
				continue
			}
			ch, err := loop.ChangeOf(*r)
			if err != nil {
				panic(err)
			}
			l.take(ch)
		}
	}
	for _, lease := range l.hosts.Leases {
		delete(l.unplaced, lease.Session)
		l.homes[agentOf(lease.Session)] = lease.Host
	}
	for _, a := range l.team.Agents {
		if s := a.Session; s != nil && s.Phase == session.Open && len(s.TokenHashes) > 0 {
			l.grants[s.ID] = p.now() // by the previous leader; as new as it can be
		}
	}
	l.touched.All()
	return l
}

const hostMachine = "host"

// changeOf decodes a record of the journal.
func changeOf(r *journal.Change) change.Change {
	ch, err := loop.ChangeOf(*r)
	if err != nil {
		panic(err)
	}
	return ch
}

// take applies a change of the team.
func (l *lead) take(ch change.Change) {
	l.team.Apply(ch)
	if note := noteOf(ch); note != "" {
		l.notes[note] = true
	}
	if s := change.As[team.Session](ch.Body); s != nil {
		switch {
		case s.Phase == session.None:
			delete(l.unplaced, s.ID)
			delete(l.grants, s.ID)
		case ch.From == string(session.None):
			l.unplaced[s.ID] = team.AgentOf(ch.Entity)
		}
	}
}

// stand tries to lead: it appends the start of an epoch at the end of the journal, as its mirror has it.
func (l *lead) stand() {
	boot := l.p.bootID()
	l.queue = append(l.queue, request{
		func() error {
			err := l.decide(team.Event{Actor: l.actor(), What: team.DaemonStarted{BootID: boot}})
			l.epoch = l.team.Epoch
			if l.epoch == 1 {
				l.configure()
			}
			return err
		},
		func(stored bool, _ error) {
			if l.won = stored; stored {
				l.renew()
			}
		},
	})
	l.work()
}

func (l *lead) actor() change.Actor { return change.Actor{Kind: "engine", ID: l.p.name} }

// configure begins a new team.
func (l *lead) configure() {
	conf := team.Configured{
		Agents: map[string]team.Settings{}, Turns: map[string]channel.AgentSettings{},
		Channels: map[string]team.Channel{},
	}
	size := l.p.w.size
	for i := range size.Agents {
		conf.Agents[agentName(i)] = team.Settings{Driver: "exec"}
	}
	for i := range size.Channels {
		member := agentName(i % size.Agents)
		conf.Turns[member] = channel.AgentSettings{}
		conf.Channels[channelName(i)] = team.Channel{Settings: channel.DefaultSettings(), Agents: []string{member}}
	}
	l.must(l.decide(team.Event{Actor: l.actor(), What: conf}))
	for i := range size.Agents {
		l.must(l.decide(team.Event{Actor: l.actor(), Agent: agentName(i), What: control.FileGone{}}))
	}
}

func agentName(i int) string   { return fmt.Sprintf("a%05d", i) }
func channelName(i int) string { return fmt.Sprintf("c%04d", i) }

func (l *lead) must(err error) {
	if err != nil {
		panic(err)
	}
}

// now is a time that never goes back, as that of the package loop.
func (l *lead) now() time.Time {
	l.last = latest(l.last.Add(time.Microsecond), l.p.clock.wall(l.p.w.now))
	return l.last
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// decide decides an event of the team, in memory.
func (l *lead) decide(ev team.Event) error {
	ev.At = l.now()
	changes, err := l.team.Decide(ev)
	if err != nil {
		return err
	}
	l.records, err = loop.AppendRecords(l.records, changes)
	l.must(err)
	for _, ch := range changes {
		l.take(ch)
		l.touched.Note(ch)
	}
	return nil
}

// host decides an input of the hosts, in memory.
func (l *lead) host(in host.Input) error {
	changes, err := l.hosts.Decide(l.now(), l.actor(), in)
	if err != nil {
		return err
	}
	l.records, err = loop.AppendRecords(l.records, changes)
	l.must(err)
	for _, ch := range changes {
		l.hosts.Apply(ch)
	}
	return nil
}

// submit queues a request for the next append.
func (l *lead) submit(do func() error, answer func(stored bool, err error)) {
	l.queue = append(l.queue, request{do, answer})
	l.work()
}

// work decides what is queued, if no append is on its way.
func (l *lead) work() {
	if l.busy || l.failed || len(l.queue) == 0 {
		return
	}
	l.busy = true
	batch := l.queue[:min(len(l.queue), batchMax)]
	l.queue = l.queue[len(batch):]
	l.records, l.ends, l.done = nil, nil, 0
	for _, r := range batch {
		err := r.do()
		l.follow()
		l.ends = append(l.ends, end{len(l.records), err, r.answer})
	}
	l.placeAll()
	l.append()
}

// follow decides what follows from the state, as the package loop does.
func (l *lead) follow() {
	for {
		ev, some := l.team.Next(&l.touched, l.now())
		if !some {
			return
		}
		ev.Actor = l.actor()
		l.must(l.decide(ev))
	}
}

// placeAll gives each open session a host, if one can take it.
func (l *lead) placeAll() {
	for _, session := range slices.Sorted(maps.Keys(l.unplaced)) {
		agent := l.unplaced[session]
		choice := l.hosts.Choose(host.Needs{Labels: l.p.w.needs(agent), Worktree: l.homes[agent]})
		if choice.Host == "" {
			continue
		}
		l.must(l.host(host.Place{Session: session, Host: choice.Host, OnLost: l.p.w.onLost(agent)}))
		l.homes[agent] = choice.Host
		delete(l.unplaced, session)
	}
}

// part is where the next message ends: after a request, unless one request is larger than a message.
func (l *lead) part() int {
	most := min(len(l.records), l.done+journal.BatchChangesMax)
	for i := len(l.ends) - 1; i >= 0 && most < len(l.records); i-- {
		if at := l.ends[i].records; at <= most && at > l.done {
			return at
		}
	}
	return most
}

// append stores the next part of the batch, or answers and goes on with the next batch.
func (l *lead) append() {
	l.answer(true)
	if l.done == len(l.records) {
		l.busy = false
		l.work()
		return
	}
	m := &message{by: l.p, records: l.records[l.done:l.part()]}
	for i := range m.records {
		r := &m.records[i]
		l.versions[r.Entity]++
		r.Seq, r.Version = l.chain.Seq+1, l.versions[r.Entity]
		r.Hash = r.Sum(l.chain.Hash)
		l.chain.Seq, l.chain.Hash = r.Seq, r.Hash
	}
	try := jetstream.NewAttempt(fmt.Sprintf("%s-%x", l.p.name, l.p.w.rnd.Uint64()), l.place)
	l.next(m, try, jetstream.Publish)
}

// next does what the attempt asks for.
func (l *lead) next(m *message, try *jetstream.Attempt, step jetstream.Step) {
	switch step {
	case jetstream.Publish:
		began := l.p.w.now
		l.p.w.publish(l.p, m, try.MessageID(), try.Place(), func(a jetstream.Answer) {
			l.next(m, try, try.Answered(a, l.p.w.now-began))
		})
	case jetstream.Reconnect, jetstream.Look:
		if step == jetstream.Reconnect {
			l.p.reconnect()
		}
		l.p.later(host.BootTime(100*time.Millisecond), func() {
			l.p.pull()
			id := ""
			if uint64(l.p.pos) >= try.Place() {
				id = l.p.w.engine.log[try.Place()-1].id
			}
			step := try.Read(id)
			if step == jetstream.Publish {
				l.p.w.counts[retries]++
			}
			l.next(m, try, step)
		})
	case jetstream.Stored:
		l.place, l.done = try.Place(), l.done+len(m.records)
		l.append()
	case jetstream.Conflict:
		l.p.w.counts[conflicts]++
		l.failed = true
		l.answer(false)
		for _, r := range l.queue {
			if r.answer != nil {
				r.answer(false, nil)
			}
		}
		if l.p.lead == l {
			l.p.lead = nil
		}
	}
}

// answer answers the requests whose changes are stored; or, after a conflict, those whose are not.
func (l *lead) answer(stored bool) {
	for len(l.ends) > 0 && (l.ends[0].records <= l.done || !stored) {
		e := l.ends[0]
		if l.ends = l.ends[1:]; e.answer != nil {
			e.answer(stored, e.err)
		}
	}
	if stored {
		l.releasePauses()
	}
}

// renew renews the leader's entry, which only says that no other host needs to try.
func (l *lead) renew() {
	if l.p.lead != l || l.failed {
		return
	}
	l.p.later(host.BootTime(2*time.Second), l.renew)
	if !l.p.reachesNode() {
		return
	}
	if e := l.p.w.entry(l.p.node, "leader"); e.rev > l.p.leaderRev {
		l.p.leaderRev = e.rev
	}
	rev := l.p.leaderRev
	l.p.w.set(l.p, "leader", version{rev: rev}, func(ok bool) {
		if ok {
			l.p.leaderRev, l.p.leaderSeen = max(l.p.leaderRev, rev+1), l.p.now()
		}
	})
}

// tick looks at the leases of the hosts, and moves what may move.
func (l *lead) tick() {
	for _, name := range l.hosts.Names() {
		h := l.hosts.Hosts[name]
		if h.State == host.Lost || h.State == host.Left {
			continue
		}
		l.look(h)
	}
	if sessions := l.hosts.Movable(); len(sessions) > 0 || len(l.unplaced) > 0 {
		for _, s := range sessions {
			l.submit(func() error { return l.move(s) }, nil)
		}
		l.submit(func() error { return nil }, nil) // places what could not be placed before
	}
	l.releasePauses()
}

// look takes in what its node shows of a host's lease, and does what is due.
func (l *lead) look(h *host.Host) {
	now, key := l.p.now(), leaseKey(h.Name, h.Incarnation)
	x := l.watches[h.Name]
	if x == nil || x.incarnation != h.Incarnation {
		x = &watch{Watch: host.NewWatch(now), incarnation: h.Incarnation}
		l.watches[h.Name] = x
	}
	if l.p.reachesNode() {
		e, was := l.p.w.entry(l.p.node, key), x.Revision
		if x.Saw(e.rev, e.closed, now); x.Revision > was && !x.Closed {
			l.submit(func() error { return l.host(host.Renew{Name: h.Name, Incarnation: h.Incarnation}) }, nil)
		}
	}
	switch x.Due(now, h.RemovedBy != "") {
	case host.DoubtIsDue:
		if h.DoubtedAt.IsZero() {
			l.submit(func() error { return l.host(host.Doubt{Name: h.Name}) }, nil)
		}
	case host.CloseIsDue:
		if x.asks {
			return
		}
		x.asks = true
		rev := x.Revision
		l.p.w.set(l.p, key, version{rev: rev, closed: true}, func(ok bool) {
			if x.asks = false; ok {
				l.p.w.counts[closed]++
				x.Saw(rev+1, true, l.p.now())
			}
		})
	case host.LossIsDue:
		l.submit(func() error {
			if l.hosts.Hosts[h.Name].Incarnation != x.incarnation {
				return nil
			}
			return l.host(host.Lose{Name: h.Name})
		}, nil)
	}
}

// move ends a session whose process has ended for certain. Its agent's next one begins where there is a place.
func (l *lead) move(session string) error {
	may, why := l.hosts.MayMove(session)
	if _, placed := l.hosts.Leases[session]; !may || !placed {
		return errVoid
	}
	l.p.w.counts[moved]++
	return l.over(session, control.Lost, why)
}

// over ends a session, and its lease.
func (l *lead) over(session string, outcome control.Outcome, why string) error {
	ev := team.SessionEnded{Session: session, Outcome: outcome, Why: why, AtStart: true} // AtStart: an end that is unknown is no failure
	if err := l.decide(team.Event{Actor: l.actor(), Agent: agentOf(session), What: ev}); err != nil {
		return err
	}
	return l.host(host.Release{Session: session})
}

// asked answers a host that asks whether a session may start. Yes is answered when the change that was decided
// after the question is stored: that proves that this is the leader. No ends nothing: the question may be old,
// and the session may run by now. Its host withdraws it, if it has not begun.
func (l *lead) asked(token host.Token, grant func(epoch uint64), refuse func()) {
	if q := l.asks[token]; q != nil { // a newer question makes those before void
		q.grant, q.refuse = grant, refuse
		return
	}
	q := &question{grant, refuse}
	l.asks[token] = q
	l.submit(func() error {
		delete(l.asks, token)
		if ok, _ := l.hosts.Counts(token); !ok {
			return errVoid
		}
		agent := agentOf(token.Session)
		if may, _ := l.team.MayStart(agent, token.Session, l.now()); !may {
			return errRefused
		}
		l.grants[token.Session] = l.p.now()
		return l.decide(team.Event{
			Actor: l.actor(), Agent: agent,
			What: team.TokenGiven{Session: token.Session, Hash: fmt.Sprintf("%016x", l.p.w.rnd.Uint64())},
		})
	}, func(stored bool, err error) {
		if stored && err == nil {
			q.grant(l.epoch)
		}
		if stored && errors.Is(err, errRefused) {
			q.refuse()
		}
	})
}

var outcomes = map[string]control.Outcome{
	didItsWork: control.OK, leaseEnded: control.Lost, noLease: control.Lost, turnedOff: control.Lost, neverBegan: control.Withdrawn,
}

// started and ended take in reports of hosts. Those under a token that does not count are late.
func (l *lead) started(token host.Token) {
	if a := l.team.Agents[agentOf(token.Session)]; a != nil && a.Session != nil && a.Session.ID == token.Session &&
		a.Session.Phase == session.Running {
		return
	}
	l.submit(func() error {
		if ok, _ := l.hosts.Counts(token); !ok {
			return errVoid
		}
		return l.decide(team.Event{
			Actor: l.actor(), Agent: agentOf(token.Session),
			What: team.SessionStarted{Session: token.Session, PID: 1},
		})
	}, nil)
}

func (l *lead) ended(from *peer, token host.Token, why string, taken func()) {
	l.submit(func() error {
		if ok, _ := l.hosts.Counts(token); !ok && !l.reportTaken(token.Session) {
			return l.host(host.Report{Token: token, What: "it ended: " + why})
		}
		if _, placed := l.hosts.Leases[token.Session]; !placed {
			return nil
		}
		return l.over(token.Session, outcomes[why], why)
	}, func(stored bool, _ error) {
		if stored {
			l.p.w.send(l.p, from, taken)
		}
	})
}

// reportTaken reports whether a session has ended by a report of its host, which repeats it until it is answered.
func (l *lead) reportTaken(id string) bool {
	past := l.team.Agents[agentOf(id)].Past
	return slices.ContainsFunc(past, func(s team.Session) bool { return s.ID == id && s.Outcome != control.Lost })
}

// ordered decides a person's order. An order that came before is answered, and not decided again.
func (l *lead) ordered(o *order, reply func(stored bool, err error)) {
	l.submit(func() error {
		if l.notes[o.note] {
			return nil
		}
		ev := team.Event{Actor: change.Actor{Kind: "human", ID: "ann"}}
		if o.channel != "" {
			ev.What, ev.Text = channel.HumanSpoke{Channel: channel.ChannelID(o.channel), By: "ann", Bytes: len(o.note)}, o.note
		} else {
			ev.Agent, ev.What = o.agent, control.Commanded{Desired: o.word, By: "human", Note: o.note}
		}
		return l.decide(ev)
	}, func(stored bool, err error) {
		if stored && err == nil && o.word == control.WordPause {
			if l.pauses[o.agent] == nil {
				l.pauses[o.agent] = map[string]func(){}
			}
			l.pauses[o.agent][o.note] = func() { reply(true, nil) }
			l.releasePauses()
			return
		}
		reply(stored, err)
	})
}

// grantGone is how long after a grant, by its own clock, the leader knows that no process begins by it: the host's GrantFor is
// over, even if both clocks are as wrong as host.RateMax allows. Otherwise the second line does not compile.
const (
	grantGone = host.BootTime(7 * time.Second)
	_         = uint64(grantGone*(100-host.RateMax) - host.GrantFor*(100+host.RateMax))
)

// releasePauses answers the pauses of agents for which no process can begin any more.
func (l *lead) releasePauses() {
	for _, agent := range slices.Sorted(maps.Keys(l.pauses)) {
		if s := l.team.Agents[agent].Session; s != nil && s.Phase == session.Open {
			if granted, given := l.grants[s.ID]; given && l.p.now()-granted < grantGone {
				continue
			}
		}
		notes := l.pauses[agent]
		delete(l.pauses, agent)
		for _, note := range slices.Sorted(maps.Keys(notes)) {
			notes[note]()
		}
	}
}
