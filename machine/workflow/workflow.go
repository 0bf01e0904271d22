// Package workflow records the state of a run and decides which steps come next.
//
// Each step of a workflow waits for the steps that it needs, for gates, for a condition, and for
// approvals. Steps that are ready run in parallel up to a limit. A failed step is tried again. A gate
// failure sends the run back to an earlier step: that step and all steps that depend on it start over
// with the next iteration. The plan says where people are asked, before or after a step's work. Actions
// are derived from the steps, so an interrupted run continues where it stopped. Every event names the
// attempt that it is about; an event about an earlier attempt changes nothing.
//
// The promise: no step starts before the steps that it needs are done, and no finished step is repeated
// unless a gate or a person sends the run back.
package workflow

import (
	"encoding/json"
	"time"
)

// Run is one run of a plan: everything that is true of it. Decide looks at it, Apply alone
// changes it. Its zero value is a run that nobody has started.
type Run struct {
	Head
	Plan  Plan       `json:"plan"`
	Steps []Progress `json:"steps"` // as in the plan, and in its order

	index index
}

// Head is what is true of a run as a whole (seed 004, Top-Level Fields).
type Head struct {
	ID              RunID       `json:"id"`
	Stage           Stage       `json:"stage"`
	Options         Options     `json:"options"`
	RepoDir         string      `json:"repo_dir"`
	ReportsDir      string      `json:"reports_dir"`
	ManualInputsDir string      `json:"manual_inputs_dir"`
	CreatedAt       time.Time   `json:"created_at"`
	UpdatedAt       time.Time   `json:"updated_at"`             // of the last change, whatever it was of
	StepCount       int         `json:"step_count"`             // of the plan, which comes in parts
	LeaseFloor      uint64      `json:"lease_floor,omitempty"`  // leases given to steps that the plan no longer has, at most
	By              string      `json:"by,omitempty"`           // who paused, cancelled or resumed it last
	Why             string      `json:"why,omitempty"`          //
	PauseReason     PauseReason `json:"pause_reason,omitempty"` // of a paused run
	Extra           string      `json:"extra,omitempty"`        // unknown fields of the file, opaque here; X7
	OpenGates       []string    `json:"open_gates,omitempty"`   // of those that the plan names, in order
}

// Progress is one step of a run.
type Progress struct {
	Value
	Facts
	Items []string `json:"items,omitempty"` // loop_items, as JSON texts
	Extra string   `json:"extra,omitempty"` // unknown fields of the file, opaque here; X7
}

// Value is what changes of a step, apart from what it produced (seed 004, Step Runtime Object).
// A change holds the whole of it as it is afterwards.
type Value struct {
	State           State     `json:"state"`
	Attempts        int       `json:"attempts,omitempty"`
	Iteration       int       `json:"iteration,omitempty"`
	ReportPath      string    `json:"report_path,omitempty"` // empty: no report was read
	StartedAt       time.Time `json:"started_at,omitzero"`
	EndedAt         time.Time `json:"ended_at,omitzero"`
	LastError       string    `json:"last_error,omitempty"`
	ManualInputPath string    `json:"manual_input_path,omitempty"`
	BlockedBy       StepID    `json:"blocked_by,omitempty"` // the gate that sent the run back to before this step

	N         uint64    `json:"n,omitempty"`          // leases given so far; the last one is the only one that counts
	Proc      uint64    `json:"proc,omitempty"`       // the lease whose process may be alive; 0: none
	BegunAt   time.Time `json:"begun_at,omitzero"`    // when that process was wanted: a timeout counts from here
	Ending    string    `json:"ending,omitempty"`     // why that process is to end; empty: it is not
	EndReason EndReason `json:"end_reason,omitempty"` // the code that Ending is the sentence of
	RetryAt   time.Time `json:"retry_at,omitzero"`    // not before then
	Lost      int       `json:"lost,omitempty"`       // times that the runner died under it, in a row
	Weighed   bool      `json:"weighed,omitempty"`    // `when` was found true
	Found     bool      `json:"found,omitempty"`      // what its loop goes over is known
	Index     int       `json:"index,omitempty"`      // loop_index: the item at hand, from 0
	Done      int       `json:"done,omitempty"`       // loop_completed
	Reported  bool      `json:"reported,omitempty"`   // a good report is there, and people are asked about it
	Answered  bool      `json:"answered,omitempty"`   // people have answered, in this iteration and for this item
	Fault     string    `json:"bad_input,omitempty"`  // of the last answer that was not valid (W10)
}

