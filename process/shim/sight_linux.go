package shim

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	tasksMore   = 16 // threads of process 1 of a view, which count for the kernel
	memoryShare = 20 // of the time, one part goes into exact looks at most, unless the session grows
	smapsMax    = 64 << 20
)

// sight is what the shim sees of the session's processes and memory.
//
// What a session uses is the memory of its processes alone (anonymous pages, each counted once), and what lies in memory without
// being a process's: files in the view's own file systems, memfds, System V segments, and shared pages without a file. The exact
// sum needs a walk through the pages of every process, so a cheap upper bound comes first: pages are counted once for each process,
// and all shared memory of the machine is taken for the session's.
type sight struct {
	top      string // /proc, or that of the view, which shows the session's processes alone
	view     bool
	first    string              // the name of process 1 of the view
	held     bool                // the kernel counts the session's processes
	memories map[uint64]int      // the view's own file systems in memory: descriptors by device
	shared   uint64              // the device of memfds and of shared memory
	segments *os.File            // the System V segments of the session; nil: they are not seen
	boundAt  int64               // when it was last exact: the bound,
	exact    int64               // the sum,
	nextAt   time.Time           // and when it may be so again without growth
	fds      map[uint64]int64    // memfds by inode
	gone     map[[2]uint64]int64 // deleted files on a disk, by device and inode
}

// counts are what the processes of a session have.
type counts struct {
	dirs  []string // below /proc, of each process
	tasks int
	bytes int64 // of anonymous pages, in memory and swapped out, counted once for each process
	more  int64 // of shared pages, the same
}

func (k *keeper) newSight() sight {
	s := sight{top: "/proc", memories: map[uint64]int{}}
	if fd, err := unix.MemfdCreate("fairlead", unix.MFD_CLOEXEC); err == nil {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil {
			s.shared = st.Dev
		}
		unix.Close(fd)
	}
	if k.wall == nil || k.wall.agent.PID == 0 {
		return s
	}
	one := "/proc/" + strconv.Itoa(k.record.AgentPID)
	v := k.wall.view
	if v.Processes {
		s.top, s.view, s.first = one+"/root/proc", true, "1"
	}
	s.held = v.Users
	s.open(one)
	s.segments = descriptorOf(k.record.AgentPID, k.wall.segments)
	return s
}

// descriptorOf takes a descriptor of a process; nil: it has none there.
func descriptorOf(pid, fd int) *os.File {
	if fd == 0 {
		return nil
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(process)
	own, err := unix.PidfdGetfd(process, fd, 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(own), "segments")
}

// open finds the view's own file systems in memory: those that this process does not have.
func (s *sight) open(one string) {
	ours := map[string]bool{}
	for _, m := range mountsOf("/proc/self") {
		ours[m.device] = true
	}
	for _, m := range mountsOf(one) {
		if m.kind != "tmpfs" || ours[m.device] {
			continue
		}
		fd, err := unix.Open(one+"/root"+m.at, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || s.memories[st.Dev] != 0 || !memoryAt(fd) {
			unix.Close(fd)
			continue
		}
		s.memories[st.Dev] = fd
	}
}

func memoryAt(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && st.Type == unix.TMPFS_MAGIC
}

type mount struct{ device, at, kind string }

// mountsOf reads proc_pid_mountinfo(5).
func mountsOf(dir string) (all []mount) {
	text, _ := os.ReadFile(dir + "/mountinfo") // none: nothing is known
	for line := range bytes.Lines(text) {
		before, after, _ := strings.Cut(string(line), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) > 4 && len(right) > 0 {
			all = append(all, mount{left[2], left[4], right[0]})
		}
	}
	return all
}

// holdsTasks reports whether the kernel lets the session start no more processes than its limit.
func (s *sight) holdsTasks() bool { return s.held }

// confine has the kernel count the session's processes, where it does: for each user of a user namespace. The program runs already,
// so one that has forked faster is only seen by the looks. Process 1 of the view stays without a limit, because it may need a thread.
func (g *guard) confine(k *keeper) {
	if g.limits.Processes == 0 || !g.sight.held {
		return
	}
	most := uint64(g.limits.Processes + tasksMore)
	for _, p := range k.living() {
		if p.PID != k.record.AgentPID {
			_ = unix.Prlimit(p.PID, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most}, nil) // it is gone
		}
	}
}

// processes looks at every process of the session.
func (s *sight) processes() (c counts) {
	if s.view {
		names, _ := readNames(s.top) // none: it has ended
		for _, name := range names {
			if name[0] >= '0' && name[0] <= '9' && name != s.first {
				c.dirs = append(c.dirs, s.top+"/"+name)
			}
		}
	} else {
		for _, p := range descendants(os.Getpid()) {
			c.dirs = append(c.dirs, "/proc/"+strconv.Itoa(p.PID))
		}
	}
	buf := make([]byte, 4096)
	for _, dir := range c.dirs {
		c.add(dir, buf)
	}
	return c
}

func readNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// add reads proc_pid_status(5).
func (c *counts) add(dir string, buf []byte) {
	fd, err := unix.Open(dir+"/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return
	}
	for line := range bytes.Lines(buf[:n]) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		switch string(key) {
		case "RssAnon", "VmSwap":
			c.bytes += kilobytes(value)
		case "RssShmem":
			c.more += kilobytes(value)
		case "Threads":
			c.tasks += int(number(value))
		}
	}
}

