package jetstream

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
	"github.com/fairlead-dev/fairlead/internal/test/ports"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

func TestMain(m *testing.M) {
	testsize.Parallel(12) // they wait for servers
	os.Exit(leaktest.Main(m))
}

const payload = 8 << 20

// servers are embedded, on ports of the loopback, one cluster if there are several.
type servers struct {
	options []*server.Options
	run     []*server.Server
	streams atomic.Int64
}

func started(t testing.TB, n int, change ...func(*server.Options)) *servers {
	t.Helper()
	c, dir := &servers{run: make([]*server.Server, n)}, t.TempDir()
	first := ports.Free(2 * n)
	var routes []*url.URL
	for i := range n {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", first+n+i)})
	}
	for i := range n {
		o := &server.Options{
			ServerName: fmt.Sprintf("s%d", i), Host: "127.0.0.1", Port: first + i, MaxPayload: payload, MaxPending: 8 * payload,
			JetStream: true, StoreDir: filepath.Join(dir, fmt.Sprint(i)), SyncAlways: true, NoLog: true, NoSigs: true,
		}
		if n > 1 {
			o.Cluster, o.Routes = server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: first + n + i}, routes
		}
		for _, with := range change {
			with(o)
		}
		c.options = append(c.options, o)
		c.start(t, i)
	}
	t.Cleanup(func() {
		for _, s := range c.run {
			s.Shutdown()
		}
		for _, s := range c.run {
			s.WaitForShutdown()
		}
	})
	if n > 1 {
		wait.Until(t, "the servers have a leader and know each other", func() bool {
			for _, s := range c.run {
				if s.JetStreamIsLeader() {
					return len(s.JetStreamClusterPeers()) == n
				}
			}
			return false
		})
	}
	return c
}

func (c *servers) start(t testing.TB, i int) {
	t.Helper()
	s, err := server.NewServer(c.options[i].Clone())
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(wait.Patience) {
		t.Fatalf("server %d does not take connections", i)
	}
	c.run[i] = s
}

func (c *servers) stop(i int) {
	c.run[i].Shutdown()
	c.run[i].WaitForShutdown()
}

func (c *servers) connect(t testing.TB, options ...nats.Option) *nats.Conn {
	t.Helper()
	urls := ""
	for _, o := range c.options {
		urls += fmt.Sprintf("nats://127.0.0.1:%d,", o.Port)
	}
	nc, err := nats.Connect(urls[:len(urls)-1],
		append([]nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond), nats.ReconnectJitter(0, 0)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// create makes a new stream with a copy on each server.
func (c *servers) create(t testing.TB, nc *nats.Conn) string {
	t.Helper()
	name := fmt.Sprintf("T%d", c.streams.Add(1))
	var err error
	wait.Until(t, "the stream is created", func() bool {
		err = Create(t.Context(), nc, name, len(c.run))
		return err == nil
	})
	return name
}

// leader says which server leads a stream, and waits for one.
func (c *servers) leader(t testing.TB, stream string) (at int) {
	t.Helper()
	wait.Until(t, "the stream has a leader", func() bool {
		for i, s := range c.run {
			if s.Running() && (len(c.run) == 1 || s.JetStreamIsStreamLeader("$G", stream)) {
				at = i
				return true
			}
		}
		return false
	})
	return at
}

// current waits until all copies of a stream are complete.
func (c *servers) current(t testing.TB, nc *nats.Conn, stream string) {
	t.Helper()
	wait.Value(t, "all copies are complete", func() (*js.ClusterInfo, error) {
		r, err := reach(t.Context(), nc, stream)
		if err != nil {
			return nil, nil //nolint:nilerr // it is asked again
		}
		return r.stream.CachedInfo().Cluster, nil
	}, func(info *js.ClusterInfo) bool { return info != nil && complete(info, "") })
}

// stored waits until the store of one server has all messages of a stream. A current copy may have them in its log only, and
// writes them to the store later.
func (c *servers) stored(t testing.TB, i int, stream string, messages uint64) {
	t.Helper()
	wait.Value(t, "the server stored the stream", func() (uint64, error) {
		all, err := c.run[i].Jsz(&server.JSzOptions{Accounts: true, Streams: true})
		if err != nil {
			return 0, err
		}
		for _, account := range all.AccountDetails {
			for _, s := range account.Streams {
				if s.Name == stream {
					return s.State.Msgs, nil
				}
			}
		}
		return 0, nil
	}, func(have uint64) bool { return have == messages })
}

func complete(info *js.ClusterInfo, but string) bool {
	for _, p := range info.Replicas {
		if p.Name != but && (!p.Current || p.Offline || p.Lag != 0) {
			return false
		}
	}
	return info.Leader != "" && info.Leader != but
}

// opened opens a journal, on a new mirror in a folder of the test if path is empty.
func opened(t testing.TB, nc *nats.Conn, stream, path string) *Journal {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "mirror.db")
	}
	j, err := Open(t.Context(), nc, Options{Stream: stream, Mirror: path, Patience: wait.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}
