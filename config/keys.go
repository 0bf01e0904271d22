package config

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/internal/origin"
)

// The keys of fairlead.yaml. A field with the tag yaml is a key: its comment is the description that people read, and its other tags
// say what is allowed (see rule). The reader, the JSON Schema and doc/config.md are made from them.

// Config is the content of fairlead.yaml with every default filled in.
type Config struct {
	File string // as messages name it: fairlead.yaml
	Sum  string // identity of the file's content
	Dir  string // absolute, symbolic links resolved; the folder of the file

	// The version of the file's format. 1 is the only one.
	Version int `yaml:"version" required:"true" minimum:"1" maximum:"1"`
	// Settings for all agents together.
	Team Team `yaml:"team"`
	// The agents by name, in the order in which they are shown.
	Agents []Agent `yaml:"agents" maxItems:"10000" nullable:"true"`
	// The channels in which agents take turns, by name.
	Channels []Channel `yaml:"channels" maxItems:"256" nullable:"true"`
	// Conversations in which one agent, MAIN, coordinates and the others do the work (`fairlead dispatch start`). How they work:
	// `doc/dispatch.md`.
	Dispatch Dispatch `yaml:"dispatch"`
	// Settings of `fairlead task`: a task is given to an agent, which works in a folder of its own; then checks run, you look at
	// the changes, and they land on a branch. How it works: `doc/tasks.md`.
	Tasks Tasks `yaml:"tasks"`
	// Settings for turns in every channel, with the field names of other programs (seed 003).
	TurnConfig TurnConfig `yaml:"turnConfig"`
	// How people are notified when something waits for them or went wrong. Nothing is sent, and no network is used, unless a target
	// is named here. `fairlead notify test` tries the targets.
	Notify Notify `yaml:"notify"`
	// The loopback address and port on which Mission Control and the API are served. Port 0 selects a free port.
	Listen string `yaml:"listen" default:"127.0.0.1:7466" format:"listen"`
	// Origins at which Mission Control is also opened: through a reverse proxy with TLS (`https://fairlead.example.org`) or through
	// a tunnel with another port on its near end (`http://127.0.0.1:8000`). They are compared exactly. At these only browsers that
	// are signed in count; the token for programs does not. How it is set up: `doc/remote.md`.
	Origins []origin.Origin `yaml:"origins" maxItems:"16" maxLength:"300" uniqueItems:"true" nullable:"true"`
	// Paths of workflow files, relative to the folder of this file. People on other hosts of the team can run only these.
	Workflows []string `yaml:"workflows" maxItems:"256" uniqueItems:"true" nullable:"true" format:"file"`

	// Notes are warnings: allowed settings that a person should know about.
	Notes []Fault
}

// Team holds the settings that concern all agents together.
type Team struct {
	// The agent that leads the crew: only its crew markers count. It has seat 4.
	Lead string `yaml:"lead" format:"name"`
	// The number of seats that a summon fills, without the lead's own seat.
	Size int `yaml:"size" default:"8" minimum:"1" maximum:"8"` // nine seats without the lead's (SPEC P1)
	// How long Fairlead waits for the lead's answer after a question which agents are alive, or after a request to wake agents.
	// After that, people get a notice: 1s to 1h.
	StatusTimeout time.Duration `yaml:"status_timeout" default:"30s" minimum:"1s" maximum:"1h"` // SPEC, Presence; a lead that is silent for an hour has stopped
	// The time within which a summoned agent must register; after that its placeholder expires. It is also the time limit of a
	// summon or a wake: 1s to 24h.
	HatchTimeout time.Duration `yaml:"hatch_timeout" default:"5m" minimum:"1s" maximum:"24h"` // SPEC P7; an agent that has not registered in a day will not
	// Whether the team is on hold when it is first started: no session starts until a person lifts the hold. Later, the switch in
	// Mission Control and `fairlead hold` set it.
	Hold bool `yaml:"hold" default:"false"`
	// Limits of the whole team. The session limit applies to every agent without its own; tokens and cost are summed over all
	// agents.
	Limits Limits `yaml:"limits"`
	// How much disk the folder `.fairlead` should take at most, such as `500MB` or `20GB`: the journal, the output of all sessions,
	// the search index, the logs. From four fifths of it on, `fairlead up`, `fairlead doctor` and a notice say so. Nothing is
	// deleted and nothing stops; `fairlead compact` compresses what is old. `0`: no limit.
	DiskBytes int64 `yaml:"disk" default:"20GB" scalars:"true"` // the search index takes up to 4 GiB, the output of one session up to 1 GiB
}

