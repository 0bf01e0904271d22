// Package workflow records the state of a run and decides which steps come next.
//
// Each step of a workflow waits for the steps that it needs, for gates, for a condition, and for
// approvals. Steps that are ready run in parallel up to a limit. A failed step is tried again. A
// gate failure sends the run back to an earlier step: that step and all steps that depend on it
// start over with the next iteration. The plan says whether people are asked before or after a
// step's work. Actions are derived from the steps, so an interrupted run continues where it
// stopped. Every event names its attempt; an event about an earlier attempt has no effect.
//
// The one promise: no step starts before the steps that it needs are done, and no finished step is
// repeated unless a gate or a person sends the run back.
package workflow

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
)

// Run is the state of one run of a plan. Decide reads it, and only Apply changes it. Its zero value
// is a run that was never started.
type Run struct {
	Head
	Plan  Plan       `json:"plan"`
	Steps []Progress `json:"steps"` // in the order of the plan

	index index
}

// Head is the state of a run as a whole (seed 004, Top-Level Fields).
type Head struct {
	ID              RunID     `json:"id"`
	Stage           Stage     `json:"stage"`
	Options         Options   `json:"options"`
	RepoDir         string    `json:"repo_dir"`
	ReportsDir      string    `json:"reports_dir"`
	ManualInputsDir string    `json:"manual_inputs_dir"`
	CreatedAt       time.Time `json:"created_at"`
	UpdatedAt       time.Time `json:"updated_at"` // of the last change of any kind
	StepCount       int       `json:"step_count"` // of the plan, which arrives in parts
	// upper bound of the leases of steps that the plan no longer has, and of an earlier run of this name
	LeaseFloor  uint64      `json:"lease_min,omitempty"`
	By          string      `json:"by,omitempty"`           // who paused, cancelled or resumed it last
	Why         string      `json:"why,omitempty"`          //
	PauseReason PauseReason `json:"pause_reason,omitempty"` // of a paused run
	Extra       string      `json:"extra,omitempty"`        // unknown fields of the file, not interpreted; X7
	OpenGates   []string    `json:"open_gates,omitempty"`   // of those that the plan names, in order
	Judged      Status      `json:"judged,omitempty"`       // completed or failed, of a run whose steps are ordered
}

// Progress is one step of a run.
type Progress struct {
	Value
	Facts
	Items []string `json:"items,omitempty"` // loop_items, as JSON texts
	Extra string   `json:"extra,omitempty"` // unknown fields of the file, not interpreted; X7
}

// Metric is the value of a metric; empty: there is none.
func (p *Progress) Metric(name string) string {
	for _, m := range p.Metrics {
		if m.Name == name {
			return m.Value
		}
	}
	return ""
}

// Value is the part of a step that changes, apart from what it produced (seed 004, Step Runtime
// Object). A change contains the complete new value.
type Value struct {
	State           State     `json:"state"`
	Attempts        int       `json:"attempts,omitempty"`
	Iteration       int       `json:"iteration,omitempty"`
	ReportPath      string    `json:"report_path,omitempty"` // empty: no report was read
	StartedAt       time.Time `json:"started_at,omitzero"`
	EndedAt         time.Time `json:"ended_at,omitzero"`
	LastError       string    `json:"last_error,omitempty"`
	ManualInputPath string    `json:"manual_input_path,omitempty"`
	BlockedBy       StepID    `json:"blocked_by,omitempty"` // the gate that sent the run back to an earlier step

	N         uint64    `json:"n,omitempty"`          // number of leases so far; only the last one is valid
	Proc      uint64    `json:"proc,omitempty"`       // lease whose process may be alive; 0: none
	BegunAt   time.Time `json:"begun_at,omitzero"`    // when that process was requested: its timeout counts from here
	Ending    string    `json:"ending,omitempty"`     // why that process is to end; empty: it is not
	EndReason EndReason `json:"end_reason,omitempty"` // the code of Ending
	RetryAt   time.Time `json:"retry_at,omitzero"`    // no earlier retry
	DueAt     time.Time `json:"due_at,omitzero"`      // its report asked to be run again: not earlier
	Rounds    int       `json:"rounds,omitempty"`     // how often it has asked for that in this iteration, for this item
	Lost      int       `json:"lost,omitempty"`       // consecutive deaths of the runner during this step
	Weighed   bool      `json:"weighed,omitempty"`    // `when` was found true
	Found     bool      `json:"found,omitempty"`      // the items of its loop are known
	Index     int       `json:"index,omitempty"`      // loop_index: the current item, from 0
	Done      int       `json:"done,omitempty"`       // loop_completed
	Reported  bool      `json:"reported,omitempty"`   // a valid report exists, and people are asked about it
	Answered  bool      `json:"answered,omitempty"`   // people have answered in this iteration for this item
	Answer    Answer    `json:"answer,omitzero"`      // the last valid one
	Fault     string    `json:"bad_input,omitempty"`  // error in the last invalid answer (W10)
	Order     uint64    `json:"order,omitempty"`      // the number of the order, of a step that starts only when it is ordered
}

// Answer is the record of a person's answer to a step.
type Answer struct {
	By     string `json:"by,omitempty"`
	ByFile bool   `json:"by_file,omitempty"` // it was written to manual_input_path
	Tree   string `json:"tree,omitempty"`    // of a task: the tree that the question showed
	Named  bool   `json:"named,omitempty"`   // the order named that tree; false: no hash was given

	Governing string `json:"governing,omitempty"` // of a task: the hash of the governing files, to which the person said a separate yes
}

