package crew

import (
	"github.com/fairlead-dev/fairlead/core/table"
)

// Status is what is known about one agent (seed 001, States).
type Status string

const (
	None     Status = "none"     // there is no document
	Hatching Status = "hatching" // a placeholder for an agent that has no name yet
	Alive    Status = "alive"    // the lead's open session reported it
	Sleeping Status = "sleeping" // the session that reported it has ended, or the lead reported it as not alive
	Unknown  Status = "unknown"  // the lead's session has not reported yet
	Expired  Status = "expired"  // a placeholder that no agent registered for; final
)

// Event is what happened to one agent. Each case has its own name, so status and event decide.
type Event string

const (
	Summoned        Event = "summoned"
	RegisteredHere  Event = "registered"        // for this seat, by this name
	RegisteredOther Event = "registered_other"  // for this seat, by another name
	LeadGone        Event = "lead_ended"        // the lead's session ended
	LeadUnheard     Event = "lead_unheard"      // the daemon or a lead session started, and the session has not reported yet
	ListedAlive     Event = "listed"            // reported as alive
	NotListed       Event = "not_listed"        // missing from a report, or reported as not alive
	HatchedNever    Event = "hatching_too_long" // a placeholder for too long
	Woken           Event = "woken"             // the lead is asked to wake it

	// An imported document, by its status.
	ImportedBare     Event = "imported_bare"     // no status
	ImportedAwake    Event = "imported_awake"    // alive, in another session or on another device
	ImportedAsleep   Event = "imported_asleep"   // sleeping
	ImportedUnknown  Event = "imported_unknown"  // unknown, or an unknown word
	ImportedHatching Event = "imported_hatching" // a placeholder
	ImportedExpired  Event = "imported_expired"
	ImportedAgain    Event = "imported_again" // another program wrote the file of a known document
)

// Act is what a row does with the document or with the lead's actions.
type Act string

const (
	TakeIdentity Act = "take_identity" // name, face and soul; they are set once
	NoteAlive    Act = "note_alive"    // time and session
	AskToRegist  Act = "ask_to_register"
	Refuse       Act = "refuse" // no change; a notice says why
	TakeExtra    Act = "take_extra"
)

func do(acts ...Act) []Act { return acts }

// Table is the life of an agent's document. The ids are the rows of SPEC.
var Table = table.Table[Status, Event, Act]{
	None: {
		Summoned:         {ID: "P1", To: Hatching},
		RegisteredHere:   {ID: "P10", To: Alive, Do: do(TakeIdentity, NoteAlive), Why: "the seat has no placeholder, or an expired one"},
		ImportedBare:     {ID: "P12", To: Unknown, Do: do(TakeIdentity)},
		ImportedAwake:    {ID: "P13", To: Unknown, Do: do(TakeIdentity), Why: "only the lead reports which agents are alive"},
		ImportedUnknown:  {ID: "P13", To: Unknown, Do: do(TakeIdentity)},
		ImportedAsleep:   {ID: "P13", To: Sleeping, Do: do(TakeIdentity)},
		ImportedHatching: {ID: "P13", To: Hatching, Do: do(TakeIdentity), Why: "a placeholder is not an agent yet; P7 expires it"},
		ImportedExpired:  {ID: "P13", To: Expired, Do: do(TakeIdentity)},
	},
	Hatching: {
		RegisteredHere: {ID: "P2", To: Alive, Do: do(TakeIdentity, NoteAlive)},
		ListedAlive:    {ID: "P9", To: Hatching, Do: do(AskToRegist), Why: "it was listed and never registered"},
		NotListed:      {ID: "P9", To: Hatching, Why: "a placeholder is not an agent yet"},
		HatchedNever:   {ID: "P7", To: Expired},
		ImportedAgain:  {ID: "X7", To: Hatching, Do: do(TakeExtra)},
	},
	Alive: {
		RegisteredHere:  {ID: "P4", To: Alive, Do: do(NoteAlive), Why: "registered again; its soul is never overwritten"},
		RegisteredOther: {ID: "P11", To: Alive, Do: do(Refuse)},
		LeadGone:        {ID: "P3", To: Sleeping},
		ListedAlive:     {ID: "P4", To: Alive, Do: do(NoteAlive)},
		NotListed:       {ID: "P5", To: Sleeping},
		LeadUnheard:     {ID: "P6", To: Unknown},
		ImportedAgain:   {ID: "X7", To: Alive, Do: do(TakeExtra)},
	},
	Sleeping: {
		RegisteredHere:  {ID: "P4", To: Alive, Do: do(NoteAlive)},
		RegisteredOther: {ID: "P11", To: Sleeping, Do: do(Refuse)},
		ListedAlive:     {ID: "P4", To: Alive, Do: do(NoteAlive), Why: "the agent is already alive, so its soul is not sent"},
		LeadUnheard:     {ID: "P6", To: Unknown},
		Woken:           {ID: "P8", To: Unknown, Why: "until the report"},
		ImportedAgain:   {ID: "X7", To: Sleeping, Do: do(TakeExtra)},
	},
	Unknown: {
		RegisteredHere:  {ID: "P4", To: Alive, Do: do(NoteAlive)},
		RegisteredOther: {ID: "P11", To: Unknown, Do: do(Refuse)},
		ListedAlive:     {ID: "P4", To: Alive, Do: do(NoteAlive), Why: "the agent is already alive, so its soul is not sent"},
		NotListed:       {ID: "P5", To: Sleeping},
		Woken:           {ID: "P8", To: Unknown, Why: "unknown until the next report"},
		ImportedAgain:   {ID: "X7", To: Unknown, Do: do(TakeExtra)},
	},
	Expired: {
		ImportedAgain: {ID: "X7", To: Expired, Do: do(TakeExtra), Why: "a final state"},
	},
}

