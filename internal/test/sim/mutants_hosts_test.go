package sim

const cluster = "./internal/test/sim/cluster"

// ofHosts are faults in the rules of many hosts.
var ofHosts = []mutant{
	{
		breaks: "a shim ignores that the lease of its host has ended",
		file:   "core/host/deadman.go", old: "return !d.Waits && now >= d.EndAt", new: "return !d.Waits && now >= d.EndAt && d.EndAt < 0",
		pkg: cluster, run: "TestCutOffHostEndsItsSessions",
	},
	{
		breaks: "a shim starts a session whose time for that is over",
		file:   "process/shim/deadman.go", old: "man == nil || man.MayBegin", new: "true || man.MayBegin",
		pkg: "./process/shim", run: "TestStartByOver",
	},
	{
		breaks: "a shim moves the deadline of a session back",
		file:   "process/shim/deadman.go", old: "	k.deadMan.Extend(to)\n", new: "	k.deadMan.EndAt = to\n",
		pkg: "./process/shim", run: "TestExtend",
	},
	{
		breaks: "a shim ends a session although its deadline was moved",
		file:   "process/shim/deadman.go", old: "		if k.alarm.Wait(end) != nil {",
		new: "		if _ = k.alarm.Wait(end); k.end(0) == nil {",
		pkg: "./process/shim", run: "TestExtend",
	},
	{
		breaks: "sessions move when their host is doubted",
		file:   "core/host/host.go", old: "	case h.State == Lost || h.State == Left:\n		return true, ",
		new: "	case h.State == Lost || h.State == Left || h.State == Doubted:\n		return true, ",
		pkg: cluster, run: "TestDoubtMovesNothing",
	},
	{
		breaks: "a host is lost before its sessions have ended",
		file:   "core/host/lease.go", old: "LostAfter     = BootTime(65 * time.Second)", new: "LostAfter     = BootTime(44 * time.Second)",
		pkg: cluster, run: "TestCutOffHostEndsItsSessions",
	},
	{
		breaks: "error 10071 is believed",
		file:   "engine/journal/jetstream/attempt.go", old: "	if a.silent >= ReconnectAfter {",
		new: "	if answer == WrongLast {\n		a.over = Conflict\n		return Conflict\n	}\n	if a.silent >= ReconnectAfter {",
		pkg: cluster, run: "TestWrongLastIsNoConflict",
	},
	{
		breaks: "each try has an id of its own",
		file:   "engine/journal/jetstream/attempt.go", old: "func (a *Attempt) MessageID() string { return a.id }",
		new: "func (a *Attempt) MessageID() string { return a.id + a.silent.String() }",
		pkg: cluster, run: "TestLostReply",
	},
	{
		breaks: "leases are kept by a clock that stops while the machine sleeps",
		file:   "internal/test/sim/cluster/clock_test.go", old: "return p.clock.boot(p.w.now) }",
		new: "return p.clock.boot(p.w.now - p.clock.slept) }",
		pkg: cluster, run: "TestSleepCounts",
	},
	{
		breaks: "a host is lost although its lease was not closed",
		file:   "core/host/watch.go", old: "	case silence >= LostAfter && w.Closed:\n", new: "	case silence >= LostAfter:\n",
		pkg: cluster, run: "TestLeaderThatSeesThePastLosesNoHost",
	},
	{
		breaks: "a lease counts from the answer to its renewal",
		file:   "core/host/lease.go", old: "	if last, waits := g.sent[g.n]; g.Inc",
		new: "	for n := range g.sent {\n		g.sent[n] = now\n	}\n	if last, waits := g.sent[g.n]; g.Inc",
		pkg: "./core/host", run: "TestLeaseCountsFromTheSend",
	},
	{
		breaks: "a daemon takes the renewal of the one before for its own",
		file:   "core/host/lease.go", old: " && by.Daemon == g.daemon", new: "",
		pkg: "./core/host", run: "TestLostAnswer",
	},
	{
		breaks: "a closed lease is renewed",
		file:   "core/host/lease.go", old: "g.Incarnation == 0 || g.closed ||", new: "g.Incarnation == 0 ||",
		pkg: "./core/host", run: "TestClosedLease",
	},
	{
		breaks: "a leader answers before its change is stored",
		file:   "internal/test/sim/cluster/lead_test.go",
		old:    "		if stored && err == nil {\n			q.grant(l.epoch)\n		}\n", new: "",
		file2: "internal/test/sim/cluster/lead_test.go", old2: "		l.grants[token.Session] = l.p.now()\n",
		new2: "		l.grants[token.Session] = l.p.now()\n		q.grant(l.epoch)\n",
		pkg:  cluster, run: "TestReplacedLeaderStartsNothing",
	},
	{
		breaks: "a pause is acknowledged while a granted start is on its way",
		file:   "internal/test/sim/cluster/lead_test.go", old: "l.p.now()-granted < grantGone", new: "l.p.now()-granted < 0",
		pkg: cluster, run: "TestPauseWaitsForGrants",
	},
	{
		breaks: "a host takes a start that was granted long ago",
		file:   "core/host/lease.go", old: "	case now >= asked+GrantFor:\n", new: "	case now >= asked+GrantFor*100:\n",
		file2: "core/host/lease.go", old2: "	return min(asked+GrantFor, end), \"\"\n", new2: "	return end, \"\"\n",
		pkg: cluster, run: "TestPauseWaitsForGrants",
	},
	{
		breaks: "a report counts under any lease number",
		file:   "core/host/host.go", old: "	case h == nil || l.Token != token:\n", new: "	case h == nil:\n",
		pkg: "./core/host", run: "TestCounts",
	},
}