// Limits bound what an agent or the team may use (SPEC X9). Zero means no limit.
type Limits struct {
	// The time limit of one session, such as 90m or 2h. Zero or absent: no limit.
	Session time.Duration `yaml:"session" minimum:"0s"`
	// Limit of input and output tokens in one day, as reported by the agents. Zero or absent: no limit.
	TokensPerDay int64 `yaml:"tokens_per_day" minimum:"0" maximum:"1000000000000000"`
	// Limit of the cost in one day in US dollars, as reported by the agents. Zero or absent: no limit.
	CostPerDayUSD float64 `yaml:"cost_per_day_usd" minimum:"0" maximum:"1000000000"`
	// How much memory the processes of one session may use, such as `4G`, files in memory included. A session that uses more is
	// ended at once, and has failed. For the team: all sessions together, and the largest one is ended. 64M or more. `0` or absent:
	// no limit. Linux only; what is not seen: `doc/operate.md`.
	MemoryBytes int64 `yaml:"memory" scalars:"true"`
	// How many processes one session may have; each thread counts as one, as the kernel counts them. In a wall with namespaces of
	// its own, no more can be started, and a session that stays at the limit for 10 s is ended; without one, it is ended at once. For
	// the team: all sessions together, and the largest one is ended. Zero or absent: no limit. Linux only.
	Processes int `yaml:"processes" minimum:"0" maximum:"1000000"`
	// How much the folders that a session can write may grow while it runs, such as `20G`. A session that writes more is ended. For
	// the team: all sessions together, and the one that has written most is ended. 16M or more. `0` or absent: no limit.
	DiskBytes int64 `yaml:"disk" scalars:"true"`
	// How much output of one session is kept, such as `500M`. For the team: for each agent without its own. 1M or more. `0` or
	// absent: 1 GiB.
	OutputBytes int64 `yaml:"output" scalars:"true"`
	// What happens at `output`. `wait`: no more is read, so the program waits. `end`: the session is ended. Default: as for the
	// team; there `wait`.
	OnOutput string `yaml:"on_output" enum:"wait,end"`
}