// Facts are what a step produced according to its reports. Those of a loop's items are accumulated.
type Facts struct {
	Artifacts []string `json:"artifacts,omitempty"` // relative to the repository
	Metrics   []Metric `json:"metrics,omitempty"`
	Logs      []string `json:"logs,omitempty"`
	// Denied says which calls of the agent were denied, as sentences for people. Fairlead adds it;
	// a report cannot. The sentences are also the last lines of Logs, for programs that read the
	// run's files. It is never nil in the journal.
	Denied []string `json:"denied"`
	// Cut says what of the last report is not here, because of a limit. Fairlead adds it.
	Cut []string `json:"cut,omitempty"`
}

// Metric is one metric, as text (seed 004, Metrics).
type Metric struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Lease identifies one attempt of one step, or one question to people. Input with an ended lease is
// late.
type Lease struct {
	Step StepID `json:"step"`
	N    uint64 `json:"n"` // counts from 1, over all iterations and attempts
}

// Now is the part of the environment that a decision may use.
type Now struct {
	At   time.Time
	Held bool // the team is held: nothing starts (X8)
}

// StepOf returns the step that a change is about; empty: it is about the run, or about the steps in its body, each with its own From.
func StepOf(ch *change.Change) StepID {
	_, run, _ := strings.Cut(ch.Entity, "/")
	_, step, _ := strings.Cut(run, "/")
	return StepID(step)
}

// Body is what Apply needs: exactly one field is set. From and To of its change are a State or, with Head, a Stage.
type Body struct {
	Head  *Head     `json:"head,omitempty"`
	Plan  *PlanPart `json:"plan,omitempty"`
	Step  *StepSet  `json:"step,omitempty"`
	Reset *Reset    `json:"reset,omitempty"`
	Moved *Moved    `json:"moved,omitempty"`
	Taken []Taken   `json:"taken,omitempty"` // steps of an imported run
}

// JSONKey is the key of a change in the journal.
func (*Body) JSONKey() string { return "run" }

// PlanPart is a part of a plan: a plan may be larger than a change of the journal.
type PlanPart struct {
	Name        string `json:"name,omitempty"` // in the first part
	Description string `json:"description,omitempty"`
	Steps       []Step `json:"steps"`
}

// StepSet is the new state of a step.
type StepSet struct {
	Value Value    `json:"value"`
	Facts *Facts   `json:"facts,omitempty"` // nil: unchanged
	Add   bool     `json:"add,omitempty"`   // the facts are added to the existing ones
	Items []string `json:"items,omitzero"`  // nil: unchanged
}

// Taken is a step as found in another program's file, or as it was in the previous plan.
type Taken struct {
	Step StepID `json:"step"`
	Progress
}

// Reset returns steps to PENDING and resets everything except the lease numbers.
type Reset struct {
	Moves  []Move `json:"moves"`
	Gate   StepID `json:"gate,omitempty"`   // W6: next iteration, blocked by this gate; empty: iteration 0
	Target StepID `json:"target,omitempty"` // the step that the gate does not block, or that is ordered
	Ending string `json:"ending,omitempty"` // why to end a live process

	Order     uint64 `json:"order,omitempty"`     // the number of the order; 0: it was not ordered
	Iteration int    `json:"iteration,omitempty"` // of the order
}

// Moved lists steps that a rule of the plan moves together.
type Moved struct {
	Moves []Move `json:"moves"`
	To    State  `json:"to"` // SKIPPED; or PENDING: blocked_by_loop has ended
}

// Move is a step and its previous state, for the transition log (X6).
type Move struct {
	Step StepID `json:"step"`
	From State  `json:"from"`
}

// UnmarshalJSON reads a run from a snapshot and computes the derived fields.
func (r *Run) UnmarshalJSON(b []byte) error {
	type plain Run
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*r = Run(p)
	if r.complete() {
		r.build()
	}
	return nil
}

// complete reports whether all parts of the plan have arrived.
func (r *Run) complete() bool {
	return r.StepCount > 0 && len(r.Plan.Steps) == r.StepCount && len(r.Steps) == r.StepCount
}

// Find returns a step of the plan and its progress; false if it does not exist. The results are
// read-only.
func (r *Run) Find(id StepID) (*Step, *Progress, bool) {
	i, ok := r.index.at[id]
	if !ok {
		return nil, nil, false
	}
	return &r.Plan.Steps[i], &r.Steps[i], true
}

// LastLease is the highest lease of any step so far.
func (r *Run) LastLease() uint64 {
	last := r.LeaseFloor
	for i := range r.Steps {
		last = max(last, r.Steps[i].N)
	}
	return last
}

// ReportFile is the path of a step's report (seed 004).
func (r *Run) ReportFile(id StepID) string {
	return r.ReportsDir + "/" + string(r.ID) + "__" + string(id) + ".json"
}

// InputFile is the path of people's answer to a step (SPEC W8).
func (r *Run) InputFile(id StepID) string {
	return r.ManualInputsDir + "/" + string(r.ID) + "__" + string(id) + ".json"
}

// EachPath changes the absolute paths of a run, because another machine leads.
func EachPath(r *Run, to func(path string) string) {
	r.RepoDir, r.ReportsDir, r.ManualInputsDir = to(r.RepoDir), to(r.ReportsDir), to(r.ManualInputsDir)
	for i := range r.Steps {
		p := &r.Steps[i]
		p.ReportPath, p.ManualInputPath = to(p.ReportPath), to(p.ManualInputPath)
		for j, path := range p.Artifacts { // agents may report absolute ones
			if moved := to(path); moved != path {
				p.Artifacts = slices.Clone(p.Artifacts)
				p.Artifacts[j] = moved
			}
		}
	}
}
