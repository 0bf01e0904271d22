package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// Trees are the checkouts and the files of runs on this host.
type Trees struct {
	Root string // the repository, or an empty folder in which one is made
	Log  *slog.Logger
}

// Routes registers the routes of checkouts and files.
func (t *Trees) Routes(mux *http.ServeMux) {
	mux.HandleFunc("PUT "+wire.TreeRoute, t.answers(t.put))
	mux.HandleFunc("GET "+wire.TreeRoute, t.answers(t.get))
	mux.HandleFunc("DELETE "+wire.TreeRoute, t.answers(t.remove))
	mux.HandleFunc("GET "+wire.TreesRoute, t.answers(t.have))
	mux.HandleFunc("PUT "+wire.MarkRoute, t.answers(t.mark))
	mux.HandleFunc("PUT "+wire.BranchesRoute, t.answers(t.putBranches))
	mux.HandleFunc("GET "+wire.BranchesRoute, t.answers(t.getBranches))
	mux.HandleFunc("PUT "+wire.FilesRoute, t.answers(t.putFiles))
	mux.HandleFunc("GET "+wire.FilesRoute, t.answers(t.getFiles))
}

// sent is what was written of an answer.
type sent struct {
	http.ResponseWriter
	begun bool
}

func (s *sent) Write(b []byte) (int, error) {
	s.begun = true
	return s.ResponseWriter.Write(b)
}

// answers turns an error into an answer. One in the middle of a body breaks the answer off, so that the leader does not take
// it for whole.
func (t *Trees) answers(serve func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out := &sent{ResponseWriter: w}
		err := serve(out, r)
		if err == nil {
			return
		}
		t.Log.Warn("a request of the leader for files failed", "method", r.Method, "path", r.URL.Path, "error", err)
		if out.begun {
			panic(http.ErrAbortHandler)
		}
		w.Header().Del(wire.TreeField)
		if errors.Is(err, fs.ErrNotExist) {
			err = &wire.Problem{Code: wire.NotHere, Why: err.Error()}
		}
		wire.Fail(w, err)
	}
}

func badTree(err error) error { return &wire.Problem{Code: wire.BadRequest, Why: err.Error()} }

// sentOf is the checkout that a request is about.
func sentOf(r *http.Request) (transfer.Sent, error) {
	s, err := transfer.ParseSent(r.Header.Get(wire.TreeField))
	if err == nil && s.Run != r.PathValue("run") {
		err = errors.New("the checkout is of another run")
	}
	if err != nil {
		return s, badTree(err)
	}
	return s, nil
}

// remove removes the checkout of a run that is over. It removes the run's folder, too, unless this host is to keep it.
func (t *Trees) remove(w http.ResponseWriter, r *http.Request) error {
	s, err := sentOf(r)
	if err != nil {
		return err
	}
	if err := transfer.Remove(r.Context(), t.Root, s); err != nil {
		return err
	}
	if r.URL.Query().Get("keep") != "files" {
		root, err := os.OpenRoot(t.Root)
		if err != nil {
			return err
		}
		defer root.Close()
		if err := root.RemoveAll(filepath.Join(".agents", "runs", s.Run)); err != nil {
			return err
		}
	}
	t.Log.Info("the checkout of a run was removed, because the leader's is gone", "run", s.Run)
	wire.Answer(w, struct{}{})
	return nil
}

func (t *Trees) put(w http.ResponseWriter, r *http.Request) error {
	s, err := sentOf(r)
	if err != nil {
		return err
	}
	if err := transfer.Unpack(r.Context(), t.Root, r.Body, s, r.URL.Query().Get("known")); err != nil {
		return err
	}
	wire.Answer(w, s)
	return nil
}

func (t *Trees) have(w http.ResponseWriter, r *http.Request) error {
	have, err := transfer.Have(r.Context(), worktree.Git{Dir: t.Root}, transfer.HaveMax)
	if err != nil {
		return err
	}
	wire.Answer(w, have)
	return nil
}

func (t *Trees) get(w http.ResponseWriter, r *http.Request) error {
	run, name := r.PathValue("run"), r.URL.Query().Get("path")
	if err := transfer.ValidPath(name); err != nil {
		return badTree(err)
	}
	repo := worktree.Git{Dir: t.Root}
	s, err := transfer.Snapshot(r.Context(), repo, t.Root, filepath.Join(t.Root, filepath.FromSlash(name)), run)
	if err != nil {
		return err
	}
	w.Header().Set(wire.TreeField, s.String())
	return transfer.Pack(r.Context(), repo, s, haves(r), w)
}

// mark notes that all of a run has arrived, so that it can go on here.
func (t *Trees) mark(w http.ResponseWriter, r *http.Request) error {
	n, err := strconv.ParseUint(r.URL.Query().Get("n"), 10, 64)
	if err != nil {
		return badTree(err)
	}
	if err := transfer.StoreMark(t.Root, transfer.Mark{Run: r.PathValue("run"), N: n}); err != nil {
		return err
	}
	wire.Answer(w, struct{}{})
	return nil
}

// putBranches keeps the branches of the leader, for the case that this host leads.
func (t *Trees) putBranches(w http.ResponseWriter, r *http.Request) error {
	s, err := transfer.ParseSent(r.Header.Get(wire.TreeField))
	if err != nil {
		return badTree(err)
	}
	if err := transfer.TakeBranches(r.Context(), worktree.Git{Dir: t.Root}, r.Body, s, r.URL.Query().Get("from")); err != nil {
		return err
	}
	wire.Answer(w, struct{}{})
	return nil
}

func (t *Trees) getBranches(w http.ResponseWriter, r *http.Request) error {
	repo := worktree.Git{Dir: t.Root}
	s, ok, err := transfer.Branches(r.Context(), repo)
	if err == nil && !ok {
		err = &wire.Problem{Code: wire.NotHere, Why: "the repository has no branch"}
	}
	if err != nil {
		return err
	}
	w.Header().Set(wire.TreeField, s.String())
	return transfer.Pack(r.Context(), repo, s, haves(r), w)
}

// haves are the commits that the other side has.
func haves(r *http.Request) []string {
	return strings.FieldsFunc(r.URL.Query().Get("have"), func(c rune) bool { return c == ',' })
}

func (t *Trees) putFiles(w http.ResponseWriter, r *http.Request) error {
	for _, name := range r.URL.Query()["gone"] {
		if err := transfer.Drop(t.Root, name); err != nil {
			return badTree(err)
		}
	}
	if err := transfer.ReadFiles(t.Root, r.URL.Query()["dir"], r.Body, nil); err != nil {
		return err
	}
	wire.Answer(w, struct{}{})
	return nil
}

func (t *Trees) getFiles(w http.ResponseWriter, r *http.Request) error {
	a, err := transfer.ListFiles(t.Root, r.URL.Query()["dir"])
	if err != nil {
		return err
	}
	defer a.Close()
	if r.URL.Query().Has("list") {
		wire.Answer(w, a.Since(nil))
		return nil
	}
	w.Header().Set("Content-Type", "application/x-tar")
	return a.Write(w)
}
