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
	"testing"

	"golang.org/x/sys/unix"
)

// madeMachine is a machine with less than this one: what a container, a service or an administrator closes.
type madeMachine struct {
	Cover    []string `json:"cover"`     // folders that are covered by an empty one
	ReadOnly []string `json:"read_only"` // folders that cannot be written
	Mark     string   `json:"mark"`      // a file that says which container this is
	Limit    string   `json:"limit"`     // of sysctl, which is set to 0
	Filter   bool     `json:"filter"`    // a filter of system calls refuses new namespaces
	Less     bool     `json:"less"`      // root has no CAP_SYS_ADMIN
	User     int      `json:"user"`      // as whom the program runs
	Argv     []string `json:"argv"`
	Env      []string `json:"env"`
}

// anotherUser is no user of the machine.
const anotherUser = 54321

// command starts a program in a made machine, which only root can make. The program is a copy of this test binary, in a folder
// that every user can read.
func (m madeMachine) command(t *testing.T, act string, argv ...string) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make a machine with less")
	}
	dir, err := os.MkdirTemp("", "fairlead-machine-") //nolint:usetesting // another user cannot enter the test's own folder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	exe, tmp := filepath.Join(dir, "sandbox.test"), filepath.Join(dir, "tmp")
	if err := errors.Join(copySelf(exe), os.Chmod(dir, 0o755), os.Mkdir(tmp, 0o755), os.Chown(tmp, m.User, m.User)); err != nil {
		t.Fatal(err)
	}
	m.Argv = append([]string{exe}, argv...)
	m.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tmp, "TMPDIR=" + tmp, "GORACE=atexit_sleep_ms=0", wallVar + "=" + act}
	cmd := again("machine", m)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Unshareflags: unix.CLONE_NEWNS}
	if m.Limit != "" { // it is the namespace's own
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{
			{ContainerID: 0, HostID: 0, Size: 1},
			{ContainerID: anotherUser, HostID: anotherUser, Size: 1},
		}
		cmd.SysProcAttr.GidMappings, cmd.SysProcAttr.GidMappingsEnableSetgroups = cmd.SysProcAttr.UidMappings, true
	}
	return cmd
}

// enterMachine makes the machine around this process, and becomes the program.
func enterMachine(text string) {
	var m madeMachine
	runtime.LockOSThread()
	err := errors.Join(json.Unmarshal([]byte(text), &m), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	for _, at := range m.Cover {
		err = errors.Join(err, unix.Mount("none", at, "tmpfs", unix.MS_RDONLY, ""))
	}
	for _, at := range m.ReadOnly {
		err = errors.Join(err, unix.Mount(at, at, "", unix.MS_BIND, ""),
			unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	}
	if m.Mark != "" {
		err = errors.Join(err, unix.Mount("none", filepath.Dir(m.Mark), "tmpfs", 0, "mode=755"), os.WriteFile(m.Mark, nil, 0o600))
	}
	if m.Limit != "" {
		err = errors.Join(err, os.WriteFile("/proc/sys/"+m.Limit, []byte("0"), 0))
	}
	if m.User != 0 {
		err = errors.Join(err, syscall.Setgroups(nil), syscall.Setgid(m.User), syscall.Setuid(m.User))
	}
	if m.Less {
		err = errors.Join(err, unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0)) // the execution takes it from the others
	}
	if m.Filter {
		err = errors.Join(err, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
			install(box{Attributes: true, Terminals: true, Sockets: true}.program(abiApart, viewCalls()...)))
	}
	if err == nil {
		err = syscall.Exec(m.Argv[0], m.Argv, m.Env)
	}
	fmt.Println(err)
	os.Exit(1)
}

// TestLookWhere tries machines that close something: what walls are made of there, what they do not hold, and why.
func TestLookWhere(t *testing.T) {
	here := Abilities()
	if here.By != ByNamespaces || !here.Processes {
		t.Skipf("namespaces are closed here: %v", here.Why)
	}
	if len(here.Why) != 0 {
		t.Errorf("nothing is closed here, and it is said: %+v", here.Why)
	}
	filtered, advice := []Cause{CauseUnknown, CauseUnknown}, "ask the administrator"
	if containerOf("/") != NoContainer {
		filtered, advice = []Cause{CauseSeccomp}, "its default plus clone"
	}
	ordinary := func(m madeMachine) madeMachine {
		m.User = anotherUser
		return m
	}
	for name, tt := range map[string]struct {
		m         madeMachine
		by        Mechanism
		processes bool
		causes    []Cause
		help      string // in what is advised first
	}{
		"all is open": {ordinary(madeMachine{}), ByNamespaces, true, nil, ""},
		"no user namespaces": {
			ordinary(madeMachine{Limit: "user/max_user_namespaces"}), ByLandlock, false,
			[]Cause{CauseSetting},
			"sudo sysctl -w user.max_user_namespaces=15000",
		},
		"no namespaces of mounts": {
			ordinary(madeMachine{Limit: "user/max_mnt_namespaces"}), ByLandlock, false,
			[]Cause{CauseSetting},
			"user.max_mnt_namespaces=15000",
		},
		"none of processes": {
			ordinary(madeMachine{Limit: "user/max_pid_namespaces"}), ByNamespaces, false,
			[]Cause{CauseSetting},
			"user.max_pid_namespaces=15000",
		},
		"a covered /proc": {
			ordinary(madeMachine{Cover: []string{"/proc/sys"}}), ByNamespaces, false,
			[]Cause{CauseMaskedProc},
			"leave it so",
		},
		"a read-only /proc/sys": {
			ordinary(madeMachine{Cover: []string{"/proc/irq"}, ReadOnly: []string{"/proc/sys"}}), ByNamespaces,
			false,
			[]Cause{CauseMaskedProc},
			"leave it so",
		},
		"a covered /proc for root": {madeMachine{Cover: []string{"/proc/sys"}}, ByNamespaces, true, nil, ""},
		"root without rights":      {madeMachine{Less: true}, ByNamespaces, true, []Cause{CauseRights}, "as an ordinary user"},
		"root in a container": {
			madeMachine{Less: true, Cover: []string{"/proc/irq"}},
			ByNamespaces, false,
			[]Cause{CauseRights, CauseMaskedProc},
			"as an ordinary user",
		},
		"a filter": {ordinary(madeMachine{Filter: true}), ByLandlock, false, filtered, advice},
		"a container with a filter": {
			ordinary(madeMachine{Filter: true, Mark: "/run/.containerenv"}), ByLandlock, false,
			[]Cause{CauseSeccomp},
			"its default plus clone",
		},
		"a container's /proc": {
			ordinary(madeMachine{Cover: []string{"/proc/sys"}, Mark: "/run/.containerenv"}), ByNamespaces, false,
			[]Cause{CauseMaskedProc},
			"leave it so",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := tt.m.command(t, "look").CombinedOutput()
			var got Ability
			if err != nil || json.Unmarshal(out, &got) != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if _, why := Supported(); why != "" && tt.by == ByLandlock {
				tt.by, tt.causes = ByNothing, append(tt.causes, CauseLandlock)
			}
			var causes []Cause
			for _, r := range got.Why {
				causes = append(causes, r.Cause)
			}
			if got.By != tt.by || got.Processes != tt.processes || !slices.Equal(causes, tt.causes) {
				t.Errorf("%+v; want %s, processes %v, causes %v", got, tt.by, tt.processes, tt.causes)
			}
			if len(got.Why) > 0 && !strings.Contains(got.Why[0].Do[0], tt.help) {
				t.Errorf("%q does not help: it lacks %q", got.Why[0].Do, tt.help)
			}
			if got.By == ByNamespaces && slices.Contains(got.Unheld, RowProcess) == tt.processes {
				t.Errorf("not held are %v", got.Unheld)
			}
		})
	}
}

