package api

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fairlead-dev/fairlead/config/edit"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/runs"
)

// SayBody is a message of a person.
type SayBody struct {
	Text string `json:"text" minLength:"1" maxLength:"131072" doc:"The message, at most 128 KiB; put a longer text into a file and send its name"`
	Mode string `json:"mode,omitempty" enum:"queue,interrupt,inject,parallel" doc:"How the message affects the current turn; default: the channel's mode"`
}

// GrantBody says which agent gets the turn.
type GrantBody struct {
	Agent string `json:"agent" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"The agent that gets the turn"`
	Now   bool   `json:"now,omitempty" doc:"Also if another agent has the turn: that turn ends (T23)"`
}

// SkipBody says which turn ends.
type SkipBody struct {
	Turn uint64 `json:"turn,omitempty" maximum:"9007199254740991" doc:"End only this turn; default: the current turn"`
}

// OverrideBody says how a wait ends. It has no default, because one of the two ends the turn.
type OverrideBody struct {
	GoOn bool `json:"go_on" doc:"true: the turn continues with the time that it had left; false: it is forfeited (T15)"`
}

// MemberBody names the agent that joins.
type MemberBody struct {
	Agent string `json:"agent" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"Who joins"`
}

// EmptyBody has no fields; a request with any is refused, because they would be ignored.
type EmptyBody struct{}

// WakeBody says which agents to wake.
type WakeBody struct {
	Agents []AgentName `json:"agents,omitempty" nullable:"false" minItems:"1" maxItems:"64" doc:"Ids or names; default: all members that are not awake"`
}

// AgentName is an id or a name in a list; each element is checked.
type AgentName string

// Schema is the schema of a name in a path.
func (AgentName) Schema(huma.Registry) *huma.Schema {
	least, most := 1, 64
	return &huma.Schema{Type: huma.TypeString, MinLength: &least, MaxLength: &most, Pattern: `^[^\x00-\x1f\x7f-\x9f]+$`}
}

// NoteBody is a reason.
type NoteBody struct {
	Note string `json:"note,omitempty" maxLength:"1000" doc:"The reason, for people; it is recorded with the order"`
}

// ConfirmBody names the action that is done.
type ConfirmBody struct {
	Key string `json:"key" minLength:"1" maxLength:"256" doc:"The action's key"`
}

// SaidBody is what an agent says.
type SaidBody struct {
	Agent    string `json:"agent" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"The agent that speaks"`
	Turn     uint64 `json:"turn" maximum:"9007199254740991" doc:"The action's turn; 0 if it has none. A message for a turn that is over is kept as late"`
	Re       uint64 `json:"re,omitempty" maximum:"9007199254740991" doc:"The message that it answers without a turn: message of a tell_aside, or of a tell_message whose turn is 0"`
	Text     string `json:"text" maxLength:"131072" doc:"The message, at most 128 KiB; several messages in one turn are allowed"`
	Complete bool   `json:"complete,omitempty" doc:"The turn is over (T7)"`
	Ended    bool   `json:"ended,omitempty" doc:"This is the last message of this answer"`
}

// TurnBody names a turn.
type TurnBody struct {
	Agent string `json:"agent" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"The agent that has the turn"`
	Turn  uint64 `json:"turn" minimum:"1" maximum:"9007199254740991" doc:"The action's turn"`
}

// WaitBody names a turn and what the agent waits for.
type WaitBody struct {
	Agent string `json:"agent" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"The agent that has the turn"`
	Turn  uint64 `json:"turn" minimum:"1" maximum:"9007199254740991" doc:"The action's turn"`
	Why   string `json:"why,omitempty" maxLength:"2000" doc:"What the agent waits for; shown to people"`
}

// AskedBody is a person's answer to an agent's question.
type AskedBody view.QuestionAnswer

