package workflow

import (
	"encoding/json"
	"strings"
	"time"
)

// StepID identifies a step in its workflow: letters, digits, and _ - . in between. It becomes part
// of file names and of an environment variable's name.
type StepID string

// RunID identifies a run; it has the same syntax.
type RunID string

// Plan is a workflow as data: the steps and their dependencies (SPEC Workflow, the fields of the
// YAML file). It does not change during a run.
type Plan struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Steps       []Step `json:"steps"`
}

// Step is one step of a plan.
type Step struct {
	ID            StepID        `json:"id"`
	Agent         string        `json:"agent,omitempty"`
	Prompt        string        `json:"prompt,omitempty"`  // as written; where the prompt is found is the caller's concern
	Command       []string      `json:"command,omitempty"` // instead of an agent
	Needs         []StepID      `json:"needs,omitempty"`
	NextOnSuccess []StepID      `json:"next_on_success,omitempty"` // informational: needs decides
	Gates         []string      `json:"gates,omitempty"`           // gates that must be open
	LoopBackTo    StepID        `json:"loop_back_to,omitempty"`    // target of a gate failure
	Human         bool          `json:"human_in_the_loop,omitempty"`
	Ask           Ask           `json:"ask,omitempty"`          // for a human step; empty is after
	InputSchema   string        `json:"input_schema,omitempty"` // JSON, for validating the answer
	Loop          *Loop         `json:"loop,omitempty"`
	When          string        `json:"when,omitempty"` // a condition; empty: always
	Timeout       time.Duration `json:"timeout,omitempty"`
	MaxAttempts   int           `json:"max_attempts,omitempty"` // tries per iteration; 0: as the run's options say
	Model         string        `json:"model,omitempty"`
	Metadata      string        `json:"metadata,omitempty"` // JSON, not interpreted

	// ContinueConversation: after a gate has sent the run back, the agent continues its conversation.
	ContinueConversation bool `json:"continue_conversation,omitempty"`
	// ReportOptional: an agent that ends well without a report has completed the step.
	ReportOptional bool `json:"report_optional,omitempty"`
	// Ordered: it starts only when it is ordered, by StepOrdered. Without an agent and a command it only asks people.
	Ordered bool `json:"ordered,omitempty"`
}

// ordered reports whether the plan's steps are ordered.
func (p *Plan) ordered() bool { return len(p.Steps) > 0 && p.Steps[0].Ordered }

// SentBack returns the gate that sent the run back to a step, and its reason; false if no gate did, or the gate
// has begun again. Of the steps that are reset to the next iteration, the gate alone keeps its error (reset).
func SentBack(r *Run, step StepID) (gate StepID, why string, ok bool) {
	for i := range r.Plan.Steps {
		p := &r.Steps[i]
		if r.Plan.Steps[i].LoopBackTo == step && p.State == Pending && p.Iteration > 0 && p.Attempts == 0 && p.LastError != "" {
			return r.Plan.Steps[i].ID, strings.TrimPrefix(p.LastError, gateWords), true
		}
	}
	return "", "", false
}

// Ask says when people are asked in a human step.
type Ask string

const (
	AskAfter  Ask = "after"  // the agent prepares, then people answer; the default
	AskBefore Ask = "before" // people answer, then the agent works with the answer
)

// Loop repeats a step for each item. Exactly one source of items is given, or none if only
// UntilCondition ends the loop. Items are JSON texts.
type Loop struct {
	Items             []string `json:"items,omitzero"` // nil: not given; empty: given without items
	ItemsFromStep     StepID   `json:"items_from_step,omitempty"`
	ItemsFromArtifact string   `json:"items_from_artifact,omitempty"`
	ItemVar           string   `json:"item_var,omitempty"`
	IndexVar          string   `json:"index_var,omitempty"`
	MaxIterations     int      `json:"max_iterations,omitempty"` // limit for the number of items; 0: all of them
	UntilCondition    string   `json:"until_condition,omitempty"`
}

