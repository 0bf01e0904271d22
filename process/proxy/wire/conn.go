package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// frameBytesMax is the largest frame. A bundle of certificate authorities is the largest part of one: 220 KB on Debian, a third more
	// in JSON. 2,000 rules are 150 KB.
	frameBytesMax = 2 << 20

	// descriptorsMax is how many descriptors one message of the kernel carries (SCM_MAX_FD).
	descriptorsMax = 253

	// SocketsMax is how many sockets a session may have: each host that a person named with a port, and each port of this machine, is one.
	// The proxy's limit of open files is shared by all sessions.
	SocketsMax = 512

	sendPatience = 10 * time.Second // the other side reads at once, or it hangs
)

// unixSocket is the end of a unix socket: *os.File and *net.UnixConn.
type unixSocket interface {
	io.ReadWriteCloser
	syscall.Conn
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// Conn is a connection between the proxy and a caller. One goroutine receives; any may send.
type Conn struct {
	PID int // of the proxy, at a caller's end

	socket unixSocket
	send   sync.Mutex
}

// NewConn uses a unix stream socket.
func NewConn(s unixSocket) *Conn { return &Conn{socket: s} }

// envelope is a frame.
type envelope struct {
	Descriptors int `json:"descriptors,omitempty"` // that come with it
	Message
}

// count is how many fields of a message are set.
func (m *Message) count() (n int) {
	for _, set := range []bool{
		m.Hello != nil, m.Register != nil, m.Registered != nil, m.Rules != nil,
		m.Event != nil, m.Open != nil, m.Opened != nil, m.Refused != nil,
	} {
		if set {
			n++
		}
	}
	return n
}

// Send sends a message, with descriptors that stay open here. After an error the connection is of no more use.
func (c *Conn) Send(m Message, files ...*os.File) error {
	if m.count() != 1 || len(files) > SocketsMax {
		return fmt.Errorf("send to the proxy's socket: %d messages in one frame with %d sockets; one, and %d at most", m.count(), len(files),
			SocketsMax)
	}
	body, err := json.Marshal(envelope{len(files), m})
	if err != nil {
		return fmt.Errorf("send to the proxy's socket: %w", err)
	}
	if len(body) > frameBytesMax {
		return fmt.Errorf("send to the proxy's socket: a message of %d bytes, at most %d", len(body), frameBytesMax)
	}
	frame := append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body))), body...)
	c.send.Lock()
	defer c.send.Unlock()
	_ = c.socket.SetWriteDeadline(time.Now().Add(sendPatience))
	for first := true; first || len(files) > 0; first = false {
		batch := files[:min(len(files), descriptorsMax)]
		files = files[len(batch):]
		if err := c.write(frame, batch); err != nil {
			return fmt.Errorf("send to the proxy's socket: %w", err)
		}
		frame = []byte{0} // more descriptors come with a byte of their own
	}
	return nil
}

// write writes bytes, the first of them with descriptors.
func (c *Conn) write(b []byte, files []*os.File) error {
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			raw, err := f.SyscallConn() // Fd would make it block
			if err != nil {
				return err
			}
			if err := raw.Control(func(fd uintptr) { fds[i] = int(fd) }); err != nil {
				return err
			}
		}
		n, err := c.sendmsg(b, unix.UnixRights(fds...))
		if err != nil {
			return err
		}
		if b = b[n:]; len(b) == 0 {
			return nil // the other side may have read it, and closed
		}
	}
	_, err := c.socket.Write(b)
	return err
}

func (c *Conn) sendmsg(b, rights []byte) (n int, err error) {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	var inner error
	err = raw.Write(func(fd uintptr) bool {
		for {
			n, inner = unix.SendmsgN(int(fd), b, rights, nil, 0)
			if !errors.Is(inner, unix.EINTR) {
				return !errors.Is(inner, unix.EAGAIN)
			}
		}
	})
	return n, errors.Join(err, inner)
}

