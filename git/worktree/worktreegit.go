package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	gitAskMax    = 30 * time.Second // a query, also in a large repository
	GitWorkMax   = 10 * time.Minute // a checkout, or keeping a gigabyte, on a slow disk
	gitOutputMax = 64 << 20         // the list of a million files; a longer one was not requested
	gitErrorMax  = 2 << 10          // git's error output, quoted in errors
	gitGoMax     = 2 * time.Second  // for git's own children to end after it was stopped
)

// Git runs the git program in one folder, without prompts, hooks or the caller's environment, and
// with a time limit.
type Git struct {
	Dir string

	pipes, held []*os.File // descriptors of git, from 3 on, and others that are closed when it has started; it takes them
}

// Holding is git with one more descriptor of an open file. A lock of that file lasts until git and what it has started have ended, also if
// this process ends before them. It is for one command.
func (g Git) Holding(f *os.File) (Git, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return g, err
	}
	g.pipes = append(slices.Clip(g.pipes), os.NewFile(uintptr(fd), f.Name()))
	return g, nil
}

// gitFault is an error that git reported.
type gitFault struct {
	What string // the command, without its values
	Said string // git's own message
	Code int    // its exit code
}

func (f *gitFault) Error() string {
	return fmt.Sprintf("git %s: %s", f.What, f.Said)
}

// gitEnvKept are the only variables of the environment that are passed to git: those that locate
// people's settings. GIT_DIR and similar variables would redirect a command to another repository,
// for example in a daemon that a hook started.
var gitEnvKept = []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"}

// gitSettings apply to every command. They override settings of a repository that could interfere,
// and make git sync what it writes before anything else is deleted.
var gitSettings = []string{
	"-c", "core.fsync=all",
	"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "gc.auto=0",
	"-c", "maintenance.auto=false", "-c", "submodule.recurse=false", "-c", "log.showSignature=false", "-c", "merge.renormalize=false",
}

func gitEnv(dir string) []string {
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(gitEnvKept, name)
	})
	return append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS=true", "GIT_SSH_COMMAND=ssh -o BatchMode=yes",
		"GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1", "PWD="+dir)
}

// Inside returns settings for git in a clone: if the folder is no longer one, git must not search for a repository in its
// parents.
func (g Git) Inside() []string {
	return []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(g.Dir)}
}

// Ask runs a quick command and returns its output.
func (g Git) Ask(ctx context.Context, args ...string) (string, error) {
	return g.Run(ctx, gitAskMax, nil, nil, args...)
}

// AskIn is Ask in a clone, with further environment variables.
func (g Git) AskIn(ctx context.Context, env []string, args ...string) (string, error) {
	return g.Run(ctx, gitAskMax, append(g.Inside(), env...), nil, args...)
}

// Run runs git and returns its output. The error is a *gitFault if git ran and reported an error. feed writes git's input.
func (g Git) Run(ctx context.Context, most time.Duration, env []string, feed func(io.Writer) error, args ...string) (string, error) {
	said := file.Capped{Max: gitOutputMax}
	err := g.Pipe(ctx, most, env, feed, &said, args...)
	if err == nil && said.Cut {
		err = fmt.Errorf("git %s: it printed more than %d bytes", what(args), gitOutputMax)
	}
	return said.String(), err
}

// Pipe is Run with an output of any length.
func (g Git) Pipe(ctx context.Context, most time.Duration, env []string, feed func(io.Writer) error, to io.Writer, args ...string) error {
	path, err := exec.LookPath("git")
	if err != nil {
		return errors.New("git is not installed here, and this needs it; install git")
	}
	ctx, stop := context.WithTimeout(ctx, most)
	defer stop()
	cmd := exec.CommandContext(ctx, path, append(slices.Clone(gitSettings), args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = g.Dir, append(gitEnv(g.Dir), env...), gitGoMax
	cmd.ExtraFiles = g.pipes
	// Filters that git runs end with it. Without a terminal no program that it runs can ask a person for a password.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	complained := file.Capped{Max: gitErrorMax}
	cmd.Stdout, cmd.Stderr = to, &complained
	fed, err := g.start(cmd, feed)
	for _, f := range slices.Concat(g.pipes, g.held) { // their other sides see the end of git
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		select {
		case err = <-fed:
		case <-ctx.Done(): // the input may come from a connection that says nothing
		}
		if err != nil {
			_ = cmd.Cancel() // its input is incomplete
		}
		err = first(err, cmd.Wait())
	}
	return g.fault(ctx, err, &complained, args)
}

// first returns the error that caused the other one: a broken pipe is a consequence of git's end.
func first(fed, waited error) error {
	if fed != nil && !errors.Is(fed, syscall.EPIPE) {
		return fed
	}
	return waited
}

func (g Git) start(cmd *exec.Cmd, feed func(io.Writer) error) (<-chan error, error) {
	fed := make(chan error, 1)
	if feed == nil {
		fed <- nil
		return fed, cmd.Start()
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		err := feed(in)
		if err == nil {
			err = in.Close()
		}
		fed <- err
	}()
	return fed, nil
}

// what names a command in an error.
func what(args []string) string {
	for len(args) > 2 && args[0] == "-c" {
		args = args[2:]
	}
	return args[0]
}

func (g Git) fault(ctx context.Context, err error, complained *file.Capped, args []string) error {
	what := what(args)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("git %s took too long and was ended: %w", what, ctx.Err())
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		said := strings.TrimSpace(strings.TrimPrefix(complained.String(), "fatal: "))
		if said == "" {
			said = exit.Error()
		}
		return &gitFault{What: what, Said: strings.ReplaceAll(said, "\n", "; "), Code: exit.ExitCode()}
	default:
		return fmt.Errorf("git %s: %w", what, err)
	}
}

// GitSaidNo reports whether git ran to its end with an error.
func GitSaidNo(err error) bool {
	var fault *gitFault
	return errors.As(err, &fault) && fault.Code > 0 // otherwise it was killed
}

// GitHasNone reports whether git answered a quiet query with "not found", and not with an error.
func GitHasNone(err error) bool {
	var fault *gitFault
	return errors.As(err, &fault) && fault.Code == 1
}

// Zeroed splits a list that git printed with -z.
func Zeroed(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
}

// feed gives git a text to read.
func feed(text string) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := io.WriteString(to, text)
		return err
	}
}