// number reads the first number of a line, and kilobytes one in kB.
func number(b []byte) int64 {
	word, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte(" "))
	n, _ := strconv.ParseInt(string(word), 10, 64) // 0: it is none
	return n
}

func kilobytes(b []byte) int64 { return number(b) << 10 }

// mayExceed reports whether the session may use more than its limit, so that the exact sum is needed. It is not taken again at once
// if the session has not grown since by what was left.
func (s *sight) mayExceed(c counts, most int64, now time.Time) bool {
	bound := c.bytes + sharedOfMachine()
	if bound <= most {
		return false
	}
	return now.After(s.nextAt) || bound-s.boundAt > max(0, most-s.exact)/2
}

// sharedOfMachine is all shared memory of the machine: a session has no more.
func sharedOfMachine() (bytes int64) {
	text, _ := os.ReadFile("/proc/meminfo") // none: what is shared is counted only when a process maps it
	return sharedIn(text)
}

func sharedIn(meminfo []byte) (shared int64) {
	for line := range bytes.Lines(meminfo) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		switch string(key) {
		case "Shmem", "SwapTotal":
			shared += kilobytes(value)
		case "SwapFree":
			shared -= kilobytes(value)
		}
	}
	return shared
}

// about is the sum without a look at pages: what processes have in common counts for each, and of memfds those of the last exact look.
func (s *sight) about(c counts) int64 { return c.bytes + s.inFiles() }

// inFiles is what lies in memory as files.
func (s *sight) inFiles() (sum int64) {
	for _, fd := range s.memories {
		var st unix.Statfs_t
		if unix.Fstatfs(fd, &st) == nil {
			sum += int64(st.Blocks-st.Bfree) * st.Bsize
		}
	}
	for _, bytes := range s.fds {
		sum += bytes
	}
	return sum
}

// memory is the exact sum.
func (s *sight) memory(c counts, now time.Time) (sum int64) {
	began := time.Now()
	s.files(c.dirs)
	segments, seen := s.segmentBytes()
	sum = s.inFiles() + segments
	for _, dir := range c.dirs {
		pages, err := s.pages(dir, seen)
		if err != nil { // the program keeps its pages secret: what is shared counts for each process
			var alone counts
			alone.add(dir, make([]byte, 4096))
			pages = alone.bytes + alone.more
		}
		sum += pages
	}
	s.boundAt, s.exact = c.bytes+sharedOfMachine(), sum
	s.nextAt = now.Add(memoryShare * time.Since(began))
	return sum
}

// files finds the memfds and the deleted files that processes have open. A descriptor on its way through a socket is not seen.
func (s *sight) files(dirs []string) {
	s.fds, s.gone = map[uint64]int64{}, map[[2]uint64]int64{}
	for _, dir := range dirs {
		names, _ := readNames(dir + "/fd") // none: it has ended, or keeps them secret
		for _, name := range names {
			var st unix.Stat_t
			if unix.Stat(dir+"/fd/"+name, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 {
				continue
			}
			switch bytes := st.Blocks * 512; {
			case st.Dev == s.shared:
				s.fds[st.Ino] = bytes
			case s.memories[st.Dev] == 0:
				s.gone[[2]uint64{st.Dev, st.Ino}] = bytes
			}
		}
	}
}

// deleted is what files take on a disk that are only open.
func (s *sight) deleted() (bytes int64) {
	s.files(s.processes().dirs)
	for _, n := range s.gone {
		bytes += n
	}
	return bytes
}

// written is what the session's processes have written so far, to files and elsewhere, those that have ended and the shim included. It is
// an upper bound: it counts what goes to a disk twice, and what was written again. known is false if a process keeps it secret.
func (s *sight) written() (bytes int64, known bool) {
	dirs := append(s.processes().dirs, "/proc/self") // which has reaped some of them
	if s.view {
		dirs = append(dirs, s.top+"/"+s.first)
	}
	for _, dir := range dirs {
		text, err := os.ReadFile(dir + "/io")
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			return 0, false
		}
		bytes += writtenIn(text)
	}
	return bytes, true
}

