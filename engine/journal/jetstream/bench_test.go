package jetstream

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
)

// BenchmarkAppend measures durable appends of one change on three servers, by many callers at once, beside bare publishes of
// the same bytes by as many callers in the same run, turn about. The host mirrors meanwhile, and the bare stream is read by
// an ordered consumer too.
func BenchmarkAppend(b *testing.B) {
	c := started(b, 3)
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			nc := c.connect(b)
			j := opened(b, nc, c.create(b, nc), "")
			bare := newBare(b, nc, c.create(b, nc))
			batch := journaltest.MadeBatch(1)
			ours := func(n int) time.Duration {
				return shared(callers, n, func() error { _, err := j.Append(b.Context(), batch); return err }, b)
			}
			theirs := func(n int) time.Duration { return shared(callers, n, bare.publish, b) }
			ours(callers)
			theirs(callers)
			var own, other time.Duration
			b.ResetTimer()
			for done := 0; done < b.N; {
				n := min(max(64, 2*callers), b.N-done)
				other += theirs(n)
				own += ours(n)
				done += n
			}
			b.ReportMetric(float64(b.N)/own.Seconds(), "appends/s")
			b.ReportMetric(float64(b.N)/other.Seconds(), "publishes/s")
			b.ReportMetric(other.Seconds()/own.Seconds(), "of-bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// shared calls do n times, from some goroutines.
func shared(callers, n int, do func() error, b *testing.B) time.Duration {
	var work sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	began := time.Now()
	for range callers {
		work.Go(func() {
			for left.Add(-1) >= 0 {
				if err := do(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	return time.Since(began)
}

// bare publishes what the journal publishes, and nothing else.
type bare struct {
	api     js.JetStream
	subject string
	data    []byte
	b       *testing.B
}

func newBare(b *testing.B, nc *nats.Conn, stream string) bare {
	api, err := js.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	consumer, err := api.OrderedConsumer(b.Context(), stream, js.OrderedConsumerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	run, err := consumer.Consume(func(js.Msg) {})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(run.Stop)
	return bare{api, subjectOf(stream), messagesOf(newID(), chained(0, journal.Hash{}, journaltest.MadeBatch(1)), payload)[0], b}
}

func (p bare) publish() error {
	_, err := p.api.Publish(p.b.Context(), p.subject, p.data)
	return err
}
