package uitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Question is what an agent asks, as the API shows it.
type Question struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"` // permission, question, resume
	Agent     string     `json:"agent"`
	Session   string     `json:"session_id"`
	State     string     `json:"state"`
	What      string     `json:"what"`
	Why       string     `json:"why"`
	Tool      string     `json:"tool,omitempty"`
	Call      string     `json:"call,omitempty"`
	Paths     []string   `json:"paths"`
	Hints     []string   `json:"hints"`
	Differs   []string   `json:"differs"`
	Options   []Choice   `json:"options"`
	FreeText  bool       `json:"free_text"`
	MayStand  bool       `json:"may_stand"`
	AskedAt   time.Time  `json:"asked_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	Otherwise string     `json:"otherwise"`
}

// Choice is one of the answers that an agent offers.
type Choice struct {
	ID    string `json:"id"`
	Kind  string `json:"kind,omitempty"`
	Label string `json:"label,omitempty"`
}

// Standing is an answer that answers the next ones.
type Standing struct {
	ID      string    `json:"id"`
	Agent   string    `json:"agent"`
	Session string    `json:"session_id,omitempty"`
	Tool    string    `json:"tool"`
	Call    string    `json:"call,omitempty"`
	Allow   bool      `json:"allow"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`
}

// Says is a word of an agent about itself.
type Says struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// Conversation is what a program says of the conversation that an agent holds with it.
type Conversation struct {
	ID       string    `json:"id"`
	Model    string    `json:"model"`
	Mode     string    `json:"mode"`
	Program  string    `json:"program"`
	Enforced string    `json:"enforced"`
	Resumed  bool      `json:"resumed"`
	At       time.Time `json:"at"`
}

// UsageRow is one row of what was used.
type UsageRow struct {
	Agent    string  `json:"agent,omitempty"`
	Day      string  `json:"day,omitempty"`
	Run      string  `json:"run_id,omitempty"`
	Workflow string  `json:"workflow_name,omitempty"`
	Sessions int     `json:"sessions"`
	In       int64   `json:"input_tokens"`
	Out      int64   `json:"output_tokens"`
	Cost     float64 `json:"cost_usd"`
}

// fakeAsks is the counter: what lies on it, what stands, and what was answered.
type fakeAsks struct {
	open     []*Question
	standing []Standing
	answered map[string]string // question → the body of its answer
	refused  string            // the next answer is refused with these words
	usage    map[string][]UsageRow
	asked    int
}

// Ask puts a question on the counter; what is not set gets a default.
func (f *Fake) Ask(q Question) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks.asked++
	if q.ID == "" {
		q.ID = fmt.Sprintf("q%d", f.asks.asked)
	}
	if q.AskedAt.IsZero() {
		q.AskedAt = f.now()
	}
	q.State = "open"
	f.asks.open = append(f.asks.open, &q)
	f.countAsks(q.Agent)
	f.append(Change{Machine: "question", Entity: "question/" + q.ID, Row: "Q1", From: "none", To: "open", Trigger: "raised", Actor: Actor{"agent", q.Agent}, Data: askData(q.Agent)})
	return q.ID
}

// Withdraw takes a question back, as its session does at its end.
func (f *Fake) Withdraw(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endAsk(id, "Q5", "withdrawn", "taken_back")
}

// AnsweredAsk is the body of the answer to a question; empty: none came.
func (f *Fake) AnsweredAsk(id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asks.answered[id]
}

// RefuseAnswer makes the next answer a refusal.
func (f *Fake) RefuseAnswer(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks.refused = reason
}

// Use sets what was used: agents, days, runs.
func (f *Fake) Use(agents, days, runs []UsageRow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks.usage = map[string][]UsageRow{"agents": agents, "days": days, "runs": runs}
}

// askData is the body of a change of a question as the journal keeps it.
func askData(agent string) map[string]any {
	return map[string]any{"question": map[string]any{"question": map[string]any{"agent": agent}}}
}

func (f *Fake) countAsks(name string) {
	a := f.find(name)
	if a == nil {
		return
	}
	a.Asks, a.AsksWhat = 0, ""
	for _, q := range f.asks.open {
		if q.Agent == name {
			if a.Asks++; a.Asks == 1 {
				a.AsksWhat = q.Agent + " asks for permission: " + q.What
			}
		}
	}
}

func (f *Fake) endAsk(id, row, to, trigger string) {
	i := slices.IndexFunc(f.asks.open, func(q *Question) bool { return q.ID == id })
	if i < 0 {
		return
	}
	agent := f.asks.open[i].Agent
	f.asks.open = slices.Delete(f.asks.open, i, i+1)
	f.countAsks(agent)
	f.append(Change{Machine: "question", Entity: "question/" + id, Row: row, From: "open", To: to, Trigger: trigger, Actor: Actor{"human", "you"}, Data: askData(agent)})
}

func (f *Fake) waitingAsks() []map[string]any {
	items := []map[string]any{}
	for _, q := range f.asks.open {
		items = append(items, map[string]any{
			"kind": q.Kind, "agent": q.Agent, "session_id": q.Session, "since": q.AskedAt, "why": q.What,
			"run_id": "", "step_id": "", "workflow_name": "", "artifacts": []string{}, "logs": []string{}, "question": q,
		})
	}
	return items
}

func (f *Fake) askRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /api/v1/questions/{id}/answer", f.postAsked)
	mux.HandleFunc("POST /api/v1/agents/{name}/retry", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if a := f.find(r.PathValue("name")); a != nil {
			a.LimitedUntil, a.LimitedWhy = nil, ""
		}
		answer(w, http.StatusOK, map[string]any{"seq": len(f.changes)})
	})
	mux.HandleFunc("POST /api/v1/agents/{name}/end", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if a := f.find(r.PathValue("name")); a != nil && a.Session != nil {
			f.finish(a, "cancelled", "ended by sam")
		}
		answer(w, http.StatusOK, map[string]any{"seq": len(f.changes)})
	})
	mux.HandleFunc("GET /api/v1/saved-answers", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		answer(w, http.StatusOK, map[string]any{"standing": append([]Standing{}, f.asks.standing...)})
	})
	mux.HandleFunc("DELETE /api/v1/saved-answers/{id}", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		id := r.PathValue("id")
		f.asks.standing = slices.DeleteFunc(f.asks.standing, func(s Standing) bool { return s.ID == id })
		f.append(Change{Machine: "question", Entity: "question/" + id, Row: "Q7", Trigger: "revoked", Actor: Actor{"human", "you"}})
		answer(w, http.StatusOK, map[string]any{"seq": len(f.changes)})
	})
	mux.HandleFunc("GET /api/v1/usage", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		answer(w, http.StatusOK, map[string]any{"agents": f.asks.usage["agents"], "days": f.asks.usage["days"], "runs": f.asks.usage["runs"]})
	})
}

func (f *Fake) postAsked(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Allow  bool   `json:"allow"`
		Option string `json:"option,omitempty"`
		Text   string `json:"text,omitempty"`
		Scope  string `json:"scope"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body); err != nil {
		problem(w, http.StatusUnprocessableEntity, err.Error(), nil)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id := r.PathValue("id")
	i := slices.IndexFunc(f.asks.open, func(q *Question) bool { return q.ID == id })
	refused := f.asks.refused
	f.asks.refused = ""
	if i < 0 {
		refused = "it was answered by human/ann"
	}
	if refused != "" {
		problem(w, http.StatusConflict, refused, map[string]any{"refusal": map[string]any{"subject": id, "row": "Q3", "reason": refused}})
		return
	}
	q := f.asks.open[i]
	said, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("uitest: encode an answer: %v", err))
	}
	if f.asks.answered == nil {
		f.asks.answered = map[string]string{}
	}
	f.asks.answered[id] = string(said)
	if body.Scope != "once" {
		s := Standing{ID: fmt.Sprintf("s%d", len(f.asks.standing)+1), Agent: q.Agent, Tool: q.Tool, Call: q.Call, Allow: body.Allow, By: "human/you", At: f.now()}
		if body.Scope == "session" {
			s.Session = q.Session
		}
		f.asks.standing = append(f.asks.standing, s)
		f.append(Change{Machine: "question", Entity: "question/" + s.ID, Row: "Q3", Trigger: "stands", Actor: Actor{"human", "you"}})
	}
	f.endAsk(id, "Q3", "answered", "replied")
	answer(w, http.StatusOK, map[string]any{"seq": len(f.changes)})
}

// Stand answers a question with always, as a person at the command line does.
func (f *Fake) Stand(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.asks.open, func(q *Question) bool { return q.ID == id })
	q := f.asks.open[i]
	f.asks.standing = append(f.asks.standing, Standing{ID: "s" + id, Agent: q.Agent, Tool: q.Tool, Call: q.Call, Allow: true, By: Lie, At: f.now()})
	f.append(Change{Machine: "question", Entity: "question/s" + id, Row: "Q3", Trigger: "stands", Actor: Actor{"human", "you"}})
	f.endAsk(id, "Q3", "answered", "replied")
}
