package uitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Run is one run of a workflow as the API shows it.
type Run struct {
	ID        string         `json:"run_id"`
	Workflow  string         `json:"workflow_name"`
	Status    string         `json:"status"`
	Stage     string         `json:"stage"`
	Repo      string         `json:"repo_dir"`
	StateFile string         `json:"run_state"`
	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
	Waits     []string       `json:"waits"`
	By        string         `json:"by,omitempty"`
	Why       string         `json:"why,omitempty"`
	Cost      float64        `json:"cost_usd_today"`
	Counts    map[string]int `json:"counts"`
	Steps     []*Step        `json:"steps,omitempty"`
}

// Step is one step of a run.
type Step struct {
	ID          string            `json:"id"`
	Agent       string            `json:"agent,omitempty"`
	Status      string            `json:"status"`
	Attempts    int               `json:"attempts"`
	Iteration   int               `json:"iteration_count"`
	StartedAt   *time.Time        `json:"started_at"`
	EndedAt     *time.Time        `json:"ended_at"`
	LastError   string            `json:"last_error,omitempty"`
	WaitsFor    string            `json:"waits_for,omitempty"`
	Needs       []string          `json:"needs"`
	LoopBackTo  string            `json:"loop_back_to,omitempty"`
	Human       bool              `json:"human_in_the_loop,omitempty"`
	Session     string            `json:"session,omitempty"`
	LastSession string            `json:"last_session,omitempty"`
	ReportPath  string            `json:"report_path,omitempty"`
	PromptPath  string            `json:"prompt_path,omitempty"`
	ManualPath  string            `json:"manual_input_path,omitempty"`
	InputSchema string            `json:"input_schema,omitempty"`
	BadInput    string            `json:"bad_input,omitempty"`
	Denied      string            `json:"denied,omitempty"`
	Artifacts   []string          `json:"artifacts"`
	Metrics     map[string]string `json:"metrics"`
	Logs        []string          `json:"logs"`
}

// AddRun puts a run on top of the list; what is not set gets a default.
func (f *Fake) AddRun(r Run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addRun(&r)
}

func (f *Fake) addRun(r *Run) {
	if r.CreatedAt.IsZero() {
		r.CreatedAt, r.UpdatedAt = f.now(), f.now()
	}
	if r.Stage == "" {
		r.Stage = "driven"
	}
	for _, s := range r.Steps {
		if s.Status == "" {
			s.Status = "PENDING"
		}
	}
	f.runs = append([]*Run{r}, f.runs...)
	f.append(Change{Machine: "run", Entity: "run/" + r.ID, Row: "W1", From: "absent", To: "driven", Trigger: "run_asked", Actor: Actor{"human", "you"}, Data: map[string]any{"run": map[string]any{"head": map[string]any{"id": r.ID}}}})
}

