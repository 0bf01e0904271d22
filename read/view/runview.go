package view

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// RunFlags are the options for starting or resuming a run: the flags of `fairlead run` (SPEC
// Workflow, "What the flags mean"). Paths are absolute, or relative to Repo. An option that is left
// out has the seed's default; for a resumed run it keeps its value.
type RunFlags struct {
	Workflow        string   `json:"workflow,omitempty" maxLength:"4096" doc:"The YAML file"`
	Repo            string   `json:"repo,omitempty" maxLength:"4096" doc:"The repository that the steps work on; default: the daemon's"`
	RunID           string   `json:"run_id,omitempty" maxLength:"48" doc:"The run's id; default: generated"`
	StartAtStep     string   `json:"start_at_step,omitempty" maxLength:"64" doc:"Continue from this step (W12)"`
	Wrapper         string   `json:"wrapper,omitempty" maxLength:"4096" doc:"An executable or a .py file to run for each step"`
	WrapperArgs     []string `json:"wrapper_args,omitempty" maxItems:"64" doc:"Additional arguments for the wrapper"`
	CommandTemplate string   `json:"command_template,omitempty" maxLength:"16384" doc:"A whole command instead of a wrapper, with {run_id} {step_id} {agent} {prompt} {repo} {report} {attempt} {manual_input}"`
	Env             []string `json:"env,omitempty" maxItems:"256" doc:"K=V for every step; only the daemon keeps the values"`
	MaxAttempts     *int     `json:"max_attempts,omitempty" minimum:"1" maximum:"100" doc:"Attempts per iteration; default: 2"`
	MaxIterations   *int     `json:"max_iterations,omitempty" minimum:"0" maximum:"1000" doc:"Loop-backs per gate; default: 4"`
	SideBySide      *int     `json:"side_by_side,omitempty" minimum:"1" maximum:"256" doc:"Steps that run at the same time; default: the number of CPUs"`
	PauseForHumans  bool     `json:"pause_for_human_input,omitempty" doc:"Steps for people wait; this is the default"`
	Unattended      bool     `json:"unattended,omitempty" doc:"Steps for people go on without an answer; each of them has a log entry"`
	GateStateFile   string   `json:"gate_state_file,omitempty" maxLength:"4096" doc:"A JSON object of name to true or false"`
	PollIntervalMS  int64    `json:"poll_interval_ms,omitempty" minimum:"0" maximum:"3600000" doc:"How often to check files for which the system reports no events; default: 200"`
	LogsDir         string   `json:"logs_dir,omitempty" maxLength:"4096" doc:"Folder for the steps' logs; default: RUN/logs"`
	Workdir         string   `json:"workdir,omitempty" maxLength:"4096" doc:"Folder in which the steps' processes run; default: the repository"`
	ReportSchema    string   `json:"report_schema,omitempty" maxLength:"4096" doc:"A JSON Schema for reports (--schema)"`
	DailyCostLimit  *float64 `json:"daily_cost_limit,omitempty" minimum:"0" doc:"USD per day of the repository, for all its runs together; 0: no limit"`
	CostLimitAction string   `json:"cost_limit_action,omitempty" enum:"warn,pause,fail" doc:"What happens at the limit"`
	GitWorktree     bool     `json:"git_worktree,omitempty" doc:"Work in a clone of the repository"`
	WorktreeRef     string   `json:"git_worktree_ref,omitempty" maxLength:"256" doc:"The commit that the clone starts from; default: HEAD"`
	WorktreeBranch  string   `json:"git_worktree_branch,omitempty" maxLength:"256" doc:"The branch of the clone, which comes into the repository after each step; default: fairlead/RUN"`
	WorktreeRoot    string   `json:"git_worktree_root,omitempty" maxLength:"4096" doc:"Folder for the clone; default: .agents/worktrees"`
	WorktreeKeep    bool     `json:"git_worktree_keep,omitempty" doc:"Keep the clone when the run has ended"`

	Task *TaskFlags `json:"task,omitempty" doc:"Start a task: a run of the workflow for tasks. No other field has an effect then"`
}

