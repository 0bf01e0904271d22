package repos

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/peer"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/origin"
	"github.com/fairlead-dev/fairlead/internal/runtimedir"
)

const (
	Max = 50 // repositories that are asked: more than a person keeps running

	askWait     = 2 * time.Second // for one daemon on this machine
	atOnce      = 8               // daemons that are asked at the same time
	answerMax   = 64 << 10        // bytes; a summary has less than one hundredth of it
	countMax    = 1_000_000       // a count that is larger is no count
	textMax     = 256             // of a name or a version
	pathMax     = 4096
	namesAtOnce = 1000   // entries of a folder that are read at a time
	triedMax    = 10_000 // sockets that are tried; nearly all of so many were left by daemons that were killed
	problemText = 200    // characters of a reason that are shown
)

// List asks all daemons of this user, and names the one that works on the folder here; here may be empty.
func List(ctx context.Context, here string) api.Repositories {
	own := ""
	if here != "" {
		own = runtimedir.SocketName("d", here)
	}
	paths := sockets(runtimedir.Dirs())
	slices.SortStableFunc(paths, func(a, b string) int {
		return cmp.Compare(boolean(filepath.Base(a) != own), boolean(filepath.Base(b) != own))
	})
	untried := max(0, len(paths)-triedMax)
	paths = paths[:len(paths)-untried]
	ended := make([]bool, len(paths))
	together(len(paths), func(i int) { ended[i] = isEnded(ctx, paths[i]) })
	var live, dead []string // those of daemons that were killed must not take the places of others
	for i, path := range paths {
		if ended[i] {
			dead = append(dead, path)
		} else {
			live = append(live, path)
		}
	}
	paths = append(live, dead...)
	more := max(0, len(paths)-Max)
	paths = paths[:len(paths)-more]
	all := make([]api.Repository, len(paths))
	together(len(paths), func(i int) {
		all[i] = ask(ctx, paths[i])
		all[i].Here = all[i].ID == own
	})
	return api.Repositories{Repositories: ordered(all), More: more + untried}
}

// together calls do for each number below n, a few at a time.
func together(n int, do func(i int)) {
	var running sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i := range n {
		running.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			do(i)
		})
	}
	running.Wait()
}

// isEnded reports whether no process listens on a socket.
func isEnded(ctx context.Context, path string) bool {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// sockets returns the sockets in folders that only this user can write to.
func sockets(folders []string) (paths []string) {
	for _, folder := range folders {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
			continue
		}
		if sys, ok := info.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != os.Getuid() {
			continue
		}
		dir, err := os.Open(folder)
		if err != nil {
			continue
		}
		for err == nil {
			var entries []fs.DirEntry
			entries, err = dir.ReadDir(namesAtOnce) // with what could be read before a failure
			for _, e := range entries {
				if e.Type() == fs.ModeSocket && peer.SocketName.MatchString(e.Name()) {
					paths = append(paths, filepath.Join(folder, e.Name()))
				}
			}
		}
		_ = dir.Close()
	}
	slices.Sort(paths)
	return paths
}

