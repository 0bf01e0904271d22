package caller

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	_ "github.com/fairlead-dev/fairlead/process/proxy" // runs in a process of this binary
	"golang.org/x/sys/unix"
)

// TestMain lets this test binary connect to a socket and pass the connection to the test.
func TestMain(m *testing.M) {
	if path := os.Getenv("CALLER_TEST_CONNECTS"); path != "" {
		os.Exit(connectAndPass(path))
	}
	os.Exit(m.Run())
}

// connectAndPass connects, sends the connection over descriptor 3, waits for a byte there if it is to live on, and ends.
func connectAndPass(path string) int {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	}
	if err == nil {
		err = unix.Sendmsg(3, []byte{1}, unix.UnixRights(fd), nil, 0)
	}
	if err == nil && os.Getenv("CALLER_TEST_LIVES") != "" {
		_, err = unix.Read(3, make([]byte, 1))
	}
	if err != nil {
		return 1
	}
	return 0
}

// passer is a process that has connected to a socket, which has not accepted the connection yet.
func passer(t *testing.T, path string, lives bool) (cmd *exec.Cmd, end *os.File) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	end, other := os.NewFile(uintptr(pair[0]), "pair"), os.NewFile(uintptr(pair[1]), "pair")
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CALLER_TEST_CONNECTS="+path)
	if lives {
		cmd.Env = append(cmd.Env, "CALLER_TEST_LIVES=1")
	}
	cmd.ExtraFiles = []*os.File{other}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = other.Close()
	t.Cleanup(func() { _ = end.Close(); _ = cmd.Wait() })
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(pair[0], make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages: %v", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fds[0]) })
	return cmd, end
}

// A connection that was passed to another process, after the one that connected has ended, has no known caller, also if another process has
// that number now. Its twin is a process that lives.
func TestPassedConnection(t *testing.T) {
	dir, err := os.MkdirTemp("", "caller") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accept := func() *net.UnixConn {
		c, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	lives, _ := passer(t, path, true)
	if is := Inspect(accept(), dir); is.Unseen || is.Who.PID != lives.Process.Pid {
		t.Errorf("a living process is %+v", is.Caller)
	}

	ended, _ := passer(t, path, false)
	if err := ended.Wait(); err != nil {
		t.Fatal(err)
	}
	gone := accept()
	if is := Inspect(gone, dir); !is.Unseen {
		t.Errorf("a process that has ended is %+v", is.Caller)
	}
	if err := Inspect(gone, dir).Identity().MayOrder("unhold", ""); err == nil {
		t.Error("a caller that was not seen may order")
	}
	// Another process gets its number. Without the right to choose numbers, the test says only that it was skipped.
	if is := reborn(t, ended.Process.Pid); is != nil {
		defer func() { _ = is.Process.Kill(); _ = is.Wait() }()
		if is := Inspect(gone, dir); !is.Unseen {
			t.Errorf("a process that has the number again is %+v", is.Caller)
		}
	}
}

// reborn starts a process with a number, or returns nil: only root may set the last number.
func reborn(t *testing.T, pid int) *exec.Cmd {
	for range 20 { // another program may take the number
		if os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0) != nil {
			t.Log("this user may not choose the number of the next process")
			return nil
		}
		next := exec.Command("sleep", "1000")
		if err := next.Start(); err != nil {
			t.Fatal(err)
		}
		if next.Process.Pid == pid {
			return next
		}
		_ = next.Process.Kill()
		_ = next.Wait()
	}
	t.Log("the number was taken by another program")
	return nil
}
