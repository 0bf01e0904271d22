package confine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

// inShell runs the command that is its first argument, explains a failure with the second, and hands back the folder in
// which the command ends. The command itself does not get descriptor 3: a process that it leaves behind would hold it open.
const inShell = `eval "$1" 3>&-
fairlead_code=$?
[ $fairlead_code -lt 2 ] || [ $fairlead_code -gt 127 ] || printf '%s\n' "$2" >&2
{ pwd -P >&3; } 2>/dev/null
exit $fairlead_code`

const hint = "fairlead: MAIN's commands can read but not write, and start only programs that gather information; for anything else delegate to an agent"

const agentHint = "fairlead: this command runs in a view of the machine: it can write in the project, but not in .claude and .git, and nowhere else"

// handBack is the descriptor to which the folder is written.
const handBack = 3

func run(c Command) error {
	shell, err := shellOfParent()
	if err != nil {
		return err
	}
	argv := []string{shell, "-c", inShell, "sh", c.Text, hint}
	if c.Agent {
		argv[5] = agentHint
	}
	if c.Stays { // the shell can become the last program of the command
		argv = []string{shell, "-c", c.Text, "sh"}
	}
	pass := 0
	if st := (unix.Stat_t{}); !c.Stays && unix.Fstat(handBack, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
		pass = handBack
	}
	return c.inView(argv, pass)
}

// inView runs a command in a view, and ends this process with its exit code. It returns if it was not started. The best is tried first,
// because a trial costs as much as a command.
func (c Command) inView(argv []string, pass int) (err error) {
	own := ""
	if c.Agent || slices.Contains(c.Programs, "fairlead") { // any other command of MAIN has its home folder in memory
		if own, err = makeTemp(); err != nil {
			return fmt.Errorf("make a temporary folder: %w", err)
		}
		defer func() { _ = os.RemoveAll(own) }() // what cannot be removed is removed by Sweep
	}
	for _, how := range []sandbox.Ability{
		{By: sandbox.ByNamespaces, Users: os.Geteuid() != 0, Processes: true},
		{By: sandbox.ByNamespaces, Users: true},
	} {
		err = errors.Join(err, c.start(argv, own, pass, how))
	}
	if _, why := sandbox.Supported(); why != "" {
		return err
	}
	return c.become(argv, pass)
}

// view is what a command sees. MAIN's only reads, and gets what the programs that act for it read of the person.
func (c Command) view(argv []string, own string, by sandbox.Ability) (sandbox.View, []string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return sandbox.View{}, nil, err
	}
	project := c.Not
	if rel, err := filepath.Rel(project, dir); (err != nil || !filepath.IsLocal(rel)) && !c.Agent || project == "/" {
		project = dir // MAIN reads where it is; a folder to which an agent's command has gone is as writable as elsewhere
	}
	inMemory := own == ""
	if inMemory {
		own = "/nonexistent/own"
	}
	s := places.Session{
		Agent: cachesOf(c.Not), Argv: argv, Env: os.Environ(), Dir: project, Root: project, State: filepath.Dir(own), Own: own, Ability: by,
		Read: c.Reads, Needs: c.Writes, Hide: []string{filepath.Join(project, ".fairlead")}, ReadOnly: !c.Agent || project == "/",
		Brief:    !c.Agent,
		Canaries: sandbox.Canaries{PID: os.Getpid()},
	}
	if !c.Agent {
		s.Command = sandbox.Programs(append([]string{argv[0]}, c.Programs...), []string{c.Not})
		s.Read = append(s.Read, c.asks(project)...)
	}
	seen, err := places.Of(s)
	if err == nil && !inMemory {
		err = seen.Make()
	}
	if err != nil {
		return sandbox.View{}, nil, err
	}
	view, env := seen.View, seen.Env
	if inMemory {
		view.Home, view.Temp = "", ""
	}
	view.Dir, view.Required = dir, []sandbox.Row{sandbox.RowWrite}
	if !c.Agent {
		view.Execute, view.Alone = s.Command, !c.Network
		env = confinedEnv(env)
	}
	return view, env, nil
}

// cachesOf names the caches of a project's commands: what a command leaves in one is no other project's.
func cachesOf(project string) string {
	sum := sha256.Sum256([]byte(project))
	return "commands-" + hex.EncodeToString(sum[:8])
}