// outerProc makes a view with the /proc of outside, and looks at a process outside from it.
func outerProc(string) {
	a := Look(context.Background())
	pid := os.Getpid()
	v := a.Apply(View{Canaries: Canaries{PID: pid}, Report: 3})
	var words []string
	for _, name := range []string{
		"environ", "maps", "mem", "auxv", "stack", "io", "root/etc/passwd", "cwd/.", "exe", "fd/0", "ns/mnt",
		"task/" + fmt.Sprint(pid) + "/environ", "cmdline", "status", "comm",
	} {
		words = append(words,
			fmt.Sprintf("{ head -c 1 /proc/%d/%s || ls /proc/%d/%s/; } > /dev/null 2>&1 && echo seen %s", pid, name, pid, name, name))
	}
	words = append(words, fmt.Sprintf("kill -0 %d 2>/dev/null && echo seen kill", pid),
		"head -c 1 /proc/self/environ > /dev/null && echo own environ", "ls /proc/self/root/ > /dev/null && echo own root",
		"{ true >> /proc/sys/kernel/core_pattern; } 2>/dev/null && echo seen sys; { true >> /proc/sysrq-trigger; } 2>/dev/null && ! test /dev/null -ef /proc/sysrq-trigger && echo seen sysrq; true")
	argv, err := WrapView(os.Args[0], []string{"sh", "-c", strings.Join(words, "\n")}, v)
	said, theirs, err2 := os.Pipe()
	if err := errors.Join(err, err2); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr, cmd.ExtraFiles = v.Attr(), []*os.File{theirs}
	out, err := cmd.CombinedOutput()
	theirs.Close()
	var started Started
	_ = json.NewDecoder(said).Decode(&started)
	fmt.Printf("%sby %s, not held %v, %v\n", out, a.By, started.Unheld, err)
}

// TestOuterProc looks at what is seen of a process outside where no fresh /proc can be mounted: its words and numbers, not its
// memory, files and folders; and the row is named. Its own are seen.
func TestOuterProc(t *testing.T) {
	need(t)
	if a := Abilities(); a.By != ByNamespaces {
		t.Skipf("there is no view here: %v", a.Why)
	}
	for name, tt := range map[string]struct {
		m    madeMachine
		want string
	}{
		"a container's": {
			madeMachine{User: anotherUser, Cover: []string{"/proc/irq"}, ReadOnly: []string{"/proc/sys"}},
			"seen cmdline\nseen status\nseen comm\nown environ\nown root\nby namespaces, not held [process git network], <nil>\n",
		},
		"a container's, as root": {
			madeMachine{Less: true, Cover: []string{"/proc/irq"}},
			"seen cmdline\nseen status\nseen comm\nown environ\nown root\nby namespaces, not held [process git root network], <nil>\n",
		},
		"one that is whole": {madeMachine{User: anotherUser}, "own environ\nown root\nby namespaces, not held [git network], <nil>\n"},
	} {
		out, err := tt.m.command(t, "outer").CombinedOutput()
		if err != nil || string(out) != tt.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, out, tt.want)
		}
	}
}
