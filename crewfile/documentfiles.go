package crewfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fsnotify/fsnotify"
)

const (
	documentEnding   = ".json"
	documentFileMax  = 2 << 20 // larger files are not read; a soul is a few pages
	documentNew      = ".new-"
	documentSwap     = ".swap-"
	documentSwapsMax = 64                     // replaced files that are still watched
	documentReadsMax = 256                    // files read in one look
	documentLookMax  = 32 << 20               // their bytes; the next look continues
	documentFresh    = time.Second            // a file read so soon after its modification may have been written again within the same tick
	documentSwapLook = 100 * time.Millisecond // while another program may still write to a replaced file
)

// DocumentFiles is the folder with the crew's documents. It watches, reads, writes and moves files aside; it
// does not interpret their content.
//
// Every look returns a file that another program wrote until the caller confirms it with Took; before that,
// Write does not replace it. All methods may be called concurrently.
type DocumentFiles struct {
	folder string            // absolute
	notify *fsnotify.Watcher // nil if the system has no watch; then the folder is polled
	news   chan struct{}
	done   chan struct{}
	closed sync.Once
	ran    sync.WaitGroup

	mu      sync.Mutex // guards everything below
	id      file.FolderID
	watched bool
	swept   bool // files of an earlier run were looked for
	papers  map[string]*paper
	swaps   map[string]*paper

	exchange func(dir int, a, b string) error // replaced in tests
}

// paper is what is known of one file in the folder.
type paper struct {
	id    file.Identity
	read  time.Time
	sum   file.Sum
	whole bool      // sum is the sum of the whole content
	fault string    // why it is not a document, or cannot be read
	since time.Time // since when it has had this identity; of a replaced file: since it was replaced
	taken file.Sum  // the content that the caller confirmed
}

// FoundDocument is a file that another program wrote.
type FoundDocument struct {
	Name    string // of the document: agent-7.json
	Stem    string // the name without its extension
	At      string // the file's current name; it differs from Name if our write replaced the file
	Bytes   []byte // nil if Fault says that the content is not usable
	Sum     file.Sum
	Fault   string // it is not a document, and has not been one for long enough that no program is still writing it
	Swapped bool   // our write replaced it: the current file is newer
	id      file.Identity
}

// DocumentSight is the result of one look.
type DocumentSight struct {
	Found []FoundDocument     // files by other programs that were not confirmed; replaced ones come first
	Lies  map[string]file.Sum // by stem: files that are ours or were confirmed, and may be replaced
	Busy  map[string]string   // by stem: files that must not be replaced now, with the reason; empty: another program is writing the file
	Again time.Duration       // when to look again; 0: after the next News
}

// ErrDocumentChanged is the error of a Write when the file is not the one that was looked at; look again.
var ErrDocumentChanged = errors.New("the document was changed by another program meanwhile")

// WatchDocuments starts watching a folder, which need not exist yet. If the system has no watch, the folder
// is polled.
func WatchDocuments(folder string, log *slog.Logger) (*DocumentFiles, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("watch the agents' documents: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	w := &DocumentFiles{
		folder: folder, news: make(chan struct{}, 1), done: make(chan struct{}),
		papers: map[string]*paper{}, swaps: map[string]*paper{}, exchange: file.Exchange,
	}
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		log.Warn("no file watch; the agents' documents are polled", "every", file.PollEvery, "error", err,
			"way out", "raise fs.inotify.max_user_instances")
		w.notify = nil
	}
	w.ran.Go(w.run)
	return w, nil
}

// News receives a value when something may have changed in the folder, and every few seconds.
func (w *DocumentFiles) News() <-chan struct{} { return w.news }

// Close stops watching. Files that were not confirmed stay as they are.
func (w *DocumentFiles) Close() error {
	var err error
	w.closed.Do(func() {
		close(w.done)
		if w.notify != nil {
			err = w.notify.Close()
		}
		w.ran.Wait()
	})
	return err
}

