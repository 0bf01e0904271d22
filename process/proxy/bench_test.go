package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

const (
	benchBytes  = 64 << 20
	benchRounds = 9 // of which the median counts
)

// BenchmarkStream measures answers through a proxy, which is a process of its own, beside the same answers without it: the time to the
// first byte, and how fast many bytes come. A model's answer is slower than both by far.
func BenchmarkStream(b *testing.B) {
	folder := place(b)
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/messages" {
			return
		}
		part := make([]byte, 64<<10)
		for left := benchBytes; left > 0; left -= len(part) {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	r := &rig{t: b}
	r.makeCA()
	secure, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{r.certificate("127.0.0.1")}})
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: serve}
	go func() { _ = server.Serve(secure) }()
	defer server.Close()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		b.Fatal(err)
	}
	defer socket.Close()
	c, err := wire.Connect(b.Context(), folder, wire.RoleSession, wire.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	base := "https://" + secure.Addr().String()
	err = c.Send(wire.Message{Register: &wire.Register{
		Session: "coder-1", Agent: "coder", Rules: hosts(secure.Addr().String()), Sockets: []wire.Socket{{Kind: wire.KindProxy}},
		Keys: []wire.Key{{Provider: "anthropic", Value: realKey, Base: base}}, Upstream: wire.Upstream{Authorities: r.caPEM},
	}}, socket)
	if err != nil {
		b.Fatal(err)
	}
	if m, _, err := c.Receive(); err != nil || m.Registered == nil {
		b.Fatalf("%+v, %v", m, err)
	}
	local := "http://" + l.Addr().String()
	by := map[string]*http.Transport{"direct": {}, "tunnel": {}, "key": {}}
	for _, t := range by {
		t.TLSClientConfig = &tls.Config{RootCAs: r.pool()}
	}
	by["tunnel"].Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(local) }
	first, rate := map[string][]float64{}, map[string][]float64{}
	for b.Loop() {
		for range benchRounds {
			for _, name := range []string{"direct", "tunnel", "key"} {
				to := base
				if name == "key" {
					to = local + "/anthropic"
				}
				by[name].CloseIdleConnections()
				ms, mbs := streamOnce(b, by[name], to+"/v1/messages")
				first[name], rate[name] = append(first[name], ms), append(rate[name], mbs)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, name := range []string{"tunnel", "key"} {
		b.ReportMetric(median(first[name])-median(first["direct"]), "ms/first-byte-more-"+name)
		b.ReportMetric(median(rate[name])/median(rate["direct"]), "throughput/direct-"+name)
	}
	b.ReportMetric(median(rate["direct"]), "MB/s-direct")
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// streamOnce makes a connection and reads one answer.
func streamOnce(b *testing.B, by *http.Transport, from string) (firstMS, mbs float64) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, from, nil)
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	answer, err := by.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	one := make([]byte, 1)
	if _, err := io.ReadFull(answer.Body, one); err != nil {
		b.Fatal(fmt.Errorf("%s: %w", answer.Status, err))
	}
	firstMS = time.Since(began).Seconds() * 1e3
	began = time.Now()
	n, err := io.Copy(io.Discard, answer.Body)
	if err != nil || n != benchBytes-1 {
		b.Fatal(n, err)
	}
	return firstMS, float64(n) / 1e6 / time.Since(began).Seconds()
}
