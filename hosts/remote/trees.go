package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/git/worktree"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/retry"
)

// Trees are the checkouts and files of runs on one other host. A request whose connection breaks is sent again. One that the host
// breaks off each time is an error.
type Trees struct {
	Dial Dial
	Root string // this machine's repository
}

// Send makes the run's checkout on the host, or updates it, with what the one here holds. The answer is what was sent: Fetch
// needs it. was is what Fetch returned last, if it did.
func (t *Trees) Send(ctx context.Context, run, checkout string, was *transfer.Sent) (s transfer.Sent, err error) {
	repo := worktree.Git{Dir: t.Root}
	if s, err = transfer.Snapshot(ctx, repo, t.Root, checkout, run); err != nil {
		return s, err
	}
	var have []string
	put := bodied{method: http.MethodPut, path: treePath(run), query: url.Values{}, tree: s.String()}
	put.body = func(to io.Writer) error { return transfer.Pack(ctx, repo, s, have, to) }
	if was != nil {
		put.query.Set("known", was.Snapshot)
		if have = []string{was.Snapshot}; t.do(ctx, put, nil) == nil {
			return s, nil
		} // its repository may be a new one
	}
	if have, err = t.has(ctx); err != nil {
		return s, err
	}
	return s, t.do(ctx, put, nil)
}

// Fetch stores what the host's checkout of a run holds under the ref, and moves the checkout here from what was sent to that. If
// the one here has changed meanwhile, the error is a *transfer.Changed, and s is what is under the ref.
func (t *Trees) Fetch(ctx context.Context, checkout string, was transfer.Sent, ref string) (s transfer.Sent, err error) {
	repo := worktree.Git{Dir: t.Root}
	err = t.do(ctx, fetchOf(was), func(answer *http.Response) error {
		var err error
		if s, err = transfer.ParseSent(answer.Header.Get(wire.TreeField)); err != nil {
			return err
		}
		return transfer.Take(ctx, repo, checkout, answer.Body, s, was, ref)
	})
	return s, err
}

// Pull makes the checkout of a run here what the one of the host is, at a path below this machine's repository. Other content of it is kept
// first.
func (t *Trees) Pull(ctx context.Context, run, path string) (s transfer.Sent, err error) {
	have, err := transfer.Have(ctx, worktree.Git{Dir: t.Root}, transfer.HaveMax)
	if err != nil {
		return s, err
	}
	ask := bodied{method: http.MethodGet, path: treePath(run), query: url.Values{"path": {path}, "have": {strings.Join(have, ",")}}}
	err = t.do(ctx, ask, func(answer *http.Response) error {
		var err error
		if s, err = transfer.ParseSent(answer.Header.Get(wire.TreeField)); err != nil {
			return err
		}
		if s.Run != run || s.Path != path {
			return fmt.Errorf("the checkout of %s at %s came back as that of %s at %s", run, path, s.Run, s.Path)
		}
		return transfer.Unpack(ctx, t.Root, answer.Body, s, "")
	})
	return s, err
}

// Mark says that the host has all of a run, after a number of its changes.
func (t *Trees) Mark(ctx context.Context, run string, n uint64) error {
	return t.do(ctx, bodied{method: http.MethodPut, path: treePath(run) + "/mark", query: url.Values{"n": {strconv.FormatUint(n, 10)}}},
		nil)
}

// SendBranches sends the branches of the repository here, which is that of the host from, unless the last ones were the same. The answer is
// what was sent.
func (t *Trees) SendBranches(ctx context.Context, from, was string, files ...string) (sent string, err error) {
	repo := worktree.Git{Dir: t.Root}
	s, ok, err := transfer.Branches(ctx, repo, files...)
	if err != nil || !ok || s.Snapshot == was {
		return was, err
	}
	var have []string
	put := bodied{method: http.MethodPut, path: wire.BranchesRoute, query: url.Values{"from": {from}}, tree: s.String()}
	put.body = func(to io.Writer) error { return transfer.Pack(ctx, repo, s, have, to) }
	if have, err = t.has(ctx); err != nil {
		return was, err
	}
	return s.Snapshot, t.do(ctx, put, nil)
}