// Agent is one agent of the team.
type Agent struct {
	Name string `format:"name" minLength:"0"`
	// The agent's purpose, in one sentence. Dispatch matches inputs against it.
	Description string `yaml:"description" minLength:"0"`
	// How the agent is started and its output is read. `script` plays a file of steps, `exec` runs any command, `acp` speaks the
	// Agent Client Protocol, `claude` and `codex` the JSON streams of those programs. Default: `script` if the agent has a script,
	// otherwise `exec`.
	Driver string `yaml:"driver" enum:"script,exec,acp,claude,codex"`
	// The program and its arguments, one item each, without a shell. Required for `exec` and `acp`. Default for `claude` and
	// `codex`: the program of that name.
	Command []string `yaml:"command" minItems:"1" minLength:"0" maxLength:"131072" format:"argument" scalars:"true" drivers:"exec,acp,claude,codex"`
	// Path of the file that the `script` driver plays, relative to the folder of this file.
	Script string `yaml:"script" format:"file" drivers:"script"`
	// The folder in which the agent works and which contains its agent_state.json, relative to the folder of this file. No two
	// agents share a folder. A relative path must stay within the repository; write an absolute path for any other folder. Default:
	// the repository's root for the first agent without a workspace, if no other agent has it; otherwise a folder with the agent's
	// name.
	Workspace string `yaml:"workspace" format:"workspace"`
	// Which program starts the agent's sessions. `fairlead`: Fairlead does. `foreign`: the agent's own program does and follows
	// agent_state.json; Fairlead only sets the desired state and observes.
	Loop Loop `yaml:"loop" default:"fairlead" enum:"fairlead,foreign"`
	// Variables for the agent's process, besides the usual ones. `NAME: ${NAME}` passes a variable of Fairlead's environment on;
	// `$${` is a plain `${`. Values are never stored or shown.
	Env Env `yaml:"env" maxItems:"256" nullable:"true"`
	// The text that the agent receives at the start of a session. For `acp`, `claude`, `codex` and `script`.
	SessionPrompt string `yaml:"session_prompt" minLength:"0" maxLength:"131072" loop:"fairlead"`
	// The text that it receives at the start of a cleanup session.
	CleanupPrompt string `yaml:"cleanup_prompt" minLength:"0" maxLength:"131072" loop:"fairlead"`
	// The number of continuous sessions after which a cleanup session starts. Zero: never.
	CleanupEvery int `yaml:"cleanup_every" default:"0" minimum:"0" maximum:"1000000" loop:"fairlead"`
	// Time limit of this agent's turns in channels. Default: as in turnConfig.
	TurnTimeout time.Duration `yaml:"turn_timeout"`
	// The model for the agent's program, in that program's own spelling.
	Model string `yaml:"model" maxLength:"256"`
	// The permission mode of the agent's program, in that program's own word, such as `plan` or `acceptEdits`. Default: the mode in
	// which it asks. For `acp`, `claude` and `codex`.
	Mode string `yaml:"mode" maxLength:"256" drivers:"acp,claude,codex" loop:"fairlead"`
	// When a session resumes the agent's last conversation. `interrupted`: sessions for channels and the crew do, and sessions that
	// a crash, a reboot or `fairlead down --now` interrupted; after a normal end a new conversation begins. `always`: after a
	// normal end too. `never`: every session begins a new conversation. For `acp`, `claude` and `codex`.
	Resume Resume `yaml:"resume" default:"interrupted" enum:"interrupted,always,never" drivers:"acp,claude,codex" loop:"fairlead"`
	// The wall around the agent's program and its child processes. `workspace`: the program starts with what this machine can hold,
	// but not where writes are not held. `required`: it starts only where every row is held. `auto`: it starts in
	// any case. `off`: no wall; only rules restrict it. A mapping has a mode and lists more folders: `sandbox: {write:
	// [~/.cache/go-build]}`. With `can_write`, the folders that it names take the workspace's place. Default: `auto` for `driver:
	// acp`, `claude` and `codex` and for an agent with `can_write`, and else `off`; `off` for `loop: foreign`. `fairlead why AGENT`
	// says what is not held. Limits of the wall: `doc/agents/permissions.md`.
	Sandbox AgentSandbox `yaml:"sandbox"`
	// Which hosts the agent reaches. A list of `model` (the service of its model), `packages` (registries of packages) and hosts:
	// `example.org` at 443 and 80, `example.org:8443`, `*.example.org`, `10.0.0.5:8080`. Only hosts that are named here may be private
	// or at another port. `none`: no host. `all`: each public name at 443 and 80. An allowed host is a way out for data. The wall holds
	// the network, so an agent with `sandbox: off` has this machine's. Default: `[model, packages]`. See `doc/network.md`.
	NetworkWords []string        `yaml:"network" minItems:"1" maxItems:"202" maxLength:"300" format:"network" alone:"true"`
	Network      network.Setting // of NetworkWords, or the default
	// Whether the agent's program is offered the team's tools over MCP: to end its turn, to say something, to report a step, to ask
	// a person. `auto`: if the program supports them.
	MCP bool `yaml:"mcp" default:"auto" enum:"auto,off"`
	// The agent's seat in the crew, 0 to 8. Seat 4 is the lead's.
	Seat int `yaml:"seat" minimum:"0" maximum:"8"`
	// The limits of this agent. At a limit it is paused, and the reason names the limit.
	Limits Limits `yaml:"limits"`
	// What this agent may write and execute, and how requests of its program for permission are answered.
	Permissions Permissions `yaml:"permissions"`
	// The number of consecutive failed sessions after which the agent is paused.
	FailuresMax int `yaml:"failures_max" default:"5" minimum:"1" maximum:"1000" loop:"fairlead"` // SPEC C16
	// The wait after failed sessions. It doubles from `first` up to `max`.
	Backoff Backoff `yaml:"backoff" loop:"fairlead"`
	// How many sessions of the agent may run at the same time. The agent's own work, channels and the lead use one of them; the
	// others do steps of runs that work in a folder of their own, such as tasks.
	Instances int `yaml:"instances" default:"3" minimum:"1" maximum:"32" loop:"fairlead"`
	// On which machines of the team the agent's steps may run: `any`, or those with all of some labels: `host: {labels: [gpu]}`.
	// This applies to steps of runs with their own worktree inside the repository, such as tasks. Everything else, and each agent
	// without `host`, runs on the leader's machine. See `doc/hosts.md`.
	Host AgentHost `yaml:"host" loop:"fairlead"`
	// What happens to a step whose machine is lost, 65 s after its last word. `restart`: a new attempt begins elsewhere. `wait`: it
	// goes on when that machine is back, and never begins elsewhere. `ask`: as `restart`, but a person is asked first whether it
	// begins elsewhere or waits for that machine. Only with `host`.
	OnLost string `yaml:"on_lost" default:"restart" enum:"restart,wait,ask"`
	// How many TCP ports each session of the agent leases. Their numbers are in its environment, `PORT_1` and so on. No two
	// sessions that run at the same time have the same port.
	Ports int `yaml:"ports" default:"0" minimum:"0" maximum:"16"`
	// How long the agent may take to end after a request to end; then it is ended by force.
	Grace time.Duration `yaml:"grace" default:"10s" minimum:"0s"` // between SIGTERM and SIGKILL
	// How often the program of a foreign loop without `command` writes its agent_state.json while it works. If the file says that
	// the agent works and has not changed for longer, its status is UNKNOWN.
	ReportWithin time.Duration `yaml:"report_within" default:"5m"`
}

