package uitest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

func (f *Fake) deskRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v1/dispatch", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		rows := []DispatchRow{}
		for _, d := range slices.Backward(f.desks) {
			if d.Row.Phase != "closed" {
				rows = append(rows, d.Row)
			}
		}
		for _, d := range slices.Backward(f.desks) {
			if d.Row.Phase == "closed" {
				rows = append(rows, d.Row)
			}
		}
		answer(w, http.StatusOK, map[string]any{"sessions": rows})
	})
	mux.HandleFunc("POST /api/v1/dispatch", f.postDesk)
	mux.HandleFunc("GET /api/v1/dispatch/{name}", f.withDesk("", func(w http.ResponseWriter, _ *http.Request, d *Desk) { answer(w, http.StatusOK, d.view()) }))
	mux.HandleFunc("POST /api/v1/dispatch/{name}/input", f.withDesk("input", f.postInput))
	mux.HandleFunc("POST /api/v1/dispatch/{name}/end", f.withDesk("end", func(w http.ResponseWriter, _ *http.Request, d *Desk) {
		f.endDesk(d)
		answer(w, http.StatusOK, d.view())
	}))
	mux.HandleFunc("GET /api/v1/dispatch/{name}/conversations/{n}", f.withTalk(func(w http.ResponseWriter, _ *http.Request, t *DispatchTalk) { answer(w, http.StatusOK, t) }))
	mux.HandleFunc("GET /api/v1/dispatch/{name}/conversations/{n}/outputs/{file}", f.withTalk(getOutputFile))
}

// withDesk finds the session, and refuses the verb where a test asked for it.
func (f *Fake) withDesk(verb string, do func(http.ResponseWriter, *http.Request, *Desk)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		d := f.desk(r.PathValue("name"))
		if d == nil {
			problem(w, http.StatusNotFound, "no session is called "+r.PathValue("name"), nil)
			return
		}
		if reason, ok := f.refusals[verb+" "+d.Row.Name]; ok {
			delete(f.refusals, verb+" "+d.Row.Name)
			refuse(w, d.Row.Path, verb, reason)
			return
		}
		do(w, r, d)
	}
}

func (f *Fake) withTalk(do func(http.ResponseWriter, *http.Request, *DispatchTalk)) http.HandlerFunc {
	return f.withDesk("", func(w http.ResponseWriter, r *http.Request, d *Desk) {
		n, _ := strconv.Atoi(r.PathValue("n"))
		if n < 1 || n > len(d.talks) {
			problem(w, http.StatusNotFound, "there is no such conversation", nil)
			return
		}
		do(w, r, d.talks[n-1])
	})
}

func getOutputFile(w http.ResponseWriter, r *http.Request, t *DispatchTalk) {
	for _, file := range t.Outputs {
		if file.Name == r.PathValue("file") {
			text := file.text
			if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 {
				text = text[:min(limit, len(text))]
			}
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Disposition", "attachment")
			_, _ = w.Write([]byte(text))
			return
		}
	}
	problem(w, http.StatusNotFound, "there is no such file", nil)
}

func (f *Fake) postDesk(w http.ResponseWriter, r *http.Request) {
	body, ok := bodyOf[struct{ Mode, Host, Path string }](w, r)
	if !ok {
		return
	}
	if body.Path != "" && f.deskAt(body.Path) {
		problem(w, http.StatusConflict, "it cannot begin there", map[string]any{"refusal": map[string]any{"subject": body.Path, "event": "start", "row": "D1", "reason": body.Path + " exists already"}})
		return
	}
	f.mu.Lock()
	n := len(f.desks) + 1
	f.mu.Unlock()
	name := fmt.Sprintf("20261121_1800%02d", n)
	f.AddDesk(name, func(d *Desk) {
		d.Row.Mode = body.Mode
		if body.Host != "" {
			d.Row.Host = body.Host
		}
		if body.Path != "" {
			d.Row.Path = body.Path
		}
		if body.Mode == "response" {
			d.Row.Phase, d.Row.State = "queue", "QUEUE"
		}
		d.Agents = SomeAgents()
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	answer(w, http.StatusCreated, f.desk(name).view())
}

func (f *Fake) deskAt(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.desks, func(d *Desk) bool { return d.Row.Path == path })
}

func (f *Fake) postInput(w http.ResponseWriter, r *http.Request, d *Desk) {
	body, ok := bodyOf[struct{ Text string }](w, r)
	if !ok {
		return
	}
	f.input(d, body.Text)
	answer(w, http.StatusOK, map[string]any{"conversation_id": d.Row.Conversation, "state": d.Row.State, "workspace": "", "waiting": len(d.waiting), "now": d.view()})
}

// view is a session in full.
func (d *Desk) view() map[string]any {
	may := mainMay
	if len(d.work) > 0 {
		may = agentsMay
	}
	denials := []DispatchDenial{}
	for _, x := range slices.Backward(d.denials) {
		denials = append(denials, *x)
	}
	talks := []DispatchTalk{}
	for _, t := range slices.Backward(d.talks) {
		one := *t
		one.Dialogue, one.Outputs = "", nil
		talks = append(talks, one)
	}
	lines := []DispatchLine{}
	for _, l := range d.lines[max(0, len(d.lines)-200):] {
		lines = append(lines, *l)
	}
	return map[string]any{
		"session": d.Row, "lines": lines, "lines_left_out": max(0, len(d.lines)-200), "permissions": may, "agents": append([]DispatchAgent{}, d.Agents...),
		"at_work": append([]DispatchTask{}, d.work...), "conversations": talks, "denials": denials, "waiting": append([]DispatchWaiting{}, d.waiting...),
		"ranking": d.ranked, "layers": append([]DispatchLayer{}, d.Layers...), "waits_for": []string{}, "notes": append([]string{}, d.Notes...),
	}
}

// SomeAgents are those whose descriptions the stories' words fit.
func SomeAgents() []DispatchAgent {
	return []DispatchAgent{
		{"fullstack-engineer", "Use to write, run and debug programs: Python scripts, web servers, command-line tools.", ".claude/agents/fullstack-engineer.md"},
		{"juvenile-database-architect", "Use for database design, query optimization, and to write migrations.", ".claude/agents/juvenile-database-architect.md"},
		{"tech-writer", "Use to write manuals, glossaries and release notes.", ".claude/agents/tech-writer.md"},
	}
}