func (w *DocumentFiles) run() {
	var events <-chan fsnotify.Event
	var faults <-chan error
	if w.notify != nil {
		events, faults = w.notify.Events, w.notify.Errors
	}
	poll := time.NewTicker(file.PollEvery)
	defer poll.Stop()
	for {
		select {
		case <-w.done:
			return
		case ev, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			if base := filepath.Base(ev.Name); !strings.HasSuffix(base, documentEnding) && ev.Name != w.folder || strings.HasPrefix(base, documentNew) {
				continue
			}
		case _, ok := <-faults:
			if !ok {
				faults = nil
				continue
			}
		case <-poll.C:
		}
		w.ring()
	}
}

func (w *DocumentFiles) ring() {
	select {
	case w.news <- struct{}{}:
	default: // a value is waiting already
	}
}

// look is one pass over the folder.
type documentLook struct {
	w     *DocumentFiles
	dir   int
	now   time.Time
	ours  func(stem string, sum file.Sum) bool
	sound func([]byte) error
	sight DocumentSight
	reads int
	bytes int64
}

// Look returns the folder's content. ours reports whether a content was written by the caller; sound returns
// why any other content is not a document, or nil.
func (w *DocumentFiles) Look(ours func(stem string, sum file.Sum) bool, sound func([]byte) error) (DocumentSight, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &documentLook{
		w: w, now: time.Now(), ours: ours, sound: sound,
		sight: DocumentSight{Lies: map[string]file.Sum{}, Busy: map[string]string{}},
	}
	dir, err := w.open()
	if errors.Is(err, fs.ErrNotExist) {
		return l.sight, nil
	}
	if err != nil {
		return l.sight, fmt.Errorf("look at the agents' documents: %w", err)
	}
	defer file.CloseFolder(dir)
	l.dir = dir
	names, err := file.NamesIn(w.folder)
	if err != nil {
		return l.sight, fmt.Errorf("look at the agents' documents: %w", err)
	}
	slices.Sort(names)
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
		switch {
		case strings.HasPrefix(name, documentNew) && !w.swept:
			file.Remove(dir, name) // it was never put in place
		case strings.HasPrefix(name, documentSwap):
			l.swapped(name)
		}
	}
	w.swept = true
	for _, name := range names {
		if stem, is := strings.CutSuffix(name, documentEnding); is && stem != "" && name[0] != '.' {
			l.one(name, stem)
		}
	}
	for _, papers := range []map[string]*paper{w.papers, w.swaps} {
		for name := range papers {
			if !there[name] {
				delete(papers, name)
			}
		}
	}
	return l.sight, nil
}

// open opens the folder, and watches it again if it was replaced.
func (w *DocumentFiles) open() (int, error) {
	dir, id, err := file.OpenFolder(w.folder)
	if err != nil {
		w.id, w.watched = file.FolderID{}, false
		return -1, err
	}
	if w.id != id {
		w.papers, w.swaps, w.id, w.watched = map[string]*paper{}, map[string]*paper{}, id, false
	}
	if !w.watched && w.notify != nil {
		_ = w.notify.Remove(w.folder) // the folder was removed
		w.watched = w.notify.Add(w.folder) == nil
	}
	return dir, nil
}

// again asks for another look after a delay.
func (l *documentLook) again(after time.Duration) {
	if l.sight.Again == 0 || after < l.sight.Again {
		l.sight.Again = after
	}
}

// one looks at one agent's file.
func (l *documentLook) one(name, stem string) {
	p := l.w.papers[name]
	if p == nil {
		p = &paper{}
		l.w.papers[name] = p
	}
	content, busy := l.read(p, name, stem)
	switch {
	case busy:
		l.sight.Busy[stem] = p.fault
	case p.whole && (p.taken == p.sum || l.ours(stem, p.sum)):
		l.sight.Lies[stem] = p.sum
	case p.fault == "" && content == nil:
		l.sight.Busy[stem] = "" // the next look reads it
		l.again(time.Millisecond)
	default:
		l.sight.Busy[stem] = ""
		l.sight.Found = append(l.sight.Found, FoundDocument{
			Name: name, Stem: stem, At: name, Bytes: content, Sum: p.sum, Fault: p.fault, id: p.id,
		})
	}
}

