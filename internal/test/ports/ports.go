// Package ports finds free ports of this machine for servers that a test stops and starts again.
//
// A port that 127.0.0.1:0 got does not do for these: while nothing listens there, the system may give it to a
// connection of another program. The ports here are below those that the system gives away.
//
// The one promise: each port was free, and this process gets it once.
package ports

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

const (
	begin = 20000
	count = 10000
	own   = 160 // from one process to the one with the next id
)

var given atomic.Uint32

// Free returns the first of n ports of loopback, one after the other, on which no program listens.
func Free(n int) int {
	for {
		last := int(given.Add(uint32(n))) //nolint:gosec // some tens
		first := begin + (os.Getpid()*own+last-n)%(count-n)
		if areFree(first, n) {
			return first
		}
	}
}

// Address is that of the first of n free ports.
func Address(n int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(Free(n))) }

func areFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // it opens at once or never
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}