// AgentHost says on which machines of the team an agent's steps may run.
type AgentHost struct {
	Any bool `word:"true" enum:"any"` // on others than the daemon's, too: the key is there
	// Labels that the machine must have, as `fairlead host join --label` gave them.
	Labels []string `yaml:"labels" maxItems:"32" maxLength:"63" pattern:"^[a-z0-9-]+$"`
}

// Backoff is the wait between failed sessions.
type Backoff struct {
	// The wait after the first failure.
	First time.Duration `yaml:"first" default:"1s"` // SPEC C16
	// The longest wait.
	Max time.Duration `yaml:"max" default:"60s"`
}

// AgentSandbox is the wall around a program's processes: the agent's, or MAIN's. The zero value is none. Its paths are absolute and clean.
type AgentSandbox struct {
	// `workspace`, `required`, `auto` or `off`, as the word alone.
	Mode string `yaml:"mode" word:"true" default:"workspace" enum:"workspace,required,auto,off"`
	// More folders that can be read: relative to the folder of this file, absolute, or `~/…`. Whole folders only, without patterns.
	// They must exist when a session starts.
	Read []string `yaml:"read" maxItems:"32" format:"place"`
	// More folders that can be written. Each one outside of the workspace, and `.git`, is shown as a hole of the wall.
	Write []string `yaml:"write" maxItems:"32" format:"place"`
	// Folders that are not there for the program.
	Hide []string `yaml:"hide" maxItems:"32" format:"place"`
	// Paths of single unix sockets that can be reached, such as that of an ssh agent or a container daemon. What listens there can
	// act for the program outside of the wall, so each is shown as a hole.
	Sockets []string `yaml:"sockets" maxItems:"32" format:"place"`
	// Ports of this machine's loopback that can be reached at the same numbers, such as that of a database. What listens there can act
	// for the program outside of the wall, so each is shown as a hole.
	Local []int `yaml:"local" maxItems:"16" minimum:"1" maximum:"65535" uniqueItems:"true"`
}

