package outlet_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// crowdSize is more connections than a session may have.
const crowdSize = 1000

// makeCrowd opens many tunnels at once, says how many it has, holds them until its input ends, and then asks once more. Some of them are
// used by half: a head without an end, and a ClientHello without one.
func makeCrowd() {
	var open []net.Conn
	refused := 0
	for i := range crowdSize {
		c, err := net.DialTimeout("tcp", "127.0.0.1:61080", actPatience)
		if err != nil {
			refused++
			continue
		}
		open = append(open, c)
		_ = c.SetDeadline(time.Now().Add(actPatience))
		if i%8 == 0 {
			_, _ = io.WriteString(c, "GET http://"+allowed+"/ HTTP/1.1\r\nHost: ")
			continue
		}
		_, _ = fmt.Fprintf(c, "CONNECT %s:443 HTTP/1.1\r\n\r\n", allowed)
		b := make([]byte, 12)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "HTTP/1.1 200" {
			refused++
			continue
		}
		if i%8 == 1 {
			_, _ = io.WriteString(c, "\x16\x03\x01\x01\xff")
		} else if tls.Client(c, insecure(allowed)).Handshake() != nil {
			refused++
		}
	}
	fmt.Println(refused)
	_, _ = io.Copy(io.Discard, os.Stdin)
	for _, c := range open {
		c.Close()
	}
	for range crowdSize {
		if got, _ := tunneled(allowed+":80", noTLS, get("/", allowed), " end"); strings.Contains(got, forAllowed) {
			fmt.Println(worked)
			return
		}
	}
	fmt.Println("it cannot connect after its crowd has gone")
}

// TestManyConnections: a session that opens 1,000 connections is refused what is too many, no other session is, and it goes on afterwards.
func TestManyConnections(t *testing.T) {
	if !alone(t) {
		return
	}
	w := newWorld(t)
	folder := filepath.Join(t.TempDir(), "proxy")
	endProxy(t, folder)
	crowd := startIn(t, w, folder, "coder-1", "crowd", nil)
	r, err := crowd.Output(t.Context(), 0)
	ok(t, err)
	defer r.Close()
	lines := bufio.NewReader(r)
	refused, after := 0, ""
	if _, err := fmt.Fscanln(lines, &refused); err != nil || refused < crowdSize/5 {
		t.Errorf("%d of %d were refused, %v", refused, crowdSize, err)
	}
	other := startIn(t, w, folder, "coder-2", "one", nil)
	if out := (&session{other, folder}).output(t); out != worked+"\n" {
		t.Errorf("another session: %s", out)
	}
	ok(t, crowd.CloseInput(t.Context()))
	if _, err := fmt.Fscanln(lines, &after); err != nil || after != worked {
		t.Errorf("after the crowd: %s, %v", after, err)
	}
}
