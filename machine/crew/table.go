package crew

import "github.com/fairlead-dev/fairlead/machine"

// Status is what is known of one agent (seed 001, States).
type Status string

const (
	None     Status = "none"     // there is no document
	Hatching Status = "hatching" // a placeholder: somebody is to come, nobody has a name yet
	Alive    Status = "alive"    // the lead session that is open said so
	Sleeping Status = "sleeping" // it was, and the session ended, or the lead says that it is not
	Unknown  Status = "unknown"  // the lead has not been heard yet
	Expired  Status = "expired"  // a placeholder that nobody came for; for ever
)

// Event is what happened to one agent, named so finely that a status and an event decide.
type Event string

const (
	Summoned        Event = "summoned"
	RegisteredHere  Event = "registered"        // for this seat, by this name
	RegisteredOther Event = "registered_other"  // for this seat, by another name
	LeadGone        Event = "lead_ended"        // the lead's session
	LeadUnheard     Event = "lead_unheard"      // the daemon started, or a lead session did and has not reported
	ListedAlive     Event = "listed"            // in a report, as alive
	NotListed       Event = "not_listed"        // in no line of it, or in one that does not say alive
	HatchedNever    Event = "hatching_too_long" // a placeholder without a name
	Woken           Event = "woken"             // the lead is told to wake it

	// A document from elsewhere, by what it says of its status.
	ImportedBare     Event = "imported_bare"     // nothing
	ImportedAwake    Event = "imported_awake"    // alive, in another session or on another device
	ImportedAsleep   Event = "imported_asleep"   // sleeping
	ImportedUnknown  Event = "imported_unknown"  // unknown, or a word that we do not know
	ImportedHatching Event = "imported_hatching" // a placeholder
	ImportedExpired  Event = "imported_expired"
	ImportedAgain    Event = "imported_again" // somebody else wrote the file of one that we know
)

// Act is what a rule does with the document, or with what the lead is to be told.
type Act string

const (
	TakeIdentity Act = "take_identity" // the name, the face, the soul; set once
	NoteAlive    Act = "note_alive"    // when, and in which session
	AskToRegist  Act = "ask_to_register"
	Refuse       Act = "refuse" // nothing changes; people see why
	TakeExtra    Act = "take_extra"
)

func do(acts ...Act) []Act { return acts }

// Table is what can happen to an agent. The ids are SPEC's rows.
var Table = machine.Table[Status, Event, Act]{
	None: {
		Summoned:         {ID: "P1", To: Hatching},
		RegisteredHere:   {ID: "P10", To: Alive, Do: do(TakeIdentity, NoteAlive), Why: "the seat has no placeholder, or one that expired"},
		ImportedBare:     {ID: "P12", To: Unknown, Do: do(TakeIdentity)},
		ImportedAwake:    {ID: "P13", To: Unknown, Do: do(TakeIdentity), Why: "the lead says who is alive, and nobody else"},
		ImportedUnknown:  {ID: "P13", To: Unknown, Do: do(TakeIdentity)},
		ImportedAsleep:   {ID: "P13", To: Sleeping, Do: do(TakeIdentity)},
		ImportedHatching: {ID: "P13", To: Hatching, Do: do(TakeIdentity), Why: "a placeholder is nobody yet; P7 ends it"},
		ImportedExpired:  {ID: "P13", To: Expired, Do: do(TakeIdentity)},
	},
	Hatching: {
		RegisteredHere: {ID: "P2", To: Alive, Do: do(TakeIdentity, NoteAlive)},
		ListedAlive:    {ID: "P9", To: Hatching, Do: do(AskToRegist), Why: "it was listed and never registered"},
		NotListed:      {ID: "P9", To: Hatching, Why: "a placeholder is nobody yet"},
		HatchedNever:   {ID: "P7", To: Expired},
		ImportedAgain:  {ID: "X7", To: Hatching, Do: do(TakeExtra)},
	},
	Alive: {
		RegisteredHere:  {ID: "P4", To: Alive, Do: do(NoteAlive), Why: "registered again; its soul is never written over"},
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
		ListedAlive:     {ID: "P4", To: Alive, Do: do(NoteAlive), Why: "no soul is sent: it is here"},
		LeadUnheard:     {ID: "P6", To: Unknown},
		Woken:           {ID: "P8", To: Unknown, Why: "until the report"},
		ImportedAgain:   {ID: "X7", To: Sleeping, Do: do(TakeExtra)},
	},
	Unknown: {
		RegisteredHere:  {ID: "P4", To: Alive, Do: do(NoteAlive)},
		RegisteredOther: {ID: "P11", To: Unknown, Do: do(Refuse)},
		ListedAlive:     {ID: "P4", To: Alive, Do: do(NoteAlive), Why: "no soul is sent: it is here"},
		NotListed:       {ID: "P5", To: Sleeping},
		Woken:           {ID: "P8", To: Unknown, Why: "nobody knows, and nobody will until the report"},
		ImportedAgain:   {ID: "X7", To: Unknown, Do: do(TakeExtra)},
	},
	Expired: {
		ImportedAgain: {ID: "X7", To: Expired, Do: do(TakeExtra), Why: "terminal: nothing else happens to it"},
	},
}