// Permissions say what an agent may do. Its bounds are the fields of seed 002 (policy.Within explains them);
// Allow and Deny answer its program's questions. A nil list sets no bound; an empty list of what it can do
// permits nothing.
type Permissions struct {
	// The files that the agent may write: globs below its workspace, absolute globs, or `~/…`. A glob without a slash matches file
	// names; a folder includes everything below it. A file that is not listed is denied, before patterns are checked or a person is
	// asked. Absent: no limit.
	CanWrite []string `yaml:"can_write" maxItems:"1024" format:"writes"`
	// The files that the agent may not write, in the same form. It wins over `can_write`.
	CannotWrite []string `yaml:"cannot_write" maxItems:"1024" format:"writes"`
	// The programs that the agent may run: by name (`go`, `npm*`), by path (`scripts/*`), or by the first words of a command (`git
	// commit`). Programs that only read need not be listed. Absent: no limit.
	CanExecute []string `yaml:"can_execute" maxItems:"1024" format:"executes"`
	// The programs that the agent may not run, in the same form. It wins over `can_execute`.
	CannotExecute []string `yaml:"cannot_execute" maxItems:"1024" format:"executes"`
	// Calls that are allowed when the agent's program asks for permission: `Read`, `Write(src/**)`, `Bash(git status*)`,
	// `WebFetch(domain:example.com)`, `mcp__docs__*`. In a command, `*` matches any text; paths are globs below the workspace.
	// Details: `doc/agents/permissions.md`.
	Allow []string `yaml:"allow" maxItems:"1024" format:"calls"`
	// Calls that are denied, in the same form. It wins over `allow`.
	Deny []string `yaml:"deny" maxItems:"1024" format:"calls"`
	// How long to wait for a person's answer if no pattern matches. `0s`: no limit.
	Timeout time.Duration `yaml:"timeout" default:"30m" minimum:"0s"` // enough for a person at work; without one, the agent must not wait all night
	// The answer after that time.
	Otherwise Otherwise `yaml:"otherwise" default:"deny" enum:"deny,allow"`
}

// Channel is a channel in which agents take turns.
type Channel struct {
	Name string `format:"name" minLength:"0"`
	// The participants of the channel, in the order of the first round.
	Agents []string `yaml:"agents" required:"true" minItems:"1" maxItems:"64" uniqueItems:"true" minLength:"0"`
	// The agent that answers a person who interrupts.
	Lead string `yaml:"lead" format:"name"`
	// What happens to a person's message while an agent has the turn: `queue` (delivered when the turn ends), `interrupt` (the turn
	// pauses), `inject` (delivered at once), `parallel` (delivered to all at once). Default: as in turnConfig.
	HumanInterruptMode InterruptMode `yaml:"humanInterruptMode" enum:"queue,interrupt,inject,parallel"`
	// How many rounds the agents may take after a person's message before the channel waits for a person again. Zero: no limit.
	MaxRounds int `yaml:"maxRounds" default:"3" minimum:"0" maximum:"1000000"` // SPEC, Turn
	// How long an agent may wait within its turn, in seconds.
	WaitTimeout time.Duration `yaml:"waitTimeoutSeconds" default:"300" minimum:"1" maximum:"604800" unit:"1s"`
}

// Dispatch holds the settings of dispatch (seed 002, SPEC D1 to D11).
type Dispatch struct {
	// The agent of this file that coordinates (MAIN). It receives each input that no other agent's description matches, and the
	// results of what it delegated. It reads, plans and answers, and changes no code. Without it, such an input is refused.
	Main string `yaml:"main" format:"name"`
	// What decides which agent's description matches an input. `builtin` counts the words that they share. The name of an agent of
	// this file makes the daemon ask that agent; in mode `response`, and in hooks, `builtin` is used in any case.
	Ranker string `yaml:"ranker" default:"builtin" format:"name"`
	// The least score with which an agent gets an input. Below it, MAIN keeps the input. `fairlead dispatch route` shows the
	// scores.
	Threshold float64 `yaml:"threshold" minimum:"0" maximum:"1000"`
	// Names or globs of tools that MAIN may use although Fairlead does not know what they do, such as `mcp__docs__*`. MAIN is
	// denied all other unknown tools.
	Tools []string `yaml:"tools" maxItems:"1024"`
	// Commands of your own PreToolUse hooks in Claude Code that never replace a shell command, as written in the settings. Beside
	// any other hook for shell commands MAIN gives only plain commands, because that hook could take them out of the sandbox.
	Hooks []string `yaml:"hooks" maxItems:"1024"`
	// The wall around MAIN's process, with the words and the mapping of an agent's `sandbox`. Inside, MAIN writes in its
	// conversation's folder only.
	Sandbox AgentSandbox `yaml:"sandbox" default:"auto"`
	// Whether agents may run `git add` and `git commit` in a clone that Fairlead has made. In your own checkout `.git` is read-only
	// for them, and Claude Code's agents are denied it, whatever this says. Only git itself may write inside `.git`. MAIN may never
	// commit.
	Commits bool `yaml:"commits" default:"true"`
}

