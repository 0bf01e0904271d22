package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wallVar makes this test binary do one side of a wall's tests instead of testing, and names it.
const wallVar = "FAIRLEAD_TEST_WALL"

// target is what an attempt attacks: things outside, or for its allowed twin the same things inside.
type target struct {
	In   string `json:"in"`   // a folder that may be written
	Base string `json:"base"` // a folder that has a file and a folder for each attempt
	File string `json:"file"`
	Dir  string `json:"dir"`
	Name string `json:"name"` // a name that does not exist yet, beside File
	User int    `json:"user"` // the user whose rights are wanted

	Keeper keeper `json:"keeper"` // a process
	Parent int    `json:"parent"` // the process that started the program
	Repo   string `json:"repo"`   // a checkout
	Hidden string `json:"hidden"` // a folder that is not shown, within a writable one
	Shown  string `json:"shown"`  // a socket in a folder that is shown
	Live   string `json:"live"`   // a socket in a folder that may be written
	Deep   string `json:"deep"`   // a folder that is shown, two folders below a writable one

	Setuid  string `json:"setuid"`  // programs that take rights of their file
	FileCap string `json:"filecap"` //
	Inside  bool   `json:"inside"`  // this is the twin
}

// act is one attempt, or its twin. It returns nil if it believes that it succeeded.
type act func(t target) error

// wallAttempt is one way out of a wall.
type wallAttempt struct {
	name string
	call string // the system call that decides; for git, the file that does
	row  Row    // what it attacks
	try  act
	twin act  // what is allowed; nil: the same act on what the view has for it
	root bool // outside the wall it needs root
}

// wallAttempts returns the whole table.
func wallAttempts() []wallAttempt {
	return slices.Concat(writeAttempts, oldAttempts, mountAttempts, readAttempts, lookAttempts, processAttempts, shareAttempts,
		rootAttempts, socketAttempts, gitAttempts, checkoutAttempts, otherAttempts)
}

// wallJob says what the process on the other side has to do.
type wallJob struct {
	Targets map[string]target `json:"targets"` // by kind
	Own     target            `json:"own"`     // what the twins use; without Inside no twin is tried
}

// wallResult is what one attempt gave on all targets.
type wallResult struct {
	Name string            `json:"name"`
	Try  map[string]string `json:"try"`
	Twin string            `json:"twin"`
}

const worked = "worked"

// wallIfAsked is the other side of this file's tests.
func wallIfAsked() {
	act, job, _ := strings.Cut(os.Getenv(wallVar), " ")
	os.Unsetenv(wallVar)
	switch act {
	case "":
		return
	case "attempts":
		makeAttempts(job)
	case "keeper":
		keep(job)
	case "world":
		makeWorld(job)
	case "orphan":
		makeOrphan(job)
	case "listens":
		listens(job)
	case "joins":
		fmt.Println(outcomeOf(joinsSocket(unix.SOCK_STREAM, func(target) string { return job }), target{In: "/tmp"}))
	case "ids":
		fmt.Println(os.Geteuid(), effective(0))
	case "group":
		shareGroup(job)
	case "machine":
		enterMachine(job)
	case "outer":
		outerProc(job)
	case "dials":
		dials()
	case "network":
		makeNetworkAttempts()
	case "network-machine":
		makeMachine()
	case "look":
		_ = json.NewEncoder(os.Stdout).Encode(Look(context.Background()))
	default:
		fmt.Println("no such act:", act)
	}
	os.Exit(0)
}

// again is a command that runs this test binary for another act.
func again(act string, job any) *exec.Cmd {
	text, err := json.Marshal(job)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", wallVar+"="+act+" "+string(text))
	return cmd
}

// makeAttempts tries every attempt on every target, and then its twin.
func makeAttempts(text string) {
	var job wallJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		panic(err)
	}
	if job.Own.Inside {
		own, end, err := startKeeper(keeperJob{Dir: job.Own.Base, Runtime: filepath.Join(job.Own.Base, "runtime")})
		if err != nil {
			fmt.Fprintln(os.Stderr, "a keeper inside:", err)
			os.Exit(1)
		}
		defer end()
		job.Own.Keeper, job.Own.Parent, job.Own.User = own, own.PID, os.Getuid()
	}
	out := json.NewEncoder(os.Stdout)
	for i, a := range wallAttempts() {
		r := wallResult{Name: a.name, Try: map[string]string{}}
		for kind, t := range job.Targets {
			if kind != absentKind && a.row != RowWrite && a.row != RowAttributes {
				continue // what is shown may be read
			}
			t.Parent = os.Getppid()
			r.Try[kind] = outcomeOf(a.try, t.number(i))
		}
		if job.Own.Inside {
			twin := a.twin
			if twin == nil {
				twin = a.try
			}
			r.Twin = outcomeOf(twin, job.Own.number(i))
		}
		_ = out.Encode(r)
	}
}

