// Package fromhost says which requests the leader takes from programs on other hosts of its team.
//
// [Rules] lists the routes and the fields of their bodies; [Only] compares each request with it. What is not listed is refused with the
// row X10.
//
// The one promise: a program on another host names no command, folder or file of the leader's machine, and permits nothing there.
package fromhost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// A Rule lets programs on another host of the team use a route.
type Rule struct {
	Why    string   // the reason why it is safe
	Fields []string // of the body that they may name: "task.text" is text in task. Every other one is refused
	Own    bool     // only about the host that asks: the last name of the path is its own
}

// The reasons of Rules.
const (
	readsTeam   = "it shows the team, and changes nothing"
	stopsWork   = "it only stops work"
	ordersAgent = "it names an agent of the leader's fairlead.yaml, which says what the agent runs and where"
	givesText   = "it gives text to an agent, within the bounds that the leader's fairlead.yaml sets"
	limits      = "it can name limits and a run, and a workflow only if the leader's fairlead.yaml lists it"
	itsOwn      = "it can name limits and a step; the run keeps its workflow, because steps of another one with the same id would be over, approvals as well"
	aboutItself = "a host decides for itself whether it takes sessions, leaves, or leads"
)

// Rules are the routes that programs on another host of the team may use, by operation. All others are refused: those that permit
// what an agent has asked or made (approve, merge, answer), because every process on a host can read the keys with which the host
// speaks, its agents' as well; those that change or stop the leader's daemon; and those that name a command, a folder or a file.
var Rules = map[string]Rule{
	"list-agents": {Why: readsTeam}, "explain-agent": {Why: readsTeam}, "list-machines": {Why: readsTeam}, "get-status": {Why: readsTeam},
	"stream-events": {Why: readsTeam}, "read-journal": {Why: readsTeam},
	"read-output": {Why: readsTeam}, "stream-output": {Why: readsTeam}, "read-facts": {Why: readsTeam},
	"list-runs": {Why: readsTeam}, "get-run": {Why: readsTeam}, "list-workflows": {Why: readsTeam}, "list-inbox": {Why: readsTeam},
	"list-working":     {Why: readsTeam},
	"get-task-changes": {Why: readsTeam}, "get-task-file": {Why: readsTeam}, "get-task-image": {Why: readsTeam},
	"list-comments": {Why: readsTeam},
	"list-channels": {Why: readsTeam}, "get-channel": {Why: readsTeam}, "read-channel": {Why: readsTeam},
	"get-crew": {Why: readsTeam}, "get-document": {Why: readsTeam}, "read-soul": {Why: readsTeam}, "read-transcript": {Why: readsTeam},
	"list-dispatches": {Why: readsTeam}, "get-dispatch": {Why: readsTeam}, "get-conversation": {Why: readsTeam},
	"read-output-file": {Why: readsTeam},
	"list-questions":   {Why: readsTeam}, "get-question": {Why: readsTeam}, "list-saved-answers": {Why: readsTeam},
	"list-usage": {Why: readsTeam}, "download-usage": {Why: readsTeam}, "get-digest": {Why: readsTeam}, "search-all": {Why: readsTeam},
	"list-hosts": {Why: readsTeam}, "show-leader": {Why: readsTeam},
	"rank-input": {Why: readsTeam, Fields: []string{"text", "session"}},

	"hold-team": {Why: stopsWork, Fields: []string{"note"}}, "pause-run": {Why: stopsWork, Fields: []string{"note"}},
	"cancel-run": {Why: stopsWork, Fields: []string{"note", "step"}}, "end-agent-session": {Why: stopsWork},
	"disable-agent": {Why: stopsWork},
	"skip-turn":     {Why: stopsWork, Fields: []string{"turn"}}, "send-crew-to-sleep": {Why: stopsWork},
	"end-dispatch": {Why: stopsWork, Fields: []string{"note"}},
	"reject-step":  {Why: stopsWork, Fields: []string{"note", "shown"}},

	"unhold-team": {Why: ordersAgent, Fields: []string{"note"}}, "release-run": {Why: ordersAgent, Fields: []string{"note"}},
	"start-agent": {Why: ordersAgent, Fields: []string{"note"}}, "stop-agent": {Why: ordersAgent, Fields: []string{"note"}},
	"run-agent-once": {Why: ordersAgent, Fields: []string{"note"}}, "run-agent-cleanup": {Why: ordersAgent, Fields: []string{"note"}},
	"retry-agent": {Why: ordersAgent}, "enable-agent": {Why: ordersAgent},
	"assign-agent": {Why: ordersAgent, Fields: []string{"agent"}}, "remove-agent": {Why: ordersAgent},
	"grant-turn": {Why: ordersAgent, Fields: []string{"agent", "now"}}, "override-wait": {Why: ordersAgent, Fields: []string{"go_on"}},
	"summon-crew": {Why: ordersAgent}, "wake-crew": {Why: ordersAgent, Fields: []string{"agents"}},
	"reload-config": {Why: "it names nothing: the leader reads its own fairlead.yaml"},

	"say-message": {Why: givesText, Fields: []string{"text", "mode"}}, "tell-agent": {Why: givesText, Fields: []string{"text"}},
	"give-input":     {Why: givesText, Fields: []string{"text"}},
	"request-task":   {Why: givesText, Fields: []string{"text", "shown"}},
	"add-comment":    {Why: givesText, Fields: []string{"file", "line", "old", "quote", "text"}},
	"change-comment": {Why: givesText, Fields: []string{"text", "resolved"}}, "remove-comment": {Why: givesText},

	"start-run": {Why: limits, Fields: append([]string{
		"workflow", "run_id", "git_worktree", "git_worktree_keep",
		"task.text", "task.agent", "task.base", "task.after", "task.attachments.name", "task.attachments.text", "task.attachments.image",
	}, runLimits...)},
	"resume-run": {Why: itsOwn, Fields: append([]string{"start_at_step"}, runLimits...)},

	"drain-host": {Why: aboutItself, Own: true}, "remove-host": {Why: aboutItself, Own: true}, "lead-host": {Why: aboutItself, Own: true},
}

