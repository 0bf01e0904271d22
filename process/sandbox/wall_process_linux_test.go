package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// has is nil if a file of a process has the keeper's secret.
func has(p string) error {
	b, err := os.ReadFile(p)
	if err == nil && !strings.Contains(string(b), keeperSecret) {
		err = fmt.Errorf("%s has no secret", p)
	}
	return err
}

// readMemory reads the keeper's secret by a file of its memory.
func readMemory(p string, address int) error {
	f, err := os.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, len(keeperSecret))
	if _, err := f.ReadAt(b, int64(address)); err != nil {
		return err
	}
	if string(b) != keeperSecret {
		return errors.New("it is not the secret")
	}
	return nil
}

// ofKeeper is a call whose first argument is the attacked process.
func ofKeeper(nr int, more ...any) act {
	return func(t target) error { return sys(nr, append([]any{t.Keeper.PID}, more...)...) }
}

// ofStarter is the same on the process that started the program.
func ofStarter(nr int, more ...any) act {
	return func(t target) error { return sys(nr, append([]any{t.Parent}, more...)...) }
}

func withPidfd(use func(t target, fd int) error) act {
	return func(t target) error {
		fd, err := unix.PidfdOpen(t.Keeper.PID, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return use(t, fd)
	}
}

// signalInfo is a siginfo_t that a process may send.
func signalInfo() []byte {
	b := make([]byte, 128)
	b[8] = 0xff // si_code below zero: SI_QUEUE
	b[9], b[10], b[11] = 0xff, 0xff, 0xff
	return b
}

// traced attaches without a stop, and lets go.
func traced(pid int) error {
	if err := trace(pid); err != nil {
		return err
	}
	return nil // the thread ends with the attempt, and the trace with it
}

func vectors(b []byte, address int) (local, remote unsafe.Pointer) {
	return unsafe.Pointer(&unix.Iovec{Base: &b[0], Len: uint64(len(b))}),
		unsafe.Pointer(&unix.RemoteIovec{Base: uintptr(address), Len: len(b)})
}

func readsMemory(pid, address int) error {
	b := make([]byte, len(keeperSecret))
	local, remote := vectors(b, address)
	if err := sys(unix.SYS_PROCESS_VM_READV, pid, local, 1, remote, 1, 0); err != nil {
		return err
	}
	if string(b) != keeperSecret {
		return errors.New("it is not the secret")
	}
	return nil
}

// processAttempts see, trace, signal and steer a process of outside.
var processAttempts = []wallAttempt{
	{
		name: "the environment of another process", call: "pread64", row: RowProcess,
		try: func(t target) error { return has(t.proc("environ")) },
	},
	{
		name: "the memory of another process", call: "openat2", row: RowProcess,
		try: func(t target) error { return readMemory(t.proc("mem"), t.Keeper.Address) },
	},
	{
		name: "write the memory of another process", call: "openat2", row: RowProcess,
		try: func(t target) error { return openat2(at, t.proc("mem"), unix.O_RDWR, 0) },
	},
	{
		name: "the map of the memory of another process", call: "pread64", row: RowProcess,
		try: func(t target) error { return leadsAndReads(t.proc("maps")) },
	},
	{
		name: "the words of another process", call: "pread64", row: RowProcess,
		try: func(t target) error { return leadsAndReads(t.proc("cmdline")) },
	},
	{
		name: "the state of another process", call: "pread64", row: RowProcess,
		try: func(t target) error { return leadsAndReads(t.proc("status")) },
	},
	{
		name: "the mounts that another process has", call: "pread64", row: RowProcess,
		try: func(t target) error { return leadsAndReads(t.proc("mountinfo")) },
	},
	{
		name: "the limits of another process", call: "pread64", row: RowProcess,
		try: func(t target) error { return leadsAndReads(t.proc("limits")) },
	},
	{
		name: "the open file of another process", call: "pread64", row: RowProcess,
		try: func(t target) error { return has(t.proc(fmt.Sprintf("fd/%d", t.Keeper.FD))) },
	},
	{name: "an open file below the threads of another process", call: "pread64", row: RowProcess, try: func(t target) error {
		return has(t.proc(fmt.Sprintf("task/%d/fd/%d", t.Keeper.PID, t.Keeper.FD)))
	}},
	{
		name: "the name of another process", call: "write", row: RowProcess,
		try: func(t target) error { return openWith(t.proc("comm"), unix.O_WRONLY) },
	},
	{
		name: "let another process be ended first", call: "write", row: RowProcess,
		try: func(t target) error { return openWith(t.proc("oom_score_adj"), unix.O_WRONLY) },
	},
	{
		name: "what another process leaves when it fails", call: "write", row: RowProcess,
		try: func(t target) error { return openWith(t.proc("coredump_filter"), unix.O_WRONLY) },
	},
	{
		name: "forget which pages another process used", call: "write", row: RowProcess,
		try: func(t target) error { return openWith(t.proc("clear_refs"), unix.O_WRONLY) },
	},

	{name: "a signal", call: "kill", row: RowProcess, try: ofKeeper(unix.SYS_KILL, 0)},
	{
		name: "a signal to the group", call: "kill", row: RowProcess,
		try: func(t target) error { return sys(unix.SYS_KILL, -t.Keeper.PID, 0) },
	},
	{name: "a signal to a thread", call: "tkill", row: RowProcess, try: ofKeeper(unix.SYS_TKILL, 0)},
	{name: "a signal to a thread of a process", call: "tgkill", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_TGKILL, t.Keeper.PID, t.Keeper.PID, 0)
	}},
	{name: "a signal with words", call: "rt_sigqueueinfo", row: RowProcess, try: ofKeeper(unix.SYS_RT_SIGQUEUEINFO, 0, signalInfo())},
	{name: "a signal with words to a thread", call: "rt_tgsigqueueinfo", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_RT_TGSIGQUEUEINFO, t.Keeper.PID, t.Keeper.PID, 0, signalInfo())
	}},
	{name: "a descriptor of a process", call: "pidfd_open", row: RowProcess, try: withPidfd(func(target, int) error { return nil })},
	{name: "a signal by descriptor", call: "pidfd_send_signal", row: RowProcess, try: withPidfd(func(_ target, fd int) error {
		return sys(unix.SYS_PIDFD_SEND_SIGNAL, fd, 0, 0, 0)
	})},
	{name: "a signal by the folder of a process", call: "pidfd_send_signal", row: RowProcess, try: func(t target) error {
		return throughOpen(t.proc(""), unix.O_RDONLY, func(fd int) error { return sys(unix.SYS_PIDFD_SEND_SIGNAL, fd, 0, 0, 0) })
	}},
	{name: "a descriptor from a process", call: "pidfd_getfd", row: RowProcess, try: withPidfd(func(t target, fd int) error {
		return opens(unix.SYS_PIDFD_GETFD, fd, t.Keeper.FD, 0)
	})},
	{name: "signals for input", call: "fcntl", row: RowProcess, try: func(t target) error {
		return throughOpen("/dev/null", unix.O_RDONLY, func(fd int) error {
			_, err := unix.FcntlInt(uintptr(fd), unix.F_SETOWN, t.Keeper.PID)
			return err
		})
	}},
	{name: "trace another process", call: "ptrace", row: RowProcess, try: func(t target) error { return traced(t.Keeper.PID) }},
	{
		name: "trace the starter", call: "ptrace", row: RowProcess, twin: processSeen,
		try: func(t target) error { return traced(t.Parent) },
	},
	{
		name: "copy the memory of another process", call: "process_vm_readv", row: RowProcess,
		try: func(t target) error { return readsMemory(t.Keeper.PID, t.Keeper.Address) },
	},
	{
		name: "copy the memory of the starter", call: "process_vm_readv", row: RowProcess,
		twin: func(t target) error { return readsMemory(t.Keeper.PID, t.Keeper.Address) },
		try:  func(t target) error { return readsStarter(t.Parent) },
	},
	{name: "change the memory of another process", call: "process_vm_writev", row: RowProcess, try: func(t target) error {
		local, remote := vectors([]byte(keeperSecret), t.Keeper.Address)
		return sys(unix.SYS_PROCESS_VM_WRITEV, t.Keeper.PID, local, 1, remote, 1, 0)
	}},
	{
		name: "advise about the memory of another process", call: "process_madvise", row: RowProcess, root: true, twin: processSeen,
		try: withPidfd(func(t target, fd int) error {
			page := t.Keeper.Address &^ 4095
			return sys(unix.SYS_PROCESS_MADVISE, fd, unsafe.Pointer(&unix.RemoteIovec{Base: uintptr(page), Len: 4096}), 1, unix.MADV_COLD,
				0)
		}),
	},
	{
		name: "the lists of locks of another process", call: "get_robust_list", row: RowProcess,
		try: ofKeeper(unix.SYS_GET_ROBUST_LIST, room(), room()),
	},
	{name: "compare with another process", call: "kcmp", row: RowProcess, try: func(t target) error {
		const sameFiles = 2
		return sys(unix.SYS_KCMP, os.Getpid(), t.Keeper.PID, sameFiles, 0, 0)
	}},
	{
		name: "where the pages of another process are", call: "move_pages", row: RowProcess,
		try: ofKeeper(unix.SYS_MOVE_PAGES, 0, 0, 0, 0, 0),
	},
	{
		name: "measure another process", call: "perf_event_open", row: RowProcess, root: true,
		try: func(t target) error { return measure(t.Keeper.PID, -1) }, twin: processSeen,
	},
	{
		name: "measure the machine", call: "perf_event_open", row: RowRoot, root: true, try: func(target) error { return measure(-1, 0) },
		twin: processSeen,
	},
	{name: "the group of another process", call: "getpgid", row: RowProcess, try: ofKeeper(unix.SYS_GETPGID)},
	{name: "the session of another process", call: "getsid", row: RowProcess, try: ofKeeper(unix.SYS_GETSID)},
	{name: "the rights of another process", call: "capget", row: RowProcess, try: func(t target) error {
		return unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3, Pid: int32(t.Keeper.PID)},
			&make([]unix.CapUserData, 2)[0])
	}},
	{
		name: "the limits of another process, changed", call: "prlimit64", row: RowProcess, twin: processSeen,
		try: ofKeeper(unix.SYS_PRLIMIT64, unix.RLIMIT_CORE, 0, room()),
	},
	{
		name: "the limits of the starter", call: "prlimit64", row: RowProcess, twin: processSeen,
		try: ofStarter(unix.SYS_PRLIMIT64, unix.RLIMIT_CORE, 0, room()),
	},
	{name: "the limits of processes, raised", call: "prlimit64", row: RowRoot, root: true, twin: processSeen, try: func(target) error {
		const most = 1 << 20
		return unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: ^uint64(0), Max: ^uint64(0)}, &unix.Rlimit{Cur: most})
	}},
	{name: "the priority of another process", call: "setpriority", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, t.Keeper.PID, 0)
	}},
	{name: "the priority of a group", call: "setpriority", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_SETPRIORITY, unix.PRIO_PGRP, t.Keeper.PID, 0)
	}},
	{name: "before all others", call: "setpriority", row: RowRoot, root: true, twin: processSeen, try: func(target) error {
		return sys(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, -5)
	}},
	{name: "what priority another process has", call: "getpriority", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_GETPRIORITY, unix.PRIO_PROCESS, t.Keeper.PID)
	}},
	{name: "the input and output of another process", call: "ioprio_set", row: RowProcess, try: func(t target) error {
		const bestEffort = 2<<13 | 4
		return sys(unix.SYS_IOPRIO_SET, 1, t.Keeper.PID, bestEffort)
	}},
	{name: "input and output before all others", call: "ioprio_set", row: RowRoot, root: true, twin: processSeen, try: func(target) error {
		const realTime = 1 << 13
		return sys(unix.SYS_IOPRIO_SET, 1, 0, realTime)
	}},
	{name: "what input and output another process has", call: "ioprio_get", row: RowProcess, try: func(t target) error {
		return sys(unix.SYS_IOPRIO_GET, 1, t.Keeper.PID)
	}},
	{name: "the processors of another process", call: "sched_setaffinity", row: RowProcess, try: func(t target) error {
		mask := make([]byte, 128)
		mask[0] = 1
		return sys(unix.SYS_SCHED_SETAFFINITY, t.Keeper.PID, len(mask), mask)
	}},
	{
		name: "which processors another process has", call: "sched_getaffinity", row: RowProcess,
		try: ofKeeper(unix.SYS_SCHED_GETAFFINITY, 128, room()),
	},
	{
		name: "the schedule of another process", call: "sched_setscheduler", row: RowProcess,
		try: ofKeeper(unix.SYS_SCHED_SETSCHEDULER, 0, room()),
	},
	{
		name: "a schedule before all others", call: "sched_setscheduler", row: RowRoot, root: true, twin: processSeen,
		try: func(target) error {
			first := room()
			first[0] = 1
			return sys(unix.SYS_SCHED_SETSCHEDULER, 0, 1, first)
		},
	},
	{name: "which schedule another process has", call: "sched_getscheduler", row: RowProcess, try: ofKeeper(unix.SYS_SCHED_GETSCHEDULER)},
	{name: "the parameters of another process", call: "sched_setparam", row: RowProcess, try: ofKeeper(unix.SYS_SCHED_SETPARAM, room())},
	{name: "which parameters another process has", call: "sched_getparam", row: RowProcess, try: ofKeeper(unix.SYS_SCHED_GETPARAM, room())},
	{
		name: "which attributes another process has", call: "sched_getattr", row: RowProcess,
		try: ofKeeper(unix.SYS_SCHED_GETATTR, room(), 64, 0),
	},
	{
		name: "the slice of another process", call: "sched_rr_get_interval", row: RowProcess,
		try: ofKeeper(unix.SYS_SCHED_RR_GET_INTERVAL, room()),
	},
	{name: "the time of another process", call: "clock_gettime", row: RowProcess, try: func(t target) error {
		const ofProcess = 2
		return sys(unix.SYS_CLOCK_GETTIME, ^t.Keeper.PID<<3|ofProcess, room())
	}},
}

// processSeen is the twin of what a program may do to no process at all: it may look at its own.
func processSeen(t target) error { return sys(unix.SYS_GETPGID, t.Keeper.PID) }

func leadsAndReads(p string) error {
	b, err := os.ReadFile(p)
	if err == nil && len(b) == 0 {
		err = errors.New("it is empty")
	}
	return err
}

// readsStarter reads anything of the starter's memory: this binary is at the same place in it.
func readsStarter(pid int) error {
	b := make([]byte, 8)
	local, remote := vectors(b, int(uintptr(unsafe.Pointer(&keptSecret[0]))))
	return sys(unix.SYS_PROCESS_VM_READV, pid, local, 1, remote, 1, 0)
}

func measure(pid, cpu int) error {
	attr := &unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Config: unix.PERF_COUNT_SW_CPU_CLOCK, Bits: unix.PerfBitDisabled,
	}
	fd, err := unix.PerfEventOpen(attr, pid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	return closed(fd, err)
}