// number gives an attempt a file and a folder of its own.
func (t target) number(i int) target {
	t.File, t.Dir, t.Name = filepath.Join(t.Base, fmt.Sprintf("file-%03d", i)), filepath.Join(t.Base, fmt.Sprintf("folder-%03d", i)),
		filepath.Join(t.Base, fmt.Sprintf("new-%03d", i))
	t.In = filepath.Join(t.In, fmt.Sprintf("try-%03d", i), filepath.Base(t.Base))
	return t
}

// hangAfter bounds one attempt. What hangs has not worked.
const hangAfter = time.Minute

// outcomeOf makes an attempt on a thread of its own, which ends with it: with it go its root folder, its rights and its
// namespaces.
func outcomeOf(try act, t target) string {
	done := make(chan string, 1)
	go func() {
		runtime.LockOSThread()
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Sprint("panic: ", r)
			}
		}()
		if err := errors.Join(unix.Unshare(unix.CLONE_FS), os.MkdirAll(t.In, 0o700)); err != nil {
			done <- "before it: " + err.Error()
			return
		}
		if err := try(t); err != nil {
			done <- strings.ReplaceAll(err.Error(), "\n", "; ")
			return
		}
		done <- worked
	}()
	select {
	case r := <-done:
		return r
	case <-time.After(hangAfter):
		return "it hangs"
	}
}

// raw is a system call with words as they come: strings and bytes are handed over by address.
func raw(nr int, args ...any) (int, error) {
	var a [6]uintptr
	var kept []any
	for i, arg := range args {
		switch v := arg.(type) {
		case int:
			a[i] = uintptr(v)
		case uintptr:
			a[i] = v
		case string:
			p, err := unix.BytePtrFromString(v)
			if err != nil {
				return 0, err
			}
			kept = append(kept, p)
			a[i] = uintptr(unsafe.Pointer(p))
		case []byte:
			kept = append(kept, &v[0])
			a[i] = uintptr(unsafe.Pointer(&v[0]))
		case unsafe.Pointer:
			kept = append(kept, v)
			a[i] = uintptr(v)
		default:
			panic(fmt.Sprintf("%T is no word of a system call", arg))
		}
	}
	r, _, errno := unix.Syscall6(uintptr(nr), a[0], a[1], a[2], a[3], a[4], a[5])
	runtime.KeepAlive(kept)
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

// sys is raw without its result.
func sys(nr int, args ...any) error {
	_, err := raw(nr, args...)
	return err
}

// opens is raw of a call that returns a descriptor.
func opens(nr int, args ...any) error {
	fd, err := raw(nr, args...)
	return closed(fd, err)
}

// rights reports whether a call got beyond the check of rights; then it failed because it was meant to.
func rights(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EROFS) {
		return err
	}
	return nil
}

// at is the folder that paths of *at calls start from.
const at = unix.AT_FDCWD

// mine makes a file in the writable folder.
func (t target) mine() string {
	p := filepath.Join(t.In, "mine")
	if err := os.WriteFile(p, []byte("mine\n"), 0o600); err != nil {
		panic(err)
	}
	return p
}

// link makes a link in the writable folder.
func (t target) link(to string) string {
	p := filepath.Join(t.In, "link")
	if err := os.Symlink(to, p); err != nil {
		panic(err)
	}
	return p
}

// proc is a path below the attacked process's folder.
func (t target) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", t.Keeper.PID, name) }

// inFile and inDir use the attacked file or folder when it is open.
func inFile(flags int, use func(t target, fd int) error) act {
	return func(t target) error {
		return throughOpen(t.File, flags, func(fd int) error { return use(t, fd) })
	}
}

func inDir(use func(t target, fd int) error) act {
	return func(t target) error {
		return throughOpen(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, func(fd int) error { return use(t, fd) })
	}
}

func fdPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// script runs a shell with the attacked file, its folder, a new name and the writable folder as $1 to $4.
func script(text string) act {
	return func(t target) error {
		cmd := exec.Command("/bin/sh", "-c", "set -e; "+text, "sh", t.File, t.Dir, t.Name, t.In)
		cmd.Dir = t.In
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
		}
		return nil
	}
}

// cloned runs this binary in new namespaces; what it does there is in [makeWorld].
func cloned(flags uintptr, job worldJob) error {
	cmd := again("world", job)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if flags&unix.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if said := strings.TrimSpace(string(out)); said != worked {
		return errors.New(said)
	}
	return nil
}
