package host

import (
	"github.com/fairlead-dev/fairlead/core/table"
)

// State is the state of a host.
type State string

const (
	None     State = "none"
	Joined   State = "joined"   // sessions are placed on it
	Doubted  State = "doubted"  // its renewals stopped, or it was removed; its sessions may run
	Lost     State = "lost"     // its sessions have ended, by their own deadline
	Draining State = "draining" // it gets no new session
	Left     State = "left"     // it needs a new invitation
)

// Event is what happened to a host.
type Event string

const (
	HostJoined       Event = "joined"             // with an invitation
	CameBack         Event = "came_back"          // after a restart of its machine, or after it was lost
	CameBackDraining Event = "came_back_draining" // the same for a host that was draining when it was lost
	FactsReported    Event = "facts_reported"     // its daemon restarted with other labels or another capacity
	Renewed          Event = "lease_renewed"      // after a doubt
	DoubtDue         Event = "doubt_due"
	LostDue          Event = "lost_due"
	RemovalDue       Event = "removal_due" // lost_due of a removed host
	SessionPlaced    Event = "session_placed"
	SessionReleased  Event = "session_released"
	SessionLost      Event = "session_lost" // released while its lease did not count
	DrainAsked       Event = "drain_asked"
	Drained          Event = "drained"
	HostLeft         Event = "left"          // at its own request, after it ended its sessions
	Removed          Event = "removed"       // by a person
	RemovedBusy      Event = "removed_busy"  // by a person, while sessions may run on it
	ReportedLate     Event = "reported_late" // under a lease that does not count
	LacksReported    Event = "lacks_reported"
	EngineEnded      Event = "engine_ended"     // the leader takes the journal back to its own machine
	BranchesFetched  Event = "branches_fetched" // those that it had when it led
)

// Act is what a row does with the facts of a host.
type Act string

const (
	TakeFacts       Act = "take_facts"       // boot, labels, capacity
	NextIncarnation Act = "next_incarnation" // its sessions of before count no more
	NoteDoubt       Act = "note_doubt"
	ForgetDoubt     Act = "forget_doubt"
	NoteLost        Act = "note_lost"
	LeaseSession    Act = "lease_session" // under the next lease number
	ReleaseSession  Act = "release_session"
	NoteMissing     Act = "note_missing" // of the session that is released
	ForgetMissing   Act = "forget_missing"
	NoteDrain       Act = "note_drain"
	ForgetDrain     Act = "forget_drain"
	NoteRemoval     Act = "note_removal"
	ForgetRemoval   Act = "forget_removal"
	KeepLate        Act = "keep_late" // and it is missing no more
	NoteLacks       Act = "note_lacks"
	ForgetEngine    Act = "forget_engine"
	ForgetBranches  Act = "forget_branches" // none of them is missing any longer
)

func do(acts ...Act) []Act { return acts }