func (f *Fake) run(id string) *Run {
	i := slices.IndexFunc(f.runs, func(r *Run) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return f.runs[i]
}

// Move brings a step of a run into a state, as a rule of the workflow machine would. change, if
// any, is made first.
func (f *Fake) Move(run, step, to string, change func(*Step)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.move(f.run(run), step, to, change)
}

func (f *Fake) move(r *Run, step, to string, change func(*Step)) {
	s := r.step(step)
	if s == nil {
		panic("uitest: there is no step " + step)
	}
	from, at := s.Status, f.now()
	s.Status, r.UpdatedAt = to, at
	switch to {
	case "RUNNING":
		s.Attempts++
		s.StartedAt, s.EndedAt = &at, nil
		session := f.newSession(step+"@"+r.ID, "session", at)
		s.Session, s.LastSession = session.ID, session.ID
	case "COMPLETED", "FAILED", "SKIPPED":
		s.EndedAt = &at
		if from == "RUNNING" {
			f.endOutput(s.Session, to)
		}
		s.Session = ""
	case "WAITING_ON_HUMAN":
		f.endOutput(s.Session, "ok")
		s.Session, s.ManualPath = "", fmt.Sprintf("manual_inputs/%s__%s.json", r.ID, step)
	}
	if change != nil {
		change(s)
	}
	f.append(Change{
		Machine: "workflow", Entity: "run/" + r.ID + "/" + step, Row: "W", From: from, To: to, Trigger: "moved", Actor: Actor{"engine", "run"},
		Data: map[string]any{"run": map[string]any{"step": map[string]any{"value": map[string]any{"state": to, "attempts": s.Attempts, "iteration": s.Iteration}}}},
	})
}

func (f *Fake) endOutput(session, outcome string) {
	if s := f.sessions[session]; s != nil && s.EndedAt == nil {
		at := f.now()
		s.EndedAt, s.Outcome = &at, map[string]string{"COMPLETED": "ok", "FAILED": "failed"}[outcome]
		close(s.grown)
		s.grown = make(chan struct{})
	}
}

// LoopBack is W6: a gate sends the run back, and these steps start over.
func (f *Fake) LoopBack(run, gate, why string, steps ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.run(run)
	var moves []map[string]any
	for _, id := range append([]string{gate}, steps...) {
		s := r.step(id)
		moves = append(moves, map[string]any{"step": id, "from": s.Status})
		f.endOutput(s.Session, "ok")
		s.Status, s.Attempts, s.Session = "PENDING", 0, ""
		s.Iteration++
	}
	r.step(gate).LastError = "Gate failure: " + why
	r.UpdatedAt = f.now()
	f.append(Change{
		Machine: "workflow", Entity: "run/" + run, Row: "W6", From: "driven", To: "PENDING", Trigger: "gate_failed", Actor: Actor{"engine", "run"},
		Data: map[string]any{"run": map[string]any{"reset": map[string]any{"moves": moves, "gate": gate}}},
	})
}

// SayStep appends to the output of a step that is at work.
func (f *Fake) SayStep(run, step, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[f.run(run).step(step).Session]
	s.output = append(s.output, text...)
	close(s.grown)
	s.grown = make(chan struct{})
}

func (r *Run) step(id string) *Step {
	i := slices.IndexFunc(r.Steps, func(s *Step) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return r.Steps[i]
}

// view is the run as it stands, its status derived from its steps.
func (r *Run) view(steps bool) Run {
	v := *r
	v.Counts = map[string]int{"pending": 0, "running": 0, "waiting_on_human": 0, "completed": 0, "failed": 0, "skipped": 0}
	words := map[string]string{"PENDING": "pending", "RUNNING": "running", "WAITING_ON_HUMAN": "waiting_on_human", "COMPLETED": "completed", "FAILED": "failed", "SKIPPED": "skipped"}
	v.Waits = []string{}
	for _, s := range r.Steps {
		v.Counts[words[s.Status]]++
		if s.Status == "WAITING_ON_HUMAN" {
			v.Waits = append(v.Waits, s.ID+" waits for people")
		}
	}
	n := v.Counts
	switch {
	case r.Status == "cancelled":
	case n["running"] > 0:
		v.Status = "running"
	case n["failed"] > 0:
		v.Status, v.Stage = "failed", "stopped"
	case n["waiting_on_human"] > 0:
		v.Status = "waiting"
	case n["pending"] == 0:
		v.Status, v.Stage = "completed", "stopped"
	default:
		v.Status = "running"
	}
	if !steps {
		v.Steps = nil
	}
	return v
}

func (f *Fake) runRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v1/runs", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		runs := []Run{}
		for _, r := range f.runs {
			runs = append(runs, r.view(false))
		}
		answer(w, http.StatusOK, map[string]any{"runs": runs})
	})
	mux.HandleFunc("GET /api/v1/runs/{id}", f.withRun(func(w http.ResponseWriter, _ *http.Request, r *Run) { answer(w, http.StatusOK, r.view(true)) }))
	mux.HandleFunc("GET /api/v1/inbox", f.getInbox)
	mux.HandleFunc("POST /api/v1/runs", f.postRun)
	mux.HandleFunc("POST /api/v1/runs/{id}/steps/{step}/{verb}", f.withRun(f.postAnswer))
	mux.HandleFunc("POST /api/v1/runs/{id}/{verb}", f.withRun(f.postRunOrder))
}

func (f *Fake) withRun(do func(http.ResponseWriter, *http.Request, *Run)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		run := f.run(r.PathValue("id"))
		if run == nil {
			problem(w, http.StatusNotFound, "no run is called "+r.PathValue("id"), nil)
			return
		}
		do(w, r, run)
	}
}