// ordered sorts repositories by what needs a person. Of two sockets with one name, in two folders, one that answers is kept.
func ordered(all []api.Repository) []api.Repository {
	slices.SortFunc(all, func(a, b api.Repository) int {
		return cmp.Or(
			cmp.Compare(boolean(a.Problem != ""), boolean(b.Problem != "")),
			cmp.Compare(boolean(b.NeedsYou > 0), boolean(a.NeedsYou > 0)),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Dir, b.Dir), strings.Compare(a.ID, b.ID),
		)
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(r api.Repository) bool {
		again := seen[r.ID]
		seen[r.ID] = true
		return again
	})
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fault is why a socket has no summary.
type fault struct {
	code string
	err  error
}

func (f *fault) Error() string { return f.err.Error() }

func wrong(format string, args ...any) error {
	return &fault{api.RepoWrong, fmt.Errorf(format, args...)}
}

// ask asks one daemon.
func ask(ctx context.Context, path string) api.Repository {
	r := api.Repository{ID: filepath.Base(path), Summary: api.Summary{Origins: []string{}}}
	body, err := exchange(ctx, path, http.MethodGet, "/summary", nil)
	if err == nil {
		var s api.Summary
		if s, err = parse(body, r.ID); err == nil {
			r.Summary = s
			return r
		}
	}
	bad := &fault{}
	if !errors.As(err, &bad) {
		bad = &fault{api.RepoSlow, err}
	}
	r.Problem, r.Detail = bad.code, words(bad)
	return r
}

// words is what a person reads of a fault.
func words(f *fault) string {
	switch f.code {
	case api.RepoEnded:
		return "no process answers on this socket: its daemon has ended without removing it; `fairlead up` in its repository replaces it"
	case api.RepoOtherUser:
		return "another user's process answers on this socket; nothing was sent to it"
	case api.RepoSlow:
		return fmt.Sprintf("no answer within %s; see `fairlead ps` in its repository", askWait)
	}
	return "a process answers as no Fairlead does: " + shown(f.err.Error())
}

// shown is a text that another program may have chosen, as one short line.
func shown(text string) string {
	plain := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return clip.Runes(plain, problemText)
}

// exchange sends one request over a socket and returns the body of the answer. Its errors are faults, or those of a
// context that ended.
func exchange(ctx context.Context, path, method, route string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	client := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: answerMax,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) },
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://fairlead"+api.Base+route, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	bad := &fault{}
	switch {
	case errors.As(err, &bad):
		return nil, bad
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, wrong("%w", errors.Unwrap(err)) // without the placeholder address
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerMax+1))
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, wrong("the answer ends early: %w", err)
	case len(text) > answerMax:
		return nil, wrong("the answer is longer than %d bytes", answerMax)
	case resp.StatusCode != http.StatusOK:
		return nil, wrong("status %s", resp.Status)
	case kind != "application/json":
		return nil, wrong("the answer is not JSON")
	}
	return text, nil
}

// dial connects, and checks the user at the other end before anything is sent.
func dial(ctx context.Context, path string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist):
		return nil, &fault{api.RepoEnded, err}
	case err != nil:
		return nil, err
	}
	if err := peer.SameUser(conn.(*net.UnixConn)); err != nil {
		conn.Close()
		return nil, &fault{api.RepoOtherUser, err}
	}
	return conn, nil
}

// parse reads a summary that came over the socket with this name. Fields that are not known are ignored: later versions
// may have more.
func parse(text []byte, socket string) (api.Summary, error) {
	var s api.Summary
	if err := json.Unmarshal(text, &s); err != nil {
		return s, wrong("the answer is not a summary: %w", err)
	}
	if s.Origins == nil {
		s.Origins = []string{}
	}
	for what, n := range map[string]int{"needs_you": s.NeedsYou, "working": s.Working, "agents": s.Agents} {
		if n < 0 || n > countMax {
			return s, wrong("%s is %d", what, n)
		}
	}
	for what, text := range map[string]string{"name": s.Name, "version": s.Version} {
		if text == "" || len(text) > textMax || shown(text) != text {
			return s, wrong("it has no plain %s", what)
		}
	}
	switch {
	case len(s.Dir) > pathMax || !filepath.IsAbs(s.Dir) || filepath.Clean(s.Dir) != s.Dir:
		return s, wrong("its folder is not a path")
	case runtimedir.SocketName("d", s.Dir) != socket:
		return s, wrong("it names the folder %s, whose socket has another name", s.Dir)
	case !origin.LocalAddress(s.Address):
		return s, wrong("its address is not one of this machine")
	case len(s.Origins) > origin.Max:
		return s, wrong("it has %d origins", len(s.Origins))
	}
	for _, text := range s.Origins {
		if o, err := origin.Parse(text); err != nil || o.String() != text {
			return s, wrong("it has an origin that is none")
		}
	}
	return s, nil
}

var codePattern = regexp.MustCompile(`^[0-9A-Z]{4}-[0-9A-Z]{4}$`)

// ErrUnknown says that no daemon with a summary has this id.
var ErrUnknown = errors.New("no repository with this id answers")

// Login gets a login code from the daemon with this id, and returns the address that signs a browser in there.
func Login(ctx context.Context, id string) (string, error) {
	for _, path := range sockets(runtimedir.Dirs()) {
		if filepath.Base(path) != id {
			continue
		}
		r := ask(ctx, path)
		if r.Problem != "" {
			continue
		}
		body, err := exchange(ctx, path, http.MethodPost, "/login-codes", []byte("{}"))
		if err != nil {
			return "", fmt.Errorf("get a login code from the daemon of %s: %w", r.Dir, err)
		}
		var code api.LoginCode
		if err := json.Unmarshal(body, &code); err != nil || !codePattern.MatchString(code.Code) {
			return "", fmt.Errorf("the daemon of %s gave no login code", r.Dir)
		}
		return r.Address + "/#code=" + code.Code, nil
	}
	return "", ErrUnknown
}
