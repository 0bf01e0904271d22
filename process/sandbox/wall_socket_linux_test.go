package sandbox

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// connects makes a socket and connects it.
func joinsSocket(kind int, address func(t target) string) act {
	return func(t target) error {
		fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Connect(fd, &unix.SockaddrUnix{Name: address(t)})
	}
}

// sends sends a datagram by one end of a pair or by a socket.
func sends(pair bool, send func(fd int, to *unix.SockaddrUnix) error, address func(t target) string) act {
	return func(t target) error {
		fds := [2]int{-1, -1}
		var err error
		if pair {
			fds, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		} else {
			fds[0], err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		}
		if err != nil {
			return err
		}
		defer unix.Close(fds[0])
		defer unix.Close(fds[1])
		return send(fds[0], &unix.SockaddrUnix{Name: address(t)})
	}
}

func sendTo(fd int, to *unix.SockaddrUnix) error { return unix.Sendto(fd, []byte("x"), 0, to) }

func sendMessage(fd int, to *unix.SockaddrUnix) error {
	return unix.Sendmsg(fd, []byte("x"), nil, to, 0)
}

// passDescriptor hands a descriptor to another process.
func passDescriptor(fd int, to *unix.SockaddrUnix) error {
	return unix.Sendmsg(fd, []byte("x"), unix.UnixRights(fd), to, 0)
}

func stream(t target) string   { return t.Keeper.Stream }
func datagram(t target) string { return t.Keeper.Datagram }
func packets(t target) string  { return t.Keeper.Packets }

func hidden(kind string) func(t target) string {
	return func(t target) string { return t.Keeper.Abstract + kind }
}

// socketAttempts reach a socket of outside.
var socketAttempts = []wallAttempt{
	{name: "a stream by path", call: "connect", row: RowSocket, try: joinsSocket(unix.SOCK_STREAM, stream)},
	{
		name: "a stream in a folder that is shown", call: "connect", row: RowSocket, twin: joinsSocket(unix.SOCK_STREAM, stream),
		try: joinsSocket(unix.SOCK_STREAM, func(t target) string { return t.Shown }),
	},
	{
		name: "a second name of a socket", call: "link", row: RowSocket, twin: joinsSocket(unix.SOCK_STREAM, stream),
		try: func(t target) error {
			return errors.Join(unix.Link(t.Live, filepath.Join(t.In, "second")),
				joinsSocket(unix.SOCK_STREAM, func(t target) string { return filepath.Join(t.In, "second") })(t))
		},
	},
	{
		name: "move what covers a socket", call: "rename and open", row: RowSocket, twin: joinsSocket(unix.SOCK_STREAM, stream),
		try: func(t target) error {
			moved := filepath.Join(t.In, "moved")
			err := errors.Join(unix.Rename(t.Live, moved), joinsSocket(unix.SOCK_STREAM, func(target) string { return moved })(t))
			return errors.Join(err, unix.Rename(moved, t.Live))
		},
	},
	{name: "packets by path", call: "connect", row: RowSocket, try: joinsSocket(unix.SOCK_SEQPACKET, packets)},
	{name: "an abstract stream", call: "connect", row: RowSocket, try: joinsSocket(unix.SOCK_STREAM, hidden("stream"))},
	{name: "abstract packets", call: "connect", row: RowSocket, try: joinsSocket(unix.SOCK_SEQPACKET, hidden("packets"))},
	{
		name: "a stream through a link", call: "connect", row: RowSocket,
		try: joinsSocket(unix.SOCK_STREAM, func(t target) string { return t.link(t.Keeper.Stream) }),
	},
	{
		name: "a stream below the root of another process", call: "connect", row: RowProcess,
		try: joinsSocket(unix.SOCK_STREAM, func(t target) string {
			return t.proc("root") + t.Keeper.Stream
		}),
	},
	{
		name: "a stream below the folder of another process", call: "connect", row: RowProcess,
		try: joinsSocket(unix.SOCK_STREAM, func(t target) string {
			return t.proc("cwd/runtime/") + filepath.Base(t.Keeper.Stream)
		}),
	},
	{name: "a datagram by path", call: "sendto", row: RowSocket, try: sends(false, sendTo, datagram)},
	{name: "an abstract datagram", call: "sendto", row: RowSocket, try: sends(false, sendTo, hidden("datagram"))},
	{name: "a datagram by one end of a pair", call: "sendto", row: RowSocket, try: sends(true, sendTo, datagram)},
	{name: "an abstract datagram by one end of a pair", call: "sendto", row: RowSocket, try: sends(true, sendTo, hidden("datagram"))},
	{name: "a message by path", call: "sendmsg", row: RowSocket, try: sends(false, sendMessage, datagram)},
	{name: "an abstract message by one end of a pair", call: "sendmsg", row: RowSocket, try: sends(true, sendMessage, hidden("datagram"))},
	{name: "hand a descriptor out", call: "sendmsg", row: RowSocket, try: sends(false, passDescriptor, datagram)},
	{
		name: "hand a descriptor out by an abstract name", call: "sendmsg", row: RowSocket,
		try: sends(true, passDescriptor, hidden("datagram")),
	},
	{
		name: "join a pair to an abstract name", call: "socketpair", row: RowSocket,
		try: sends(true, func(fd int, to *unix.SockaddrUnix) error {
			return unix.Connect(fd, to)
		}, hidden("datagram")),
	},
	{name: "join a pair to a path", call: "socketpair", row: RowSocket, try: sends(true, func(fd int, to *unix.SockaddrUnix) error {
		return unix.Connect(fd, to)
	}, datagram)},
	{
		name: "a host by TCP", call: "network", row: RowNetwork,
		try: func(t target) error { return speak("tcp", fmt.Sprint("127.0.0.1:", t.Keeper.Port)) },
	},
	{name: "a host by UDP", call: "network", row: RowNetwork, try: func(t target) error {
		c, err := net.Dial("udp", fmt.Sprint("127.0.0.1:", t.Keeper.UDP))
		if err != nil {
			return err
		}
		_, err = c.Write([]byte("x"))
		return errors.Join(err, c.Close())
	}},
}