// FetchBranches keeps the branches of the host, whose name is from.
func (t *Trees) FetchBranches(ctx context.Context, from string) error {
	repo := worktree.Git{Dir: t.Root}
	have, err := transfer.Have(ctx, repo, transfer.HaveMax)
	if err != nil {
		return err
	}
	ask := bodied{method: http.MethodGet, path: wire.BranchesRoute, query: url.Values{"have": {strings.Join(have, ",")}}}
	return t.do(ctx, ask, func(answer *http.Response) error {
		s, err := transfer.ParseSent(answer.Header.Get(wire.TreeField))
		if err != nil {
			return err
		}
		return transfer.TakeBranches(ctx, repo, answer.Body, s, from)
	})
}

// has lists commits that the host has.
func (t *Trees) has(ctx context.Context) (have []string, err error) {
	err = t.do(ctx, bodied{method: http.MethodGet, path: wire.TreesRoute}, func(answer *http.Response) error {
		return wire.ReadAnswer(answer, &have)
	})
	return have, err
}

// FetchLate stores what the host's checkout of a run holds under the ref, and moves nothing here. isNew is false, and there is no
// ref, if it is what came back last.
func (t *Trees) FetchLate(ctx context.Context, was transfer.Sent, ref string) (isNew bool, err error) {
	err = t.do(ctx, fetchOf(was), func(answer *http.Response) error {
		s, err := transfer.ParseSent(answer.Header.Get(wire.TreeField))
		if err == nil {
			isNew, err = transfer.Keep(ctx, worktree.Git{Dir: t.Root}, answer.Body, s, was, ref)
		}
		return err
	})
	return isNew, err
}

func fetchOf(was transfer.Sent) bodied {
	return bodied{method: http.MethodGet, path: treePath(was.Run), query: url.Values{"path": {was.Path}, "have": {was.Snapshot}}}
}

// Remove removes a run's checkout on the host, and its files unless the host keeps them. s is what the leader has of the checkout.
func (t *Trees) Remove(ctx context.Context, s transfer.Sent, keeps bool) error {
	ask := bodied{method: http.MethodDelete, path: treePath(s.Run), tree: s.String()}
	if keeps {
		ask.query = url.Values{"keep": {"files"}}
	}
	return t.do(ctx, ask, nil)
}

// SendFiles writes the files below some folders of runs to the host. Those that are gone are removed there first. both is the content that
// both machines had, by name. A file that has it still is not sent: the one there may be newer. nil: all files are sent. The answer is the
// content that both machines have then; FetchFiles needs it.
func (t *Trees) SendFiles(ctx context.Context, root string, dirs []string, both map[string]string, gone ...string) (now map[string]string,
	err error,
) {
	files, err := transfer.ListFiles(root, dirs)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	files.Both, files.Wrote = both, map[string]string{}
	maps.Copy(files.Wrote, both)
	return files.Wrote,
		t.do(ctx, bodied{
			method: http.MethodPut, path: wire.FilesRoute, query: url.Values{"dir": slashed(dirs), "gone": gone},
			body: files.Write,
		}, nil)
}

// SendNew is SendFiles for files that differ from those that the host has. Without has it is asked for that: the times and sizes of
// its files. The answer says what it has then.
func (t *Trees) SendNew(ctx context.Context, root string, dirs []string, has map[string]string) (now map[string]string, err error) {
	if has == nil {
		ask := bodied{method: http.MethodGet, path: wire.FilesRoute, query: url.Values{"dir": slashed(dirs), "list": {"only"}}}
		if t.do(ctx, ask, func(answer *http.Response) error { return wire.ReadAnswer(answer, &has) }) != nil {
			has = nil // all of them are sent
		}
	}
	files, err := transfer.ListFiles(root, dirs)
	if err != nil {
		return has, err
	}
	defer files.Close()
	now = files.Since(has)
	return now, t.do(ctx, bodied{method: http.MethodPut, path: wire.FilesRoute, query: url.Values{"dir": slashed(dirs)}, body: files.Write},
		nil)
}