// CancelBody says what is cancelled, and why.
type CancelBody struct {
	Step string `json:"step,omitempty" maxLength:"64" pattern:"^[A-Za-z0-9_][A-Za-z0-9._-]*$" doc:"Cancel only this step; default: the whole run"`
	Note string `json:"note,omitempty" maxLength:"1000" doc:"The reason, for people"`
}

// RunBody starts or resumes a run.
type RunBody view.RunFlags

// AnswerBody is a person's answer to a step; the route says whether it is a yes.
type AnswerBody struct {
	Note  string `json:"note,omitempty" maxLength:"1000" doc:"The reason, for people"`
	Input string `json:"input,omitempty" maxLength:"1048576" doc:"JSON, if the step asks for more than yes or no"`
	Shown string `json:"shown,omitempty" maxLength:"64" pattern:"^[0-9a-f]*$" doc:"What the person looked at, as the inbox has it; if it was changed since, the answer is refused. Empty: it is not checked"`
	Tree  string `json:"tree,omitempty" maxLength:"64" pattern:"^[0-9a-fA-F]*$" doc:"Of a task: the hash of the tree that the person looked at, with at least 12 digits; if the question shows another one, the answer is refused"`

	Governing string `json:"governing,omitempty" maxLength:"64" pattern:"^[0-9a-f]*$" doc:"Of a task that changes governing files: their hash, as a separate yes"`
}

// CommentBody is a comment on a line of a task.
type CommentBody struct {
	File  string `json:"file,omitempty" maxLength:"4096" doc:"As the list of changed files names it"`
	Line  int    `json:"line,omitempty" minimum:"0" doc:"From 1; 0: the whole file"`
	Old   bool   `json:"old,omitempty" doc:"The line is one of the old file"`
	Quote string `json:"quote,omitempty" maxLength:"400" doc:"The text of the line"`
	Text  string `json:"text" minLength:"1" maxLength:"10000"`
}

// CommentTextBody changes a comment.
type CommentTextBody struct {
	Text     string `json:"text,omitempty" maxLength:"10000" doc:"Its new text; a comment that was sent keeps its own"`
	Resolved *bool  `json:"resolved,omitempty" doc:"Whether a person says that it is resolved"`
}

// RequestBody is what a person asks to be changed.
type RequestBody struct {
	Text  string `json:"text,omitempty" maxLength:"65536" doc:"Besides the comments"`
	Shown string `json:"shown,omitempty" maxLength:"64" doc:"The commit that the person looked at"`
}

// MergeBody names what is approved.
type MergeBody struct {
	Shown string `json:"shown,omitempty" maxLength:"64" doc:"The commit that the person looked at"`
	Tree  string `json:"tree,omitempty" maxLength:"64" pattern:"^[0-9a-fA-F]*$" doc:"The hash of the tree that the person looked at, with at least 12 digits"`

	Governing string `json:"governing,omitempty" maxLength:"64" pattern:"^[0-9a-f]*$" doc:"The hash of the governing files that the person looked at: a separate yes to them"`
}

// PushBody says where the branch of a task is pushed.
type PushBody struct {
	Remote    string `json:"remote,omitempty" maxLength:"200" doc:"A remote of the repository; empty: tasks.remote, or origin"`
	Branch    string `json:"branch,omitempty" maxLength:"200" doc:"The branch on the remote; empty: the task's own name"`
	Force     bool   `json:"force,omitempty" doc:"Replace the branch there, also if it has other commits"`
	Governing string `json:"governing,omitempty" maxLength:"64" pattern:"^[0-9a-f]*$" doc:"The hash of the governing files that the person looked at: a separate yes to them"`
}

// CheckoutBody says where a worktree of a task is made, or that it is done.
type CheckoutBody struct {
	Dir       string `json:"dir,omitempty" maxLength:"4096" doc:"An absolute path where nothing is, outside of the repository; empty: beside it, with the task's id after its name"`
	Governing string `json:"governing,omitempty" maxLength:"64" pattern:"^[0-9a-f]*$" doc:"The hash of the governing files that the person looked at: a separate yes to have them written"`
	Done      bool   `json:"done,omitempty" doc:"Take what was committed there, and remove it"`
}

