package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/network"
)

// pair is a connection, with both ends here.
func pair(t testing.TB) (a, b *Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*Conn
	for i, fd := range fds {
		if err := unix.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		ends[i] = NewConn(os.NewFile(uintptr(fd), "pair"))
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

// files makes files with numbers in them.
func files(t *testing.T, n int) []*os.File {
	t.Helper()
	all := make([]*os.File, n)
	for i := range all {
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if _, err := f.Write(binary.BigEndian.AppendUint32(nil, uint32(i))); err != nil {
			t.Fatal(err)
		}
		all[i] = f
	}
	return all
}

// A message arrives as it was sent, with its descriptors in order: also with more of them than one message of the kernel carries.
func TestFrames(t *testing.T) {
	for _, n := range []int{0, 1, descriptorsMax, descriptorsMax + 1, SocketsMax} {
		a, b := pair(t)
		sent := &Register{
			Session: "coder-1", Agent: "coder", Rules: network.Rules{All: true, Hosts: []network.Host{{Name: "example.org", Port: 8443, Named: true}}},
			Keys:     []Key{{Provider: "anthropic", Value: "secret"}},
			Upstream: Upstream{Proxy: "http://proxy:3128", Authorities: bytes.Repeat([]byte("x"), 300_000)},
			Sockets:  make([]Socket, n),
		}
		handed := files(t, n)
		failed := make(chan error, 1)
		go func() {
			failed <- errors.Join(a.Send(Message{Register: sent}, handed...), a.Send(Message{Open: &Open{ID: 7, Session: "coder-1", Port: 3000}}))
		}()
		m, got, err := b.Receive()
		if err != nil || len(got) != n || !reflect.DeepEqual(m.Register, sent) {
			t.Fatalf("%d descriptors: %d came, %v", n, len(got), err)
		}
		for i, f := range got {
			var number [4]byte
			if _, err := f.ReadAt(number[:], 0); err != nil || binary.BigEndian.Uint32(number[:]) != uint32(i) {
				t.Fatalf("descriptor %d of %d is file %d: %v", i, n, binary.BigEndian.Uint32(number[:]), err)
			}
			if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Fatalf("descriptor %d stays open in programs: %v", i, err)
			}
			f.Close()
		}
		if m, _, err := b.Receive(); err != nil || m.Open == nil || *m.Open != (Open{ID: 7, Session: "coder-1", Port: 3000}) {
			t.Fatalf("the next message is %+v, %v", m, err)
		}
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
		a.Close()
		if _, _, err := b.Receive(); !errors.Is(err, io.EOF) {
			t.Fatalf("the end is %v", err)
		}
	}
}

// What is no frame is refused, and nothing of it stays open.
func TestFramesRefused(t *testing.T) {
	frame := func(body string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	for _, tc := range []struct {
		name  string
		bytes []byte
		files int
		words string
	}{
		{name: "too long", bytes: []byte{0, 0x20, 0, 1}, words: "at most"},
		{name: "broken off", bytes: frame(`{"hello":{}}`)[:9], words: "broke off"},
		{name: "no JSON", bytes: frame(`{`), words: "JSON"},
		{name: "no message", bytes: frame(`{}`), words: "0 messages"},
		{name: "two messages", bytes: frame(`{"hello":{"version":1},"open":{"id":1,"session":"a","port":1}}`), words: "2 messages"},
		{name: "too many sockets", bytes: frame(`{"descriptors":513,"register":{"session":"a"}}`), words: "513 sockets"},
		{name: "less sockets", bytes: frame(`{"descriptors":1,"register":{"session":"a","sockets":[{"kind":"dns"}]}}`), words: "0 of 1"},
		{name: "more sockets", bytes: frame(`{"hello":{"version":1}}`), files: 1, words: "1 sockets came"},
		{name: "sockets without a session", bytes: frame(`{"descriptors":1,"hello":{"version":1}}`), files: 1, words: "no session"},
		{name: "sockets not listed", bytes: frame(`{"descriptors":1,"register":{"session":"a","sockets":[]}}`), files: 1, words: "lists 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := pair(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := a.write(tc.bytes, []*os.File{w}[:tc.files]); err != nil {
				t.Fatal(err)
			}
			w.Close()
			a.Close()
			m, got, err := b.Receive()
			if err == nil || !strings.Contains(err.Error(), tc.words) || len(got) != 0 {
				t.Fatalf("%+v, %d files, %v; want %q", m, len(got), err, tc.words)
			}
			_ = r.SetReadDeadline(time.Now().Add(time.Minute)) // the end of the pipe comes when no copy of its other end is open
			if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
				t.Fatalf("a descriptor of a refused frame stays open: %v", err)
			}
		})
	}
	a, _ := pair(t)
	if err := a.Send(Message{}); err == nil {
		t.Error("an empty message is sent")
	}
	if err := a.Send(Message{Refused: &Refused{Text: strings.Repeat("x", frameBytesMax)}}); err == nil {
		t.Error("a frame that is too long is sent")
	}
}

// A key is in no text that is made of a message.
func TestKeysAreNotShown(t *testing.T) {
	m := Register{Keys: []Key{{Provider: "anthropic", Value: "sk-secret"}}, Upstream: Upstream{Proxy: "http://me:sk-secret@proxy"}}
	for _, text := range []string{
		m.Keys[0].String(), m.Upstream.String(), fmt.Sprintf("%v", m), fmt.Sprintf("%+v", m), fmt.Sprintf("%#v", m.Keys), fmt.Sprintf("%#v", m.Upstream),
	} {
		if strings.Contains(text, "sk-secret") || !strings.Contains(text, "hidden") {
			t.Errorf("it shows %q", text)
		}
	}
}

// FuzzFrame reads frames from whatever comes.
func FuzzFrame(f *testing.F) {
	for _, body := range []string{
		`{"hello":{"version":1,"role":"session"}}`,
		`{"descriptors":1,"register":{"session":"a","rules":{"hosts":[{"name":"a.org"}]},"sockets":[{"kind":"dns"}]}}`,
		`{"event":{"session":"a","count":1,"first":"2026-01-01T00:00:00Z"}}`,
	} {
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, b := pair(t)
		defer b.Close()
		raw = raw[:min(len(raw), 64<<10)] // what the socket holds without a reader
		if _, err := a.socket.Write(raw); err != nil {
			t.Fatal(err)
		}
		a.Close()
		for read := 0; ; {
			m, files, err := b.Receive()
			if err != nil {
				return
			}
			if read += 4; m.count() != 1 || len(files) > 0 || read > len(raw) {
				t.Fatalf("%q is taken as %+v with %d files", raw, m, len(files))
			}
		}
	})
}
