package server

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const nobody = 65534

// asOtherUser connects like another user of this machine: one thread changes its user to 'nobody', and
// ends with its goroutine.
func asOtherUser(path string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: no other goroutine may use this thread
		conn, err := connectAs(nobody, path)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// connectAs makes this thread another user's, for good, and connects.
func connectAs(user uintptr, path string) (net.Conn, error) {
	for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
		if _, _, fault := unix.RawSyscall(call, user, user, user); fault != 0 {
			return nil, fault
		}
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, err
	}
	return net.FileConn(file)
}

// The socket serves its owner. Another user cannot reach it; if the permissions of its folder allow it,
// the server checks the user of the connection.
func TestSocketFromAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change its user")
	}
	s := serve(t)
	path := socketOf(t, s)
	if conn, err := asOtherUser(path); !errors.Is(err, fs.ErrPermission) {
		if conn != nil {
			conn.Close()
		}
		t.Errorf("nobody gets to the socket: %v", err)
	}
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o001 == 0 {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	conn, err := asOtherUser(path)
	if err != nil {
		t.Fatalf("the way is open, and nobody cannot connect: %v", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "GET /api/v1/agents HTTP/1.1\r\nHost: fairlead\r\nConnection: close\r\n\r\n")
	answer, _ := io.ReadAll(conn)
	if strings.Contains(string(answer), "200 OK") || strings.Contains(string(answer), "coder") {
		t.Errorf("nobody is served: %s", answer)
	}
}
