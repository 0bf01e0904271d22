package ports

import (
	"net"
	"strconv"
	"testing"
)

// No port is given twice, and none that is in use.
func TestFree(t *testing.T) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(Free(2)+2)))
	if err != nil {
		t.Skip("another program has just taken the port: ", err)
	}
	defer l.Close()
	used := map[int]bool{l.Addr().(*net.TCPAddr).Port: true}
	for _, n := range []int{1, 10, 2, 1} {
		first := Free(n)
		for port := first; port < first+n; port++ {
			if used[port] {
				t.Errorf("port %d is given again, or is in use", port)
			}
			used[port] = true
		}
	}
}
