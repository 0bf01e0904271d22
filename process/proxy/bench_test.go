package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
)

// What the proxy costs: the first byte of a connection, and the throughput of one, beside a direct connection.
// `go test -run '^$' -bench . ./process/proxy` prints both.
func BenchmarkStream(b *testing.B) {
	for _, through := range []bool{false, true} {
		name := map[bool]string{false: "direct", true: "proxy"}[through]
		b.Run("first byte/"+name, func(b *testing.B) {
			dial := benchRig(b, through)
			for b.Loop() {
				c := dial()
				if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
					b.Fatal(err)
				}
				c.Close()
			}
		})
		b.Run("throughput/"+name, func(b *testing.B) {
			dial := benchRig(b, through)
			c := dial()
			defer c.Close()
			block := make([]byte, 1<<20)
			b.SetBytes(int64(len(block)))
			for b.Loop() {
				if _, err := io.ReadFull(c, block); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchRig is a proxy with a host that sends without an end, and how it is connected to.
func benchRig(b *testing.B, through bool) (dial func() net.Conn) {
	r := newRig(b, hosts("example.org:9000"), nil)
	r.world.name("example.org", publicAddr)
	block := make([]byte, 1<<16)
	r.serveTCP(func(c net.Conn) {
		for {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	}, publicAddr+":9000")
	return func() net.Conn {
		if !through {
			c, err := net.Dial("tcp", r.world.at[mustAddrPort(publicAddr+":9000")])
			if err != nil {
				b.Fatal(err)
			}
			return c
		}
		c, status, words := r.connect("example.org:9000")
		if status != http.StatusOK {
			b.Fatal(fmt.Sprint(status), words)
		}
		return c
	}
}
