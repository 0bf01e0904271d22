package node

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/cluster"
	"github.com/fairlead-dev/fairlead/cluster/lease"
	"github.com/fairlead-dev/fairlead/internal/test/wait"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// A server does not check the subject to which an answer goes. A host that names a foreign one reaches neither the
// journal nor another host, whether the answer is of the server or of the leader.
func TestForeignReplySubjects(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	n := f.start(f.options(f.host("a", cluster.Engine)))
	leader, err := n.Connect(t.Context(), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer leader.Close()
	js, err := natsjs.New(leader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lease.Create(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	journal, err := js.CreateStream(t.Context(), natsjs.StreamConfig{Name: cluster.JournalStream, Subjects: []string{cluster.JournalSubject}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leader.Subscribe(cluster.AskSubject("*"), func(m *nats.Msg) { _ = m.Respond([]byte("asked")) }); err != nil {
		t.Fatal(err)
	}
	victim, _ := f.connect(f.host("c", cluster.Host), n.Address())
	placed, err := victim.SubscribeSync(cluster.PlacedSubject("c"))
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := victim.SubscribeSync(cluster.InboxPrefix("c") + ".>")
	if err != nil {
		t.Fatal(err)
	}
	nc, _ := f.connect(f.host("b", cluster.Host), n.Address())
	if err := victim.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{cluster.JournalSubject, cluster.PlacedSubject("c"), cluster.InboxPrefix("c") + ".x"} {
		for _, subject := range []string{
			"$JS.API.STREAM.INFO." + cluster.LeaseStream,
			"$JS.API.DIRECT.GET." + cluster.LeaseStream + "." + cluster.LeaseSubjects + "b.1",
			cluster.LeaseSubjects + "b.1",
			cluster.AskSubject("b"),
		} {
			if err := nc.PublishRequest(subject, reply, []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, err := nc.Request(cluster.AskSubject("b"), nil, wait.Patience) // the leader has answered to all before
	if err != nil || string(m.Data) != "asked" {
		t.Fatal(err)
	}
	if err := leader.Publish(cluster.PlacedSubject("c"), []byte("true")); err != nil {
		t.Fatal(err)
	}
	if m, err := placed.NextMsg(wait.Patience); err != nil || string(m.Data) != "true" {
		t.Errorf("c takes for an order: %q %v", m.Data, err)
	}
	if m, err := inbox.NextMsg(time.Millisecond); err == nil {
		t.Errorf("c takes for an answer: %q", m.Data)
	}
	if info, err := journal.Info(t.Context()); err != nil || info.State.Msgs > 0 {
		t.Errorf("the journal has %d messages of a plain host; %v", info.State.Msgs, err)
	}
}
