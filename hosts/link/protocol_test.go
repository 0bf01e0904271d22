package link

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// TestProtocols connects hosts and leaders: with the same protocol requests go both ways, and a host with another one is
// refused with what to do, and is taken when it has the leader's.
func TestProtocols(t *testing.T) {
	t.Parallel()
	hello := func(w http.ResponseWriter, _ *http.Request) { wire.Answer(w, "hello") }
	for _, c := range []struct {
		name         string
		leader, host wire.Protocol
		refused      string
	}{
		{name: "the same", leader: 3, host: 3},
		{name: "an older host", leader: 3, host: 2, refused: "host b speaks protocol 2 and the leader protocol 3; install the same version of Fairlead on both"},
		{name: "a newer host", leader: 3, host: 4, refused: "host b speaks protocol 4 and the leader protocol 3; install the same version of Fairlead on both"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newTeam(t, "web")
			h := f.listen(Options{ping: quiet, Handler: http.HandlerFunc(hello), speaks: c.leader})
			o := f.options(f.join("b", cluster.Host), h.Address(), http.HandlerFunc(hello))
			o.speaks = c.host
			conn, err := Dial(t.Context(), o)
			if c.refused != "" {
				if refused := (*Refused)(nil); err == nil || !strings.Contains(err.Error(), c.refused) || errors.As(err, &refused) {
					t.Errorf("%v", err)
				}
				if got := h.Foreign("b"); !strings.Contains(got, c.refused) {
					t.Errorf("at the leader: %q", got)
				}
				o.speaks = c.leader // another version was installed
				if conn, err = Dial(t.Context(), o); err != nil || h.Foreign("b") != "" {
					t.Fatalf("%v; %q", err, h.Foreign("b"))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			f.await(h)
			for side, to := range map[string]asker{"to the leader": conn.Client, "to the host": toB(t, h)} {
				answer, err := ask(t.Context(), to, "/", nil)
				if err != nil {
					t.Fatal(err)
				}
				var said string
				if err := wire.ReadAnswer(answer, &said); err != nil || said != "hello" {
					t.Errorf("%s: %q, %v", side, said, err)
				}
				answer.Body.Close()
			}
		})
	}
}