// Dropped says where the content of a dropped task is kept.
type Dropped struct {
	Ref string `json:"ref"`
}

// PruneBody says which runs to archive.
type PruneBody struct {
	Keep        *int   `json:"keep,omitempty" minimum:"0" doc:"Keep this many of the newest runs"`
	OlderThanMS *int64 `json:"older_than_ms,omitempty" minimum:"0" maximum:"9000000000000" doc:"Only runs that have not changed for this long"`
	All         bool   `json:"all,omitempty" doc:"Also failed and cancelled runs"`
	DryRun      bool   `json:"dry_run,omitempty" doc:"Report what would be archived, and change nothing"`
}

// DispatchStartBody has the settings of a new session.
type DispatchStartBody struct {
	Mode string `json:"mode,omitempty" enum:"orchestrator,interactive,response" doc:"The state that follows when an agent is done; default: orchestrator"`
	Host string `json:"host,omitempty" enum:"fairlead,none" doc:"What carries out the work: fairlead (agents of fairlead.yaml), or none (people and programs report it). Default: fairlead if the file has dispatch.main or agents with descriptions"`
	Path string `json:"path,omitempty" maxLength:"4096" doc:"The folder, absolute or relative to the repository; it must not exist. Default: a folder below .claude/agent-state-machine, named after the time"`
}

// DispatchInputBody is a person's input.
type DispatchInputBody struct {
	Text string `json:"text" minLength:"1" maxLength:"65536" doc:"What to do, at most 64 KiB; put a longer text into a file and name it here"`
}

// DispatchDelegateBody names the agent that takes over, and its task.
type DispatchDelegateBody struct {
	Agent string `json:"agent" minLength:"1" maxLength:"200" doc:"An agent that the session has a description of"`
	Text  string `json:"text" minLength:"1" maxLength:"65536" doc:"The task"`
}

// DispatchDoneBody is the result of the newest task.
type DispatchDoneBody struct {
	Failed bool   `json:"failed,omitempty" doc:"The task failed"`
	Text   string `json:"text,omitempty" maxLength:"65536" doc:"The result"`
}

// DispatchRespondBody is MAIN's answer.
type DispatchRespondBody struct {
	Text string `json:"text,omitempty" maxLength:"65536" doc:"The answer to the user"`
}

// RouteBody is an input to rank.
type RouteBody struct {
	Text    string `json:"text" minLength:"1" maxLength:"65536" doc:"The input"`
	Session string `json:"session,omitempty" maxLength:"80" pattern:"^[A-Za-z0-9_.-]+$" doc:"The session whose descriptions apply; default: those of a session that starts now"`
}

// Channels is the answer with every channel.
type Channels struct {
	Channels []view.ChannelView `json:"channels" nullable:"false" doc:"By name"`
	Head     uint64             `json:"head" doc:"The answer includes all changes up to this sequence; follow /events?after=HEAD"`
}

// ChannelOrdered is the answer to an order about a channel.
type ChannelOrdered struct {
	Seq     uint64           `json:"seq" doc:"The last change that the order made; it is durable"`
	Channel view.ChannelView `json:"channel" doc:"The channel after the order"`
}

// CrewOrdered is the answer to an order to the crew.
type CrewOrdered struct {
	Seq  uint64        `json:"seq" doc:"The last change that the order made; it is durable"`
	Team view.CrewView `json:"team" doc:"The crew after the order"`
}

// Joined is the answer to an agent that joins.
type Joined struct {
	Seq         uint64 `json:"seq" doc:"The last change that the request made; 0 if the agent had joined already"`
	HeartbeatMS int64  `json:"heartbeat_ms" doc:"The interval of heartbeats"`
	MissedMax   int    `json:"missed_max" doc:"This many missed heartbeats disconnect the agent (T11)"`
}

// Beaten is the answer to a heartbeat.
type Beaten struct {
	HeartbeatMS int64 `json:"heartbeat_ms" doc:"When the next one is due"`
}