// TaskFlags is a task as a person gives it.
type TaskFlags struct {
	Text  string `json:"text" minLength:"1" maxLength:"65536" doc:"What is to be done"`
	Agent string `json:"agent,omitempty" maxLength:"64" doc:"The agent that does it; default: the one whose description fits the text"`
	Base  string `json:"base,omitempty" maxLength:"200" doc:"The branch to land on; default: tasks.base of fairlead.yaml, or the current branch"`
	Issue string `json:"issue,omitempty" maxLength:"2000" doc:"The URL of the issue that it is from; the text says what it is about"`

	Attachments []TaskAttachment `json:"attachments,omitempty" maxItems:"10" doc:"Text files of at most 256 KiB and images of at most 3 MiB that the agent gets with the task"`

	After []string `json:"after,omitempty" maxItems:"16" doc:"The ids of tasks that must have landed before it begins"`
}

// TaskAttachment is a text file or an image that is given with a task.
type TaskAttachment struct {
	Name  string `json:"name" minLength:"1" maxLength:"100" doc:"Without a folder"`
	Text  string `json:"text,omitempty" maxLength:"262144" doc:"The content of a text file"`
	Image []byte `json:"image,omitempty" doc:"The content of a PNG, JPEG, GIF or WebP image, in base64"`
}

// The status of a task.
const (
	TaskQueued   = "queued"    // it waits for its agent
	TaskBlocked  = "blocked"   // it waits for other tasks
	TaskWorking  = "working"   // its agent works on it
	TaskChecking = "checking"  // the checks run
	TaskReview   = "review"    // another agent reviews it
	TaskNeedsYou = "needs_you" // it waits for a person
	TaskLanding  = "landing"   // it is merged, or waits for the tasks that land before it
	TaskPROpen   = "pr_open"   // its pull request is open
	TaskDone     = "done"      // it has landed
	TaskFailed   = "failed"    // it gave up; a person may resume it
	TaskDropped  = "dropped"   // a person has ended it
)

// Metrics of a task's step land.
const (
	MetricPull    = "pull_request_state"
	MetricPullURL = "pull_request"
)

// TaskView describes a run that is a task.
type TaskView struct {
	ID           string         `json:"id"`
	Title        string         `json:"title" doc:"The first line of its text"`
	Agent        string         `json:"agent"`
	Status       string         `json:"status" enum:"queued,blocked,working,checking,review,needs_you,landing,pr_open,done,failed,dropped"`
	Why          string         `json:"why,omitempty" doc:"What it waits for, or what failed"`
	FailedStep   string         `json:"failed_step,omitempty" doc:"The step that failed; resume the run to try again"`
	Branch       string         `json:"branch" doc:"The branch in its folder"`
	Worktree     string         `json:"worktree" doc:"The folder in which the work is done"`
	Base         string         `json:"base" doc:"The branch on which it lands"`
	RunID        string         `json:"run_id" doc:"The run that carries it out"`
	Host         string         `json:"host,omitempty" doc:"The host on which its session runs; empty: the leader's machine, or none is open"`
	After        []string       `json:"after,omitempty" doc:"The tasks for which it waits or waited"`
	FilesChanged int            `json:"files_changed" doc:"As it was last shown"`
	LandedCommit string         `json:"landed_commit,omitempty"`
	Landing      *TaskNotLanded `json:"landing,omitempty" doc:"Why its newest landing failed; until it is approved again or sent back"`
	Checkout     string         `json:"checkout,omitempty" doc:"The worktree in which a person works on it; only while the task waits for that person"`
	Overlaps     []TaskOverlap  `json:"overlaps,omitempty" doc:"Other open tasks that change the same files; only in the list of tasks, and for 20 of them"`
	Asked        *TaskAsked     `json:"asked,omitempty" doc:"What a person is asked to approve; only while the task waits for that"`
	PullRequest  string         `json:"pull_request,omitempty" doc:"The URL of its pull request, while that is open and after"`
	Issue        string         `json:"issue,omitempty" doc:"The URL of the issue that it is from"`
	FetchStopped string         `json:"fetch_stopped,omitempty" doc:"Why tasks.fetch fetches the remote no more; it goes on after a reload, or a sync that works"`
	CreatedAt    time.Time      `json:"created_at"`
	UpdatedAt    time.Time      `json:"updated_at"`
}

// TaskNotLanded is a landing that failed.
type TaskNotLanded struct {
	Failed string   `json:"failed" enum:"conflict,checks,dirty,moved" doc:"conflict: with the newest commit of the base; checks: on the files merged with it; dirty: the checkout of the base has changes, or something is half done in it; moved: the base is not where it was shown, or another program holds its lock"`
	Files  []string `json:"files,omitempty" doc:"Those with conflicts, or in the way; a long list ends with how many more there are"`
}