// writtenIn reads proc_pid_io(5).
func writtenIn(text []byte) (bytes int64) {
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if key == "wchar" || key == "write_bytes" {
			bytes += number([]byte(value))
		}
	}
	return bytes
}

// segmentBytes reads the System V segments of the session.
func (s *sight) segmentBytes() (bytes int64, seen bool) {
	if s.segments == nil {
		return 0, false
	}
	if _, err := s.segments.Seek(0, 0); err != nil {
		return 0, false
	}
	lines := bufio.NewScanner(s.segments)
	for lines.Scan() {
		const rss, swap = 14, 15
		f := strings.Fields(lines.Text())
		if len(f) <= swap {
			continue
		}
		for _, field := range []string{f[rss], f[swap]} {
			n, _ := strconv.ParseInt(field, 10, 64) // 0: the heading
			bytes += n
		}
	}
	return bytes, lines.Err() == nil
}

// pages adds up a process's part of its pages, without those that are counted as files or segments.
func (s *sight) pages(dir string, segments bool) (sum int64, err error) {
	f, err := os.Open(dir + "/smaps")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	var m mapping
	for read := 0; read < smapsMax; {
		line, err := in.ReadSlice('\n')
		if read += len(line); errors.Is(err, bufio.ErrBufferFull) {
			continue // the rest of a long path
		}
		if err != nil {
			break
		}
		key, value, is := bytes.Cut(line, []byte(":"))
		if !is || bytes.ContainsRune(key, ' ') { // the head of a mapping
			sum += s.counted(m, segments)
			m = mappingOf(line)
			continue
		}
		switch string(key) {
		case "Pss":
			m.pss = kilobytes(value)
		case "Anonymous":
			m.anonymous = kilobytes(value)
		case "SwapPss":
			m.swapped = kilobytes(value)
		}
	}
	return sum + s.counted(m, segments), nil
}

// mapping is an entry of proc_pid_smaps(5).
type mapping struct {
	device, inode           uint64
	segment                 bool
	pss, anonymous, swapped int64
}

func mappingOf(head []byte) (m mapping) {
	f := bytes.Fields(head)
	if len(f) < 5 {
		return m
	}
	major, minor, _ := strings.Cut(string(f[3]), ":")
	high, _ := strconv.ParseUint(major, 16, 32) // 0: no file
	low, _ := strconv.ParseUint(minor, 16, 32)
	m.device = unix.Mkdev(uint32(high), uint32(low))
	m.inode, _ = strconv.ParseUint(string(f[4]), 10, 64)
	m.segment = len(f) > 5 && bytes.HasPrefix(f[5], []byte("/SYSV"))
	return m
}

// counted is what of a mapping is not counted elsewhere.
func (s *sight) counted(m mapping, segments bool) int64 {
	switch {
	case m.inode == 0:
		return m.pss + m.swapped
	case m.device == s.shared && (m.segment && segments || s.has(m.inode)):
		return 0
	case m.device == s.shared:
		return m.pss + m.swapped
	default: // the pages of a file that the process has changed for itself
		return min(m.pss, m.anonymous) + m.swapped
	}
}

func (s *sight) has(inode uint64) bool { _, open := s.fds[inode]; return open }

// childrenUsed is the memory of the largest of the processes that have ended, and the processor time of all.
func childrenUsed() (largest int64, processor time.Duration) {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &used) != nil {
		return 0, 0
	}
	return used.Maxrss << 10, time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func changedAt(st *syscall.Stat_t) time.Time { return time.Unix(st.Ctim.Sec, st.Ctim.Nsec) }

// asVictims runs start while this process is what the kernel ends first when memory is short, which what it starts inherits. A
// process can lower that only where it may write its own /proc, which the wall denies.
func asVictims(start func()) {
	const file, first = "/proc/self/oom_score_adj", "1000"
	was, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(first), 0)
	}
	start()
	if err == nil {
		_ = os.WriteFile(file, bytes.TrimSpace(was), 0) // it can have what it had
	}
}
