package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
)

// makeHistory creates a dispatch folder with a history.
func makeHistory(t *testing.T, dir, text string, at time.Time) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, dispatchctl.HistoryName)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func watching(t *testing.T, repo string) *dispatchctl.SessionFolders {
	t.Helper()
	w, err := dispatchctl.WatchSessions(repo, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// TestSessionFoldersAreFound checks that folders are found below the repository and where they are
// registered, the newest first. Links, files and folders without a history are ignored.
func TestSessionFoldersAreFound(t *testing.T) {
	t.Parallel()
	repo, far := t.TempDir(), filepath.Join(t.TempDir(), "far")
	root := filepath.Join(repo, dispatchctl.SessionsFolder)
	now := time.Now()
	w := watching(t, repo)
	if paths, err := w.Paths(); err != nil || len(paths) != 0 {
		t.Fatalf("in an empty repository there are %v, %v", paths, err)
	}
	makeHistory(t, filepath.Join(root, "20261121_100000"), "{}\n", now.Add(-time.Hour))
	makeHistory(t, filepath.Join(root, "20261121_110000"), "{}\n", now)
	makeHistory(t, far, "{}\n", now.Add(-time.Minute))
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "empty"), 0o755),
		os.WriteFile(filepath.Join(root, "file"), nil, 0o644),
		os.Symlink(far, filepath.Join(root, "link")),
		os.MkdirAll(filepath.Join(root, dispatchctl.RegisteredFolder), 0o755),
		os.WriteFile(filepath.Join(root, dispatchctl.RegisteredFolder, "0123456789abcdef"), []byte(far+"\n"), 0o644),
		os.WriteFile(filepath.Join(root, dispatchctl.RegisteredFolder, "relative"), []byte("../far\n"), 0o644),
		os.Symlink("/etc/passwd", filepath.Join(root, dispatchctl.RegisteredFolder, "linked")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	paths, err := w.Paths()
	want := []string{filepath.Join(w.Root(), "20261121_110000"), far, filepath.Join(w.Root(), "20261121_100000")}
	if err != nil || !slices.Equal(paths, want) {
		t.Fatalf("found %v, %v; want %v", paths, err, want)
	}
}

// TestSessionFolderNews checks that a new folder, and a new line, cause a notification long before
// the next regular scan.
func TestSessionFolderNews(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	w := watching(t, repo)
	news := func(what string) {
		t.Helper()
		select {
		case <-w.News():
		case <-time.After(waitMax):
			t.Fatalf("%s caused no notification", what)
		}
		paths, err := w.Paths()
		if err != nil {
			t.Fatal(err)
		}
		w.Watch(paths)
	}
	dir := filepath.Join(w.Root(), "20261121_100000")
	if err := os.MkdirAll(filepath.Join(repo, ".claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	news("a folder above")
	makeHistory(t, dir, "{}\n", time.Now())
	for follows := false; !follows; { // one level of the tree at a time
		news("a new folder")
		w.Mu.Lock()
		follows = w.Watched[dir] || w.Notify == nil
		w.Mu.Unlock()
	}
	f, err := os.OpenFile(filepath.Join(dir, dispatchctl.HistoryName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const lines = 12 // one after the other: regular scans alone would take half a minute
	began := time.Now()
	for range lines {
		for len(w.News()) > 0 {
			<-w.News()
		}
		if _, err := f.WriteString("{}\n"); err != nil {
			t.Fatal(err)
		}
		news("a line")
	}
	if took := time.Since(began); w.Notify != nil && took > (lines-1)*dispatchctl.SessionsPoll {
		t.Errorf("%d lines were notified after %s", lines, took)
	}
}