// asks are the files and folders of the person that programs read to answer: fairlead the journal, which needs no token, and those of
// a forge the login.
func (c Command) asks(project string) (there []string) {
	home, _ := os.UserHomeDir()
	config, state := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")),
		cmp.Or(os.Getenv("XDG_STATE_HOME"), filepath.Join(home, ".local", "state"))
	own := filepath.Join(project, ".fairlead")
	for name, reads := range map[string][]string{
		"gh":   {cmp.Or(os.Getenv("GH_CONFIG_DIR"), filepath.Join(config, "gh"))},
		"glab": {cmp.Or(os.Getenv("GLAB_CONFIG_DIR"), filepath.Join(config, "glab-cli"))},
		"fairlead": {
			filepath.Join(own, "journal.db"), filepath.Join(own, "journal.db-wal"), filepath.Join(own, "journal.db-archive"),
			filepath.Join(own, "search.db"), filepath.Join(own, "search.db-wal"), filepath.Join(own, "search.db-shm"),
			filepath.Join(own, "daemon.json"), filepath.Join(state, "fairlead"),
		},
	} {
		for _, p := range reads {
			if _, err := os.Stat(p); err == nil && filepath.IsAbs(p) && slices.Contains(c.Programs, name) {
				there = append(there, p)
			}
		}
	}
	return there
}

const (
	reportAt  = 4                     // the descriptor beside handBack
	leftAfter = 50 * time.Millisecond // without processes in it, a view ends in less than one
)

// start starts a command in a view of its own. It returns only if that failed.
func (c Command) start(argv []string, own string, pass int, by sandbox.Ability) error {
	view, env, err := c.view(argv, own, by)
	if err != nil {
		return err
	}
	var points *sandbox.Points // MAIN's view needs none
	if c.Agent {
		if points, err = sandbox.MakePoints(filepath.Dir(own), view); err != nil {
			return err
		}
		defer func() { _ = points.Remove() }() // nothing was started
	}
	view.Pass, view.Report = pass, reportAt
	var ends [2]int // with os.Pipe, and with os.StartProcess, other threads are woken: that takes longer than a view
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	said := os.NewFile(uintptr(ends[0]), "reports")
	defer said.Close()
	line, err := sandbox.WrapView("/proc/self/exe", argv, view)
	if err != nil {
		unix.Close(ends[1])
		return err
	}
	const none = ^uintptr(0)
	attr := &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2, none, uintptr(ends[1])}, Sys: view.Attr()}
	if pass > 0 {
		attr.Files[handBack] = handBack
	}
	for _, f := range points.Files() { // what the command leaves in the background goes on in the view
		attr.Files = append(attr.Files, f.Fd())
	}
	pid, err := syscall.ForkExec(line[0], line, attr)
	unix.Close(ends[1])
	if err != nil {
		return err
	}
	lines := json.NewDecoder(said)
	var started sandbox.Started
	if err := lines.Decode(&started); err != nil || started.Error != "" {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
		return fmt.Errorf("start it in a view: %s", cmp.Or(started.Error, fmt.Sprint(err)))
	}
	if name, err := tempName(pid); err == nil && own != "" {
		_ = os.Rename(own, filepath.Join(filepath.Dir(own), name+"view")) // it is needed as long as that process
	}
	var ended sandbox.Ended
	err = lines.Decode(&ended)
	if c.Agent {
		gone := make(chan struct{})
		go func() {
			_, _ = unix.Wait4(pid, nil, 0, nil)
			close(gone)
		}()
		select {
		case <-gone: // nothing is left in the view
			_ = points.Remove()
		case <-time.After(leftAfter): // what is left needs the folders; Sweep removes them
		}
	}
	code := sandbox.CannotSandbox
	if ws := syscall.WaitStatus(ended.Status); err == nil && ws.Signaled() {
		code = 128 + int(ws.Signal())
	} else if err == nil {
		code = ws.ExitStatus()
	}
	os.Exit(code)
	return nil
}

// become restricts this process by Landlock alone, and makes it the shell.
func (c Command) become(argv []string, pass int) error {
	own, err := makeTemp() // Sweep removes it
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	view, env, err := c.view(argv, own, sandbox.Ability{By: sandbox.ByLandlock})
	if err != nil {
		return err
	}
	view.Pass = pass
	line, err := sandbox.WrapView("/proc/self/exe", argv, view)
	if err != nil {
		return err
	}
	return syscall.Exec(line[0], line, env)
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
	_ = sandbox.RemovePoints(parent) // what cannot be removed is tried again
	all, _ := os.ReadDir(parent)     // what cannot be read stays
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
// settings that keep git from programs that a repository names, and from fetching. diff.external is not among them: git 2.39
// runs an empty one, so no value means none. What a configuration names there cannot be executed, like diff.NAME.command.
func confinedEnv(env []string) []string {
	out := make([]string, 0, len(env)+16)
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case name == "BASH_ENV", name == "ENV", name == "GIT_EXTERNAL_DIFF", strings.HasPrefix(name, "GIT_CONFIG"),
			strings.HasPrefix(name, "LD_"):
		default:
			out = append(out, e)
		}
	}
	out = append(out, "PAGER=cat", "GIT_PAGER=cat", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0")
	pins := []string{
		"safe.directory=*", "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat",
		"safe.bareRepository=explicit", "log.showSignature=false",
	}
	for i, pin := range pins {
		key, value, _ := strings.Cut(pin, "=")
		out = append(out, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value))
	}
	return append(out, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(pins)))
}
