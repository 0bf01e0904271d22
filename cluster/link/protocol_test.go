package link

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cluster"
	"github.com/fairlead-dev/fairlead/cluster/wire"
)

// TestProtocols connects hosts and leaders of several versions: the highest protocol in common is used in both
// directions, and without one the host is refused with what to do, and may try again.
func TestProtocols(t *testing.T) {
	t.Parallel()
	speaks := func(w http.ResponseWriter, r *http.Request) {
		wire.Answer(w, r, wire.ProtocolIn(r.Context()).String())
	}
	for _, c := range []struct {
		name          string
		leader, host  []wire.Protocol
		want, refused string
	}{
		{name: "the same", leader: []wire.Protocol{3, 2}, host: []wire.Protocol{3, 2}, want: "3"},
		{name: "an older host", leader: []wire.Protocol{3, 2}, host: []wire.Protocol{2, 1}, want: "2"},
		{name: "an older leader", leader: []wire.Protocol{2, 1}, host: []wire.Protocol{3, 2}, want: "2"},
		{name: "the first version", leader: []wire.Protocol{2, 1}, host: []wire.Protocol{1}, want: "1"},
		{name: "a host two versions older", leader: []wire.Protocol{4, 3}, host: []wire.Protocol{2, 1}, refused: "host b is more than one version older than the leader; install the leader's version of Fairlead there (protocol 2 and 1, the leader's is 4 and 3)"},
		{name: "a host two versions newer", leader: []wire.Protocol{2, 1}, host: []wire.Protocol{4, 3}, refused: "host b is more than one version newer than the leader; upgrade the leader, or install its version of Fairlead there (protocol 4 and 3, the leader's is 2 and 1)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newTeam(t, "web")
			h := f.listen(Options{ping: quiet, Handler: http.HandlerFunc(speaks), speaks: c.leader})
			o := f.options(f.join("b", cluster.Host), h.Address(), http.HandlerFunc(speaks))
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
				_ = conn.Close()
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			f.await(h)
			for side, to := range map[string]asker{"to the leader": conn.Client, "to the host": toB(t, h)} {
				client, _ := to()
				if got := wire.ProtocolOf(client).String(); got != c.want {
					t.Errorf("%s: the client speaks %s", side, got)
				}
				answer, err := ask(t.Context(), to, "/", nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := wire.ProtocolIn(answer.Request.Context()).String(); got != c.want {
					t.Errorf("%s: the answer is read as one of %s", side, got)
				}
				var said string
				if err := wire.ReadAnswer(answer, &said); err != nil || said != c.want {
					t.Errorf("%s: the other side speaks %s, %v", side, said, err)
				}
				answer.Body.Close()
			}
		})
	}
}