// Actions are what an agent must do, in this order. Stop requests come first.
type Actions struct {
	Actions []view.ActionView `json:"actions" nullable:"false"`
}

// Questions are the questions that wait for a person.
type Questions struct {
	Questions []view.QuestionView `json:"questions" nullable:"false"`
}

// SavedAnswers are the saved answers.
type SavedAnswers struct {
	Saved []view.SavedAnswerView `json:"saved" nullable:"false"`
}

// Machines are all state machines of the journal.
type Machines struct {
	Machines []MachineView `json:"machines" nullable:"false"`
}

// MachineView is one state machine, made from its table.
type MachineView struct {
	Name    string      `json:"name"`
	Promise string      `json:"promise" doc:"What the machine guarantees, in one sentence"`
	Mermaid string      `json:"mermaid" doc:"A state diagram in Mermaid's language"`
	Rows    []table.Row `json:"rows" nullable:"false" doc:"By id"`
}

// Runs are all runs, the newest first.
type Runs struct {
	Runs []view.RunView `json:"runs" nullable:"false"`
}

// Inbox lists what needs a person.
type Inbox struct {
	Items []view.InboxItem `json:"items" nullable:"false"`
}

// Working lists what runs now.
type Working struct {
	Working []view.WorkView `json:"working" nullable:"false"`
}

// Workflows lists the workflows that can be run.
type Workflows struct {
	Workflows []Workflow `json:"workflows" nullable:"false"`
	More      bool       `json:"more,omitempty" doc:"There are more: 100 are listed, and 20,000 files and folders are looked at"`
}

// Workflow is a file of the repository that can be run.
type Workflow struct {
	Path        string   `json:"path" doc:"For start-run: relative to the repository, or absolute outside of it"`
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
	Steps       int      `json:"steps,omitempty"`
	Agents      []string `json:"agents,omitempty" doc:"The agents of its steps"`
	Asks        []string `json:"asks,omitempty" doc:"The steps that wait for a person"`
	Fault       string   `json:"fault,omitempty" doc:"The first fault; it cannot be run"`
}

// Ordered is the answer to an order about a run.
type Ordered struct {
	Seq uint64 `json:"seq" doc:"The last change that the order made; it is durable"`
}

// Pruned lists what happened to each run, the newest first.
type Pruned struct {
	Runs []runs.PrunedRun `json:"runs" nullable:"false"`
}

// Verb is an order to an agent.
type Verb string

// The orders to agents: the buttons of the seed.
const (
	Start   Verb = "start"
	Stop    Verb = "stop"
	Once    Verb = "once"
	Cleanup Verb = "cleanup"
)

// AnswerMax bounds the time for an answer. Streams have no such limit.
const AnswerMax = 30 * time.Second

const (
	BodyBytesMax     = 1 << 20  // the longest body is a message, or the input of a step
	StartRunBytesMax = 16 << 20 // of the request that starts a run: the files of a task are in it
)

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

// NoticeTargets lists the targets of notices.
type NoticeTargets struct {
	Targets []view.NoticeTarget `json:"targets" nullable:"false"`
}

// NoticeTests are the results of test notices.
type NoticeTests struct {
	Tests []view.NoticeTest `json:"tests" nullable:"false"`
}

// SeenBody marks what happened as seen.
type SeenBody struct {
	Until time.Time `json:"until,omitzero" doc:"The end of the digest that was shown; absent: now"`
}

// Seen is until when everything was seen.
type Seen struct {
	Until time.Time `json:"until" doc:"The next digest begins here"`
}

// SearchQuery is a search.
type SearchQuery struct {
	Text   string    `query:"q" required:"true" maxLength:"400" example:"retry upload" doc:"Words, which must all occur, and \"quoted phrases\""`
	Kinds  []string  `query:"kind" maxItems:"8" enum:"output,channel,crew,question,run,task,dispatch,history" doc:"Only these kinds, separated by commas; without it, all"`
	Agent  string    `query:"agent" maxLength:"64" doc:"Only what concerns this agent"`
	Since  time.Time `query:"since" doc:"Only what is not older"`
	Limit  int       `query:"limit" default:"20" minimum:"1" maximum:"100" doc:"The maximum number of results"`
	Before int64     `query:"before" minimum:"0" doc:"next of the page before"`
}