// endless reports whether only a condition ends the loop.
func (l *Loop) endless() bool {
	return l.Items == nil && l.ItemsFromStep == "" && l.ItemsFromArtifact == ""
}

// Options are the flags of a run on which decisions depend (SPEC "What the flags mean").
type Options struct {
	MaxAttempts    int  `json:"max_attempts"`              // tries per iteration
	MaxIterations  int  `json:"max_iterations"`            // loop-backs per gate
	SideBySide     int  `json:"side_by_side"`              // number of parallel processes
	PauseForHumans bool `json:"pause_for_human,omitempty"` // unless --unattended
	GateFile       bool `json:"gate_file,omitempty"`       // a gate file exists: gates are closed until they were seen open

	BackoffFirst time.Duration `json:"backoff_first,omitempty"`
	BackoffMax   time.Duration `json:"backoff_max,omitempty"`
}

// DefaultOptions returns the seed's defaults. The number of parallel steps is the number of CPUs,
// which the caller passes.
func DefaultOptions(cpus int) Options {
	return Options{
		MaxAttempts: 2, MaxIterations: 4, SideBySide: max(1, min(cpus, sideBySideMax)), PauseForHumans: true,
		BackoffFirst: time.Second, BackoffMax: time.Minute,
	}
}

const (
	stepsMax      = 100_000              // far more than practical; run_state.json has the same limit
	idBytesMax    = 64                   // with the run's ID in front, it has to fit into a journal entity and a file name
	runIDBytesMax = 48                   // the same
	nameBytesMax  = 200                  // names are for people
	textBytesMax  = 16 << 10             // a condition, a description, a path: longer ones belong in a file
	jsonBytesMax  = 64 << 10             // a schema or metadata of one step
	needsMax      = 10_000               // a fan-in of the largest measured fan-out
	gatesMax      = 64                   // names that one step waits for
	gateNamesMax  = 1000                 // of one plan: the open ones are in one change
	planBytesMax  = 32 << 20             // of one plan in the journal, whose batches take 64 MiB
	itemsMax      = 10_000               // of one loop
	itemsBytesMax = 512 << 10            // of one loop in total: they are one change of the journal, 1 MiB at most
	attemptsMax   = 100                  // more tries do not help
	iterationsMax = 1000                 // a gate that fails more often will never pass
	sideBySideMax = 256                  // more processes are too many for one machine
	AgainLeast    = time.Second          // a step that is run again sooner would only be busy
	AgainMax      = 24 * time.Hour       // a step that looks once a day is late enough
	timeoutMax    = 366 * 24 * time.Hour // a longer time is a typing error
	backoffMax    = 24 * time.Hour       // the same
	stepBytesMax  = 768 << 10            // of one step in the journal, whose changes take 1 MiB
	partBytesMax  = 256 << 10            // of a plan or an import in one change: far below the journal's 1 MiB
	listMax       = 1000                 // steps in one change: at most 100 KiB
	batchMax      = 1000                 // changes of one event: the limit of a batch of the journal
	lostMax       = 3                    // consecutive deaths of the runner that do not count as attempts: the step itself may be the cause
	problemsShown = 5                    // of a list in a refusal, for readability
	faultsMax     = 1000                 // of one plan
)

// jsonBytes returns the approximate size of a value in the journal.
func jsonBytes(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		panic("workflow: a value that cannot be journaled: " + err.Error())
	}
	return len(b)
}

// parts splits a list so that each part fits into a change.
func parts[T any](list []T) [][]T {
	var all [][]T
	begin, bytes := 0, 0
	for i := range list {
		size := jsonBytes(list[i])
		if i > begin && bytes+size > partBytesMax {
			all = append(all, list[begin:i])
			begin, bytes = i, 0
		}
		bytes += size
	}
	if begin < len(list) {
		all = append(all, list[begin:])
	}
	return all
}

// chunks splits a list by length.
func chunks[T any](list []T) [][]T {
	var all [][]T
	for len(list) > listMax {
		all = append(all, list[:listMax])
		list = list[listMax:]
	}
	if len(list) > 0 {
		all = append(all, list)
	}
	return all
}