// read updates what is known of a file. busy means that another program is writing it, or that it is not read
// for the reason in fault. content is set only if it may be new.
func (l *documentLook) read(p *paper, name, stem string) (content []byte, busy bool) {
	id, err := file.IdentityAt(l.dir, name)
	if err != nil {
		*p = paper{taken: p.taken}
		return nil, true
	}
	if p.id == id && p.whole && p.read.UnixNano()-id.Mtime > int64(documentFresh) && (p.taken == p.sum || l.ours(stem, p.sum)) {
		return nil, false
	}
	if p.id != id {
		*p = paper{id: id, since: l.now, taken: p.taken}
	}
	if id.Size > documentFileMax {
		p.fault = fmt.Sprintf("it has %d bytes; %d are the most", id.Size, documentFileMax)
		return nil, l.fresh(p)
	}
	if l.reads >= documentReadsMax || l.bytes > documentLookMax {
		return nil, false
	}
	l.reads++
	l.bytes += id.Size
	content, after, err := readDocument(l.dir, name)
	var never *file.Unreadable
	switch {
	case errors.As(err, &never):
		p.fault = never.Error()
		l.again(file.PollEvery)
		return nil, true
	case err != nil:
		p.fault = err.Error()
		l.again(file.LookAgainAfter)
		return nil, true
	case after != id:
		*p = paper{taken: p.taken} // another program is writing it
		l.again(file.LookAgainAfter)
		return nil, true
	}
	p.read, p.sum, p.whole, p.fault = l.now, file.SumOf(content), true, ""
	if p.taken == p.sum || l.ours(stem, p.sum) {
		return nil, false
	}
	if err := l.sound(content); err != nil {
		p.fault = err.Error()
		return content, l.fresh(p)
	}
	return content, false
}

// fresh reports whether content that is not a document may still become one: the seed's own writers truncate
// a file before they write it.
func (l *documentLook) fresh(p *paper) bool {
	if l.now.Sub(p.since) >= file.TornFor {
		return false
	}
	p.fault = ""
	l.again(file.LookAgainAfter)
	return true
}

// swapped checks a file that our write replaced, because another program may have had it open.
func (l *documentLook) swapped(name string) {
	place := placeOf(name)
	stem, is := strings.CutSuffix(place, documentEnding)
	if !is {
		return
	}
	p := l.w.swaps[name]
	if p == nil { // left by an earlier run
		p = &paper{since: l.now}
		l.w.swaps[name] = p
	}
	replaced := p.since
	content, busy := l.read(p, name, stem)
	p.since = cmp.Or(replaced, p.since)
	aged := l.now.Sub(p.since) >= file.SwappedFor
	switch {
	case busy && p.fault != "", aged && p.whole && p.fault == "" && (p.taken == p.sum || l.ours(stem, p.sum)):
		file.Remove(l.dir, name) // a link is never a document
		delete(l.w.swaps, name)
		return
	case busy, p.whole && (p.taken == p.sum || l.ours(stem, p.sum)):
	case p.fault != "" && !aged:
	case content != nil || p.fault != "":
		l.sight.Found = append(l.sight.Found, FoundDocument{
			Name: place, Stem: stem, At: name, Bytes: content, Sum: p.sum, Fault: p.fault, Swapped: true, id: p.id,
		})
	}
	l.again(documentSwapLook)
}

// placeOf returns the name of the file that a replaced file had: .swap-0123456789abcdef-agent-7.json.
func placeOf(swap string) string {
	_, place, _ := strings.Cut(strings.TrimPrefix(swap, documentSwap), "-")
	return place
}

// readDocument reads a regular file. If it changes during the read, its identity is unknown.
func readDocument(dir int, name string) ([]byte, file.Identity, error) {
	s, err := file.Read(dir, name, documentFileMax)
	if err != nil || s.Moved {
		return nil, file.Identity{}, err
	}
	return s.Bytes, s.ID, nil
}

// Took confirms that a found content was stored durably or needs no storing: Write may replace it.
func (w *DocumentFiles) Took(found FoundDocument) {
	w.mu.Lock()
	defer w.mu.Unlock()
	papers := w.papers
	if found.Swapped {
		papers = w.swaps
	}
	if p := papers[found.At]; p != nil {
		p.taken = found.Sum
	}
}