// Stage is how far a summon or a wake is.
type Stage string

const (
	Idle      Stage = "idle"
	Summoning Stage = "summoning" // the lead is told to summon
	Asking    Stage = "asking"    // a wake: the lead is asked first who is there
	Waking    Stage = "waking"    // a wake: it is told whom to wake
)

// LeadEvent is what happens between people and the lead.
type LeadEvent string

const (
	Configured    LeadEvent = "lead_configured"
	Began         LeadEvent = "lead_began"
	Adopted       LeadEvent = "lead_adopted"   // it outlived a daemon
	Forgotten     LeadEvent = "daemon_started" // what it reported, it reported to another one
	Ended         LeadEvent = "lead_ended"
	Told          LeadEvent = "lead_told"
	SummonBegins  LeadEvent = "summon_asked"
	WakeBegins    LeadEvent = "wake_asked"         // the lead has reported in its session
	WakeUnheard   LeadEvent = "wake_asked_unheard" // it has not, or there is none
	ReportedAll   LeadEvent = "reported"           // nobody who was to be woken is missing
	ReportedSome  LeadEvent = "reported_asleep"    // somebody who was to be woken is
	ReportedEarly LeadEvent = "reported_early"     // before it was told what the ceremony is about
	FellSilent    LeadEvent = "fell_silent"        // longer than a report may take
	StatusMissing LeadEvent = "status_missing"     // it was asked for a status and gave none in time
	SpokeOn       LeadEvent = "spoke"              // it says something, and has more time for it
	AwakeEarly    LeadEvent = "awake_early"        // somebody who was to be woken registered again, before the lead was told
	AllAwakeEarly LeadEvent = "all_awake_early"    // the last of them
	RegisterDue   LeadEvent = "register_due"       // it listed somebody who was never registered
	Noticed       LeadEvent = "noticed"            // something that people should see
)

// LeadAct is what a rule of the lead does.
type LeadAct string

const (
	Configure     LeadAct = "configure"
	TakeSession   LeadAct = "take_session"
	Forget        LeadAct = "forget_report"
	DropSession   LeadAct = "drop_session"
	DropActions   LeadAct = "drop_asks" // all that it was to be told
	QueueStatus   LeadAct = "ask_status"
	QueueSummon   LeadAct = "ask_summon"
	QueueWake     LeadAct = "ask_wake"
	NoteWho       LeadAct = "note_who"    // whom a wake is for
	NarrowWake    LeadAct = "narrow_wake" // to those who are still not awake
	QueueRegister LeadAct = "ask_register"
	DropAction    LeadAct = "drop_ask" // the one that was told
	NoteReport    LeadAct = "note_report"
	EndCeremony   LeadAct = "end_ceremony"
	NoteSilence   LeadAct = "note_silence"
	MoreTime      LeadAct = "more_time"
)

func doLead(acts ...LeadAct) []LeadAct { return acts }