// Table is the life of a host. The rows are Fairlead's own: the specification has none for hosts.
var Table = table.Table[State, Event, Act]{
	None: {
		HostJoined: {ID: "H1", To: Joined, Do: do(TakeFacts, NextIncarnation)},
	},
	Joined: {
		CameBack:        {ID: "H2", To: Joined, Do: do(TakeFacts, NextIncarnation), Why: "its machine restarted, so none of its sessions runs"},
		FactsReported:   {ID: "H3", To: Joined, Do: do(TakeFacts), Why: "only its daemon restarted; its sessions go on"},
		DoubtDue:        {ID: "H5", To: Doubted, Do: do(NoteDoubt), Why: "it gets no new session"},
		SessionPlaced:   {ID: "H7", To: Joined, Do: do(LeaseSession), Why: "only here: no other state takes a session"},
		SessionReleased: {ID: "H8", To: Joined, Do: do(ReleaseSession)},
		SessionLost:     {ID: "H15", To: Joined, Do: do(ReleaseSession, NoteMissing)},
		DrainAsked:      {ID: "H9", To: Draining, Do: do(NoteDrain)},
		HostLeft:        {ID: "H11", To: Left, Do: do(ForgetMissing)},
		Removed:         {ID: "H12", To: Left, Do: do(ForgetMissing)},
		RemovedBusy:     {ID: "H13", To: Doubted, Do: do(NoteRemoval, NoteDoubt, ForgetMissing), Why: "its lease is closed, and its sessions end by their deadline"},
		ReportedLate:    {ID: "H14", To: Joined, Do: do(KeepLate)},
		LacksReported:   {ID: "H16", To: Joined, Do: do(NoteLacks), Why: "it gets no new session that needs what it lacks"},
		EngineEnded:     {ID: "H17", To: Joined, Do: do(ForgetEngine), Why: "it cannot lead from here on, whatever its own files say"},
		BranchesFetched: {ID: "H18", To: Joined, Do: do(ForgetBranches), Why: "the leader has the commits of its branches"},
	},
	Doubted: {
		CameBack:        {ID: "H2", To: Joined, Do: do(TakeFacts, NextIncarnation, ForgetDoubt)},
		FactsReported:   {ID: "H3", To: Doubted, Do: do(TakeFacts), Why: "only a renewal ends the doubt"},
		Renewed:         {ID: "H4", To: Joined, Do: do(ForgetDoubt)},
		LostDue:         {ID: "H6", To: Lost, Do: do(NoteLost), Why: "its sessions have ended by now, so they may begin elsewhere"},
		RemovalDue:      {ID: "H6", To: Left, Do: do(NoteLost)},
		SessionReleased: {ID: "H8", To: Doubted, Do: do(ReleaseSession)},
		SessionLost:     {ID: "H15", To: Doubted, Do: do(ReleaseSession, NoteMissing)},
		DrainAsked:      {ID: "H9", To: Draining, Do: do(NoteDrain)},
		HostLeft:        {ID: "H11", To: Left, Do: do(ForgetDoubt, ForgetMissing)},
		Removed:         {ID: "H12", To: Left, Do: do(ForgetDoubt, ForgetMissing)},
		RemovedBusy:     {ID: "H13", To: Doubted, Do: do(NoteRemoval, ForgetMissing)},
		ReportedLate:    {ID: "H14", To: Doubted, Do: do(KeepLate)},
		LacksReported:   {ID: "H16", To: Doubted, Do: do(NoteLacks)},
		EngineEnded:     {ID: "H17", To: Doubted, Do: do(ForgetEngine)},
		BranchesFetched: {ID: "H18", To: Doubted, Do: do(ForgetBranches)},
	},
	Draining: {
		CameBack:        {ID: "H2", To: Draining, Do: do(TakeFacts, NextIncarnation, ForgetDoubt)},
		FactsReported:   {ID: "H3", To: Draining, Do: do(TakeFacts)},
		Renewed:         {ID: "H4", To: Draining, Do: do(ForgetDoubt)},
		DoubtDue:        {ID: "H5", To: Draining, Do: do(NoteDoubt)},
		LostDue:         {ID: "H6", To: Lost, Do: do(NoteLost)},
		SessionReleased: {ID: "H8", To: Draining, Do: do(ReleaseSession)},
		SessionLost:     {ID: "H15", To: Draining, Do: do(ReleaseSession, NoteMissing)},
		Drained:         {ID: "H10", To: Left, Do: do(ForgetDrain, ForgetDoubt), Why: "its last session has ended, and nothing of others is missing"},
		HostLeft:        {ID: "H11", To: Left, Do: do(ForgetDrain, ForgetDoubt, ForgetMissing)},
		Removed:         {ID: "H12", To: Left, Do: do(ForgetDrain, ForgetDoubt, ForgetMissing), Why: "what is missing of its sessions is given up"},
		RemovedBusy:     {ID: "H13", To: Doubted, Do: do(NoteRemoval, NoteDoubt, ForgetMissing)},
		ReportedLate:    {ID: "H14", To: Draining, Do: do(KeepLate)},
		LacksReported:   {ID: "H16", To: Draining, Do: do(NoteLacks)},
		EngineEnded:     {ID: "H17", To: Draining, Do: do(ForgetEngine)},
		BranchesFetched: {ID: "H18", To: Draining, Do: do(ForgetBranches)},
	},
	Lost: {
		CameBack:         {ID: "H2", To: Joined, Do: do(TakeFacts, NextIncarnation, ForgetDoubt)},
		CameBackDraining: {ID: "H2", To: Draining, Do: do(TakeFacts, NextIncarnation, ForgetDoubt)},
		SessionReleased:  {ID: "H8", To: Lost, Do: do(ReleaseSession), Why: "it begins elsewhere, or a person has dealt with it"},
		SessionLost:      {ID: "H15", To: Lost, Do: do(ReleaseSession, NoteMissing), Why: "it ended with its host; what it left is fetched when that is back"},
		Removed:          {ID: "H12", To: Left, Do: do(NoteRemoval, ForgetDrain, ForgetDoubt, ForgetMissing), Why: "sessions that wait for it stay: no deadline has ended them"},
		ReportedLate:     {ID: "H14", To: Lost, Do: do(KeepLate)},
		EngineEnded:      {ID: "H17", To: Lost, Do: do(ForgetEngine)},
	},
	Left: {
		HostJoined:      {ID: "H1", To: Joined, Do: do(TakeFacts, NextIncarnation, ForgetDoubt, ForgetDrain, ForgetRemoval)},
		SessionReleased: {ID: "H8", To: Left, Do: do(ReleaseSession)},
		ReportedLate:    {ID: "H14", To: Left, Do: do(KeepLate)},
	},
}