// TaskSync is what a fetch of the remote has brought to a task.
type TaskSync struct {
	Remote   string         `json:"remote" doc:"The remote that was fetched"`
	Base     string         `json:"base" doc:"The branch on which the task lands"`
	Behind   int            `json:"behind" doc:"Commits of this branch on the remote that it lacks here; -1: the remote has no such branch, or it is not fetched"`
	Ahead    int            `json:"ahead" doc:"Commits that it has here and not on the remote"`
	Branches []SyncedBranch `json:"branches" nullable:"false" doc:"Remote-tracking branches that are new or have moved, the one of the base first"`
	More     int            `json:"more" doc:"How many more of these there are"`
}

// TaskUndone says how the landing of a task was taken back.
type TaskUndone struct {
	ID       string `json:"id"`
	Base     string `json:"base" doc:"The branch on which it had landed"`
	Moved    string `json:"moved,omitempty" doc:"The commit to which the branch was moved back"`
	Checkout string `json:"checkout,omitempty" doc:"The checkout of the branch, which has moved with it"`
	Task     string `json:"task,omitempty" doc:"The new task that reverts the landing, because the branch could not be moved back"`
	Because  string `json:"because,omitempty" doc:"Why the branch was not moved back"`
}

// TaskCheckout is a worktree of the repository in which a person works on a task.
type TaskCheckout struct {
	ID     string `json:"id"`
	Dir    string `json:"dir"`
	Branch string `json:"branch" doc:"In the person's repository, while the worktree is there"`
	Base   string `json:"base" doc:"The branch on which the task lands"`
	Done   bool   `json:"done" doc:"The worktree and its branch are removed"`
	Newer  bool   `json:"newer" doc:"Commits of it are the task's now, which is checked and shown again"`
}

// TaskPushed is what of a task was pushed to a remote.
type TaskPushed struct {
	ID     string `json:"id"`
	Remote string `json:"remote"`
	Branch string `json:"branch" doc:"On the remote"`
	Commit string `json:"commit" doc:"The tip of that branch now"`
	Shown  bool   `json:"shown" doc:"It has what a person was shown last; false: what the task's folder has"`
	There  bool   `json:"there" doc:"The branch had it already, and nothing was pushed"`
}

// SyncedBranch is a remote-tracking branch that a fetch has moved.
type SyncedBranch struct {
	Name string `json:"name" doc:"Such as origin/main"`
	New  int    `json:"new" doc:"Commits that have come"`
	Lost int    `json:"lost" doc:"Commits that it had before and has no more"`
	Made bool   `json:"made" doc:"It was not known before; its commits are not counted"`
}

// TreeDigits is how many digits of a tree's hash are printed, and how many an approval has to name at least.
const TreeDigits = 12

// TaskAsked is what a question about a task shows.
type TaskAsked struct {
	Tree   string `json:"tree" doc:"The hash of the git tree; an approval names it, with at least 12 digits, and lands exactly this"`
	Commit string `json:"commit" doc:"A commit with that tree"`
	From   string `json:"from" doc:"The commit of the base branch that it is compared with"`

	Round     int  `json:"round,omitempty" doc:"The round that is shown, from 1: a request is about it, and begins the next one"`
	Unchanged bool `json:"unchanged,omitempty" doc:"A person asked for changes, and the content is what was shown before"`

	GoverningHash string   `json:"governing_hash,omitempty" doc:"The hash that an approval has to name as governing, if governing files are changed"`
	Told          []string `json:"told,omitempty" doc:"What a person has to know: that nothing was changed, checks that failed before, calls that were denied, where the checks ran, what they said with the base's files, tests that are changed or deleted"`
	Governing     []string `json:"governing,omitempty" doc:"The changed files that decide what runs later; a long list ends with how many more there are"`
}