// LeadTable is what can happen to the lead, and to a summon or a wake. SPEC gives it as text
// below its table; the ids L1 to L9 are ours.
var LeadTable = machine.Table[Stage, LeadEvent, LeadAct]{
	Idle: {
		Forgotten:     {ID: "P6", To: Idle, Do: doLead(Forget)},
		Adopted:       {ID: "P6", To: Idle, Do: doLead(TakeSession, QueueStatus, MoreTime), Why: "it is asked for a status at once"},
		Configured:    {ID: "L1", To: Idle, Do: doLead(Configure)},
		Began:         {ID: "L2", To: Idle, Do: doLead(TakeSession, QueueStatus), Why: "whoever has not reported in its session is asked"},
		Ended:         {ID: "L3", To: Idle, Do: doLead(DropSession, DropActions)},
		Told:          {ID: "L4", To: Idle, Do: doLead(DropAction)},
		SummonBegins:  {ID: "P1", To: Summoning, Do: doLead(QueueSummon)},
		WakeBegins:    {ID: "P8", To: Waking, Do: doLead(QueueWake)},
		WakeUnheard:   {ID: "P8", To: Asking, Do: doLead(QueueStatus, NoteWho)},
		ReportedAll:   {ID: "L5", To: Idle, Do: doLead(NoteReport)},
		StatusMissing: {ID: "L6", To: Idle, Do: doLead(NoteSilence), Why: "everybody stays unknown"},
		RegisterDue:   {ID: "P9", To: Idle, Do: doLead(QueueRegister)},
		Noticed:       {ID: "L8", To: Idle},
	},
	Summoning: {
		Forgotten:     {ID: "P6", To: Summoning, Do: doLead(Forget, MoreTime)},
		Adopted:       {ID: "P6", To: Summoning, Do: doLead(TakeSession, QueueStatus, MoreTime), Why: "it is asked for a status at once"},
		Configured:    {ID: "L1", To: Summoning, Do: doLead(Configure)},
		Began:         {ID: "L2", To: Summoning, Do: doLead(TakeSession), Why: "nobody is there to be asked about"},
		Ended:         {ID: "L3", To: Idle, Do: doLead(DropSession, DropActions, EndCeremony)},
		Told:          {ID: "L4", To: Summoning, Do: doLead(DropAction)},
		ReportedAll:   {ID: "L5", To: Idle, Do: doLead(NoteReport, EndCeremony)},
		ReportedEarly: {ID: "L5", To: Summoning, Do: doLead(NoteReport), Why: "it was not told yet"},
		FellSilent:    {ID: "L6", To: Idle, Do: doLead(NoteSilence, EndCeremony)},
		StatusMissing: {ID: "L6", To: Summoning, Do: doLead(NoteSilence)},
		SpokeOn:       {ID: "L7", To: Summoning, Do: doLead(MoreTime)},
		RegisterDue:   {ID: "P9", To: Summoning, Do: doLead(QueueRegister)},
		Noticed:       {ID: "L8", To: Summoning},
	},
	Asking: {
		Forgotten:     {ID: "P6", To: Asking, Do: doLead(Forget, MoreTime)},
		Adopted:       {ID: "P6", To: Asking, Do: doLead(TakeSession, QueueStatus, MoreTime), Why: "it is asked for a status at once"},
		Configured:    {ID: "L1", To: Asking, Do: doLead(Configure)},
		Began:         {ID: "L2", To: Asking, Do: doLead(TakeSession, QueueStatus)},
		Ended:         {ID: "L3", To: Idle, Do: doLead(DropSession, DropActions, EndCeremony)},
		Told:          {ID: "L4", To: Asking, Do: doLead(DropAction)},
		ReportedAll:   {ID: "L5", To: Idle, Do: doLead(NoteReport, EndCeremony)},
		ReportedSome:  {ID: "P8", To: Waking, Do: doLead(NoteReport, QueueWake)},
		FellSilent:    {ID: "L6", To: Idle, Do: doLead(NoteSilence, EndCeremony), Why: "whoever is awake would be woken twice"},
		StatusMissing: {ID: "L6", To: Asking, Do: doLead(NoteSilence), Why: "it speaks, so it may yet come"},
		SpokeOn:       {ID: "L7", To: Asking, Do: doLead(MoreTime)},
		Noticed:       {ID: "L8", To: Asking},
	},
	Waking: {
		Forgotten:     {ID: "P6", To: Waking, Do: doLead(Forget, MoreTime)},
		Adopted:       {ID: "P6", To: Waking, Do: doLead(TakeSession, QueueStatus, MoreTime), Why: "it is asked for a status at once"},
		Configured:    {ID: "L1", To: Waking, Do: doLead(Configure)},
		Ended:         {ID: "L3", To: Idle, Do: doLead(DropSession, DropActions, EndCeremony)},
		Told:          {ID: "L4", To: Waking, Do: doLead(DropAction)},
		ReportedAll:   {ID: "L5", To: Idle, Do: doLead(NoteReport, EndCeremony)},
		ReportedEarly: {ID: "L5", To: Waking, Do: doLead(NoteReport, NarrowWake), Why: "it was not told yet"},
		AwakeEarly:    {ID: "P4", To: Waking, Do: doLead(NarrowWake), Why: "no soul is sent to who is here"},
		AllAwakeEarly: {ID: "P4", To: Idle, Do: doLead(EndCeremony)},
		FellSilent:    {ID: "L6", To: Idle, Do: doLead(NoteSilence, EndCeremony)},
		StatusMissing: {ID: "L6", To: Waking, Do: doLead(NoteSilence)},
		SpokeOn:       {ID: "L7", To: Waking, Do: doLead(MoreTime)},
		RegisterDue:   {ID: "P9", To: Waking, Do: doLead(QueueRegister)},
		Noticed:       {ID: "L8", To: Waking},
	},
}
