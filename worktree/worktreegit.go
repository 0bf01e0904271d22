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

	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	gitAskMax    = 30 * time.Second // a question to git, however large the repository
	GitWorkMax   = 10 * time.Minute // a checkout, or keeping a gigabyte, on a slow disk
	gitOutputMax = 64 << 20         // the list of a million files; more is no list that we asked for
	gitErrorMax  = 2 << 10          // of what git complains, quoted in errors
	gitGoMax     = 2 * time.Second  // for git's own children to go, once it was told to
)

// Git runs the program git in one folder, without prompts, hooks or the caller's environment, and
// with a time limit.
type Git struct{ Dir string }

// gitFault is what git said no with.
type gitFault struct {
	What string // the command, without its values
	Said string // git's own words
	Code int    // its exit code
}

func (f *gitFault) Error() string {
	return fmt.Sprintf("git %s: %s", f.What, f.Said)
}

// gitEnvKept are the only words of git's environment that we pass on: where people have their
// settings. GIT_DIR and its like would turn a command to another repository, as they do in a
// daemon that was started by a hook.
var gitEnvKept = []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"}

// gitSettings hold for every command: what a repository's own settings could put in the way,
// and that what git has written is on the disk before anything else is deleted.
var gitSettings = []string{
	"-c", "core.fsync=all",
	"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "gc.auto=0",
	"-c", "maintenance.auto=false", "-c", "worktree.guessRemote=false", "-c", "submodule.recurse=false",
}

func gitEnv(dir string) []string {
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(gitEnvKept, name)
	})
	return append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS=true", "GIT_SSH_COMMAND=ssh -o BatchMode=yes",
		"GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1", "PWD="+dir)
}

// inside is git in a worktree: should that not be one any more, then git is not to climb up
// and find the repository around it.
func (g Git) Inside() []string {
	return []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(g.Dir)}
}

// ask runs a command that is quick, and gives what it prints.
func (g Git) Ask(ctx context.Context, args ...string) (string, error) {
	return g.Run(ctx, gitAskMax, nil, nil, args...)
}

// askIn is ask in a worktree, with more words in the environment.
func (g Git) AskIn(ctx context.Context, env []string, args ...string) (string, error) {
	return g.Run(ctx, gitAskMax, append(g.Inside(), env...), nil, args...)
}

// worktree runs a command that changes which worktrees there are. They go one at a time: git
// looks at all of them then, and fails over one that is half made.
func (g Git) Worktree(ctx context.Context, args ...string) error {
	release, err := TakeCheckout(ctx, "git worktree")
	if err != nil {
		return err
	}
	defer release()
	_, err = g.Run(ctx, GitWorkMax, nil, nil, append([]string{"worktree"}, args...)...)
	return err
}

// run runs git. The error is a *gitFault where it ran and said no. feed writes what git reads.
func (g Git) Run(ctx context.Context, most time.Duration, env []string, feed func(io.Writer) error, args ...string) (string, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return "", errors.New("git is not installed here, and this needs it; install git")
	}
	ctx, stop := context.WithTimeout(ctx, most)
	defer stop()
	cmd := exec.CommandContext(ctx, path, append(slices.Clone(gitSettings), args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = g.Dir, append(gitEnv(g.Dir), env...), gitGoMax
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // filters that git runs end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	said, complained := file.Capped{Max: gitOutputMax}, file.Capped{Max: gitErrorMax}
	cmd.Stdout, cmd.Stderr = &said, &complained
	fed, err := g.start(cmd, feed)
	if err == nil {
		if ferr := <-fed; ferr != nil {
			_ = cmd.Cancel() // what it was told is not whole
			err = ferr
		}
		err = first(err, cmd.Wait())
	}
	return said.String(), g.fault(ctx, err, said.Cut, &complained, args)
}

// first is the fault that the other one follows from: a broken pipe is git's end, seen from here.
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

func (g Git) fault(ctx context.Context, err error, cut bool, complained *file.Capped, args []string) error {
	what := args[0]
	if what == "worktree" {
		what += " " + args[1]
	}
	var exit *exec.ExitError
	switch {
	case err == nil && cut:
		return fmt.Errorf("git %s: it printed more than %d bytes", what, gitOutputMax)
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

// gitSaidNo says whether git ran to its end, and its answer was no.
func GitSaidNo(err error) bool {
	var fault *gitFault
	return errors.As(err, &fault) && fault.Code > 0 // below: it was killed
}

// GitHasNone says whether git was asked quietly for something, and there is none: not that it
// could not look.
func GitHasNone(err error) bool {
	var fault *gitFault
	return errors.As(err, &fault) && fault.Code == 1
}

// Zeroed takes a list apart that git printed with -z.
func Zeroed(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
}
