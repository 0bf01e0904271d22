package uitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/ui"
)

// Handler serves the page and the API.
func (f *Fake) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", ui.Handler())
	mux.HandleFunc("GET /api/v1/agents", f.getAgents)
	mux.HandleFunc("GET /api/v1/agents/{name}", f.getAgent)
	mux.HandleFunc("POST /api/v1/agents/{name}/{verb}", f.postOrder)
	mux.HandleFunc("POST /api/v1/hold", f.postHold(true))
	mux.HandleFunc("POST /api/v1/unhold", f.postHold(false))
	mux.HandleFunc("GET /api/v1/events", f.getEvents)
	mux.HandleFunc("GET /api/v1/journal", f.getJournal)
	mux.HandleFunc("GET /api/v1/sessions/{id}/output", f.getOutput)
	mux.HandleFunc("GET /api/v1/sessions/{id}/output/stream", f.streamOutput)
	mux.HandleFunc("GET /api/v1/sessions/{id}/facts", f.getFacts)
	mux.HandleFunc("GET /api/v1/machines", f.getMachines)
	mux.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"version": "test", "pid": 1})
	})
	f.runRoutes(mux)
	f.channelRoutes(mux)
	f.deskRoutes(mux)
	return mux
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the page has gone; there is nobody to tell
}

func problem(w http.ResponseWriter, status int, detail string, more map[string]any) {
	body := map[string]any{"title": http.StatusText(status), "status": status, "detail": detail}
	for k, v := range more {
		body[k] = v
	}
	answer(w, status, body)
}

func (f *Fake) getAgents(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	body, err := json.Marshal(map[string]any{"hold": f.hold, "stopping": false, "head": len(f.changes), "team": f.team, "agents": append([]*Agent{}, f.agents...)})
	f.mu.Unlock()
	if err != nil {
		panic(fmt.Sprintf("uitest: encode the team: %v", err))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func (f *Fake) find(name string) *Agent {
	for _, a := range f.agents {
		if a.Name == name {
			return a
		}
	}
	return nil
}

func (f *Fake) getAgent(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.find(r.PathValue("name"))
	if a == nil {
		problem(w, http.StatusNotFound, "there is no such agent", nil)
		return
	}
	sessions := []*Session{}
	for n := f.number; n > 0 && len(sessions) < 50; n-- {
		if s := f.sessions[fmt.Sprintf("%s-%d", a.Name, n)]; s != nil {
			sessions = append(sessions, s)
		}
	}
	verdict := a.Name + " rests: no session is open and nothing says otherwise."
	evidence := []Evidence{{What: "agent_state.json says current_state " + a.Current, Source: "file", Age: 2100, Holds: true}}
	if a.Session != nil {
		verdict = a.Name + " runs: its shim answers, its process lives, and it spoke a moment ago."
		evidence = append(evidence,
			Evidence{What: fmt.Sprintf("process %d exists, started %s", a.Session.PID, a.Session.StartedAt.Format("15:04:05")), Source: "process table", Age: 340, Holds: true},
			Evidence{What: "the shim of " + a.Session.ID + " answers", Source: "shim", Age: 90, Holds: true},
			Evidence{What: "session " + a.Session.ID + " was opened and not ended", Source: "journal", Age: time.Since(a.Session.StartedAt).Milliseconds(), Holds: true},
			Evidence{What: "the agent said something in the last 30 s", Source: "driver", Age: 1200, Holds: a.Doubt == ""})
	}
	answer(w, http.StatusOK, map[string]any{"agent": a, "evidence": evidence, "verdict": verdict, "sessions": sessions})
}

func note(r *http.Request) string {
	var body struct{ Note string }
	_ = json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<16)).Decode(&body) // no body is no note
	return body.Note
}

func (f *Fake) postOrder(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	verb, a := r.PathValue("verb"), f.find(r.PathValue("name"))
	if a == nil {
		problem(w, http.StatusNotFound, "there is no such agent", nil)
		return
	}
	if reason, ok := f.refusals[verb+" "+a.Name]; ok {
		delete(f.refusals, verb+" "+a.Name)
		problem(w, http.StatusConflict, a.Name+" cannot take "+verb+" now", map[string]any{"refusal": map[string]any{
			"subject": a.Name, "event": verb, "state": a.Current, "row": "C17", "reason": reason, "takes": []string{"stop", "cleanup"},
		}})
		return
	}
	f.order(a, verb, note(r))
	answer(w, http.StatusOK, map[string]any{"seq": len(f.changes), "agent": a})
}

func (f *Fake) postHold(on bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		seq := f.setHold(on)
		answer(w, http.StatusOK, map[string]any{"seq": seq, "hold": f.hold})
	}
}

func (f *Fake) getJournal(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := r.URL.Query()
	after, _ := strconv.ParseUint(q.Get("after"), 10, 64)
	limit, _ := strconv.Atoi(q.Get("limit"))
	tail, _ := strconv.Atoi(q.Get("tail"))
	if limit <= 0 || limit > 1000 {
		limit = 1000
	}
	found := []Change{}
	for _, c := range f.changes {
		if c.Seq > after && (q.Get("entity") == "" || q.Get("entity") == c.Entity) {
			found = append(found, c)
		}
	}
	if tail > 0 && len(found) > tail {
		found = found[len(found)-tail:]
	}
	answer(w, http.StatusOK, map[string]any{"changes": found[:min(limit, len(found))], "head": len(f.changes)})
}