// Receive waits for a message. The caller closes the files. io.EOF means that the other side closed between two frames.
func (c *Conn) Receive() (m Message, files []*os.File, err error) {
	var head [4]byte
	fds, err := c.readWith(head[:])
	defer func() {
		if err != nil {
			for _, fd := range fds {
				unix.Close(fd)
			}
		}
	}()
	if err != nil {
		return Message{}, nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > frameBytesMax {
		return Message{}, nil, fmt.Errorf("frame of %d bytes on the proxy's socket: at most %d", n, frameBytesMax)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(c.socket, body); err != nil {
		return Message{}, nil, fmt.Errorf("frame of %d bytes on the proxy's socket broke off: %w", n, io.ErrUnexpectedEOF)
	}
	e, err := decode(body)
	if err != nil {
		return Message{}, nil, err
	}
	for len(fds) < e.Descriptors {
		var one [1]byte
		more, err := c.readWith(one[:])
		fds = append(fds, more...)
		if err != nil || len(more) == 0 {
			return Message{}, nil, fmt.Errorf("%d of %d sockets came on the proxy's socket: %w", len(fds), e.Descriptors, io.ErrUnexpectedEOF)
		}
	}
	if len(fds) != e.Descriptors {
		return Message{}, nil, fmt.Errorf("%d sockets came on the proxy's socket instead of %d", len(fds), e.Descriptors)
	}
	for i, fd := range fds {
		files = append(files, os.NewFile(uintptr(fd), fmt.Sprintf("socket %d", i)))
	}
	return e.Message, files, nil
}

// decode reads the JSON value of a frame.
func decode(body []byte) (e envelope, err error) {
	if err := json.Unmarshal(body, &e); err != nil {
		return envelope{}, fmt.Errorf("frame on the proxy's socket: %w", err)
	}
	switch n := e.count(); {
	case n != 1:
		return envelope{}, fmt.Errorf("frame on the proxy's socket with %d messages; one", n)
	case e.Descriptors < 0 || e.Descriptors > SocketsMax:
		return envelope{}, fmt.Errorf("frame on the proxy's socket with %d sockets; at most %d", e.Descriptors, SocketsMax)
	case e.Descriptors > 0 && e.Register == nil:
		return envelope{}, errors.New("frame on the proxy's socket with sockets and no session to register")
	case e.Register != nil && len(e.Register.Sockets) != e.Descriptors:
		return envelope{}, fmt.Errorf("frame on the proxy's socket with %d sockets; the session lists %d", e.Descriptors, len(e.Register.Sockets))
	}
	return e, nil
}

// readWith fills b, and returns the descriptors that came with it. They are the caller's also after an error.
func (c *Conn) readWith(b []byte) (fds []int, err error) {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	for read := 0; read < len(b); {
		oob := make([]byte, unix.CmsgSpace(4*descriptorsMax))
		var n, size, flags int
		var inner error
		err := raw.Read(func(fd uintptr) bool {
			for {
				n, size, flags, inner = recvmsg(int(fd), b[read:], oob)
				if !errors.Is(inner, unix.EINTR) {
					return !errors.Is(inner, unix.EAGAIN)
				}
			}
		})
		if err = errors.Join(err, inner); err != nil {
			return fds, err
		}
		came, err := rightsIn(oob[:size])
		fds = append(fds, came...)
		switch {
		case err != nil:
			return fds, err
		case flags&unix.MSG_CTRUNC != 0:
			return fds, errors.New("more sockets came on the proxy's socket than one message carries, or more than this process may open")
		case n == 0 && read == 0:
			return fds, io.EOF
		case n == 0:
			return fds, io.ErrUnexpectedEOF
		case len(fds) > SocketsMax:
			return fds, fmt.Errorf("more than %d sockets came on the proxy's socket", SocketsMax)
		}
		read += n
	}
	return fds, nil
}

func rightsIn(oob []byte) (fds []int, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	for i := range messages {
		if came, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, came...)
		}
	}
	return fds, err
}

// SetReadDeadline ends a Receive that waits.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.socket.SetReadDeadline(t) }

// SyscallConn is the socket, to find the process at its other end.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return c.socket.SyscallConn() }

// Close ends the connection.
func (c *Conn) Close() error { return c.socket.Close() }

// ReceiveSocket waits for one byte with one descriptor: what process 1 of a session answers with.
func ReceiveSocket(from *os.File, until time.Time) (*os.File, error) {
	_ = from.SetReadDeadline(until)
	defer func() { _ = from.SetReadDeadline(time.Time{}) }()
	var one [1]byte
	fds, err := NewConn(from).readWith(one[:])
	if err == nil && len(fds) != 1 {
		err = fmt.Errorf("%d sockets came instead of one", len(fds))
	}
	if err == nil {
		err = unix.SetNonblock(fds[0], true)
	}
	if err != nil {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "socket"), nil
}