func (f *Fake) getInbox(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	items := []map[string]any{}
	for _, r := range f.runs {
		for _, s := range r.Steps {
			if s.Status == "WAITING_ON_HUMAN" {
				items = append(items, map[string]any{
					"kind": "step", "run_id": r.ID, "step_id": s.ID, "workflow_name": r.Workflow, "since": r.UpdatedAt, "why": s.WaitsFor,
					"manual_input_path": s.ManualPath, "input_schema": s.InputSchema, "bad_input": s.BadInput, "artifacts": s.Artifacts, "logs": s.Logs,
				})
			}
		}
	}
	answer(w, http.StatusOK, map[string]any{"items": items})
}

func (f *Fake) postRun(w http.ResponseWriter, r *http.Request) {
	var flags map[string]any
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&flags); err != nil {
		problem(w, http.StatusUnprocessableEntity, err.Error(), nil)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	run := PlanCodeReview(fmt.Sprintf("run%d", len(f.runs)+1))
	f.addRun(run)
	f.move(run, "plan", "RUNNING", nil)
	answer(w, http.StatusCreated, run.view(true))
}

func (f *Fake) postRunOrder(w http.ResponseWriter, r *http.Request, run *Run) {
	verb := r.PathValue("verb")
	switch verb {
	case "pause":
		run.Stage = "paused"
	case "release":
		run.Stage = "driven"
	case "cancel":
		run.Status, run.Stage = "cancelled", "stopped"
	case "resume":
		run.Status, run.Stage = "", "driven"
		for _, s := range run.Steps {
			if s.Status == "FAILED" {
				s.Status, s.Attempts, s.LastError = "PENDING", 0, ""
			}
		}
	}
	run.By, run.UpdatedAt = "you", f.now()
	f.append(Change{Machine: "run", Entity: "run/" + run.ID, Row: "W14", To: run.Stage, Trigger: verb + "_asked", Actor: Actor{"human", "you"}, Data: map[string]any{"run": map[string]any{"head": map[string]any{"id": run.ID}}}})
	if verb == "resume" {
		answer(w, http.StatusOK, run.view(true))
		return
	}
	answer(w, http.StatusOK, map[string]any{"seq": len(f.changes)})
}

func (f *Fake) postAnswer(w http.ResponseWriter, r *http.Request, run *Run) {
	var body struct{ Note, Input string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body); err != nil {
		problem(w, http.StatusUnprocessableEntity, err.Error(), nil)
		return
	}
	step := r.PathValue("step")
	if s := run.step(step); s == nil || s.Status != "WAITING_ON_HUMAN" {
		problem(w, http.StatusConflict, step+" waits for nobody", map[string]any{"refusal": map[string]any{"subject": step, "row": "W9", "reason": "it waits for nobody"}})
		return
	}
	f.answers[run.ID+"/"+step] = r.PathValue("verb") + " " + body.Input
	to := "COMPLETED"
	if r.PathValue("verb") == "reject" {
		to = "FAILED"
	}
	f.move(run, step, to, nil)
	answer(w, http.StatusOK, map[string]any{"seq": len(f.changes)})
}

// PlanCodeReview is a run in which a gate leads back, and somebody has to approve.
func PlanCodeReview(id string) *Run {
	step := func(id, agent string, needs ...string) *Step {
		return &Step{ID: id, Agent: agent, Status: "PENDING", Needs: append([]string{}, needs...), Artifacts: []string{}, Metrics: map[string]string{}, Logs: []string{}, PromptPath: ".agents/prompts/" + id + ".md"}
	}
	review, approve := step("review", "reviewer", "code", "test"), step("approve", "", "review")
	review.LoopBackTo = "code"
	approve.Human, approve.WaitsFor = true, "Somebody has to read the change"
	approve.InputSchema = `{"type":"object","required":["risk","approved"],"properties":{"approved":{"type":"boolean"},"risk":{"enum":["low","high"],"title":"Risk","description":"How bad it can get"},"comment":{"type":"string","title":"Comment"},"canaries":{"type":"integer","title":"Canaries","default":2},"notify":{"type":"boolean","title":"Tell the others"}}}`
	return &Run{ID: id, Workflow: "plan-code-review", Steps: []*Step{step("plan", "planner"), step("code", "coder", "plan"), step("test", "tester", "code"), review, approve, step("release", "release", "approve")}}
}