// Tasks holds the settings of `fairlead task`.
type Tasks struct {
	// The branch on which tasks land. Default: the branch that is checked out when a task is given.
	Base string `yaml:"base" maxLength:"200"`
	// Untracked files and folders that a task's folder needs, such as `.env`. They are copied, and left out of commits.
	Copy []string `yaml:"copy" maxItems:"100" format:"inside"`
	// Commands that prepare a task's folder, such as `npm ci`. They run in a shell, once for each folder, and again when a lock
	// file such as `package-lock.json` or `go.sum` has changed.
	Setup []string `yaml:"setup" maxItems:"100"`
	// Commands that must succeed before you are asked and before the task lands, such as `go test ./...`. If one fails, its output
	// goes back to the agent.
	Checks []string `yaml:"checks" maxItems:"100"`
	// Where the checks run. `checkout`: in a checkout of their own, which no agent writes, with exactly the commit that you will be
	// asked about. `task`: in the folder where the agent works; the review says so.
	ChecksIn string `yaml:"checks_in" default:"checkout" enum:"checkout,task"`
	// Which hosts `setup` and `checks` reach, in the form of an agent's `network`, without `model`. They never get a key. Default:
	// `[packages]`.
	NetworkWords []string        `yaml:"network" minItems:"1" maxItems:"202" maxLength:"300" format:"network" alone:"true"`
	Network      network.Setting // of NetworkWords, or the default
	// More files that decide what runs later, and so need a separate yes before a task that changes them lands: a name in any
	// folder, the end of a path, or a folder, which ends with a slash; such as `*.sql`. `doc/tasks.md` lists those that always
	// count.
	Governing []string `yaml:"governing" maxItems:"100" maxLength:"200" format:"governing"`
	// How long one command of `setup` or `checks` may run. Then its process group is ended, and the command has failed.
	Timeout time.Duration `yaml:"timeout" default:"30m" minimum:"1s" maximum:"24h"` // longer than most test suites
	// The agent that reviews the changes of each task before you do. Findings that must be fixed go back to the task's agent. How:
	// `doc/tasks.md`. Without it, no agent reviews.
	Reviewer string `yaml:"reviewer" maxLength:"64"`
	// How much disk the folders of all tasks may take, such as `500MB` or `20GB`. Beyond it no task begins, and you are told what
	// to drop. `0`: no limit.
	DiskBytes int64 `yaml:"disk" default:"20GB" scalars:"true"` // about a hundred folders of a large repository
	// How a task lands. `squash`: one commit. `merge`: a merge commit, with the commits of the agent behind it. `rebase`: the
	// commits of the agent, one after the other. `pr`: a pull request on GitHub or GitLab, by the programs `gh` and `glab`.
	Land string `yaml:"land" default:"squash" enum:"squash,merge,rebase,pr"`
	// The name of the branch in a task's folder. `{id}` is the task's id, `{slug}` a few words of its text.
	Branch string `yaml:"branch" default:"fairlead/{id}-{slug}" maxLength:"200" format:"branch"`
	// The git remote for pull requests, issues and fetches.
	Remote string `yaml:"remote" default:"origin" pattern:"^[A-Za-z0-9_][A-Za-z0-9._/-]{0,99}$"`
	// How often the daemon fetches the remote by itself while a task is open, such as `10m`; 1m or more. It moves no branch and asks for
	// no password; after a failure it fetches no more until a reload, or a `fairlead task sync` that works. Absent: never.
	Fetch time.Duration `yaml:"fetch" minimum:"1m" maximum:"24h"` // more often is no use: the copy follows each minute
	// How pull requests are looked after (`land: pr`, and `fairlead pr`).
	PR PullRequests `yaml:"pr"`
	// Issues that become tasks by themselves: a label, and the agent that gets its issues. Only if this is set does Fairlead ask
	// the forge for issues.
	From []Intake `yaml:"from" maxItems:"20"`
	// How many tasks from labelled issues there are at once.
	Most int `yaml:"most" default:"3" minimum:"1" maximum:"100"`
}

// PullRequests holds the settings of `land: pr`.
type PullRequests struct {
	// How often a pull request, and the list of labelled issues, is looked at; 15s or more. While nothing changes it is less often,
	// up to every 5 minutes.
	Poll time.Duration `yaml:"poll" default:"1m" minimum:"15s"` // more often is too often for the forges
	// When you are asked before a push. `once`: before the branch is published; what the agent changes because of failed checks and
	// comments follows by itself, except other governing files than you said yes to. `every_round`: before each push.
	Ask string `yaml:"ask" default:"once" enum:"once,every_round"`
}

