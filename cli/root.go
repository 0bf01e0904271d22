package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/version"
	"github.com/fairlead-dev/fairlead/workspace"
)

// App is what every command needs.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Dir      string // the workspace: --dir, or found from the current folder (place)
	placed   bool   // dir is settled
	JSON     bool
	Verbose  bool   // --verbose: details that people rarely need
	at       string // --at: the moment that a command shows; empty: now
}

// changeMost is how long an engine host may take from one of its parts to the other, as leader and as host.
const changeMost = 10 * time.Second

// Dial finds the daemon of the repository. That of an engine host answers nothing while it begins or ceases to lead, which its
// lock shows.
func (a *App) Dial() (*apiclient.Client, error) {
	if err := a.Place(nil); err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		client, err := apiclient.Dial(a.Dir)
		if none := (*apiclient.NoDaemon)(nil); !errors.As(err, &none) || time.Since(began) > changeMost || !a.clustered() {
			return client, err
		}
		if free, ferr := workspace.Free(a.Dir); free || ferr != nil || Pause(context.Background(), DownPoll) != nil {
			return client, err
		}
	}
}

// clustered reports whether the repository belongs to a team of several hosts.
func (a *App) clustered() bool { return Exists(filepath.Join(a.Dir, ".fairlead", "cluster")) }

// Load reads the configuration. Its error says how to make one if there is none.
func (a *App) Load() (*config.Config, error) {
	if err := a.Place(nil); err != nil {
		return nil, err
	}
	conf, err := config.Load(a.Dir, os.LookupEnv)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no fairlead.yaml in %s; make one with `fairlead init`, name another folder with --dir, or try `fairlead demo` first", a.Dir)
	}
	return conf, err
}

// Tty says whether a stream is a terminal.
func Tty(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a descriptor fits an int
}

// LoadOrNone reads the configuration; without a file it returns a team without agents.
func (a *App) LoadOrNone() (*config.Config, error) {
	if Exists(filepath.Join(a.Dir, config.FileName)) {
		return a.Load()
	}
	return config.Parse(config.FileName, a.Dir, []byte("version: 1\nagents: {}\n"), os.LookupEnv)
}

// MaybeConfig reads fairlead.yaml; it returns nil if there is none.
func (a *App) MaybeConfig() (*config.Config, error) {
	conf, err := config.Load(a.Dir, os.LookupEnv)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return conf, err
}

// Logger writes for people on a terminal and in key=value form elsewhere.
func (a *App) Logger(verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	if Tty(a.Err) {
		return slog.New(tint.NewTextHandler(a.Err, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: Colourless()}))
	}
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
}

// PrintVersion prints the version of this program.
func (a *App) PrintVersion() error {
	return a.Say(map[string]string{"version": version.String(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}, "%s", version.Line())
}

const answerBytesMax = 4 << 10 // of the line with yes or no

// Confirm asks a person at a terminal. The error of a no is nothing; that of another input also says how to do
// without the question.
func (a *App) Confirm(question, nothing, how string) error {
	if !Tty(a.In) {
		return &Coded{Code: ExitUsage, Err: errors.New(nothing + ": " + how)}
	}
	fmt.Fprint(a.Out, Plain(question)+" [y/N] ")
	line, err := bufio.NewReader(io.LimitReader(a.In, answerBytesMax)).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil || answer != "y" && answer != "yes" {
		return &Coded{Code: ExitCancelled, Err: errors.New(nothing)}
	}
	return nil
}

// SpokenMost is the maximum size of a message in bytes; the daemon has the same limit.
const SpokenMost = 128 << 10

// Spoken returns the text of a command line's words.
func (a *App) Spoken(words []string) (string, error) {
	text := strings.Join(words, " ")
	if len(words) == 1 && words[0] == "-" {
		read, err := io.ReadAll(io.LimitReader(a.In, SpokenMost+2)) // the last line's end is not part of the text
		if err != nil {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		text = strings.TrimSuffix(string(read), "\n")
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", errors.New("the text is empty; give some words, or - to read standard input")
	case len(text) > SpokenMost:
		return "", fmt.Errorf("the text has more than %d KiB; put it into a file of the repository and name it", SpokenMost>>10)
	case strings.ToValidUTF8(text, "") != text:
		return "", errors.New("the text is not UTF-8; convert it first")
	}
	return text, nil
}
