package invite

import (
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// One port has the server for joining and the connections of hosts. Each caller gets to what it names, with all of its bytes.
func TestSharedPort(t *testing.T) {
	f := newTeam(t)
	member := f.host("b", t.TempDir())
	if _, err := f.join(f.invite(cluster.Host), member); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		conn, err := f.port.Accept()
		if err != nil {
			said <- err.Error()
			return
		}
		defer conn.Close()
		text, err := io.ReadAll(tls.Server(conn, f.id.TLS(nil)))
		said <- string(text)
		if err != nil {
			t.Error(err)
		}
	}()
	config := member.TLS(nil)
	config.ServerName = "127.0.0.1"
	conn, err := tls.Dial("tcp", f.address, config) //nolint:noctx // loopback
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if text := wait.For(t, "the connection of a host", said); text != "hello" {
		t.Error(text)
	}

	for name, bytes := range map[string]string{
		"nothing": "", "no TLS": "GET / HTTP/1.1\r\n\r\n",
		"a cut message": "\x16\x03\x01\x02\x00\x01",
	} {
		conn, err := net.Dial("tcp", f.address) //nolint:noctx // loopback
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, bytes); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(conn); len(text) > 0 {
			t.Errorf("%s: %q %v", name, text, err)
		}
		conn.Close()
	}

	token := f.invite(cluster.Host)
	f.close()
	if _, err := f.join(token, f.host("c", t.TempDir())); err == nil {
		t.Error("the server for joining is closed, and a host joined")
	}
	accepted := make(chan error, 1)
	go func() { _, err := f.port.Accept(); accepted <- err }()
	f.port.Close()
	if err := wait.For(t, "the end of the port", accepted); err == nil {
		t.Error("a closed port accepts")
	}
}
