package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	programMax = 60 * time.Second // of one question; the programs retry by themselves
	outputMax  = 8 << 20          // of one answer: a log is the largest
	saidMax    = 4 << 10          // of what a program complains
	waitMax    = 2 * time.Second  // for its own children to go after it was ended
)

// logins are the variables by which the programs, and git, find the person's login. A name that ends with * is a
// prefix.
var logins = []string{
	"GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_HOST", "GH_CONFIG_DIR", "GITLAB_TOKEN",
	"GITLAB_ACCESS_TOKEN",
	"OAUTH_TOKEN", "GITLAB_HOST", "GL_HOST", "GITLAB_URI", "GLAB_CONFIG_DIR", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS",
	"GIT_CONFIG_GLOBAL",
	"GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
}

// usual are the variables that the programs get besides.
var usual = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_*", "TZ", "TMPDIR", "XDG_*", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
	"http_proxy",
	"https_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE",
}

func in(list []string, pair string) bool {
	name, _, _ := strings.Cut(pair, "=")
	return slices.ContainsFunc(list, func(entry string) bool {
		prefix, is := strings.CutSuffix(entry, "*")
		return name == entry || is && strings.HasPrefix(name, prefix)
	})
}

// Login returns the part of an environment by which the programs find the person's login.
func Login(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(pair string) bool { return !in(logins, pair) })
}

// WithoutLogin returns an environment without that part.
func WithoutLogin(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(pair string) bool { return in(logins, pair) })
}

// program runs gh or glab. input is what it reads; env is what it gets besides.
func program(ctx context.Context, name string, input []byte, env []string, args ...string) ([]byte, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, &Fault{
			Code: NoProgram,
			Text: fmt.Sprintf("the program %s is not installed; install it and sign in with `%s auth login`", name, name),
		}
	}
	within, stop := context.WithTimeout(ctx, programMax)
	defer stop()
	cmd := exec.CommandContext(within, path, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool { return !in(logins, pair) && !in(usual, pair) })
	cmd.Env = append(cmd.Env, "GH_PROMPT_DISABLED=1", "GH_NO_UPDATE_NOTIFIER=1", "GH_TELEMETRY=false", "GH_PAGER=cat",
		"GLAB_CHECK_UPDATE=false", "GLAB_SEND_TELEMETRY=false",
		"NO_PROMPT=1", "NO_COLOR=1", "CLICOLOR_FORCE=0", "PAGER=cat", "GIT_TERMINAL_PROMPT=0")
	cmd.Env = append(cmd.Env, env...)
	cmd.Dir, cmd.WaitDelay = os.TempDir(), waitMax // in no repository: what one configures must not decide where things go
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if input != nil {
		cmd.Stdin = bytes.NewReader(input)
	}
	out, said := file.Capped{Max: outputMax}, file.Capped{Max: saidMax}
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	what := name + " " + strings.Join(args[:min(len(args), 2)], " ")
	var exit *exec.ExitError
	switch {
	case err == nil && out.Cut:
		return nil, &Fault{Code: Garbled, Text: fmt.Sprintf("%s printed more than %d bytes", what, outputMax)}
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case within.Err() != nil:
		return nil, &Fault{Code: Offline, Text: fmt.Sprintf("%s took longer than %s and was ended", what, programMax)}
	case errors.As(err, &exit):
		return out.Bytes(), classify(name, what, exit.ExitCode(), said.String())
	default:
		return nil, &Fault{Code: Refused, Text: fmt.Sprintf("%s: %v", what, err)}
	}
}

// httpStatus is how gh and glab name the status of an answer: "gh: Not Found (HTTP 404)", "HTTP 403: …".
var httpStatus = regexp.MustCompile(`\bHTTP (\d{3})\b|\b(\d{3}) (?:Not Found|Unauthorized|Forbidden|Too Many Requests)\b|: (5\d\d)\b`)

// The words of gh and glab for what they name by no status. They are other programs' texts, and the only ones that
// are compared.
var (
	limitWords   = []string{"rate limit", "abuse detection", "too many requests", "retry later"}
	offlineWords = []string{
		"error connecting to", "check your internet connection", "no such host", "connection refused", "connection reset",
		"network is unreachable", "i/o timeout",
		"tls handshake timeout", "no route to host", "temporary failure in name resolution", "context deadline exceeded", "unexpected eof",
		"could not resolve host", "failed to connect to", "connection timed out", "operation timed out", "connection closed by",
	}
	signInWords = []string{
		"auth login", "not logged in", "authentication required", "no token", "bad credentials", "token is expired", "token was revoked",
		"could not read username", "could not read password", "permission denied (publickey", "authentication failed",
		"invalid username or password",
	}
	noneWords = []string{"could not resolve to a", "not found", "no pull requests found"}
)

// Words classifies what a program said: gh, glab, or git about a remote.
func Words(said string) Code {
	low := strings.ToLower(said)
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })
	}
	status := 0
	if m := httpStatus.FindStringSubmatch(said); m != nil {
		status, _ = strconv.Atoi(m[1] + m[2] + m[3])
	}
	switch {
	case status == 429 || has(limitWords):
		return RateLimited
	case has(offlineWords) || status >= 500:
		return Offline
	case status == 401 || has(signInWords):
		return NotSignedIn
	case status == 404 || status == 410 || status == 0 && has(noneWords):
		return NotFound
	}
	return Refused
}

const exitNotSignedIn = 4 // of gh

func classify(name, what string, code int, said string) *Fault {
	f := &Fault{Code: Words(said)}
	if name == "gh" && code == exitNotSignedIn {
		f.Code = NotSignedIn
	}
	said = plain(strings.Join(strings.Fields(said), " "), 500)
	switch f.Code {
	case NotSignedIn:
		f.Text = fmt.Sprintf("%s is not signed in (%s); run `%s auth login`", name, said, name)
	case RateLimited:
		f.Text = fmt.Sprintf("%s: the forge's rate limit is reached: %s", what, said)
	case Offline:
		f.Text = fmt.Sprintf("%s: the forge cannot be reached: %s", what, said)
	default:
		f.Text = fmt.Sprintf("%s: exit code %d: %s", what, code, said)
	}
	return f
}

// decode reads JSON values one after the other: gh and glab print a list for each page.
func decode[T any](what string, out []byte) ([]T, error) {
	dec := json.NewDecoder(bytes.NewReader(out))
	var all []T
	for pages := 0; ; pages++ {
		var page []T
		switch err := dec.Decode(&page); {
		case errors.Is(err, io.EOF) && pages > 0:
			return all, nil
		case err != nil:
			return nil, unreadable(what, err)
		}
		all = append(all, page...)
	}
}

func decodeOne[T any](what string, out []byte) (v T, err error) {
	dec := json.NewDecoder(bytes.NewReader(out))
	if err := dec.Decode(&v); err != nil {
		return v, unreadable(what, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return v, garbled(what, errors.New("there is something after the answer"))
	}
	return v, nil
}

// unreadable is the fault of an answer that is no JSON, or not the expected one. One that ends too early came
// over a connection that broke, or of a program that was ended, and is asked for again.
func unreadable(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Fault{Code: Offline, Text: what + " printed an answer that is not complete"}
	}
	return garbled(what, err)
}

func garbled(what string, err error) error {
	return &Fault{
		Code: Garbled,
		Text: fmt.Sprintf("%s printed what cannot be read; a newer version may print something else: %v", what, err),
	}
}
