package confine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/sandbox"
)

// inShell runs the command that is its first argument, explains a failure with the second, and hands back the folder in
// which the command ends. The command itself does not get descriptor 3: a process that it leaves behind would hold it open.
const inShell = `eval "$1" 3>&-
fairlead_code=$?
[ $fairlead_code -lt 2 ] || [ $fairlead_code -gt 127 ] || printf '%s\n' "$2" >&2
{ pwd -P >&3; } 2>/dev/null
exit $fairlead_code`

const hint = "fairlead: MAIN's commands can read but not write, and start only programs that gather information; for anything else delegate to an agent"

// handBack is the descriptor to which the folder is written.
const handBack = 3

func run(c Command) error {
	temp, err := makeTemp()
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	shell, err := shellOfParent()
	if err != nil {
		return err
	}
	box := sandbox.Box{Write: []string{temp}, Execute: sandbox.Programs(append([]string{shell}, c.Programs...), []string{c.Not}), Alone: !c.Network}
	argv := []string{shell, "-c", inShell, "sh", c.Text, hint}
	if c.Stays { // the shell can become the last program of the command
		argv = []string{shell, "-c", c.Text, "sh"}
	}
	var pass []int
	if st := (unix.Stat_t{}); !c.Stays && unix.Fstat(handBack, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
		pass = append(pass, handBack)
	}
	err = sandbox.Become(argv, confinedEnv(os.Environ(), temp), box, pass...)
	_ = os.Remove(temp) // what cannot be removed is removed by Sweep
	return err
}

// tempParent returns the folder of all temporary folders of this user's commands, or an error if it is not this user's.
func tempParent() (string, error) {
	dir, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "fairlead-commands-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return "", err
	}
	if st.Mode&(unix.S_IFMT|0o077) != unix.S_IFDIR || int(st.Uid) != os.Getuid() {
		return "", fmt.Errorf("%s is not a folder of this user alone; remove it, or set TMPDIR", dir)
	}
	return dir, nil
}

// tempName begins the name of a command's folder: its process, and the namespace in which that number holds.
func tempName(pid int) (string, error) {
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s-%d-", strings.Trim(namespace, "pid:[]"), pid), nil
}

func makeTemp() (string, error) {
	parent, err := tempParent()
	if err != nil {
		return "", err
	}
	name, err := tempName(os.Getpid())
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, name)
}

// Sweep removes the temporary folders of commands that have ended. A command does not do it, because it should start fast.
func Sweep() {
	parent, err := tempParent()
	if err != nil {
		return // the next command reports it
	}
	all, _ := os.ReadDir(parent) // what cannot be read stays
	for _, e := range all {
		_, rest, _ := strings.Cut(e.Name(), "-")
		number, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(number)
		if err != nil || pid <= 0 {
			continue
		}
		if name, err := tempName(pid); err != nil || !strings.HasPrefix(e.Name(), name) || unix.Kill(pid, 0) != unix.ESRCH {
			continue
		}
		_ = os.RemoveAll(filepath.Join(parent, e.Name())) // what cannot be removed is tried again
	}
}

// shellOfParent is the shell that runs this program, because the command is written for it; or else sh.
func shellOfParent() (string, error) {
	if parent, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid())); err == nil {
		switch filepath.Base(parent) {
		case "bash", "zsh", "sh", "dash", "ksh":
			return parent, nil
		}
	}
	for _, name := range []string{"bash", "sh"} {
		if p, err := exec.LookPath(name); err == nil && filepath.IsAbs(p) {
			return p, nil
		}
	}
	return "", errors.New("there is no shell in PATH")
}

// confinedEnv is the environment of a command: without what makes a shell read a file at its start, and with
// settings that keep git from programs that a repository names, and from fetching.
func confinedEnv(env []string, temp string) []string {
	out := make([]string, 0, len(env)+16)
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case name == "BASH_ENV", name == "ENV", name == "TMPDIR", strings.HasPrefix(name, "GIT_CONFIG"), strings.HasPrefix(name, "LD_"):
		default:
			out = append(out, e)
		}
	}
	out = append(out, "TMPDIR="+temp, "PAGER=cat", "GIT_PAGER=cat", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0")
	pins := []string{"core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "diff.external=", "safe.bareRepository=explicit", "log.showSignature=false"}
	for i, pin := range pins {
		key, value, _ := strings.Cut(pin, "=")
		out = append(out, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value))
	}
	return append(out, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(pins)))
}
