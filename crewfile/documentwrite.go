package crewfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"golang.org/x/sys/unix"
)

// Write replaces a document's file atomically. It replaces only the content that the caller saw (seen; empty:
// no file) or knows as its own (ours). Otherwise the error is ErrDocumentChanged and the file is unchanged.
// What another program still writes to the replaced file is found by a later look. The content is synced, the
// folder is not: after a crash there is the old file or the new one, and the journal holds the new content.
func (w *DocumentFiles) Write(stem string, content []byte, seen file.Sum, ours func(file.Sum) bool) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := stem + documentEnding
	defer func() {
		if err != nil && !errors.Is(err, ErrDocumentChanged) {
			err = fmt.Errorf("write the document %s: %w", name, err)
		}
	}()
	dir, err := w.open()
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(w.folder, documentFolderMode); err == nil {
			dir, err = w.open()
		}
	}
	if err != nil {
		return err
	}
	defer file.CloseFolder(dir)
	tail := rand.Uint64() //nolint:gosec // a name, no secret; a clash is refused by the file system
	sheet := newName(documentNew, name, tail)
	id, err := prepare(dir, sheet, name, content)
	if err != nil {
		return fmt.Errorf("%w; see that there is room, and that the folder is writable", err)
	}
	was, err := w.lying(dir, name)
	switch {
	case err != nil:
	case was != seen && (was == "" || !ours(was)):
		err = ErrDocumentChanged
	case was == "":
		err = file.RenameNew(dir, sheet, name)
		if errors.Is(err, unix.EEXIST) {
			err = ErrDocumentChanged
		}
	default:
		swap := newName(documentSwap, name, tail)
		if err = file.RenameNew(dir, sheet, swap); err == nil {
			sheet = swap
			err = w.swap(dir, sheet, name, was)
		}
		if err == nil {
			sheet = ""
		}
	}
	if err != nil {
		if sheet != "" {
			file.Remove(dir, sheet)
		}
		return err
	}
	p := w.papers[name]
	if p == nil {
		p = &paper{}
		w.papers[name] = p
	}
	*p = paper{id: id, read: time.Now(), since: time.Now(), sum: file.SumOf(content), whole: true, taken: p.taken}
	return nil
}

// Make creates the folder, so that it can be watched and written to.
func (w *DocumentFiles) Make() error {
	if err := os.MkdirAll(w.folder, documentFolderMode); err != nil {
		return fmt.Errorf("make the folder of the agents' documents: %w", err)
	}
	return nil
}

const documentFolderMode = 0o700 // like .fairlead: souls are private

// prepare writes a new file beside the current one, synced, with the current file's mode.
func prepare(dir int, sheet, name string, content []byte) (file.Identity, error) {
	handle, err := file.CreateLike(dir, sheet, name, content)
	if err != nil {
		return file.Identity{}, err
	}
	defer func() { _ = handle.Close() }()
	s, err := file.Stat(handle)
	return s.ID, err
}

// lying returns the sum of the current file; empty: there is none.
func (w *DocumentFiles) lying(dir int, name string) (file.Sum, error) {
	id, err := file.IdentityAt(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if p := w.papers[name]; p != nil && p.whole && p.id == id && p.read.UnixNano()-id.Mtime > int64(documentFresh) {
		return p.sum, nil
	}
	if id.Size > documentFileMax {
		return "", ErrDocumentChanged
	}
	content, after, err := readDocument(dir, name)
	if err != nil {
		return "", err
	}
	if after != id {
		return "", ErrDocumentChanged
	}
	return file.SumOf(content), nil
}

// swap exchanges the new file for the current one and registers the replaced one.
func (w *DocumentFiles) swap(dir int, sheet, name string, was file.Sum) error {
	err := w.exchange(dir, sheet, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return ErrDocumentChanged
	case file.Unsupported(err):
		// a file that appeared since the look is lost; the usual file systems support exchange
		return file.Uninterrupted(func() error { return unix.Renameat(dir, sheet, dir, name) })
	case err != nil:
		return err
	}
	now := time.Now()
	w.swaps[sheet] = &paper{since: now, taken: was}
	if len(w.swaps) > documentSwapsMax {
		w.dropOldest(dir)
	}
	w.ring()
	return nil
}

// dropOldest removes the file that was replaced first, if its content has not changed since.
func (w *DocumentFiles) dropOldest(dir int) {
	var names []string
	for name := range w.swaps {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return w.swaps[a].since.Compare(w.swaps[b].since) })
	for _, name := range names[:len(names)-documentSwapsMax] {
		if content, _, err := readDocument(dir, name); err == nil && file.SumOf(content) == w.swaps[name].taken {
			file.Remove(dir, name)
			delete(w.swaps, name)
		}
	}
}

// PutAside renames a found file to a name that says when it was written (SPEC X5): agent-7.json.corrupt-TIME.
// It fails if another file has taken its place.
func (w *DocumentFiles) PutAside(found FoundDocument, why string) (name string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("put %s aside: %w", found.Name, err)
		}
	}()
	dir, err := w.open()
	if err != nil {
		return "", err
	}
	defer file.CloseFolder(dir)
	base := fmt.Sprintf("%s.%s-%s", found.Name, why, file.TimeInName(found.id.Mtime))
	for n := 1; ; n++ {
		name = base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n) // another file with the same modification time
		}
		err = file.RenameNew(dir, found.At, name)
		if !errors.Is(err, unix.EEXIST) || n >= documentAsideMax {
			break
		}
	}
	if err != nil {
		return "", err
	}
	if id, err := file.IdentityAt(dir, name); err != nil || id != found.id {
		_ = file.RenameNew(dir, name, found.At) // another program replaced the file: this is not the content that was judged
		return "", ErrDocumentChanged
	}
	delete(w.papers, found.At)
	delete(w.swaps, found.At)
	return name, file.SyncFolder(dir)
}

const documentAsideMax = 100 // files with one name, fault and modification time

// newName returns an unused name for a new or replaced file.
func newName(prefix, name string, tail uint64) string {
	return fmt.Sprintf("%s%016x-%s", prefix, tail, name)
}