// Stage is the state of a summon or a wake.
type Stage string

const (
	Idle      Stage = "idle"
	Summoning Stage = "summoning" // the lead is asked to summon
	Asking    Stage = "asking"    // a wake: the lead is first asked which agents are alive
	Waking    Stage = "waking"    // a wake: the lead is asked to wake agents
)

// LeadEvent is what happens to the lead, a summon or a wake.
type LeadEvent string

const (
	Configured    LeadEvent = "lead_configured"
	Began         LeadEvent = "lead_began"
	Adopted       LeadEvent = "lead_adopted"   // it outlived a daemon
	Forgotten     LeadEvent = "daemon_started" // its report was to the previous daemon
	Ended         LeadEvent = "lead_ended"
	Left          LeadEvent = "lead_left"  // a lead session or an ordinary one has ended, and the summon or wake in progress continues
	Heard         LeadEvent = "lead_heard" // a marker in an ordinary session of the lead
	Received      LeadEvent = "lead_told"
	SummonBegins  LeadEvent = "summon_asked"
	WakeBegins    LeadEvent = "wake_asked"         // the lead has reported in its session
	WakeUnheard   LeadEvent = "wake_asked_unheard" // the lead has not reported, or has no session
	ReportedAll   LeadEvent = "reported"           // all agents to be woken are alive
	ReportedSome  LeadEvent = "reported_asleep"    // some agents to be woken are not alive
	ReportedEarly LeadEvent = "reported_early"     // before it received the summon or wake
	ReportedPart  LeadEvent = "reported_part"      // some of the agents in its action are still missing
	FellSilent    LeadEvent = "fell_silent"        // for longer than a report may take
	StatusMissing LeadEvent = "status_missing"     // a status that it was asked for did not come in time
	SpokeOn       LeadEvent = "spoke"              // text from the lead extends the deadline
	AwakeEarly    LeadEvent = "awake_early"        // an agent to be woken registered before the lead received the wake
	AllAwake      LeadEvent = "all_awake"          // the last agent to be woken registered
	RegisterDue   LeadEvent = "register_due"       // it listed an agent that was never registered
	Noticed       LeadEvent = "noticed"            // a notice for people

	// Only events of documents follow from these.
	NewRegistered LeadEvent = "agent_registered"
	FileSeen      LeadEvent = "file_seen"
)

// LeadAct is what a row does with the lead.
type LeadAct string

