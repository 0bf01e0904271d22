package api

import (
	"time"

	"github.com/fairlead-dev/fairlead/controller/runs"
	"github.com/fairlead-dev/fairlead/view"

	"github.com/danielgtaylor/huma/v2"
	"github.com/fairlead-dev/fairlead/machine"
)

// SayBody is what a person says.
type SayBody struct {
	Text string `json:"text" minLength:"1" maxLength:"131072" doc:"What is said; 128 KiB at most: what is longer is a file, and its name is said"`
	Mode string `json:"mode,omitempty" enum:"queue,interrupt,inject,parallel" doc:"How it meets the turn that is under way; the channel's where it is left out"`
}

// GrantBody says who gets the turn.
type GrantBody struct {
	Agent string `json:"agent" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"Who gets it"`
	Now   bool   `json:"now,omitempty" doc:"Also where somebody holds it: that turn ends (T23)"`
}

// SkipBody says which turn ends.
type SkipBody struct {
	Turn uint64 `json:"turn,omitempty" maximum:"9007199254740991" doc:"Only this one; whichever is under way where it is left out"`
}

// OverrideBody says what becomes of a wait. It is never guessed: one of the two ends a turn.
type OverrideBody struct {
	GoOn bool `json:"go_on" doc:"true: the turn goes on with what time it had left; false: it is forfeited (T15)"`
}

// MemberBody says who joins.
type MemberBody struct {
	Agent string `json:"agent" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"Who joins"`
}

// EmptyBody takes no words, so that one who gives some is told that they are lost.
type EmptyBody struct{}

// WakeBody says who is woken.
type WakeBody struct {
	Agents []AgentName `json:"agents,omitempty" nullable:"false" minItems:"1" maxItems:"64" doc:"Their ids or names; everybody who is not awake where it is left out"`
}

// AgentName is an id or a name in a list, which are checked one by one.
type AgentName string

// Schema is that of the name in a path.
func (AgentName) Schema(huma.Registry) *huma.Schema {
	least, most := 1, 64
	return &huma.Schema{Type: huma.TypeString, MinLength: &least, MaxLength: &most, Pattern: `^[^\x00-\x1f\x7f-\x9f]+$`}
}

// NoteBody is who asks adding why.
type NoteBody struct {
	Note string `json:"note,omitempty" maxLength:"1000" doc:"Why, for people; it stands beside the order"`
}

// ConfirmBody says which action was done.
type ConfirmBody struct {
	Key string `json:"key" minLength:"1" maxLength:"256" doc:"As the action has it"`
}

// SaidBody is what an agent says.
type SaidBody struct {
	Agent    string `json:"agent" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"Who says it"`
	Turn     uint64 `json:"turn" maximum:"9007199254740991" doc:"As the action has it; 0 where it has none. Under a number that is over it is kept as late"`
	Re       uint64 `json:"re,omitempty" maximum:"9007199254740991" doc:"The message that it answers without a turn: message of a tell_aside, or of a tell_message whose turn is 0"`
	Text     string `json:"text" maxLength:"131072" doc:"What it says; 128 KiB at most, several are allowed"`
	Complete bool   `json:"complete,omitempty" doc:"The turn is over (T7)"`
	Ended    bool   `json:"ended,omitempty" doc:"Nothing more comes in this answer"`
}

// TurnBody names a turn.
type TurnBody struct {
	Agent string `json:"agent" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"Whose turn it is"`
	Turn  uint64 `json:"turn" minimum:"1" maximum:"9007199254740991" doc:"As the action has it"`
}

// WaitBody names a turn, and what it waits for.
type WaitBody struct {
	Agent string `json:"agent" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"Whose turn it is"`
	Turn  uint64 `json:"turn" minimum:"1" maximum:"9007199254740991" doc:"As the action has it"`
	Why   string `json:"why,omitempty" maxLength:"2000" doc:"What it waits for, for people"`
}

// AskedBody is what a person answers to an agent.
type AskedBody view.QuestionAnswer

// CancelBody says what is cancelled, and why.
type CancelBody struct {
	Step string `json:"step,omitempty" maxLength:"64" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" doc:"Only this step; the run where it is left out"`
	Note string `json:"note,omitempty" maxLength:"1000" doc:"Why, for people"`
}

// RunBody is what somebody says who starts a run, or has it go on.
type RunBody view.RunFlags

// AnswerBody is what a person says to a step; whether it is a yes is in the route.
type AnswerBody struct {
	Note  string `json:"note,omitempty" maxLength:"1000" doc:"Why, for people"`
	Input string `json:"input,omitempty" maxLength:"1048576" doc:"JSON, where the step asks for more than yes or no"`
}

// PruneBody says which runs are old.
type PruneBody struct {
	Keep        *int   `json:"keep,omitempty" minimum:"0" doc:"The newest so many stay"`
	OlderThanMS *int64 `json:"older_than_ms,omitempty" minimum:"0" maximum:"9000000000000" doc:"Only those that have not changed for so long"`
	All         bool   `json:"all,omitempty" doc:"Also those that have failed or were cancelled"`
	DryRun      bool   `json:"dry_run,omitempty" doc:"Only say what would be done"`
}

