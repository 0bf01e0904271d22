package sessions

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/work/sessionhost"

	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/process/shim"
)

const (
	processesMax   = 20_000  // processes inspected; a start must not wait longer on a crowded machine
	processTextMax = 1 << 20 // bytes of arguments and of an environment; a name occurs near the beginning
	openFilesMax   = 1024    // per process
	parentsMax     = 64      // a longer chain of parents means that the table changed while it was read
)

// conflicts searches the process table as far as the user's permissions allow.
func conflicts(ctx context.Context, workspace, conversation string, argv []string) ([]sessionhost.ProcessConflict, error) {
	table, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("find processes that have a conversation open: %w", err)
	}
	defer table.Close()
	entries, err := table.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("find processes that have a conversation open: %w", err)
	}
	var found []sessionhost.ProcessConflict
	looked := 0
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if looked++; looked > processesMax || ctx.Err() != nil {
			break
		}
		p, ok := processAt(pid)
		if !ok {
			continue // it has exited, or belongs to another user
		}
		sign := p.sign(conversation, argv)
		if sign == "" {
			continue
		}
		if _, ours := shim.SessionOf(workspace, pid); ours {
			continue
		}
		found = append(found, sessionhost.ProcessConflict{PID: pid, Program: p.name, Sign: sign, Under: under(p)})
	}
	return found, ctx.Err()
}

// processAt reads one process. ok is false if it has exited or cannot be read.
func processAt(pid int) (p *process, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	args, err := readSome(dir + "/cmdline")
	if err != nil || len(args) == 0 { // a kernel thread, or a dead process
		return nil, false
	}
	environ, err := readSome(dir + "/environ")
	if err != nil {
		return nil, false
	}
	name, err := readSome(dir + "/comm")
	if err != nil {
		return nil, false
	}
	return &process{
		pid: pid, name: strings.TrimSpace(string(name)), args: words(args), environ: words(environ),
		writes: func(name string) string { return writtenBy(dir, name) },
	}, true
}

func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, processTextMax))
}

// words splits the kernel's zero-terminated strings.
func words(text []byte) (list []string) {
	for word := range bytes.SplitSeq(bytes.TrimRight(text, "\x00"), []byte{0}) {
		list = append(list, string(word))
	}
	return list
}

// writtenBy finds a file whose name contains name and that the process has open for writing.
func writtenBy(dir, name string) (path string) {
	folder, err := os.Open(dir + "/fd")
	if err != nil {
		return ""
	}
	defer folder.Close()
	open, _ := folder.Readdirnames(openFilesMax) // names returned before an error still count
	for _, fd := range open {
		path, err := os.Readlink(dir + "/fd/" + fd)
		if err != nil || !strings.Contains(filepath.Base(path), name) {
			continue
		}
		if info, err := readSome(dir + "/fdinfo/" + fd); err == nil && forWriting(info) {
			return path
		}
	}
	return ""
}

// forWriting decodes the flags of an open file from fdinfo: an octal number whose last two bits are
// the access mode.
func forWriting(info []byte) bool {
	for line := range bytes.Lines(info) {
		if rest, is := bytes.CutPrefix(line, []byte("flags:")); is {
			flags, err := strconv.ParseInt(string(bytes.TrimSpace(rest)), 8, 64)
			return err == nil && flags&3 != 0
		}
	}
	return false
}

// under describes what keeps a process running: tmux, screen, zellij or a service.
func under(p *process) string {
	for _, kv := range p.environ {
		switch name, value, _ := strings.Cut(kv, "="); name {
		case "TMUX": // /tmp/tmux-1000/default,1234,0: socket, server, session
			if parts := strings.Split(value, ","); len(parts) == 3 {
				return fmt.Sprintf("tmux, session %s of server %s", parts[2], parts[1])
			}
			return "tmux"
		case "STY":
			return "screen, session " + clip.Text(value, loop.ActorBytesMax)
		case "ZELLIJ_SESSION_NAME":
			return "zellij, session " + clip.Text(value, loop.ActorBytesMax)
		}
	}
	for pid, n := parentOf(p.pid), 0; pid > 1 && n < parentsMax; pid, n = parentOf(pid), n+1 {
		name, err := readSome("/proc/" + strconv.Itoa(pid) + "/comm")
		if err != nil {
			break
		}
		for _, known := range []string{"tmux", "screen", "SCREEN", "zellij", "sshd", "mosh-server"} {
			if word, _, _ := strings.Cut(strings.TrimSpace(string(name)), ":"); word == known {
				return fmt.Sprintf("%s, process %d", strings.ToLower(known), pid)
			}
		}
	}
	return serviceOf(p.pid)
}

func parentOf(pid int) int {
	stat, err := readSome("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	return parentIn(stat)
}

// parentIn parses a process's parent from /proc/PID/stat; 0 if there is none.
func parentIn(stat []byte) int {
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" ")) // a process name may contain any character
	fields := bytes.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// serviceOf returns the service that a process belongs to, according to its cgroup.
func serviceOf(pid int) string {
	text, err := readSome("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name := filepath.Base(strings.TrimSpace(line)); strings.HasSuffix(name, ".service") {
			return "the service " + clip.Text(name, loop.ActorBytesMax)
		}
	}
	return ""
}
