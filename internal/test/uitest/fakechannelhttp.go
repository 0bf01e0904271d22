package uitest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

func (f *Fake) channelRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v1/channels", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		answer(w, http.StatusOK, map[string]any{"channels": append([]*Channel{}, f.channels...), "head": len(f.changes)})
	})
	mux.HandleFunc("GET /api/v1/channels/{name}", f.withChannel("", func(w http.ResponseWriter, _ *http.Request, c *Channel) { answer(w, http.StatusOK, c) }))
	mux.HandleFunc("GET /api/v1/channels/{name}/entries", f.withChannel("", f.getEntries))
	mux.HandleFunc("POST /api/v1/channels/{name}/messages", f.withChannel("say", f.postMessage))
	for _, verb := range []string{"grant", "skip", "override", "members"} {
		mux.HandleFunc("POST /api/v1/channels/{name}/"+verb, f.withChannel(verb, f.postTurn(verb)))
	}
	mux.HandleFunc("DELETE /api/v1/channels/{name}/members/{agent}", f.withChannel("remove", f.deleteMember))
	mux.HandleFunc("POST /api/v1/agents/{name}/disable", f.postAble(true))
	mux.HandleFunc("POST /api/v1/agents/{name}/enable", f.postAble(false))
}

// withChannel finds the channel, and refuses the verb where a test asked for it.
func (f *Fake) withChannel(verb string, do func(http.ResponseWriter, *http.Request, *Channel)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		c := f.channel(r.PathValue("name"))
		if c == nil {
			problem(w, http.StatusNotFound, "no channel is called "+r.PathValue("name"), nil)
			return
		}
		if reason, ok := f.refusals[verb+" "+c.Name]; ok {
			delete(f.refusals, verb+" "+c.Name)
			refuse(w, "#"+c.Name, verb, reason)
			return
		}
		do(w, r, c)
	}
}

func refuse(w http.ResponseWriter, subject, event, reason string) {
	problem(w, http.StatusConflict, subject+" cannot take "+event+" now", map[string]any{"refusal": map[string]any{"subject": subject, "event": event, "row": "T23", "reason": reason}})
}

// entriesMax is how many entries are given at a time, as in the API.
const entriesMax = 500

func (f *Fake) getEntries(w http.ResponseWriter, r *http.Request, c *Channel) {
	q := r.URL.Query()
	before, _ := strconv.ParseUint(q.Get("before"), 10, 64)
	after, _ := strconv.ParseUint(q.Get("after"), 10, 64)
	limit, _ := strconv.Atoi(q.Get("limit"))
	if limit <= 0 || limit > entriesMax {
		limit = 100
	}
	moves, found := q.Get("moves") == "true", []*Entry{}
	for _, e := range c.entries {
		if (before == 0 || e.Seq < before) && e.Seq > after && (moves || e.Kind != "moved") {
			found = append(found, e)
		}
	}
	more := len(found) > limit
	switch {
	case more && after > 0:
		end := limit
		for end < len(found) && found[end].Seq == found[end-1].Seq {
			end++
		}
		found, more = found[:end], end < len(found)
	case more:
		from := len(found) - limit
		for from > 0 && found[from].Seq == found[from-1].Seq {
			from--
		}
		found, more = found[from:], from > 0
	}
	answer(w, http.StatusOK, map[string]any{"entries": found, "more": more, "head": len(f.changes)})
}

func bodyOf[T any](w http.ResponseWriter, r *http.Request) (T, bool) {
	var body T
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body); err != nil {
		problem(w, http.StatusUnprocessableEntity, err.Error(), nil)
		return body, false
	}
	return body, true
}

func (f *Fake) postMessage(w http.ResponseWriter, r *http.Request, c *Channel) {
	body, ok := bodyOf[struct{ Text, Mode string }](w, r)
	if !ok {
		return
	}
	said := f.hear(c, "you", body.Text, body.Mode)
	answer(w, http.StatusCreated, map[string]any{"message_id": c.Name + "/" + strconv.FormatUint(said.N, 10), "n": said.N, "state": said.State, "seq": said.Seq})
}

