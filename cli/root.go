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
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/termtext"
	"github.com/fairlead-dev/fairlead/internal/version"
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
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a descriptor fits an int
}

// size is the size of a terminal.
func size(stream any) (width, height int, ok bool) {
	file, ok := stream.(interface{ Fd() uintptr })
	if !ok {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(file.Fd())) //nolint:gosec // a descriptor fits an int
	return width, height, err == nil
}

// Columns returns the width of the terminal to which output goes; 0: it is none, or says none.
func (a *App) Columns() int {
	width, _, _ := size(a.Out)
	return width
}

// Terminal returns the stream through which a command prints: a terminal gets only what termtext lets pass, and of control
// sequences only this program's own; everything else gets each byte. End writes what is held back.
func Terminal(stream io.Writer) (through io.Writer, end func() error) {
	if !Tty(stream) {
		return stream, func() error { return nil }
	}
	w := &termtext.Writer{To: stream}
	return w, w.Flush
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
		return slog.New(shownMessages{tint.NewTextHandler(ownColours{a.Err},
			&tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: Colourless()})})
	}
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
}

// Pager starts the pager of that name on the terminal, as git does, and returns the stream to it; end waits for it. Without a
// name, or with cat, there is no pager.
func (a *App) Pager(ctx context.Context, name string) (to io.Writer, end func() error, err error) {
	if name == "" || name == "cat" || dumb() {
		return a.Out, func() error { return nil }, nil
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", name) //nolint:gosec // the user's pager
	cmd.Stderr = a.Err
	if w, ok := a.Out.(*termtext.Writer); ok {
		cmd.Stdout = w.To // the pager draws on the terminal; what it is given has passed the filter
	}
	for _, e := range []string{"LESS=FRX", "LV=-c"} {
		if key, _, _ := strings.Cut(e, "="); os.Getenv(key) == "" {
			cmd.Env = append(cmd.Environ(), e)
		}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("start the pager: %w", err)
	}
	shown := &termtext.Writer{To: in}
	return shown, func() error {
		_ = shown.Flush() // a pager that was left reads no more
		_ = in.Close()
		return cmd.Wait()
	}, nil
}

// shownMessages shows in messages what a terminal would obey; the handler quotes attributes itself.
type shownMessages struct{ slog.Handler }

func (h shownMessages) Handle(ctx context.Context, r slog.Record) error {
	r.Message = Plain(r.Message)
	return h.Handler.Handle(ctx, r) //nolint:wrapcheck // a wrapper
}

func (h shownMessages) WithAttrs(attrs []slog.Attr) slog.Handler {
	return shownMessages{h.Handler.WithAttrs(attrs)}
}

func (h shownMessages) WithGroup(name string) slog.Handler {
	return shownMessages{h.Handler.WithGroup(name)}
}

// ownColours marks the colours of the log's handler as this program's.
type ownColours struct{ to io.Writer }

func (w ownColours) Write(line []byte) (int, error) {
	_, err := io.WriteString(w.to, strings.ReplaceAll(string(line), "\x1b[", termtext.Own("\x1b[")))
	return len(line), err //nolint:wrapcheck // a wrapper
}

// PrintVersion prints the version of this program.
func (a *App) PrintVersion() error {
	return a.Say(map[string]string{"version": version.String(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}, "%s",
		version.Line())
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