func (f *Fake) getEvents(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		after, _ = strconv.ParseUint(id, 10, 64)
	}
	stream(w)
	for {
		f.mu.Lock()
		grown := f.grown
		var fresh []Change
		if after < uint64(len(f.changes)) {
			fresh = f.changes[after:len(f.changes):len(f.changes)]
		}
		f.mu.Unlock()
		for _, c := range fresh {
			event(w, "change", c.Seq, c)
			after = c.Seq
		}
		flush(w)
		if !waitFor(w, r, grown) {
			return
		}
	}
}

func stream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flush(w)
}

func event(w http.ResponseWriter, kind string, id uint64, data any) {
	body, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("uitest: encode an event: %v", err))
	}
	_, _ = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", id, kind, body)
}

func flush(w http.ResponseWriter) {
	if fl, ok := w.(http.Flusher); ok {
		fl.Flush()
	}
}

// waitFor returns false when the page has gone; it pings while it waits.
func waitFor(w http.ResponseWriter, r *http.Request, grown <-chan struct{}) bool {
	for {
		select {
		case <-r.Context().Done():
			return false
		case <-grown:
			return true
		case <-time.After(15 * time.Second):
			_, _ = fmt.Fprint(w, ": ping\n\n")
			flush(w)
		}
	}
}

func (f *Fake) session(w http.ResponseWriter, r *http.Request) *Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[r.PathValue("id")]
	if s == nil {
		problem(w, http.StatusNotFound, "there is no such session", nil)
	}
	return s
}

func (f *Fake) getOutput(w http.ResponseWriter, r *http.Request) {
	s := f.session(w, r)
	if s == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	from, _ := strconv.Atoi(r.URL.Query().Get("from"))
	from = min(max(from, 0), len(s.output))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Fairlead-Offset", strconv.Itoa(from))
	w.Header().Set("X-Fairlead-End", strconv.Itoa(len(s.output)))
	w.Header().Set("X-Fairlead-Open", strconv.FormatBool(s.EndedAt == nil))
	_, _ = w.Write(s.output[from:])
}

// factsMax is how many facts are given at a time, as in the API.
const factsMax = 2000

// outputChunkMax is how much output one event carries, in bytes.
const outputChunkMax = 64 << 10

func (f *Fake) streamOutput(w http.ResponseWriter, r *http.Request) {
	s := f.session(w, r)
	if s == nil {
		return
	}
	q := r.URL.Query()
	from, _ := strconv.Atoi(q.Get("from"))
	f.mu.Lock()
	if tail, _ := strconv.Atoi(q.Get("tail")); tail > 0 {
		from = max(0, len(s.output)-tail)
	}
	f.mu.Unlock()
	stream(w)
	for {
		f.mu.Lock()
		grown, end, outcome, why, over := s.grown, len(s.output), s.Outcome, s.Why, s.EndedAt != nil
		to := min(end, from+outputChunkMax)
		text := strings.ToValidUTF8(string(s.output[from:to]), "\uFFFD")
		f.mu.Unlock()
		if to > from {
			event(w, "output", uint64(to), map[string]any{"offset": from, "end": to, "text": text})
			from = to
			flush(w)
			continue
		}
		if over {
			event(w, "end", uint64(end), map[string]any{"outcome": outcome, "why": why})
			flush(w)
			return
		}
		if !waitFor(w, r, grown) {
			return
		}
	}
}

// getFacts takes each line for something said, as a driver without a protocol would.
func (f *Fake) getFacts(w http.ResponseWriter, r *http.Request) {
	s := f.session(w, r)
	if s == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	facts, end := []map[string]any{}, 0
	for line := range strings.Lines(string(s.output)) {
		end += len(line)
		facts = append(facts, map[string]any{"kind": "said", "offset": end, "text": strings.ToValidUTF8(line, "\uFFFD"), "tool": "", "usage": nil})
	}
	answer(w, http.StatusOK, map[string]any{"facts": facts[max(0, len(facts)-factsMax):]})
}

func (f *Fake) getMachines(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"machines": []map[string]any{{"name": "control", "mermaid": "", "rows": []map[string]any{
		{"id": "C2", "from": "resting", "event": "due_continuous", "to": "continuous", "do": []string{}, "why": "at rest, and told to keep running"},
		{"id": "C5", "from": "continuous", "event": "session_ended", "to": "continuous", "do": []string{}, "why": "still wanted: the next session starts at once"},
		{"id": "C6", "from": "continuous", "event": "session_ended", "to": "resting", "do": []string{}, "why": "told to stop while it worked; the session was finished first"},
		{"id": "C11", "from": "continuous", "event": "wanted_pause", "to": "continuous", "do": []string{}, "why": "nothing is interrupted; the order is obeyed at the session's end"},
	}}}})
}

// Serve starts the fake on a free port and returns its address. Open streams are
// cut when the test ends; a page never ends one by itself.
func (f *Fake) Serve(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(f.Handler())
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}
