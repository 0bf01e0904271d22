package workflow

import (
	"encoding/json"
	"time"
)

// StepID names a step within its workflow: letters, digits, and _ - . within; it becomes part of
// file names and of an environment variable's.
type StepID string

// RunID names a run; the same letters.
type RunID string

// Plan is a workflow as data: what is to be done, and what waits for what (SPEC Workflow, the
// YAML's fields). It does not change while it is carried out.
type Plan struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Steps       []Step `json:"steps"`
}

// Step is one step of a plan.
type Step struct {
	ID            StepID        `json:"id"`
	Agent         string        `json:"agent,omitempty"`
	Prompt        string        `json:"prompt,omitempty"`  // as written; where it is found is not ours to know
	Command       []string      `json:"command,omitempty"` // in place of an agent
	Needs         []StepID      `json:"needs,omitempty"`
	NextOnSuccess []StepID      `json:"next_on_success,omitempty"` // information: needs decides
	Gates         []string      `json:"gates,omitempty"`           // names that must be open
	LoopBackTo    StepID        `json:"loop_back_to,omitempty"`    // where a gate failure leads
	Human         bool          `json:"human_in_the_loop,omitempty"`
	Ask           Ask           `json:"ask,omitempty"`          // of a human step; empty is after
	InputSchema   string        `json:"input_schema,omitempty"` // JSON, for whoever reads the answer
	Loop          *Loop         `json:"loop,omitempty"`
	When          string        `json:"when,omitempty"` // a condition; empty: always
	Timeout       time.Duration `json:"timeout,omitempty"`
	Model         string        `json:"model,omitempty"`
	Metadata      string        `json:"metadata,omitempty"` // JSON, opaque here
}

// Ask says when people are asked about a human step.
type Ask string

const (
	AskAfter  Ask = "after"  // the agent prepares, then people answer; the default
	AskBefore Ask = "before" // people answer, then the agent works with what they said
)

// Loop does a step once for each item. Exactly one source of items is given, or none where
// UntilCondition alone ends it. Items are JSON texts.
type Loop struct {
	Items             []string `json:"items,omitzero"` // nil: not given; empty: given, and nothing
	ItemsFromStep     StepID   `json:"items_from_step,omitempty"`
	ItemsFromArtifact string   `json:"items_from_artifact,omitempty"`
	ItemVar           string   `json:"item_var,omitempty"`
	IndexVar          string   `json:"index_var,omitempty"`
	MaxIterations     int      `json:"max_iterations,omitempty"` // items at most; 0: all of them
	UntilCondition    string   `json:"until_condition,omitempty"`
}

// endless says whether nothing but a condition ends the loop.
func (l *Loop) endless() bool {
	return l.Items == nil && l.ItemsFromStep == "" && l.ItemsFromArtifact == ""
}

// Options are the flags of a run that decisions depend on (SPEC "What the flags mean").
type Options struct {
	MaxAttempts    int           `json:"max_attempts"`              // tries per iteration
	MaxIterations  int           `json:"max_iterations"`            // loop-backs per gate
	SideBySide     int           `json:"side_by_side"`              // processes at one time
	PauseForHumans bool          `json:"pause_for_human,omitempty"` // --pause-for-human-input
	GateFile       bool          `json:"gate_file,omitempty"`       // there is one: a gate is closed until it was seen open
	BackoffFirst   time.Duration `json:"backoff_first,omitempty"`
	BackoffMax     time.Duration `json:"backoff_max,omitempty"`
}

// DefaultOptions are the seed's numbers. How many steps run side by side is the machine's
// number of CPUs, which only the caller knows.
func DefaultOptions(cpus int) Options {
	return Options{MaxAttempts: 2, MaxIterations: 4, SideBySide: max(1, min(cpus, sideBySideMax)), BackoffFirst: time.Second, BackoffMax: time.Minute}
}

const (
	stepsMax      = 100_000              // nobody draws a larger graph; run_state.json takes as many
	idBytesMax    = 64                   // with a run's id in front it has to fit a journal's entity and a file's name
	runIDBytesMax = 48                   // the same
	nameBytesMax  = 200                  // names are for people
	textBytesMax  = 16 << 10             // a condition, a description, a path: longer ones belong into a file
	jsonBytesMax  = 64 << 10             // a schema or metadata of one step
	needsMax      = 10_000               // a fan-in of the largest fan-out that is measured
	gatesMax      = 64                   // names that one step waits for
	gateNamesMax  = 1000                 // of one plan: those that are open are in one change
	planBytesMax  = 32 << 20             // of one plan in the journal, whose batches take 64 MiB
	itemsMax      = 10_000               // of one loop
	itemsBytesMax = 512 << 10            // of one loop together: they are one change of the journal, 1 MiB at most
	attemptsMax   = 100                  // more tries is a program that does not work
	iterationsMax = 1000                 // more rounds is a gate that nobody can pass
	sideBySideMax = 256                  // more processes no machine of one team bears
	timeoutMax    = 366 * 24 * time.Hour // longer is a slip of the pen
	backoffMax    = 24 * time.Hour       // the same
	stepBytesMax  = 768 << 10            // of one step in the journal, whose changes take 1 MiB
	partBytesMax  = 256 << 10            // of a plan or an import in one change: far below the journal's 1 MiB
	listMax       = 1000                 // steps that one change names: 100 KiB at most
	batchMax      = 1000                 // changes of one event: a batch of the journal takes no more
	lostMax       = 3                    // deaths of the runner in a row that cost a step nothing: perhaps the step is what kills it
	problemsShown = 5                    // of a list in a refusal: more nobody reads
	faultsMax     = 1000                 // of one plan: more nobody mends at once
)

// jsonBytes is about how many bytes a value takes in the journal.
func jsonBytes(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		panic("workflow: a value that cannot be journaled: " + err.Error())
	}
	return len(b)
}

// parts cuts a list so that each part fits a change.
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

// chunks cuts a list by number.
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