// runLimits are the fields of a run that only limit it.
var runLimits = []string{
	"max_attempts", "max_iterations", "side_by_side", "pause_for_human_input", "poll_interval_ms", "daily_cost_limit", "cost_limit_action",
}

// Only refuses what another host of the team may not ask of a route. All requests of hosts come through it.
func Only(operation string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if host := caller.IdentityIn(r.Context()).Host; host != "" {
			if err := check(operation, host, r); err != nil {
				api.ProblemOf(err).Write(w)
				return
			}
		}
		next(w, r)
	}
}

// Workflow is the path of a workflow that a request names. From another host it has to be one of listed. name is absolute, or below dir.
func Workflow(ctx context.Context, operation, name, dir string, listed []string) (string, error) {
	host := caller.IdentityIn(ctx).Host
	if host == "" || name == "" {
		return name, nil
	}
	path := filepath.Clean(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if !slices.Contains(listed, path) {
		return "", refuse(host, operation,
			fmt.Sprintf("the workflow %s is not listed; list it under `workflows` in the leader's fairlead.yaml, or run the command on the machine of the leader", api.Shorten(name)))
	}
	return path, nil
}

// callerBytesMax is more than two names of sessions in JSON.
const callerBytesMax = 4 << 10

// CallerOf reads the header in which a host says who made a request.
func CallerOf(r *http.Request) (is caller.Identity, err error) {
	fields := r.Header.Values(wire.CallerField)
	if len(fields) != 1 || len(fields[0]) > callerBytesMax || !strings.HasPrefix(fields[0], "{") {
		return is, &wire.Problem{
			Code: wire.BadRequest,
			Why:  "it needs one header " + wire.CallerField + ", with an object of a limited length",
		}
	}
	var said wire.Caller
	err = wire.Read(strings.NewReader(fields[0]), &said)
	return caller.Identity{
		Session: said.Session, Foreign: said.Foreign, Unknown: said.Unknown, Seen: said.Seen,
		Own: said.Own && said.Session != "",
	}, err
}

// check applies the rule of a route to a request of a host. The body, which is read, is as it was.
func check(operation, host string, r *http.Request) error {
	rule, listed := Rules[operation]
	if !listed || rule.Own && r.PathValue("name") != host {
		return refuse(host, operation, "only the machine of the leader may do this; run the command there")
	}
	body, err := io.ReadAll(r.Body) // whole has read it
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if len(body) == 0 {
		return nil
	}
	err = namesOnly(body, rule.Fields)
	if field, is := errors.AsType[unlistedField](err); is {
		return refuse(host, operation,
			fmt.Sprintf("a program on another host may not name %s; leave it out, or run the command on the machine of the leader",
				api.Shorten(string(field))))
	}
	if err != nil {
		return api.NewProblem(http.StatusUnprocessableEntity, "the body cannot be read: %s", api.Shorten(err.Error()))
	}
	return nil
}

// refuse is the answer to an order that a host may not give.
func refuse(host, operation, reason string) error {
	return &table.Refusal{Subject: "the team", Event: operation, State: "asked from host " + host, Row: "X10", Reason: reason}
}

// depthMax is more than the depth of any field that a host may name.
const depthMax = 8

// unlistedField is a field that a host may not name.
type unlistedField string

func (u unlistedField) Error() string { return "the field " + string(u) + " is not listed" }

// fieldReader reads which fields the body of a request names. It ends at the first one that is not listed, so a long body costs little.
type fieldReader struct {
	*json.Decoder
	listed []string
}

// namesOnly checks that a body is one object in JSON that names only listed fields. An object with two fields of one name is a fault:
// readers differ in which of them counts. The error is an unlistedField if there is one.
func namesOnly(body []byte, listed []string) error {
	r := fieldReader{json.NewDecoder(bytes.NewReader(body)), listed}
	if next, err := r.Token(); err != nil || next != json.Delim('{') {
		return errors.Join(errors.New("it is not an object"), err)
	}
	if err := r.object("", 1); err != nil {
		return err
	}
	if _, err := r.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// object reads the fields of an object after its first brace.
func (r fieldReader) object(before string, depth int) error {
	if depth > depthMax {
		return fmt.Errorf("it has more than %d levels", depthMax)
	}
	seen := map[string]bool{}
	for r.More() {
		key, err := r.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // the decoder takes nothing else in its place
		field := before + name
		switch {
		case !slices.ContainsFunc(r.listed, func(is string) bool { return is == field || strings.HasPrefix(is, field+".") }):
			return unlistedField(field)
		case seen[name]:
			return fmt.Errorf("%s is there twice", name)
		}
		seen[name] = true
		if err := r.value(field, depth); err != nil {
			return err
		}
	}
	_, err := r.Token()
	return err
}

// value reads the value of a field. The objects of a list are as one object.
func (r fieldReader) value(field string, depth int) error {
	next, err := r.Token()
	switch {
	case err != nil:
		return err
	case next == json.Delim('{'):
		return r.object(field+".", depth+1)
	case next != json.Delim('['):
		return nil
	}
	if depth++; depth > depthMax {
		return fmt.Errorf("it has more than %d levels", depthMax)
	}
	for r.More() {
		if err := r.value(field, depth); err != nil {
			return err
		}
	}
	_, err = r.Token()
	return err
}
