package view

import (
	"time"
)

// RunFlags are what somebody says who starts a run, or has it go on: the flags of `fairlead
// run` (SPEC Workflow, "What the flags mean"). Paths are absolute, or relative to Repo. What is
// left out is the seed's default; of a run that goes on, what it was.
type RunFlags struct {
	Workflow        string   `json:"workflow,omitempty" maxLength:"4096" doc:"The YAML file"`
	Repo            string   `json:"repo,omitempty" maxLength:"4096" doc:"The repository that is worked on; the daemon's where it is left out"`
	RunID           string   `json:"run_id,omitempty" maxLength:"48" doc:"The run's name; one is made where it is left out"`
	StartAtStep     string   `json:"start_at_step,omitempty" maxLength:"64" doc:"Go on from this step (W12)"`
	Wrapper         string   `json:"wrapper,omitempty" maxLength:"4096" doc:"An executable or a .py file that is run for each step"`
	WrapperArgs     []string `json:"wrapper_args,omitempty" maxItems:"64" doc:"More arguments for the wrapper"`
	CommandTemplate string   `json:"command_template,omitempty" maxLength:"16384" doc:"A whole command instead, with {run_id} {step_id} {agent} {prompt} {repo} {report} {attempt} {manual_input}"`
	Env             []string `json:"env,omitempty" maxItems:"256" doc:"K=V for every step; values are kept by the daemon and nowhere else"`
	MaxAttempts     *int     `json:"max_attempts,omitempty" minimum:"1" maximum:"100" doc:"Tries per iteration; 2"`
	MaxIterations   *int     `json:"max_iterations,omitempty" minimum:"0" maximum:"1000" doc:"Loop-backs per gate; 4"`
	SideBySide      *int     `json:"side_by_side,omitempty" minimum:"1" maximum:"256" doc:"Steps at one time; the number of CPUs"`
	PauseForHumans  bool     `json:"pause_for_human_input,omitempty" doc:"Human steps wait; without it they go on, logged"`
	GateStateFile   string   `json:"gate_state_file,omitempty" maxLength:"4096" doc:"A JSON object of name to true or false"`
	PollIntervalMS  int64    `json:"poll_interval_ms,omitempty" minimum:"0" maximum:"3600000" doc:"How often files are looked at that no event told of; 200"`
	LogsDir         string   `json:"logs_dir,omitempty" maxLength:"4096" doc:"Where the steps' logs go; RUN/logs"`
	Workdir         string   `json:"workdir,omitempty" maxLength:"4096" doc:"Where the steps' processes run; the repository"`
	ReportSchema    string   `json:"report_schema,omitempty" maxLength:"4096" doc:"A JSON Schema that reports have to fit (--schema)"`
	DailyCostLimit  *float64 `json:"daily_cost_limit,omitempty" minimum:"0" doc:"USD a day for this run; 0 is none"`
	CostLimitAction string   `json:"cost_limit_action,omitempty" enum:"warn,pause,fail" doc:"What happens then"`
	GitWorktree     bool     `json:"git_worktree,omitempty" doc:"Work in a git worktree of its own"`
	WorktreeRef     string   `json:"git_worktree_ref,omitempty" maxLength:"256" doc:"What it is made from; HEAD"`
	WorktreeBranch  string   `json:"git_worktree_branch,omitempty" maxLength:"256" doc:"Its branch; fairlead/RUN"`
	WorktreeRoot    string   `json:"git_worktree_root,omitempty" maxLength:"4096" doc:"Where it is made; .agents/worktrees"`
	WorktreeKeep    bool     `json:"git_worktree_keep,omitempty" doc:"Keep it when the run is over"`
}

// RunView is one run, as people and programs are shown it.
type RunView struct {
	ID         string     `json:"run_id"`
	Workflow   string     `json:"workflow_name"`
	Status     string     `json:"status" doc:"running, waiting, completed, failed or cancelled"`
	Stage      string     `json:"stage" doc:"driven, paused, parked or cancelled"`
	RepoDir    string     `json:"repo_dir"`
	StateFile  string     `json:"run_state" doc:"The path of run_state.json"`
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
	Waits      []string   `json:"waits" doc:"What it waits for, a sentence each"`
	By         string     `json:"by,omitempty" doc:"Who paused, cancelled or resumed it last"`
	Why        string     `json:"why,omitempty"`
	CostUSD    float64    `json:"cost_usd_today"`
	Counts     Counts     `json:"counts" doc:"How many steps are in which state"`
	FileBehind bool       `json:"file_behind" doc:"run_state.json does not say yet what the journal does"`
	Steps      []StepView `json:"steps,omitempty" doc:"In the plan's order; only where one run is asked for"`
}