const (
	Configure     LeadAct = "configure"
	TakeSession   LeadAct = "take_session"
	Forget        LeadAct = "forget_report"
	DropSession   LeadAct = "drop_session"
	DropActions   LeadAct = "drop_asks"  // all of the lead's actions
	TellAgain     LeadAct = "tell_again" // all actions are pending again
	QueueStatus   LeadAct = "ask_status"
	QueueSummon   LeadAct = "ask_summon"
	QueueWake     LeadAct = "ask_wake"
	NoteWho       LeadAct = "note_who"    // the agents to wake
	NarrowWake    LeadAct = "narrow_wake" // remove the agents that are alive already
	QueueRegister LeadAct = "ask_register"
	DropAction    LeadAct = "drop_ask" // the delivered action
	NoteReport    LeadAct = "note_report"
	EndCeremony   LeadAct = "end_ceremony"
	NoteSilence   LeadAct = "note_silence"
	MoreTime      LeadAct = "more_time"
)

func doLead(acts ...LeadAct) []LeadAct { return acts }

// LeadTable is the life of the lead, a summon and a wake. SPEC gives it as text below its table;
// the ids L1 to L11 are Fairlead's own.
var LeadTable = table.Table[Stage, LeadEvent, LeadAct]{
	Idle: {
		Forgotten:     {ID: "P6", To: Idle, Do: doLead(Forget)},
		Adopted:       {ID: "P6", To: Idle, Do: doLead(TakeSession, QueueStatus, MoreTime), Why: "the lead is asked for a status at once"},
		Configured:    {ID: "L1", To: Idle, Do: doLead(Configure)},
		Began:         {ID: "L2", To: Idle, Do: doLead(TakeSession, QueueStatus), Why: "a session that has not reported is asked for a status first"},
		Ended:         {ID: "L3", To: Idle, Do: doLead(DropSession, DropActions)},
		Left:          {ID: "L10", To: Idle, Do: doLead(DropSession, DropActions)},
		Heard:         {ID: "L11", To: Idle, Do: doLead(TakeSession), Why: "the markers of any session of the lead count"},
		Received:      {ID: "L4", To: Idle, Do: doLead(DropAction)},
		SummonBegins:  {ID: "P1", To: Summoning, Do: doLead(QueueSummon)},
		WakeBegins:    {ID: "P8", To: Waking, Do: doLead(QueueWake)},
		WakeUnheard:   {ID: "P8", To: Asking, Do: doLead(QueueStatus, NoteWho)},
		ReportedAll:   {ID: "L5", To: Idle, Do: doLead(NoteReport)},
		StatusMissing: {ID: "L6", To: Idle, Do: doLead(NoteSilence), Why: "all agents stay unknown"},
		RegisterDue:   {ID: "P9", To: Idle, Do: doLead(QueueRegister)},
		Noticed:       {ID: "L8", To: Idle},
	},
	Summoning: {
		Forgotten:     {ID: "P6", To: Summoning, Do: doLead(Forget, MoreTime)},
		Adopted:       {ID: "P6", To: Summoning, Do: doLead(TakeSession, QueueStatus, MoreTime), Why: "the lead is asked for a status at once"},
		Configured:    {ID: "L1", To: Summoning, Do: doLead(Configure)},
		Began:         {ID: "L2", To: Summoning, Do: doLead(TakeSession), Why: "there are no agents to ask about"},
		Ended:         {ID: "L3", To: Idle, Do: doLead(DropSession, DropActions, EndCeremony)},
		Left:          {ID: "L10", To: Summoning, Do: doLead(DropSession, DropActions, TellAgain, QueueSummon)},
		Heard:         {ID: "L11", To: Summoning, Do: doLead(TakeSession), Why: "the markers of any session of the lead count"},
		Received:      {ID: "L4", To: Summoning, Do: doLead(DropAction)},
		ReportedAll:   {ID: "L5", To: Idle, Do: doLead(NoteReport, EndCeremony)},
		ReportedEarly: {ID: "L5", To: Summoning, Do: doLead(NoteReport), Why: "the lead was not told yet"},
		ReportedPart:  {ID: "L5", To: Summoning, Do: doLead(NoteReport, MoreTime), Why: "other seats have no agent yet"},
		FellSilent:    {ID: "L6", To: Idle, Do: doLead(NoteSilence, EndCeremony)},
		StatusMissing: {ID: "L6", To: Summoning, Do: doLead(NoteSilence)},
		SpokeOn:       {ID: "L7", To: Summoning, Do: doLead(MoreTime)},
		RegisterDue:   {ID: "P9", To: Summoning, Do: doLead(QueueRegister)},
		Noticed:       {ID: "L8", To: Summoning},
	},
	Asking: {
		Forgotten:     {ID: "P6", To: Asking, Do: doLead(Forget, MoreTime)},
		Adopted:       {ID: "P6", To: Asking, Do: doLead(TakeSession, QueueStatus, MoreTime), Why: "the lead is asked for a status at once"},
		Configured:    {ID: "L1", To: Asking, Do: doLead(Configure)},
		Began:         {ID: "L2", To: Asking, Do: doLead(TakeSession, QueueStatus)},
		Ended:         {ID: "L3", To: Idle, Do: doLead(DropSession, DropActions, EndCeremony)},
		Left:          {ID: "L10", To: Asking, Do: doLead(DropSession, DropActions, TellAgain, QueueStatus)},
		Heard:         {ID: "L11", To: Asking, Do: doLead(TakeSession), Why: "the markers of any session of the lead count"},
		Received:      {ID: "L4", To: Asking, Do: doLead(DropAction)},
		ReportedAll:   {ID: "L5", To: Idle, Do: doLead(NoteReport, EndCeremony)},
		ReportedSome:  {ID: "P8", To: Waking, Do: doLead(NoteReport, QueueWake)},
		FellSilent:    {ID: "L6", To: Idle, Do: doLead(NoteSilence, EndCeremony), Why: "otherwise an agent that is alive would be woken twice"},
		StatusMissing: {ID: "L6", To: Asking, Do: doLead(NoteSilence), Why: "the lead is active, so its report may still come"},
		SpokeOn:       {ID: "L7", To: Asking, Do: doLead(MoreTime)},
		Noticed:       {ID: "L8", To: Asking},
	},
	Waking: {
		Forgotten:     {ID: "P6", To: Waking, Do: doLead(Forget, MoreTime)},
		Adopted:       {ID: "P6", To: Waking, Do: doLead(TakeSession, QueueStatus, MoreTime), Why: "the lead is asked for a status at once"},
		Configured:    {ID: "L1", To: Waking, Do: doLead(Configure)},
		Ended:         {ID: "L3", To: Idle, Do: doLead(DropSession, DropActions, EndCeremony)},
		Left:          {ID: "L10", To: Asking, Do: doLead(DropSession, DropActions, TellAgain, QueueStatus), Why: "a session that has not reported is asked first"},
		Received:      {ID: "L4", To: Waking, Do: doLead(DropAction)},
		ReportedAll:   {ID: "L5", To: Idle, Do: doLead(NoteReport, EndCeremony)},
		ReportedEarly: {ID: "L5", To: Waking, Do: doLead(NoteReport, NarrowWake), Why: "the lead was not told yet"},
		ReportedPart:  {ID: "L5", To: Waking, Do: doLead(NoteReport, NarrowWake, MoreTime), Why: "other agents were not reported yet"},
		AwakeEarly:    {ID: "P4", To: Waking, Do: doLead(NarrowWake), Why: "the agent is already alive, so its soul is not sent"},
		AllAwake:      {ID: "P4", To: Idle, Do: doLead(EndCeremony)},
		FellSilent:    {ID: "L6", To: Idle, Do: doLead(NoteSilence, EndCeremony)},
		StatusMissing: {ID: "L6", To: Waking, Do: doLead(NoteSilence)},
		SpokeOn:       {ID: "L7", To: Waking, Do: doLead(MoreTime)},
		RegisterDue:   {ID: "P9", To: Waking, Do: doLead(QueueRegister)},
		Noticed:       {ID: "L8", To: Waking},
	},
}