func (f *Fake) postTurn(verb string) func(http.ResponseWriter, *http.Request, *Channel) {
	return func(w http.ResponseWriter, r *http.Request, c *Channel) {
		body, ok := bodyOf[struct {
			Agent string
			Now   bool
			Turn  uint64
			GoOn  bool `json:"go_on"`
		}](w, r)
		if !ok {
			return
		}
		if words := f.turnOrder(c, verb, body.Agent, body.Now, body.Turn, body.GoOn); words != "" {
			refuse(w, "#"+c.Name, verb, words)
			return
		}
		answer(w, http.StatusOK, map[string]any{"seq": len(f.changes), "channel": c})
	}
}

// turnOrder is what people may do to a turn; the words are those of a refusal.
func (f *Fake) turnOrder(c *Channel, verb, agent string, now bool, turn uint64, goOn bool) string {
	switch verb {
	case "members":
		f.join(c, agent)
	case "grant":
		m := c.member(agent)
		switch {
		case m == nil:
			return "it is not in this channel; assign it first"
		case !m.Connected || m.Disabled:
			return "it is not connected"
		case c.Holder != "" && !now:
			return c.Holder + " has the turn; wait, or grant it with --now"
		}
		m.Took = 0
		c.Queue = append([]string{agent}, slices.DeleteFunc(c.Queue, func(n string) bool { return n == agent })...)
		if c.Holder != "" {
			f.end(c, "T23", "QUEUED", "skipped")
		} else {
			f.give(c, "quiet")
		}
	case "skip":
		if c.Holder == "" || turn != 0 && turn != c.Turn {
			return "nobody has the turn"
		}
		f.end(c, "T23", "QUEUED", "skipped")
	case "override":
		if c.State != "WAITING" {
			return "nobody waits here"
		}
		if !goOn {
			f.end(c, "T15", "QUEUED", "sent_back")
			return ""
		}
		end := f.now().Add(turnTimeout)
		c.State, c.Why, c.Deadline = "ACTIVE", "", &end
		f.moveIn(c, "T15", c.Holder, "ACTIVE", "sent_on")
	}
	return ""
}

func (f *Fake) deleteMember(w http.ResponseWriter, r *http.Request, c *Channel) {
	agent := r.PathValue("agent")
	m := c.member(agent)
	if m == nil {
		refuse(w, agent, "removed", "it is not in this channel")
		return
	}
	if c.Holder == agent {
		f.end(c, "T16", "IDLE", "removed")
	} else {
		f.moveIn(c, "T5", agent, "IDLE", "removed")
	}
	c.Queue = slices.DeleteFunc(c.Queue, func(n string) bool { return n == agent })
	c.Agents = slices.DeleteFunc(c.Agents, func(m *Member) bool { return m.Name == agent })
	if a := f.find(agent); a != nil {
		delete(a.Turn, c.Name)
	}
	answer(w, http.StatusOK, map[string]any{"seq": len(f.changes), "channel": c})
}

func (f *Fake) postAble(off bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		name := r.PathValue("name")
		a := f.find(name)
		if a == nil {
			problem(w, http.StatusNotFound, "there is no such agent", nil)
			return
		}
		for _, c := range f.channels {
			m := c.member(name)
			if m == nil {
				continue
			}
			m.Disabled = off
			switch {
			case !off:
				c.Queue = append(c.Queue, name)
				f.moveIn(c, "T21", name, "QUEUED", "enabled")
			case c.Holder == name:
				f.end(c, "T20", "OFFLINE", "disabled")
			default:
				c.Queue = slices.DeleteFunc(c.Queue, func(n string) bool { return n == name })
				f.moveIn(c, "T20", name, "OFFLINE", "disabled")
			}
		}
		answer(w, http.StatusOK, map[string]any{"seq": len(f.changes), "agent": a})
	}
}