// shareAttempts use what processes share without a socket.
var shareAttempts = []wallAttempt{
	{name: "the shared memory of another process", call: "shmat", row: RowProcess, try: func(t target) error {
		p, err := raw(unix.SYS_SHMAT, t.Keeper.Memory, 0, 0)
		if err == nil {
			err = sys(unix.SYS_SHMDT, p)
		}
		return err
	}},
	{
		name: "the state of shared memory", call: "shmctl", row: RowProcess,
		try: func(t target) error { return sys(unix.SYS_SHMCTL, t.Keeper.Memory, unix.IPC_STAT, room()) },
	},
	{name: "the semaphore of another process", call: "semop", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_SEMOP, t.Keeper.Semaphore, []byte{0, 0, 1, 0, 0, 0}, 1)
	}},
	{
		name: "the state of a semaphore", call: "semctl", row: RowProcess,
		try: func(t target) error { return sys(unix.SYS_SEMCTL, t.Keeper.Semaphore, 0, unix.IPC_STAT, room()) },
	},
	{name: "a message to another process", call: "msgsnd", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_MSGSND, t.Keeper.Messages, []byte{1, 0, 0, 0, 0, 0, 0, 0, 'x', 0, 0, 0, 0, 0, 0, 0}, 1, unix.IPC_NOWAIT)
	}},
	{
		name: "the state of a queue", call: "msgctl", row: RowProcess,
		try: func(t target) error { return sys(unix.SYS_MSGCTL, t.Keeper.Messages, unix.IPC_STAT, room()) },
	},
	{
		name: "the named queue of another process", call: "mq_open", row: RowProcess, twin: threadOnly,
		try: func(t target) error { return opens(unix.SYS_MQ_OPEN, t.Keeper.Queue, unix.O_RDWR, 0, 0) },
	},
	{
		name: "read shared memory by its file", call: "open_tree", row: RowRead,
		twin: func(t target) error { return has(t.Keeper.SharedFile) }, try: func(t target) error { return has(t.Keeper.SharedFile) },
	},
	{
		name: "write shared memory by its file", call: "truncate", row: RowWrite,
		twin: func(t target) error { return openWith(t.Keeper.SharedFile, unix.O_WRONLY) },
		try:  func(t target) error { return openWith(t.Keeper.SharedFile, unix.O_WRONLY) },
	},
	{name: "a key of another process", call: "keyctl", row: RowProcess, twin: threadOnly, try: func(t target) error {
		b := room()
		_, err := unix.KeyctlBuffer(unix.KEYCTL_READ, t.Keeper.Key, b, 0)
		return err
	}},
	{name: "the keys of the user", call: "keyctl", row: RowProcess, twin: threadOnly, try: func(target) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
		return err
	}},
	{name: "leave a key", call: "add_key", row: RowProcess, twin: threadOnly, try: func(target) error {
		_, err := unix.AddKey("user", "fairlead-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	}},
	{name: "find a key", call: "request_key", row: RowProcess, twin: threadOnly, try: func(t target) error {
		_, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", t.Keeper.Queue, 0)
		return err
	}},
}