// FetchFiles replaces files below some folders of runs by those of the host that differ from those here, and from those that both had
// (transfer.ReadFiles). Name only folders that the host's steps write: what else is in them here is newer.
func (t *Trees) FetchFiles(ctx context.Context, root string, dirs []string, both map[string]string, but ...string) error {
	return t.do(ctx, bodied{method: http.MethodGet, path: wire.FilesRoute, query: url.Values{"dir": slashed(dirs)}},
		func(answer *http.Response) error {
			return transfer.ReadFiles(root, dirs, answer.Body, both, but...)
		})
}

func slashed(dirs []string) (all []string) {
	for _, dir := range dirs {
		all = append(all, filepath.ToSlash(dir))
	}
	return all
}

func treePath(run string) string { return wire.TreesRoute + "/" + url.PathEscape(run) }

// bodied is a request with a body of any length.
type bodied struct {
	method, path, tree string
	query              url.Values
	body               func(to io.Writer) error // writes it, for each attempt
}

const (
	treeAgainFirst = 50 * time.Millisecond // until a request is sent again; doubles up to treeAgainMost
	treeAgainMost  = 5 * time.Second
	treeTriesMax   = 6 // on one connection: what breaks each time is not the connection
)

// do sends a request until it is answered, or breaks on one connection again and again.
func (t *Trees) do(ctx context.Context, r bodied, take func(*http.Response) error) error {
	var on http.RoundTripper
	tries := 0
	for pauses := (retry.Pauses{First: treeAgainFirst, Most: treeAgainMost}); ; {
		client, base, err := t.Dial(ctx)
		if err != nil {
			return err
		}
		if client.Transport != on {
			on, tries = client.Transport, 0
		}
		again, err := t.once(ctx, client, base, r, take)
		if !again || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if tries++; tries == treeTriesMax {
			return fmt.Errorf("%s %s failed %d times while the host stayed connected; see the log of the host: %w", r.method, r.path, tries,
				err)
		}
		if !pauses.Rest(ctx) {
			return errors.Join(err, ctx.Err())
		}
	}
}

// once is one attempt. again says that it broke off.
func (t *Trees) once(ctx context.Context, client *http.Client, base string, r bodied, take func(*http.Response) error) (again bool,
	err error,
) {
	var body io.Reader
	var fault error
	if r.body != nil {
		in, out := io.Pipe()
		wrote := make(chan struct{})
		defer func() {
			_ = in.Close() // what writes the body ends before this returns
			if <-wrote; err != nil && fault != nil {
				again, err = false, fault
			}
		}()
		go func() {
			defer close(wrote)
			to := &watchedPipe{to: out}
			err := r.body(to)
			if !to.broke {
				fault = err // of the body itself
			}
			_ = out.CloseWithError(err)
		}()
		body = in
	}
	ask, err := http.NewRequestWithContext(ctx, r.method, base+r.path+"?"+r.query.Encode(), body)
	if err != nil {
		return false, err
	}
	if r.tree != "" {
		ask.Header.Set(wire.TreeField, r.tree)
	}
	answer, err := client.Do(ask)
	if err != nil {
		return true, err
	}
	defer answer.Body.Close()
	if err := wire.Check(answer); err != nil {
		return false, err
	}
	watched := &watchedBody{ReadCloser: answer.Body}
	answer.Body = watched
	if take != nil {
		err = take(answer)
	}
	return watched.broke && err != nil, err
}

// watchedPipe notes that nothing reads any longer.
type watchedPipe struct {
	to    *io.PipeWriter
	broke bool
}

func (w *watchedPipe) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.broke = w.broke || err != nil
	return n, err
}

// watchedBody notes that a body ended before its end.
type watchedBody struct {
	io.ReadCloser
	broke bool
}

func (w *watchedBody) Read(into []byte) (int, error) {
	n, err := w.ReadCloser.Read(into)
	w.broke = w.broke || err != nil && !errors.Is(err, io.EOF)
	return n, err
}