// Facts are what a step's reports say that it produced. Those of a loop's items add up.
type Facts struct {
	Artifacts []string `json:"artifacts,omitempty"` // relative to the repository
	Metrics   []Metric `json:"metrics,omitempty"`
	Logs      []string `json:"logs,omitempty"`
}

// Metric is one measure, as text (seed 004, Metrics).
type Metric struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Lease names one attempt of one step, or one question to people. What comes in under a lease
// that is over is late.
type Lease struct {
	Step StepID `json:"step"`
	N    uint64 `json:"n"` // counts from 1, over all iterations and attempts
}

// Now is what a decision may know of the world beside the run.
type Now struct {
	At   time.Time
	Held bool // the team is held: nothing begins (X8)
}

// Change is one fact that Decide found, about one step, about many, or about the run. Exactly
// one field of its Body is set.
type Change struct {
	At      time.Time
	Row     string
	Step    StepID // empty: the run, or the steps that the body lists, each with its own From
	From    string // a State, or a Stage
	To      string
	Trigger string
	Body    Body
}

// Body is what Apply needs, and what the journal keeps.
type Body struct {
	Head  *Head     `json:"head,omitempty"`
	Plan  *PlanPart `json:"plan,omitempty"`
	Step  *StepSet  `json:"step,omitempty"`
	Reset *Reset    `json:"reset,omitempty"`
	Moved *Moved    `json:"moved,omitempty"`
	Taken []Taken   `json:"taken,omitempty"` // steps of a run that is taken in
}

// PlanPart is some steps of a plan: a plan may be larger than a change of the journal.
type PlanPart struct {
	Name        string `json:"name,omitempty"` // in the first part
	Description string `json:"description,omitempty"`
	Steps       []Step `json:"steps"`
}

// StepSet is a step as it is now.
type StepSet struct {
	Value Value    `json:"value"`
	Facts *Facts   `json:"facts,omitempty"` // nil: as they were
	Add   bool     `json:"add,omitempty"`   // the facts come on top of those that are there
	Items []string `json:"items,omitzero"`  // nil: as they were
}

// Taken is a step as somebody else's file says, or as it was under the plan before.
type Taken struct {
	Step StepID `json:"step"`
	Progress
}

// Reset sends steps back to PENDING: everything from nought but the numbers of leases.
type Reset struct {
	Moves  []Move `json:"moves"`
	Gate   StepID `json:"gate,omitempty"`   // W6: one iteration further, and blocked by this gate; empty: iterations 0 too
	Target StepID `json:"target,omitempty"` // the one step that the gate does not block
	Ending string `json:"ending,omitempty"` // why a process that still lives is to end
}

// Moved are steps that a rule of the plan moves, many at a time.
type Moved struct {
	Moves []Move `json:"moves"`
	To    State  `json:"to"` // SKIPPED; or PENDING: blocked_by_loop is over
}

// Move is a step and where it stood, for the record of its transition (X6).
type Move struct {
	Step StepID `json:"step"`
	From State  `json:"from"`
}

// UnmarshalJSON reads a run from a snapshot, and finds out again what is derived.
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

// complete says whether all parts of the plan have come.
func (r *Run) complete() bool {
	return r.StepCount > 0 && len(r.Plan.Steps) == r.StepCount && len(r.Steps) == r.StepCount
}

// Find gives a step of the plan and how far it is; false where there is none of that name. What
// it gives is to be looked at only.
func (r *Run) Find(id StepID) (*Step, *Progress, bool) {
	i, ok := r.index.at[id]
	if !ok {
		return nil, nil, false
	}
	return &r.Plan.Steps[i], &r.Steps[i], true
}

// ReportFile is where a step's report is expected (seed 004).
func (r *Run) ReportFile(id StepID) string {
	return r.ReportsDir + "/" + string(r.ID) + "__" + string(id) + ".json"
}

// InputFile is where people's answer to a step is expected (SPEC W8).
func (r *Run) InputFile(id StepID) string {
	return r.ManualInputsDir + "/" + string(r.ID) + "__" + string(id) + ".json"
}
