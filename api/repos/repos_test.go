package repos

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/internal/runtimedir"
)

// listen serves a handler on the socket of a folder.
func listen(t *testing.T, dir string, h http.HandlerFunc) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(runtimedir.Dirs()[0], runtimedir.SocketName("d", dir)))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h} //nolint:gosec // of a test
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
}

func runtimeFolder(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "repos") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv(runtimedir.Var, dir)
	if err := runtimedir.Private(runtimedir.Dirs()[0]); err != nil {
		t.Fatal(err)
	}
}

func summary(dir, more string) string {
	return fmt.Sprintf(`{"dir":%q,"name":"x","version":"1","address":"http://127.0.0.1:7466","needs_you":2,"working":1,"agents":3%s}`, dir,
		more)
}

// A socket that hangs, lies or floods is one line of the list, and the others are listed all the same.
func TestHostileSockets(t *testing.T) {
	runtimeFolder(t)
	say := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, text)
		}
	}
	want := map[string]string{}
	for dir, c := range map[string]struct {
		h       http.HandlerFunc
		problem string
	}{
		"/good":  {say(summary("/good", `,"later":1`)), ""},
		"/lies":  {say(summary("/good", "")), api.RepoWrong},
		"/page":  {say(strings.Replace(summary("/page", ""), "127.0.0.1:7466", "evil.example:1", 1)), api.RepoWrong},
		"/count": {say(summary("/count", `,"agents":-1`)), api.RepoWrong},
		"/name":  {say(summary("/name", `,"name":"\u001b[2J"`)), api.RepoWrong},
		"/orig":  {say(summary("/orig", `,"origins":["javascript:alert(1)"]`)), api.RepoWrong},
		"/text":  {say("\x00<html>"), api.RepoWrong},
		"/flood": {say(strings.Repeat("[", answerMax*2)), api.RepoWrong},
		"/sends": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Location", "/x"); w.WriteHeader(302) }, api.RepoWrong},
		"/none":  {func(w http.ResponseWriter, _ *http.Request) { api.NewProblem(404, "there is no such route").Write(w) }, api.RepoWrong},
		"/hangs": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, api.RepoSlow},
	} {
		listen(t, dir, c.h)
		want[runtimedir.SocketName("d", dir)] = c.problem
	}
	all := List(t.Context(), "/good")
	found := map[string]bool{}
	for _, r := range all.Repositories {
		problem, mine := want[r.ID]
		if !mine {
			continue // of daemons in the other folder of this user
		}
		found[r.ID] = true
		if r.Problem != problem || (problem != "") != (r.Detail != "") || strings.ContainsAny(r.Detail, "\x1b\n\x00") {
			t.Errorf("%s: %q, %q; want %q", r.ID, r.Problem, r.Detail, problem)
		}
		if problem == "" && (r.Dir != "/good" || !r.Here || r.NeedsYou != 2) {
			t.Errorf("%+v", r)
		}
	}
	if len(found) != len(want) {
		t.Errorf("%d of %d are listed", len(found), len(want))
	}
}

// More daemons than a person keeps running are counted and not asked; sockets that killed daemons left take no place of a live one.
func TestManyRepositories(t *testing.T) {
	runtimeFolder(t)
	here := "/zzz"
	for i := range Max + 2 {
		dir := fmt.Sprintf("/many/%02d", i)
		listen(t, dir, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, summary(dir, ""))
		})
	}
	leave(t, runtimedir.SocketName("d", here))
	mine := map[string]bool{}
	for i := range Max + 2 {
		mine[runtimedir.SocketName("d", fmt.Sprintf("/many/%02d", i))] = true
	}
	all := List(t.Context(), here)
	answered := 0
	for _, r := range all.Repositories {
		if mine[r.ID] && r.Problem == "" {
			answered++
		}
	}
	if len(all.Repositories) != Max || all.More < 3 || answered+all.More < Max+2 || answered < Max-others(t) {
		t.Errorf("%d are listed, %d of them answered, %d more; want %d, and at least 3 more", len(all.Repositories), answered, all.More,
			Max)
	}
}

// leave makes a socket as a process that was killed leaves it.
func leave(t *testing.T, name string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(runtimedir.Dirs()[0], name), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

// Thousands of sockets that killed daemons and shims left hide no daemon that runs.
func TestManySocketsLeft(t *testing.T) {
	runtimeFolder(t)
	for i := range 3 * namesAtOnce {
		leave(t, runtimedir.SocketName("h", fmt.Sprint("/left/", i)))
	}
	for i := range Max {
		leave(t, runtimedir.SocketName("d", fmt.Sprint("/left/", i)))
	}
	for i := range 10 {
		dir := fmt.Sprint("/lives/", i)
		listen(t, dir, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, summary(dir, ""))
		})
	}
	all := List(t.Context(), "/lives/7").Repositories
	lives := 0
	for _, r := range all {
		if r.Problem == "" && strings.HasPrefix(r.Dir, "/lives/") {
			lives++
		}
		if r.Here != (r.Dir == "/lives/7") {
			t.Errorf("%s is listed with here %t", r.Dir, r.Here)
		}
	}
	if lives < 10-max(0, others(t)-(Max-10)) {
		t.Errorf("%d of 10 daemons that run are listed", lives)
	}
}

// others is how many other daemons of this user run.
func others(t *testing.T) (n int) {
	t.Helper()
	for _, dir := range runtimedir.Dirs()[1:] {
		for _, path := range sockets([]string{dir}) {
			if !isEnded(t.Context(), path) {
				n++
			}
		}
	}
	return n
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(summary("/good", "")))
	f.Add([]byte(`{"dir":"/good","agents":1e99}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parse(text, runtimedir.SocketName("d", "/good"))
		if err == nil && (s.Dir != "/good" || s.NeedsYou < 0 || shown(s.Name) != s.Name) {
			t.Errorf("%q is accepted as %+v", text, s)
		}
	})
}
