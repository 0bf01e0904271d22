package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// FindProgram looks up an agent's program as a shell in its workspace does, with the PATH of the
// given environment. The result is absolute, so it does not depend on where the process is started.
// The error says how to fix it. For an agent elsewhere it is a placeholder.
func FindProgram(a Agent, env []string) (string, error) {
	if len(a.Command) == 0 || a.Command[0] == "" {
		return "", fmt.Errorf("agent %s has no command; name its program, as in `command: [opencode, acp]`", a.Name)
	}
	for _, word := range a.Command {
		if strings.ContainsRune(word, 0) {
			return "", fmt.Errorf("the command of agent %s contains a NUL byte; remove it", a.Name)
		}
	}
	program := a.Command[0]
	if a.OtherHost != "" {
		return programMark + program + end, nil
	}
	if strings.Contains(program, "/") {
		path := program
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.Workspace, path)
		}
		if err := executable(path); err != nil {
			return "", fmt.Errorf("agent %s: command %s: %w", a.Name, program, err)
		}
		return path, nil
	}
	var path string
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) { // "." in PATH would start the wrong program
			continue
		}
		if full := filepath.Join(dir, program); executable(full) == nil {
			return full, nil
		}
	}
	return "", fmt.Errorf("agent %s: command %s is not in the PATH; install it, or give its whole path", a.Name, program)
}

// CheckScript returns an error if the command names a file that exists only in a folder above the
// workspace, as `python3 agent.py` does if agent.py is beside the workspace. Only the first
// argument that looks like a file counts. A file that exists nowhere may be created by the program;
// if not, the program reports it.
func CheckScript(a Agent) error {
	if a.OtherHost != "" {
		return nil
	}
	for _, word := range a.Command[min(1, len(a.Command)):] {
		if strings.HasPrefix(word, "-") || strings.ContainsAny(word, "= \n") || !strings.ContainsAny(word, "./") {
			continue
		}
		if filepath.IsAbs(word) || exists(filepath.Join(a.Workspace, word)) {
			return nil
		}
		for dir := a.Workspace; dir != filepath.Dir(dir); {
			if dir = filepath.Dir(dir); exists(filepath.Join(dir, word)) {
				return fmt.Errorf("agent %s: there is no file %s in its workspace, %s, where it is started, but in %s; give the whole path",
					a.Name, word, a.Workspace, dir)
			}
		}
		return nil
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("no such file; correct the path (a relative one begins in the workspace)")
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("is a folder; name the program in it")
	case info.Mode()&0o111 == 0:
		return errors.New("is not executable; chmod +x it, or name the program that runs it first")
	}
	return nil
}

// keyWords matches error messages about missing or invalid credentials. Only failures are searched,
// never the words of a model.
var keyWords = regexp.MustCompile(`(?i)(invalid|incorrect|missing|expired|revoked|unknown|no) (x-)?api[ _-]?key|invalid[ _]authentication|authentication[ _](error|failed|required)|` +
	`[a-z0-9]+_(api_key|auth_token)\b.{0,60}(not set|missing|required|must be set|unset|undefined|empty)|(set|missing|provide|required|need)\b.{0,60}[a-z0-9]+_api_key\b|` +
	`invalid (bearer|access|auth) token|oauth token (has )?expired|not (logged|signed) in|please (log|sign) in|run /login|` +
	`(status|error|http|code)\W{0,4}(code\W{0,4})?40[13]\b|\b401\b.{0,20}unauthori[sz]ed|\b403\b.{0,20}forbidden`)

// KeyRefused reports whether a failure means that the provider rejects the credentials, by its HTTP
// status (0: unknown) or its text. Retrying does not help: a person has to sign in.
func KeyRefused(status int, words string) bool {
	return ProviderOfStatus(status) == ProviderAuthentication || keyWords.MatchString(words)
}

// signIns says how to sign in, by the program's file name.
var signIns = map[string]string{
	"claude":   "run `claude` once by hand and say /login, or put ANTHROPIC_API_KEY into its `env`",
	"codex":    "run `codex login`, or put CODEX_API_KEY into its `env`",
	"opencode": "run `opencode auth login`, or put its provider's key into its `env`",
	"gemini":   "run `gemini` once by hand, or put GEMINI_API_KEY into its `env`",
	"qwen":     "run `qwen` once by hand, or put OPENAI_API_KEY into its `env`",
}

// SignIn returns instructions for signing in to an agent's program, for errors about rejected
// credentials.
func SignIn(kind string, command []string) string {
	program := kind
	if len(command) > 0 {
		program = filepath.Base(command[0])
	}
	if words, known := signIns[program]; known {
		return words
	}
	return "start the program once by hand and sign in, or put its provider's key into its `env`, which is the only way in which it gets one: `env: {NAME: \"${NAME}\"}`"
}

// AllowMore is the kind of an option that may allow more than this one call. It is not a plain yes:
// only a person chooses it.
const AllowMore = "allow_more"

// Unambiguous returns the options of a question with one option for each ID, because an answer is
// only an ID. Options with the same ID and kind are one. If all of them allow, the effect of the
// answer may be the widest of theirs, so the option is AllowMore. If one of them rejects or has an
// unknown kind, the ID says both yes and no, and the option is dropped.
func Unambiguous(options []Option) []Option {
	var all []Option
	for _, o := range options {
		i := slices.IndexFunc(all, func(had Option) bool { return had.ID == o.ID })
		if i < 0 {
			all = append(all, o)
			continue
		}
		had := &all[i]
		if o.Label != "" && !slices.Contains(strings.Split(had.Label, " / "), o.Label) {
			had.Label = strings.TrimPrefix(had.Label+" / "+o.Label, " / ")
		}
		switch {
		case had.Kind == o.Kind:
		case strings.HasPrefix(had.Kind, "allow") && strings.HasPrefix(o.Kind, "allow"):
			had.Kind = AllowMore
		case strings.HasPrefix(had.Kind, "reject") && strings.HasPrefix(o.Kind, "reject"):
			had.Kind = "reject_once"
		default:
			had.Kind = bothKinds
		}
	}
	return slices.DeleteFunc(all, func(o Option) bool { return o.Kind == bothKinds })
}

const bothKinds = "\x00" // different from every kind that a program can send

// Recorded is a Wire to output that was read before. It takes no input.
type Recorded struct {
	Text []byte
	From int64 // the offset of the first byte of Text in the output
}

var _ Wire = Recorded{}

// Output implements Wire.
func (r Recorded) Output(_ context.Context, offset int64) (io.ReadCloser, error) {
	at := min(max(offset-r.From, 0), int64(len(r.Text)))
	return io.NopCloser(bytes.NewReader(r.Text[at:])), nil
}

// Send implements Wire; it fails.
func (Recorded) Send(context.Context, []byte) error { return io.ErrClosedPipe }

// CloseInput implements Wire; it fails.
func (Recorded) CloseInput(context.Context) error { return io.ErrClosedPipe }