// RunView is one run.
type RunView struct {
	ID           string     `json:"run_id"`
	Workflow     string     `json:"workflow_name"`
	Status       string     `json:"status" doc:"running, waiting, completed, failed or cancelled"`
	Stage        string     `json:"stage" doc:"driven, paused, parked or cancelled"`
	RepoDir      string     `json:"repo_dir"`
	StateFile    string     `json:"run_state" doc:"The path of run_state.json"`
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
	Waits        []string   `json:"waits" doc:"What it waits for, one sentence each"`
	By           string     `json:"by,omitempty" doc:"The actor that paused, cancelled or resumed it last"`
	Why          string     `json:"why,omitempty"`
	Warnings     []string   `json:"warnings,omitempty" doc:"Fields of the workflow's file that have no effect, with line and column; only in the answer for a single run"`
	Limit        string     `json:"limit_warning,omitempty" doc:"Its daily limit was reached, which only warns: when, and with which use; only in the answer for a single run"`
	Worktree     string     `json:"worktree,omitempty" doc:"The path of its clone (--git-worktree); only in the answer for a single run"`
	WorktreeEnd  string     `json:"worktree_end,omitempty" doc:"Whether the worktree was removed after the run, or why it stays; and why its branch was left as it is. Empty: the run goes on, or it is not known"`
	StateEdited  string     `json:"state_edited,omitempty" doc:"run_state.json was edited by a person or another program: that it was taken in, or why not, and the name under which it is kept; empty: it was not, or it is not known"`
	WorktreeBusy bool       `json:"worktree_busy,omitempty" doc:"The worktree is being removed"`
	Away         string     `json:"away,omitempty" doc:"The host that led before and has its newest files; its steps wait until they arrive, or until it is resumed without them"`
	CostUSD      float64    `json:"cost_usd" doc:"Of all its sessions, on all days, as reported"`
	Counts       Counts     `json:"counts" doc:"Number of steps in each state"`
	FileBehind   bool       `json:"file_behind" doc:"run_state.json is older than the journal"`
	Task         *TaskView  `json:"task,omitempty" doc:"Only if the run is a task"`
	Steps        []StepView `json:"steps,omitempty" doc:"In the plan's order; only in the answer for a single run"`
}

// Counts is the number of steps in each state.
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
	WaitsFor        string            `json:"waits_for,omitempty" doc:"What the step waits for, as text, with its position in a queue"`
	Needs           []string          `json:"needs"`
	LoopBackTo      string            `json:"loop_back_to,omitempty"`
	Human           bool              `json:"human_in_the_loop,omitempty"`
	BlockedBy       string            `json:"blocked_by_loop,omitempty"`
	Session         string            `json:"session,omitempty" doc:"The session that executes it now; its output is at /sessions/{id}/output"`
	Host            string            `json:"host,omitempty" doc:"The host on which that session runs; empty: the leader's machine"`
	LastSession     string            `json:"last_session,omitempty" doc:"The newest session that has ended"`
	ReportPath      string            `json:"report_path,omitempty"`
	LogPath         string            `json:"log_path,omitempty"`
	PromptPath      string            `json:"prompt_path,omitempty"`
	ManualInputPath string            `json:"manual_input_path,omitempty"`
	InputSchema     string            `json:"input_schema,omitempty" doc:"JSON"`
	BadInput        string            `json:"bad_input,omitempty" doc:"What was wrong with the last answer (W10)"`
	Answer          *StepAnswered     `json:"answer,omitempty" doc:"The last valid answer of a person in this round"`
	Cut             string            `json:"cut,omitempty" doc:"What of its report is only in the file at report_path, because of a limit"`
	Denied          string            `json:"denied,omitempty" doc:"Calls that were denied to its agent, if the step completed anyway; for a failed step, see last_error"`
	Artifacts       []string          `json:"artifacts"`
	Metrics         map[string]string `json:"metrics"`
	Logs            []string          `json:"logs"`
	LoopIndex       int               `json:"loop_index,omitempty"`
	LoopItems       int               `json:"loop_items,omitempty"`
	LoopDone        int               `json:"loop_done,omitempty" doc:"Number of items that are done"`
	Rounds          int               `json:"rounds,omitempty" doc:"How often its report asked to be run again later"`
	DueAt           *time.Time        `json:"due_at,omitempty" doc:"When it is run again, because its report asked for it"`
}

// RunOf is what a run says by itself.
func RunOf(r *workflow.Run) RunView {
	shown := RunView{
		ID: string(r.ID), Workflow: r.Plan.Name, Status: string(r.Status()), Stage: string(r.Stage), RepoDir: r.RepoDir,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Waits: Some(r.Waits()), By: r.By, Why: r.Why,
	}
	for i := range r.Steps {
		shown.Counts.Add(r.Steps[i].State)
	}
	return shown
}

