package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// keeper is a process that has one of everything that a process of outside may have: sockets of each kind, shared memory, a
// terminal, an open file, and a secret in its environment and memory.
type keeper struct {
	PID     int    `json:"pid"`
	FD      int    `json:"fd"`      // of a file that is open for writing
	Address int    `json:"address"` // of the secret
	Held    string `json:"held"`    // the open file

	Stream   string `json:"stream"` // sockets by path
	Datagram string `json:"datagram"`
	Packets  string `json:"packets"`
	Abstract string `json:"abstract"` // their names begin with this

	Memory     int    `json:"memory"` // of System V; -1: there is none
	Semaphore  int    `json:"semaphore"`
	Messages   int    `json:"messages"`
	Queue      string `json:"queue"` // of POSIX
	SharedFile string `json:"shared_file"`
	Key        int    `json:"key"`
	Terminal   string `json:"terminal"`
	Terminals  uint64 `json:"terminals"` // the file system of the terminal: another view has others by the same names
	Port       int    `json:"port"`
	UDP        int    `json:"udp"`
}

type keeperJob struct {
	Dir     string `json:"dir"`     // it works there
	Runtime string `json:"runtime"` // its sockets are there
	Apart   bool   `json:"apart"`   // its terminal has a number that no terminal in a view has
}

// keeperSecret is what nothing else says.
const keeperSecret = "the-secret-of-the-keeper"

var keptSecret = []byte(keeperSecret)

// terminalsBefore is more than there are terminals in a view of these tests.
const terminalsBefore = 8

// keep is the keeper's own side. It ends when its input does.
func keep(text string) {
	var job keeperJob
	err := json.Unmarshal([]byte(text), &job)
	k := keeper{
		PID: os.Getpid(), Address: int(uintptr(unsafe.Pointer(&keptSecret[0]))),
		Abstract: fmt.Sprintf("@fairlead-test-%d-", time.Now().UnixNano()),
	}
	err = errors.Join(err, os.MkdirAll(job.Runtime, 0o700), os.Chdir(job.Dir))
	k.Held = filepath.Join(job.Runtime, "held")
	held, e := os.OpenFile(k.Held, os.O_CREATE|os.O_RDWR, 0o600)
	err = errors.Join(err, e)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	k.FD = int(held.Fd())
	_, _ = held.WriteString(keeperSecret + "\n")
	k.Stream, k.Datagram, k.Packets = filepath.Join(job.Runtime, "bus"), filepath.Join(job.Runtime, "journal.sock"),
		filepath.Join(job.Runtime, "packets")
	for _, address := range []string{k.Stream, k.Abstract + "stream"} {
		hear("unix", address)
	}
	for _, address := range []string{k.Packets, k.Abstract + "packets"} {
		hear("unixpacket", address)
	}
	for _, address := range []string{k.Datagram, k.Abstract + "datagram"} {
		if c, err := net.ListenPacket("unixgram", address); err == nil {
			go drain(c)
		}
	}
	k.Port = hear("tcp", "127.0.0.1:0")
	if c, err := net.ListenPacket("udp", "127.0.0.1:0"); err == nil {
		k.UDP = c.LocalAddr().(*net.UDPAddr).Port
		go drain(c)
	}
	clean := k.share()
	for range terminalsBefore {
		if first, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err == nil && job.Apart {
			defer first.Close()
		} else if err == nil {
			first.Close()
		}
	}
	master, e := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if e == nil {
		n, _ := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
		_ = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
		k.Terminal = fmt.Sprintf("/dev/pts/%d", n)
		slave, _ := os.OpenFile(k.Terminal, os.O_RDWR|unix.O_NOCTTY, 0)
		var st unix.Stat_t
		_ = unix.Stat(k.Terminal, &st) // without it no terminal is the keeper's
		k.Terminals = st.Dev
		go func() { _, _ = io.Copy(io.Discard, master) }()
		defer slave.Close()
	}
	_ = json.NewEncoder(os.Stdout).Encode(k)
	_, _ = io.Copy(io.Discard, os.Stdin)
	clean()
	_ = held.Close()
}

// share makes what processes share without a path, as far as it is permitted, and returns how it is removed.
func (k *keeper) share() (clean func()) {
	k.Memory, _ = raw(unix.SYS_SHMGET, unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	k.Semaphore, _ = raw(unix.SYS_SEMGET, unix.IPC_PRIVATE, 1, unix.IPC_CREAT|0o600)
	k.Messages, _ = raw(unix.SYS_MSGGET, unix.IPC_PRIVATE, unix.IPC_CREAT|0o600)
	k.Queue, k.SharedFile = fmt.Sprintf("fairlead-test-%d", time.Now().UnixNano()),
		fmt.Sprintf("/dev/shm/fairlead-test-%d", time.Now().UnixNano())
	_ = opens(unix.SYS_MQ_OPEN, k.Queue, unix.O_CREAT|unix.O_RDWR, 0o600, 0)
	_ = os.WriteFile(k.SharedFile, keptSecret, 0o600)
	const ofUser = -4
	k.Key, _ = unix.AddKey("user", k.Queue, keptSecret, ofUser)
	return func() {
		_ = sys(unix.SYS_SHMCTL, k.Memory, unix.IPC_RMID, 0)
		_ = sys(unix.SYS_SEMCTL, k.Semaphore, 0, unix.IPC_RMID, 0)
		_ = sys(unix.SYS_MSGCTL, k.Messages, unix.IPC_RMID, 0)
		_ = sys(unix.SYS_MQ_UNLINK, k.Queue)
		_ = os.Remove(k.SharedFile)
		_, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, k.Key, ofUser, 0, 0)
	}
}

// hear accepts connections and says something on each.
func hear(network, address string) (port int) {
	l, err := net.Listen(network, address)
	if err != nil {
		return 0
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.WriteString(c, "heard\n")
				_ = c.Close()
			}()
		}
	}()
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

func drain(c net.PacketConn) {
	b := make([]byte, 1<<10)
	for {
		if _, _, err := c.ReadFrom(b); err != nil {
			return
		}
	}
}

// startKeeper starts a keeper.
func startKeeper(job keeperJob) (k keeper, end func(), err error) {
	cmd := again("keeper", job)
	cmd.Env = append(cmd.Env, "FAIRLEAD_TEST_SECRET="+keeperSecret)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return k, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return k, nil, err
	}
	if err := cmd.Start(); err != nil {
		return k, nil, err
	}
	end = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &k)
	}
	if err != nil {
		end()
	}
	return k, end, err
}
