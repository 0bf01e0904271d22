package local

import (
	"encoding/json"
	"testing"

	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// A session that began while this machine led alone has no lease in its folder. A new leader gives it one, and adopts it.
func TestAdoptWithoutALease(t *testing.T) {
	t.Parallel()
	s, h := newSessions(t)
	own, err := s.Shims.Start(t.Context(), "coder-1", 1,
		spawn.Launch{Argv: []string{"/bin/sh", "-c", "read line"}, Dir: "/", KeepStdin: true}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Guard.(*leader).home = map[string]bool{"coder-1": true}
	answer := ask(h, "POST", "/v1/sessions/coder-1/adopt", `{"epoch":1}`)
	var out wire.AdoptOut
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil || out.Found != sessionhost.Running {
		t.Fatalf("%+v, %v", out, err)
	}
	if l, err := s.readLease("coder-1"); err != nil || l == nil || l.Token.N != 9 {
		t.Errorf("%+v, %v", l, err)
	}
	if len(s.Known()) != 1 {
		t.Errorf("%+v", s.Known())
	}
	if err := own.End(t.Context(), 0); err != nil {
		t.Error(err)
	}
	<-own.Done()
}
