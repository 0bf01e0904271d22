package shim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The session folder and the frames in testdata/oldholder were written by the shim of commit
// 24eb993, which was named "holder" then. Today's daemon adopts such a session, reads every byte of
// its output, asks for its status and ends it. The answer to an order that it does not know is that of its code.
func TestAdoptsSessionOfOldHolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata/oldholder/folder")); err != nil {
		t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "fl") //nolint:usetesting // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	socket := filepath.Join(sockets, "h")
	record := readTestFile(t, filepath.Join(folder, agentFile))
	if err := os.WriteFile(filepath.Join(folder, agentFile), bytes.Replace(record, []byte("SOCKET"), []byte(socket), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	old := make(chan error, 1)
	holder := oldHolder(t, folder, socket)
	go func() { old <- holder() }()

	h, st, err := Adopt(t.Context(), folder, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if st.Phase != Running || st.Session != "coder-1" || st.ShimPID != 11280 || st.AgentPID != 11289 || st.SpoolBytes != 150 || !st.Holds.Subreaper || !st.InputClosed {
		t.Errorf("adopted %+v", st)
	}
	if now, err := h.Status(t.Context()); err != nil || now.Phase != Running || now.Fence != 2 {
		t.Errorf("status %+v %v", now, err)
	}
	if err := h.Extend(t.Context(), 7); !errors.Is(err, ErrNoDeadline) || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("a shim that knows no deadlines took one: %v", err)
	}
	if err := h.End(t.Context(), -1); err != nil {
		t.Fatal(err)
	}
	<-h.Done()
	if err := <-old; err != nil {
		t.Fatal(err)
	}
	out, err := h.Output(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if said, err := io.ReadAll(out); err != nil || !bytes.Equal(said, readTestFile(t, "testdata/oldholder/folder/spool")) {
		t.Errorf("read %q %v", said, err)
	}
	last, err := h.Status(t.Context())
	if err != nil || last.Phase != Exited || last.Exit == nil || last.Exit.Signal != "SIGTERM" || !last.Exit.Ordered || last.Exit.SpoolBytes != 150 {
		t.Errorf("ended %+v %v", last, err)
	}
	if err := h.Ack(t.Context()); err != nil {
		t.Error(err)
	}
	if _, again, err := Adopt(t.Context(), folder, 3); err != nil || again.Phase != Exited || !again.Acked || again.Exit.Signal != "SIGTERM" {
		t.Errorf("read from its folder: %+v %v", again, err)
	}
}

// oldHolder plays the recorded holder: it locks the folder, compares each order with the recorded
// bytes, and answers with the recorded bytes.
func oldHolder(t *testing.T, folder, socket string) (play func() error) {
	t.Helper()
	lock, err := os.OpenFile(filepath.Join(folder, lockFile), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if free, err := tryLock(lock); err != nil || !free {
		t.Fatal(free, err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	lines := strings.Split(strings.TrimSpace(string(readTestFile(t, "testdata/oldholder/transcript"))), "\n")
	exit := readTestFile(t, "testdata/oldholder/exit.json")
	return func() error {
		defer lock.Close()
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		defer conn.Close()
		for _, line := range lines {
			frame, answers := strings.CutPrefix(line, "< ")
			if answers {
				if strings.Contains(frame, `"event":"exit"`) { // on disk before it is said
					if err := os.WriteFile(filepath.Join(folder, exitFile), exit, 0o600); err != nil {
						return err
					}
				}
				if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)); err != nil {
					return err
				}
				continue
			}
			var size [4]byte
			if _, err := io.ReadFull(conn, size[:]); err != nil {
				return err
			}
			order := make([]byte, binary.BigEndian.Uint32(size[:]))
			if _, err := io.ReadFull(conn, order); err != nil {
				return err
			}
			if want := strings.TrimPrefix(line, "> "); string(order) != want {
				return errors.New("the daemon sent " + string(order) + ", and the holder knows " + want)
			}
		}
		return nil
	}
}

func readTestFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