// DispatchStartBody says how a session goes.
type DispatchStartBody struct {
	Mode string `json:"mode,omitempty" enum:"orchestrator,interactive,response" doc:"Where an agent goes when it is done; orchestrator where it is left out"`
	Host string `json:"host,omitempty" enum:"fairlead,none" doc:"Who does the work: agents of fairlead.yaml, or nobody of ours. Left out: fairlead where the file names a session.main or describes agents"`
	Path string `json:"path,omitempty" maxLength:"4096" doc:"The folder, absolute or relative to the repository; it must not exist. Left out: one below .claude/agent-state-machine, called by the time"`
}

// DispatchInputBody is what a person says.
type DispatchInputBody struct {
	Text string `json:"text" minLength:"1" maxLength:"65536" doc:"What is to be done; 64 KiB at most, a longer one is a file that this names"`
}

// DispatchDelegateBody puts an agent in charge.
type DispatchDelegateBody struct {
	Agent string `json:"agent" minLength:"1" maxLength:"200" doc:"Whose description the session knows"`
	Text  string `json:"text" minLength:"1" maxLength:"65536" doc:"What it is to do"`
}

// DispatchDoneBody says how the task ended that began last.
type DispatchDoneBody struct {
	Failed bool   `json:"failed,omitempty" doc:"It did not do what it was to do"`
	Text   string `json:"text,omitempty" maxLength:"65536" doc:"What came of it"`
}

// DispatchRespondBody is MAIN's answer.
type DispatchRespondBody struct {
	Text string `json:"text,omitempty" maxLength:"65536" doc:"What the user is told"`
}

// RouteBody is an input that is only ranked.
type RouteBody struct {
	Text    string `json:"text" minLength:"1" maxLength:"65536" doc:"What somebody might say"`
	Session string `json:"session,omitempty" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" doc:"Whose descriptions count; left out: those that a session would begin with now"`
}

// Channels is the answer with every channel.
type Channels struct {
	Channels []view.ChannelView `json:"channels" nullable:"false" doc:"By name"`
	Head     uint64             `json:"head" doc:"All changes up to this sequence are in it: follow /events?after=HEAD from it"`
}

// ChannelOrdered is the answer to an order about a channel.
type ChannelOrdered struct {
	Seq     uint64           `json:"seq" doc:"The last change that the order made; it is durable"`
	Channel view.ChannelView `json:"channel" doc:"As it is afterwards"`
}

// CrewOrdered is the answer to an order to the team.
type CrewOrdered struct {
	Seq  uint64        `json:"seq" doc:"The last change that the order made; it is durable"`
	Team view.CrewView `json:"team" doc:"As it is afterwards"`
}

// Joined is the answer to an agent that says that it is there.
type Joined struct {
	Seq         uint64 `json:"seq" doc:"The last change that it made; 0 where it was there already"`
	HeartbeatMS int64  `json:"heartbeat_ms" doc:"How often it has to say that it lives"`
	MissedMax   int    `json:"missed_max" doc:"So many heartbeats missed are a disconnect (T11)"`
}

// Beaten is the answer to a heartbeat.
type Beaten struct {
	HeartbeatMS int64 `json:"heartbeat_ms" doc:"When the next is wanted"`
}

// Actions are what an agent must do, in this order. Stop requests come first.
type Actions struct {
	Actions []view.ActionView `json:"actions" nullable:"false"`
	Errands []view.ActionView `json:"errands,omitempty" doc:"The same list, at the former path /agents/{name}/errands only"`
}

// Questions are those that wait for a person.
type Questions struct {
	Questions []view.QuestionView `json:"questions" nullable:"false"`
}

// StandingAnswers are answers that answer the next questions like theirs, too.
type StandingAnswers struct {
	Standing []view.StandingView `json:"standing" nullable:"false"`
}

// Machines is every state machine that stands behind the journal.
type Machines struct {
	Machines []MachineView `json:"machines" nullable:"false"`
}

// MachineView is one state machine, made from its table.
type MachineView struct {
	Name    string        `json:"name"`
	Promise string        `json:"promise" doc:"What it keeps, in one sentence"`
	Mermaid string        `json:"mermaid" doc:"A state diagram in Mermaid's language"`
	Rows    []machine.Row `json:"rows" nullable:"false" doc:"By id"`
}

// Runs is the answer with every run, the newest first.
type Runs struct {
	Runs []view.RunView `json:"runs" nullable:"false"`
}

// Inbox is everything that waits for a person.
type Inbox struct {
	Items []view.InboxItem `json:"items" nullable:"false"`
}

// Ordered is the answer to an order about a run.
type Ordered struct {
	Seq uint64 `json:"seq" doc:"The last change that the order made; it is durable"`
}

// Pruned is what became of each run, the newest first.
type Pruned struct {
	Runs []runs.PrunedRun `json:"runs" nullable:"false"`
}

// Verb is an order to an agent.
type Verb string

// The orders there are; the seed's buttons.
const (
	Start   Verb = "start"
	Stop    Verb = "stop"
	Once    Verb = "once"
	Cleanup Verb = "cleanup"
)

// AnswerMax bounds how long an answer may take; streams have no end.
const AnswerMax = 30 * time.Second

const BodyBytesMax = 1 << 20 // the longest is what somebody says, or says to a step

// VersionOrZero is a version of a file, or "0" when the file does not exist.
func VersionOrZero(v string) string {
	if v == "" {
		return "0.0.0"
	}
	return v
}

// PollMax is the longest time that a long poll waits. A proxy may close a connection that is silent for longer.
const PollMax = 60 * time.Second

// Base is the beginning of the path of every route.
const Base = "/api/v1"