// Add counts a step in a state.
func (n *Counts) Add(is workflow.State) {
	counts := map[workflow.State]*int{
		workflow.Pending: &n.Pending, workflow.Running: &n.Running, workflow.Waiting: &n.Waiting,
		workflow.Completed: &n.Completed, workflow.Failed: &n.Failed, workflow.Skipped: &n.Skipped,
	}
	if n := counts[is]; n != nil {
		*n++
	}
}

// StepOf is what a step says by itself.
func StepOf(r *workflow.Run, i int) StepView {
	plan, p := &r.Plan.Steps[i], &r.Steps[i]
	shown := StepView{
		ID: string(plan.ID), Agent: plan.Agent, Status: string(p.State), Attempts: p.Attempts, Iteration: p.Iteration,
		StartedAt: Moment(p.StartedAt), EndedAt: Moment(p.EndedAt), LastError: p.LastError, Needs: make([]string, len(plan.Needs)),
		LoopBackTo: string(plan.LoopBackTo), Human: plan.Human, BlockedBy: string(p.BlockedBy), ReportPath: p.ReportPath,
		PromptPath: plan.Prompt, ManualInputPath: p.ManualInputPath, InputSchema: plan.InputSchema, BadInput: p.Fault,
		Answer: Answered(p.Answer), Artifacts: Some(p.Artifacts), Metrics: map[string]string{}, Logs: Some(p.Logs),
		LoopIndex: p.Index, LoopItems: len(r.LoopItems(plan.ID)), LoopDone: p.Done, Rounds: p.Rounds, DueAt: Moment(p.DueAt),
	}
	for n, need := range plan.Needs {
		shown.Needs[n] = string(need)
	}
	for _, metric := range p.Metrics {
		shown.Metrics[metric.Name] = metric.Value
	}
	return shown
}

// StepAnswer is a person's answer to a step.
type StepAnswer struct {
	Rejected bool   `json:"rejected,omitempty"`
	Note     string `json:"note,omitempty" maxLength:"1000"`
	Input    string `json:"input,omitempty" maxLength:"1048576" doc:"JSON, if the step asks for more than yes or no"`
	Shown    string `json:"shown,omitempty" maxLength:"64" doc:"What the person looked at, as the inbox has it; empty: it is not checked"`
	Tree     string `json:"tree,omitempty" maxLength:"64" doc:"Of a task: the hash of the tree that the person looked at; empty: the record says that none was given"`

	Governing string `json:"governing,omitempty" maxLength:"64" doc:"Of a task that changes governing files: their hash, as a separate yes"`
}

// StepAnswered is the record of a person's answer.
type StepAnswered struct {
	By     string `json:"by"`
	ByFile bool   `json:"by_file" doc:"It was written to manual_input_path"`
	Tree   string `json:"tree,omitempty" doc:"Of a task: the hash of the tree that was shown"`
	Named  bool   `json:"hash_given" doc:"The answer named that tree"`
	Words  string `json:"words" doc:"The record as text"`

	Governing string `json:"governing,omitempty" doc:"Of a task: the hash of the governing files, to which the person said a separate yes"`
}

// Answered is the record of an answer; nil: there was none.
func Answered(a workflow.Answer) *StepAnswered {
	if a == (workflow.Answer{}) {
		return nil
	}
	return &StepAnswered{By: a.By, ByFile: a.ByFile, Tree: a.Tree, Named: a.Named, Words: AnswerWords(a), Governing: a.Governing}
}

// AnswerWords is the record of an answer as text.
func AnswerWords(a workflow.Answer) string {
	words := "by " + cmp.Or(a.By, "a person")
	if a.ByFile {
		words = "by file"
		if a.By != "" {
			words += ", which names " + a.By
		}
	}
	switch {
	case a.Tree == "":
	case a.Named:
		words += fmt.Sprintf(", for tree %.*s", TreeDigits, a.Tree)
	default:
		words += fmt.Sprintf(", for tree %.*s, no hash given", TreeDigits, a.Tree)
	}
	if a.Governing != "" {
		words += fmt.Sprintf(", and for governing files %.*s", TreeDigits, a.Governing)
	}
	return words
}

// WarnedWords is the warning that a run has reached its own daily limit, where that only warns.
func WarnedWords(w team.Warned) string {
	return "daily limit reached on " + w.Day + ": " + w.Limit + "; the run goes on"
}