// Counts are how many steps are in which state.
type Counts struct {
	Pending   int `json:"pending"`
	Running   int `json:"running"`
	Waiting   int `json:"waiting_on_human"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
}

// StepView is one step of a run.
type StepView struct {
	ID              string            `json:"id"`
	Agent           string            `json:"agent,omitempty"`
	Status          string            `json:"status" doc:"As in run_state.json: PENDING, RUNNING, WAITING_ON_HUMAN, COMPLETED, FAILED or SKIPPED"`
	Attempts        int               `json:"attempts"`
	Iteration       int               `json:"iteration_count"`
	StartedAt       *time.Time        `json:"started_at"`
	EndedAt         *time.Time        `json:"ended_at"`
	LastError       string            `json:"last_error,omitempty"`
	WaitsFor        string            `json:"waits_for,omitempty" doc:"What keeps it, in words; where it stands in line, behind whom"`
	Needs           []string          `json:"needs"`
	LoopBackTo      string            `json:"loop_back_to,omitempty"`
	Human           bool              `json:"human_in_the_loop,omitempty"`
	BlockedBy       string            `json:"blocked_by_loop,omitempty"`
	Session         string            `json:"session,omitempty" doc:"The session that is at work on it; its output is at /sessions/{id}/output"`
	LastSession     string            `json:"last_session,omitempty" doc:"The newest session that was"`
	ReportPath      string            `json:"report_path,omitempty"`
	LogPath         string            `json:"log_path,omitempty"`
	PromptPath      string            `json:"prompt_path,omitempty"`
	ManualInputPath string            `json:"manual_input_path,omitempty"`
	InputSchema     string            `json:"input_schema,omitempty" doc:"JSON"`
	BadInput        string            `json:"bad_input,omitempty" doc:"What was wrong with the last answer (W10)"`
	Denied          string            `json:"denied,omitempty" doc:"What its agent asked for and was not allowed, where it was done all the same; of a step that failed last_error says it"`
	Artifacts       []string          `json:"artifacts"`
	Metrics         map[string]string `json:"metrics"`
	Logs            []string          `json:"logs"`
	LoopIndex       int               `json:"loop_index,omitempty"`
	LoopItems       int               `json:"loop_items,omitempty"`
	LoopDone        int               `json:"loop_completed,omitempty"`
}

// InboxItem is one thing that waits for a person.
type InboxItem struct {
	Kind        string        `json:"kind" enum:"step,permission,question,resume" doc:"step: a step of a run waits for an answer; permission: an agent wants to do something; question: it asks for words; resume: its conversation would go on under other conditions"`
	Run         string        `json:"run_id"`
	Step        string        `json:"step_id"`
	Workflow    string        `json:"workflow_name"`
	Since       time.Time     `json:"since"`
	Why         string        `json:"why"`
	Path        string        `json:"manual_input_path" doc:"An answer can also be put there as a JSON file"`
	InputSchema string        `json:"input_schema,omitempty"`
	BadInput    string        `json:"bad_input,omitempty"`
	Artifacts   []string      `json:"artifacts"`
	Logs        []string      `json:"logs"`
	Agent       string        `json:"agent,omitempty" doc:"Who asks; empty of a step"`
	Session     string        `json:"session_id,omitempty"`
	Question    *QuestionView `json:"question,omitempty" doc:"Of every kind but step"`
}

// StepAnswer is what a person answers to a step.
type StepAnswer struct {
	Rejected bool   `json:"rejected,omitempty"`
	Note     string `json:"note,omitempty" maxLength:"1000"`
	Input    string `json:"input,omitempty" maxLength:"1048576" doc:"JSON, where the step asks for more than yes or no"`
}