// ConfigAgents is what a form for an agent offers.
type ConfigAgents struct {
	Sum      string          `json:"sum" doc:"The SHA-256 of fairlead.yaml"`
	Names    []string        `json:"names" nullable:"false" doc:"The agents of the file"`
	Programs []ConfigProgram `json:"programs" nullable:"false" doc:"The agent programs that this build can drive"`
	Why      string          `json:"why,omitempty" doc:"Why the file cannot be changed"`
}

// ConfigProgram is an agent program.
type ConfigProgram struct {
	Name    string   `json:"name" example:"codex"`
	Title   string   `json:"title"`
	Driver  string   `json:"driver"`
	Command []string `json:"command" nullable:"false"`
	Path    string   `json:"path,omitempty" doc:"Where it is installed; absent: it was not found"`
	Page    string   `json:"page"`
}

// ConfigEntry is the entry of an agent in fairlead.yaml.
type ConfigEntry struct {
	Name  string     `json:"name"`
	Agent edit.Agent `json:"agent"`
	Sum   string     `json:"sum" doc:"The SHA-256 of fairlead.yaml"`
}

// AgentChange is a change of one agent in fairlead.yaml.
type AgentChange struct {
	Op    string     `json:"op" enum:"add,edit,remove"`
	Name  string     `json:"name" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"The agent"`
	Agent edit.Agent `json:"agent,omitempty" doc:"Its whole entry; a field that is absent is removed from the file"`
	Sum   string     `json:"sum,omitempty" maxLength:"128" doc:"To write: the sum that the preview had"`
}

// AgentPreview is what a change would make of fairlead.yaml.
type AgentPreview struct {
	Sum     string   `json:"sum" doc:"The SHA-256 of the file that the diff was made from"`
	Diff    string   `json:"diff" doc:"A unified diff; values of variables and of notify are hidden"`
	Changes []string `json:"changes" nullable:"false" doc:"What the team would load"`
	Notes   []string `json:"notes" nullable:"false" doc:"What a person should know"`
}

// AgentWritten says what was changed.
type AgentWritten struct {
	Changes []string `json:"changes" nullable:"false" doc:"What the daemon loads"`
	Fault   string   `json:"fault,omitempty" doc:"Why the daemon did not load the file that was written"`
}

// AgentTest is the result of a look at an agent's program.
type AgentTest struct {
	OK       bool           `json:"ok"`
	Findings []AgentFinding `json:"findings" nullable:"false"`
}

// AgentFinding is one result.
type AgentFinding struct {
	OK   bool   `json:"ok"`
	What string `json:"what"`
	Do   string `json:"do,omitempty" doc:"What a person can do"`
}

// Summary is what a daemon tells other daemons and commands of this user about its repository.
type Summary struct {
	Dir      string   `json:"dir" doc:"The folder of the repository"`
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	PID      int      `json:"pid"`
	Address  string   `json:"address" doc:"Of Mission Control on this machine: http://127.0.0.1:7466"`
	Origins  []string `json:"origins" doc:"Where it is opened through a tunnel or a proxy"`
	NeedsYou int      `json:"needs_you" doc:"Things in the inbox"`
	Working  int      `json:"working" doc:"Agents at work"`
	Agents   int      `json:"agents"`
	Hold     bool     `json:"hold"`
	Stopping bool     `json:"stopping"`
}

// Problem codes of a Repository.
const (
	RepoEnded     = "ended"      // no process answers on the socket
	RepoOtherUser = "other_user" // the process at the other end belongs to another user
	RepoSlow      = "slow"       // no answer in time
	RepoWrong     = "wrong"      // an answer that no Fairlead gives
)

