package uitest

import (
	"net/http"
	"strconv"
)

func (f *Fake) crewRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v1/crew", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		answer(w, http.StatusOK, f.crewView())
	})
	mux.HandleFunc("POST /api/v1/crew/summon", f.crewOrder("summon", func(*http.Request) string { return f.summon() }))
	mux.HandleFunc("POST /api/v1/crew/sleep", f.crewOrder("sleep", func(*http.Request) string { f.leadEnds(); return "" }))
	mux.HandleFunc("POST /api/v1/crew/wake", f.postWake)
	mux.HandleFunc("POST /api/v1/crew/import", f.postImport)
	mux.HandleFunc("GET /api/v1/crew/agents/{id}/soul", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		d := f.crew.named(r.PathValue("id"))
		if d == nil {
			problem(w, http.StatusNotFound, "nobody of the team is called so", nil)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(d.Soul))
	})
	mux.HandleFunc("GET /api/v1/crew/transcript", f.getTranscripts)
}

func (f *Fake) crewView() map[string]any {
	c := &f.crew
	docs, left := []Document{}, 0
	for _, d := range c.docs {
		if d.Status == "expired" {
			continue
		}
		one := *d
		if c.soulsOut && one.Soul != "" {
			one.Soul = ""
			left++
		}
		docs = append(docs, one)
	}
	return map[string]any{
		"button": c.button(), "in_progress": c.progress, "agents": docs, "lead": c.lead, "size": c.size,
		"notices": append([]Noticed{}, c.notices...), "souls_left_out": left, "head": len(f.changes),
	}
}

// refusedOnce says whether a test asked for a refusal, and gives it.
func (f *Fake) refusedOnce(w http.ResponseWriter, verb string) bool {
	reason, ok := f.refusals[verb+" crew"]
	if ok {
		delete(f.refusals, verb+" crew")
		refuse(w, "the team", verb, reason)
	}
	return ok
}

func (f *Fake) crewOrder(verb string, do func(*http.Request) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.refusedOnce(w, verb) {
			return
		}
		if words := do(r); words != "" {
			refuse(w, "the team", verb, words)
			return
		}
		answer(w, http.StatusOK, map[string]any{"seq": len(f.changes), "team": f.crewView()})
	}
}

func (f *Fake) postWake(w http.ResponseWriter, r *http.Request) {
	body, ok := bodyOf[struct{ Agents []string }](w, r)
	if !ok {
		return
	}
	f.crewOrder("wake", func(*http.Request) string {
		f.woken = body.Agents
		f.wake()
		return ""
	})(w, r)
}

// Woken are the agents that the last wake named; nobody: all.
func (f *Fake) Woken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.woken
}

// postImport is P12 and P13.
func (f *Fake) postImport(w http.ResponseWriter, r *http.Request) {
	d, ok := bodyOf[Document](w, r)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if here := f.crew.on(d.Seat); here != nil {
		name := here.ID
		if here.Name != nil {
			name = *here.Name
		}
		refuse(w, "a document", "imported", "seat "+strconv.Itoa(d.Seat)+" is taken by "+strconv.Quote(name))
		return
	}
	d.ID, d.Status, d.Type = "agent-"+strconv.Itoa(len(f.crew.docs)+1), "", "agent-identity"
	f.crew.docs = append(f.crew.docs, &d)
	f.become(&d, "P13", "unknown", "imported", true)
	answer(w, http.StatusCreated, d)
}

func (f *Fake) getTranscripts(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := r.URL.Query()
	before, _ := strconv.ParseUint(q.Get("before"), 10, 64)
	after, _ := strconv.ParseUint(q.Get("after"), 10, 64)
	limit, _ := strconv.Atoi(q.Get("limit"))
	if limit <= 0 || limit > entriesMax {
		limit = 100
	}
	list, more := f.crew.transcript(q.Get("speaker"), q.Get("session"), q.Get("text"), before, after, limit)
	var next uint64
	if more && after > 0 {
		next = list[len(list)-1].Seq
	} else if more {
		next = list[0].Seq
	}
	answer(w, http.StatusOK, map[string]any{"messages": list, "more": more, "next": next, "head": len(f.changes)})
}
