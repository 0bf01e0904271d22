package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/fromhost"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// fromHostTeam is a leader with a listed workflow, and an unlisted one.
func fromHostTeam(t *testing.T) (s *served, dir string, ask func(method, path, body string) (int, string)) {
	t.Helper()
	dir = newWorkspace(t)
	flow := "name: nightly\nsteps:\n  - {id: a, agent: coder, command: [\"true\"]}\n"
	for _, name := range []string{"nightly.yaml", "other.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(flow), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = serveTeam(t, memory.New(), dir, `version: 1
workflows: [nightly.yaml]
agents:
  coder: {description: Writes code, driver: exec, command: ["true"]}
`)
	s.opts.Listed = []string{filepath.Join(dir, "nightly.yaml")}
	h := s.HostHandler("b", func(string) string { return "b" })
	return s, dir, func(method, path, body string) (int, string) {
		r := httptest.NewRequest(method, "http://leader"+api.Base+path, strings.NewReader(body))
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		r.Header.Set(wire.CallerField, `{"seen":true}`)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
}

// A program on another host names no command, environment, folder or file of the leader's machine, and no workflow that fairlead.yaml
// does not list. The same order with what it may name is taken.
func TestHostNamesNothingOfTheLeader(t *testing.T) {
	s, dir, ask := fromHostTeam(t)
	for name, body := range map[string]string{
		"a command template":        `{"workflow":"nightly.yaml","command_template":"/usr/bin/touch x"}`,
		"in other letters":          `{"workflow":"nightly.yaml","Command_Template":"/usr/bin/touch x"}`,
		"a wrapper":                 `{"workflow":"nightly.yaml","wrapper":"/bin/true"}`,
		"arguments of a wrapper":    `{"workflow":"nightly.yaml","wrapper_args":["-c","id"]}`,
		"an environment":            `{"workflow":"nightly.yaml","env":["LD_PRELOAD=/x"]}`,
		"an empty environment":      `{"workflow":"nightly.yaml","env":[]}`,
		"a repository":              `{"workflow":"nightly.yaml","repo":"/"}`,
		"a folder for processes":    `{"workflow":"nightly.yaml","workdir":"/tmp"}`,
		"a folder for logs":         `{"workflow":"nightly.yaml","logs_dir":"/tmp"}`,
		"a folder for worktrees":    `{"workflow":"nightly.yaml","git_worktree":true,"git_worktree_root":"/tmp"}`,
		"a branch of the worktree":  `{"workflow":"nightly.yaml","git_worktree":true,"git_worktree_branch":"main"}`,
		"a commit of the worktree":  `{"workflow":"nightly.yaml","git_worktree":true,"git_worktree_ref":"refs/fairlead/late/x"}`,
		"a schema":                  `{"workflow":"nightly.yaml","report_schema":"/etc/passwd"}`,
		"a file of gates":           `{"workflow":"nightly.yaml","gate_state_file":"/etc/passwd"}`,
		"no answers of people":      `{"workflow":"nightly.yaml","unattended":true}`,
		"a workflow twice":          `{"workflow":"nightly.yaml","workflow":"other.yaml"}`,
		"a workflow in two letters": `{"workflow":"nightly.yaml","Workflow":"other.yaml"}`,
		"another workflow":          `{"workflow":"other.yaml"}`,
		"another workflow by path":  `{"workflow":"` + filepath.Join(dir, "other.yaml") + `"}`,
		"around a listed one":       `{"workflow":"nightly.yaml/../other.yaml"}`,
		"outside":                   `{"workflow":"../nightly.yaml"}`,
		"a listed one in a tree":    `{"workflow":".agents/worktrees/r1/nightly.yaml"}`,
		"no workflow":               `{"start_at_step":"a"}`,
		"an issue of a task":        `{"task":{"text":"do it","issue":"https://example.com/o/r/issues/1"}}`,
		"a field that is new":       `{"workflow":"nightly.yaml","shell":"id"}`,
		"no object":                 `["nightly.yaml"]`,
		"two objects":               `{"workflow":"nightly.yaml"}{"wrapper":"/bin/true"}`,
		"text that is no JSON":      `{"workflow":`,
	} {
		before := len(s.sup.changes(t))
		code, text := ask(http.MethodPost, "/runs", body)
		if code/100 != 4 || len(s.sup.changes(t)) != before {
			t.Errorf("%s: %d %s", name, code, text)
		}
		if strings.Contains(body, `"workflow":"nightly.yaml",`) && !strings.Contains(name, "twice") &&
			(code != http.StatusConflict || problemText(t, text).Refusal.Row != "X10" ||
				!strings.Contains(text, "run the command on the machine of the leader")) {
			t.Errorf("%s: %d, the way is not named: %s", name, code, text)
		}
		if strings.Contains(name, "another workflow") &&
			(code != http.StatusConflict || !strings.Contains(text, "list it under `workflows` in the leader's fairlead.yaml")) {
			t.Errorf("%s: %d, the way is not named: %s", name, code, text)
		}
	}
	for name, body := range map[string]string{
		"r1": `{"workflow":"nightly.yaml","run_id":"r1","max_attempts":1,"max_iterations":0,"side_by_side":1,"pause_for_human_input":true,"daily_cost_limit":1,"cost_limit_action":"pause"}`,
		"r2": `{"workflow":"` + filepath.Join(dir, "nightly.yaml") + `","run_id":"r2"}`,
		"r3": `{"workflow":"./nightly.yaml","run_id":"r3"}`,
	} {
		if code, text := ask(http.MethodPost, "/runs", body); code != http.StatusCreated {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
}

// Every route of the API is refused to other hosts until fromhost.Rules lists it.
func TestEveryRouteFromAnotherHost(t *testing.T) {
	s, _, ask := fromHostTeam(t)
	fill, known := regexp.MustCompile(`\{\w+\}`), map[string]bool{}
	before := len(s.sup.changes(t))
	for _, rt := range routeTable() {
		known[rt.ID] = true
		if _, listed := fromhost.Rules[rt.ID]; listed {
			continue
		}
		code, text := ask(rt.Method, fill.ReplaceAllString(rt.Path, "1"), "")
		if code != http.StatusConflict {
			t.Errorf("%s: %d %s; list it in fromhost.Rules, with the reason why a host may use it, or let it be refused", rt.ID, code, text)
			continue
		}
		if no := problemText(t, text).Refusal; no.Row != "X10" || no.State != "asked from host b" ||
			no.Reason != "only the machine of the leader may do this; run the command there" {
			t.Errorf("%s: %s", rt.ID, text)
		}
	}
	if now := len(s.sup.changes(t)); now != before {
		t.Errorf("refused orders made %d changes", now-before)
	}
	for id, rule := range fromhost.Rules {
		if !known[id] || rule.Why == "" {
			t.Errorf("fromhost.Rules has %s: %+v", id, rule)
		}
	}
	for _, id := range []string{
		"merge-task", "approve-step", "answer-question", "revoke-saved-answer", "drop-task", "undo-task", "push-task", "sync-task", "checkout-task", "prune-runs", "import-document",
		"start-dispatch", "check-policy", "stop-team",
		"invite-host", "leave-cluster", "issue-login-code", "sign-in", "write-config-change", "read-config-agent", "list-repositories",
		"test-notice", "say-turn", "confirm-action", "open-shell", "open-port",
	} {
		if _, listed := fromhost.Rules[id]; listed || !known[id] {
			t.Errorf("%s is open to hosts, or there is no such route", id)
		}
	}
}

// The fields that a host may name exist, and no route that is open to hosts has one that names a command, a folder or a file of the leader.
func TestFieldsFromAnotherHost(t *testing.T) {
	doc := readOpenAPI(t)
	never := regexp.MustCompile(`command|template|wrapper|env|repo|dir|root|path|folder|file|schema|ref$|branch|unattended|sum|^input`)
	for _, rt := range routeTable() {
		rule, listed := fromhost.Rules[rt.ID]
		if !listed {
			continue
		}
		has := map[string]bool{}
		if body := doc.Paths[rt.Path][strings.ToLower(rt.Method)].RequestBody; body != nil {
			fieldsOfSchema(doc, body.Content["application/json"].Schema, "", has)
		}
		for _, field := range rule.Fields {
			if !has[field] {
				t.Errorf("%s has no field %s: %v", rt.ID, field, has)
			}
			if never.MatchString(field) && (rt.ID != "add-comment" || field != "file") { // a file of the shown difference
				t.Errorf("%s: a host may name %s", rt.ID, field)
			}
		}
		for _, p := range doc.Paths[rt.Path][strings.ToLower(rt.Method)].Parameters {
			if p.In != "path" && never.MatchString(p.Name) {
				t.Errorf("%s: a host may name %s", rt.ID, p.Name)
			}
		}
	}
}

func fieldsOfSchema(doc openAPIDoc, s schemaDoc, before string, has map[string]bool) {
	if s.Items != nil {
		fieldsOfSchema(doc, *s.Items, before, has)
		return
	}
	of := &s
	if s.Ref != "" {
		of = doc.Components.Schemas[s.name()]
	}
	for name, field := range of.Properties {
		has[before+name] = true
		fieldsOfSchema(doc, *field, before+name+".", has)
	}
}

// What a host may ask for is done, and is its own only where it is about hosts.
func TestOrdersFromAnotherHost(t *testing.T) {
	s, _, ask := fromHostTeam(t)
	for _, is := range []struct {
		method, path, body string
		code               int
	}{
		{"GET", "/agents", "", 200},
		{"GET", "/runs", "", 200},
		{"GET", "/journal?limit=1", "", 200},
		{"GET", "/workflows", "", 200},
		{"HEAD", "/agents", "", 200},
		{"POST", "/hold", `{"note":"lunch"}`, 200},
		{"POST", "/unhold", "", 200},
		{"POST", "/unhold", "{}", 200},
		{"POST", "/agents/coder/start", `{"note":"go on"}`, 200},
		{"POST", "/agents/coder/stop", "", 200},
		{"POST", "/reload", "", 200},
		{"POST", "/reload", `{"governing":"0123"}`, 409},
		{"POST", "/hold", `{"note":"lunch","by":"ann"}`, 409},
		{"POST", "/hold", "null", 422},
		{"POST", "/hold", `{"note":{"a":"b"}}`, 409},
		{"POST", "/hosts/a/drain", "", 409},
		{"POST", "/hosts/c/remove", "", 409},
		{"POST", "/hosts/a/lead", "", 409},
		{"POST", "/hosts/b/drain", "", 409}, // its own: it is refused only because this team has no other hosts
	} {
		code, text := ask(is.method, is.path, is.body)
		if code != is.code || code == http.StatusConflict && strings.Contains(text, "asked from host b") == (is.path == "/hosts/b/drain") {
			t.Errorf("%s %s %s: %d %s", is.method, is.path, is.body, code, text)
		}
	}
	for _, path := range []string{"/", "/app.js", "/api/", "/api/v2/agents", "//api/v1/agents", "/api/v1/../v1/agents"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://leader/", nil)
		r.URL.Path = path
		r.Header.Set(wire.CallerField, `{"seen":true}`)
		s.HostHandler("b", func(string) string { return "b" }).ServeHTTP(w, r)
		if w.Code != http.StatusNotFound {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
	}
}

// referenceHosts lists what another host of the team may ask for.
func referenceHosts() string {
	var b strings.Builder
	b.WriteString(`
## From another host

A host of the team passes the requests of its programs on to the leader, which takes only those of this list, and of their
fields only these. Every other request gets 409 with the row X10. A name of a workflow has to be in ` + "`workflows`" + ` of the leader's
` + "`fairlead.yaml`" + `. [hosts.md](hosts.md#what-a-host-may-order) has the same by commands.

| | | fields | |
|---|---|---|---|
`)
	for _, rt := range routeTable() {
		rule, listed := fromhost.Rules[rt.ID]
		if !listed {
			continue
		}
		why := rule.Why
		if rule.Own {
			why += "; only with its own name"
		}
		fields := ""
		if len(rule.Fields) > 0 {
			fields = "`" + strings.Join(rule.Fields, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", rt.Method, rt.Path, fields, why)
	}
	return b.String()
}
