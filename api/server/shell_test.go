package server

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/read/view"
)

// A shell is opened for a person's program on the socket, and not over TCP: the answer has the secrets of the agent's environment.
func TestShellIsForTheSocket(t *testing.T) {
	t.Parallel()
	s := houseAt(t)
	path := api.Base + "/agents/coder/shell"
	secret := signIn(t, s)
	for name, header := range map[string]map[string]string{
		"the token": {"Authorization": "Bearer " + testToken}, "a page": {"Authorization": "Bearer " + secret},
	} {
		resp := s.request(t, "POST", path, header)
		text, _ := send(t, resp, 409)
		if no := problemText(t, text).Refusal; no.Row != "X10" || no.State != "asked over TCP" {
			t.Errorf("%s: %s", name, text)
		}
	}
	c := dial(t, s)
	shell, err := client.Post[view.Shell](t.Context(), c, "/agents/coder/shell", api.EmptyBody{})
	if no, is := errors.AsType[*client.Refused](err); is && strings.Contains(no.Refusal.Reason, "a shell is opened only in a view") {
		t.Skip(no) // this machine makes none
	}
	if err != nil || shell.Agent != "coder" || shell.View == "" || len(shell.Env) == 0 || !strings.HasPrefix(shell.Lock, s.dir) {
		t.Fatalf("by the socket: %+v, %v", shell, err)
	}
	for _, kv := range shell.Env {
		if strings.Contains(kv, testToken) || strings.HasPrefix(kv, "FAIRLEAD_MCP") {
			t.Errorf("its environment has %s", kv)
		}
	}
	if _, err := os.Stat(shell.Lock); err == nil {
		t.Error("the lock is there before the caller has it")
	}
	for name, part := range map[string]string{
		"eve": "no agent is called", "T9": "no agent is called",
		s.gate(t, c): "it is a run and no task",
	} {
		if _, err := client.Post[view.Shell](t.Context(), c, "/agents/"+name+"/shell", api.EmptyBody{}); err == nil ||
			!strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