// Repository is a daemon of this user, found by its socket.
type Repository struct {
	ID string `json:"id" example:"d-0123456789abcdef" doc:"The file name of its socket"`
	Summary
	Here    bool   `json:"here" doc:"It is the one that answers"`
	Problem string `json:"problem,omitempty" enum:"ended,other_user,slow,wrong" doc:"Why nothing else is known. ended: no process answers; other_user: another user's process does; slow: no answer within 2 s; wrong: an answer that no Fairlead gives"`
	Detail  string `json:"detail,omitempty" doc:"The same in words"`
}

// Repositories are the daemons of this user.
type Repositories struct {
	Repositories []Repository `json:"repositories" doc:"Those with something that needs a person first, then by name; those that do not answer last"`
	More         int          `json:"more" doc:"Sockets that were left out, because only 50 are asked"`
	Outside      bool         `json:"outside" doc:"The request came through a tunnel or a proxy, so addresses on this machine do not lead anywhere"`
}

// RepositoryLogin signs a browser in at another repository.
type RepositoryLogin struct {
	URL string `json:"url" doc:"Open it within 30 seconds; it is valid once"`
}

// LoginBody is a code to exchange for a secret.
type LoginBody struct {
	Code string `json:"code" minLength:"1" maxLength:"32" example:"K7QM-2XDP" doc:"The code that fairlead open issued; case, spaces and hyphens do not matter"`
	Name string `json:"name,omitempty" maxLength:"200" example:"Firefox on Linux" doc:"How the browser describes itself, for the list of logins"`
}

// LoginCode is a code that signs one browser in.
type LoginCode struct {
	Code      string    `json:"code" example:"K7QM-2XDP" doc:"Valid once"`
	ExpiresAt time.Time `json:"expires_at" doc:"The code is not valid from this time on"`
}

// LoginSecret is what a browser sends as a bearer token from then on.
type LoginSecret struct {
	ID     string `json:"id" example:"l3" doc:"For the list of logins"`
	Secret string `json:"secret" doc:"It is shown once and stored nowhere; send it as Authorization: Bearer SECRET"`
}

// Login is a browser that is signed in.
type Login struct {
	ID        string    `json:"id" example:"l3"`
	Name      string    `json:"name" example:"Firefox on Linux" doc:"As the browser described itself"`
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at" doc:"The last request; after a restart of the daemon up to an hour too early"`
}

// Logins are the browsers that are signed in, the oldest first.
type Logins struct {
	Logins []Login `json:"logins"`
}

// LoginRevoked is the answer to a revocation.
type LoginRevoked struct {
	ID string `json:"id" example:"l3"`
}

// InviteBody says what the invited host is good for.
type InviteBody struct {
	Engine bool        `json:"engine,omitempty" doc:"The host also has the journal and can lead"`
	Labels []HostLabel `json:"labels,omitempty" nullable:"false" maxItems:"32" doc:"Labels that the host gets, for \"host: {labels: ...}\" in fairlead.yaml"`
}

// HostLabel is a label in a list; each element is checked.
type HostLabel string

// Schema is the schema of a label.
func (HostLabel) Schema(huma.Registry) *huma.Schema {
	least, most := 1, 63
	return &huma.Schema{Type: huma.TypeString, MinLength: &least, MaxLength: &most, Pattern: `^[a-z0-9-]+$`}
}

// Leads says to which host the lead goes.
type Leads struct {
	Leader string `json:"leader" doc:"It leads in some seconds; until then no order is taken"`
}

// Invitation lets one host join.
type Invitation struct {
	Token     string    `json:"token" doc:"For fairlead host join; a secret"`
	Team      string    `json:"team"`
	Address   string    `json:"address" example:"192.168.1.5:4222" doc:"Where the host joins"`
	Loopback  bool      `json:"loopback" doc:"Only this machine reaches the address"`
	Labels    []string  `json:"labels"`
	ExpiresAt time.Time `json:"expires_at"`
}
