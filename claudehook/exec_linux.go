package claudehook

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fairlead-dev/fairlead/policy"
	"github.com/fairlead-dev/fairlead/sandbox"
)

// ConfineVerb is the argument after the program's name that makes it run a command in the sandbox.
const ConfineVerb = "exec"

// confineArgs are the arguments of Confine.
type confineArgs struct {
	programs []string // more that may be executed
	network  bool
	not      string // a folder whose programs do not count
	command  string
}

// Confine runs one shell command of MAIN in the kernel's sandbox: it may read everything, write only a
// temporary folder of its own, and execute only programs that gather information. args are `[--program NAME]…
// [--network] --not DIR -- COMMAND`. The folder in which the command ends is written to descriptor 3, if it is
// open. The result is the command's exit code; 126 if there is no sandbox, and then nothing was run.
func Confine(args []string, errs io.Writer) int {
	code, err := confine(args)
	if err != nil {
		fmt.Fprintf(errs, "fairlead: run the command in the sandbox: %v; nothing was run\n", err)
		return sandbox.CannotSandbox
	}
	if code > 1 && code <= sandbox.NoProgram {
		fmt.Fprintln(errs, "fairlead: MAIN's commands can read but not write, and start only programs that gather information; for anything else delegate to an agent")
	}
	return code
}

func parseConfine(args []string) (a confineArgs, err error) {
	for i := 0; i < len(args); i++ {
		switch value := i+1 < len(args); {
		case args[i] == "--" && i == len(args)-2:
			a.command = args[i+1]
			return a, nil
		case args[i] == "--program" && value:
			i++
			a.programs = append(a.programs, args[i])
		case args[i] == "--not" && value:
			i++
			a.not = args[i]
		case args[i] == "--network":
			a.network = true
		default:
			return a, fmt.Errorf("%q is not understood; write [--program NAME] [--network] [--not DIR] -- COMMAND", args[i])
		}
	}
	return a, errors.New("there is no command; write [--program NAME] [--network] [--not DIR] -- COMMAND")
}

// inShell runs the command that is its first argument, and notes the folder in which it ends.
const inShell = `eval "$1"; fairlead_code=$?; pwd -P > "$2"; exit $fairlead_code`

func confine(args []string) (code int, err error) {
	a, err := parseConfine(args)
	if err != nil {
		return 0, err
	}
	temp, err := os.MkdirTemp("", "fairlead-command-")
	if err != nil {
		return 0, fmt.Errorf("make a temporary folder: %w", err)
	}
	defer os.RemoveAll(temp)
	if temp, err = filepath.EvalSymlinks(temp); err != nil {
		return 0, fmt.Errorf("find the temporary folder: %w", err)
	}
	shell, err := shellOfParent()
	if err != nil {
		return 0, err
	}
	programs := append([]string{shell}, a.programs...)
	for _, name := range policy.GatheringPrograms() {
		if strings.Contains(a.command, name) { // the fewer, the faster it starts
			programs = append(programs, name)
		}
	}
	programs = append(programs, policy.LoadingPrograms()...)
	box := sandbox.Box{Write: []string{temp}, Execute: sandbox.Programs(programs, []string{a.not}), Alone: !a.network}
	ended := filepath.Join(temp, "folder")
	cmd := exec.Command(shell, "-c", inShell, "sh", a.command, ended)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = confinedEnv(os.Environ(), temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var exit *exec.ExitError
	switch err := sandbox.Run(cmd, box); {
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return 128 + int(s.Signal()), nil
		}
		return 1, nil
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		return 0, err
	}
	handBack(ended)
	return code, nil
}

// handBack tells the caller's shell where the command ended.
func handBack(file string) {
	const folderBytesMax = 4096 // the longest path
	f, err := os.Open(file)
	if err != nil {
		return // the command ended its shell
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, folderBytesMax+1))
	dir := strings.TrimSuffix(string(text), "\n")
	if err != nil || len(text) > folderBytesMax || !filepath.IsAbs(dir) {
		return
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return
	}
	if to := os.NewFile(3, "folder"); to != nil {
		_, _ = io.WriteString(to, dir) // without a reader nothing is handed back
		_ = to.Close()
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