// Intake says which agent gets the issues with a label.
type Intake struct {
	Label string `minLength:"0"`
	Agent string `word:"true" format:"name"`
}

// TurnConfig has the six fields of seed 003, in its spelling and order.
type TurnConfig struct {
	// How long a turn may last, in seconds.
	DefaultTimeoutSeconds int `yaml:"defaultTimeoutSeconds" json:"defaultTimeoutSeconds" default:"60" minimum:"1" maximum:"86400"`
	// What happens to a person's message while an agent has the turn, unless the channel has its own setting.
	HumanInterruptMode InterruptMode `yaml:"humanInterruptMode" json:"humanInterruptMode" default:"inject" enum:"queue,interrupt,inject,parallel"`
	// Whether a notice in the channel reports that a turn timed out.
	AnnounceTimeouts bool `yaml:"announceTimeouts" json:"announceTimeouts" default:"true"`
	// Whether a notice in the channel reports that an agent disconnected.
	AnnounceDisconnects bool `yaml:"announceDisconnects" json:"announceDisconnects" default:"true"`
	// Whether silence ends a turn if the agent does not end it: after an answer whose end was reported, or after text if nothing
	// reports ends. Work of its processes starts the silence again.
	AutoDetectTurnEnd bool `yaml:"autoDetectTurnEnd" json:"autoDetectTurnEnd" default:"false"`
	// The length of that silence, in seconds.
	AutoDetectSilenceSeconds int `yaml:"autoDetectSilenceSeconds" json:"autoDetectSilenceSeconds" default:"10" minimum:"1" maximum:"86400"`
}

// Notify says how people are notified.
type Notify struct {
	// The targets of notices, by name.
	Targets []NotifyTarget `yaml:"targets" maxItems:"16" nullable:"true"`
	// The address of Mission Control in the links of notices, such as that of a reverse proxy. Absent: the address on this machine.
	Page string `yaml:"page" minLength:"0" format:"page"`
	// Short for a target `webhook` with this `url`, an http or https address.
	Webhook Secret `yaml:"webhook" format:"webhook"`
	// Short for a target `desktop` with the `url` desktop.
	Desktop bool `yaml:"desktop" default:"false"`
}

// NotifyTarget is one target of notices.
type NotifyTarget struct {
	Name string `format:"name" minLength:"0"`
	// Where notices go. Such addresses are secrets: use a reference, `${NTFY_URL}`. They are never shown. `desktop` is a
	// notification on the screen of the user who started Fairlead. An `http` or `https` address gets a POST request with JSON for
	// each matter. Other addresses are those of services as shoutrrr writes them, such as `ntfy://ntfy.sh/TOPIC`, `slack://`,
	// `discord://`, `telegram://`, `smtp://`, `gotify://`, `matrix://` and `pushover://`; see `doc/operate.md`.
	URL Secret `yaml:"url" format:"url"`
	// A file with the address instead of `url`: an absolute path or `~/…`, outside the repository, readable only by its owner.
	URLFile string `yaml:"url_file" format:"secret file"`
	// What is sent. `needs_you`: a step or an agent waits for an answer. `still_needs_you`: it waits for 15 minutes. `gave_up`: an
	// agent failed too often. `run_failed`, `task_failed`. `limit_reached`: of a provider, or of this file. `finished`: a run or
	// task is done. Absent: all but `finished`.
	Events []string `yaml:"events" minItems:"1" maxItems:"7" enum:"needs_you,still_needs_you,gave_up,run_failed,task_failed,limit_reached,finished"`
	// Hours of each day in which nothing is sent, such as `22:00-07:00`. What still waits afterwards is sent in one message. To let
	// some events pass, name a second target without quiet hours for them.
	Quiet Quiet `yaml:"quiet" maxLength:"20"`
	// The time zone of `quiet`, such as `Europe/Berlin`. Absent: that of this machine.
	Zone string `yaml:"zone" maxLength:"100" format:"zone"`
	// The most messages in any 60 minutes. What is above waits and shares the next message, which counts what it does not list.
	// Absent: 20, and 600 for an http or https address.
	PerHour int `yaml:"per_hour" minimum:"1" maximum:"3600"`
}

// Quiet are hours of each day, since midnight. The zero value is no hours.
type Quiet struct{ From, To time.Duration }
