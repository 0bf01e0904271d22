package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/work/outside"
)

// documentFolder is the folder with the members' documents. It outlives engines. The world's lock
// guards it.
type documentFolder struct {
	files        map[string]*documentVersion // by file name
	replaced     map[string]*documentVersion // versions of other programs that Fairlead's writes replaced, by a unique name
	aside        []*documentVersion          // versions that were renamed
	raceWrites   map[string]func()           // file name → another program's write between the engine's read and its exchange
	mustBeStored map[string]string           // note in a version of another program that Fairlead removed → its file name
	n            int
}

type documentVersion struct {
	name    string
	bytes   []byte
	foreign bool
	note    string // unique text in a version that another program wrote
	since   time.Time
}

func newDocumentFolder() *documentFolder {
	return &documentFolder{
		files: map[string]*documentVersion{}, replaced: map[string]*documentVersion{}, raceWrites: map[string]func(){},
		mustBeStored: map[string]string{},
	}
}

func (l *documentVersion) sum() file.Sum { return file.SumOf(l.bytes) }

// documentFiles is one engine's access to the folder. It behaves as crewdocs.Documents
// documents it.
type documentFiles struct {
	deliveries[crewdocs.Seen]
	now     map[string]crewdocs.Seen    // by name
	version map[string]*documentVersion // the version that now describes
	told    map[*documentVersion]uint64 // replaced versions that were reported, and how
	taken   map[string]uint64
	seq     uint64
}

var _ outside.Documents = (*documentFiles)(nil)

func newDocumentFiles(w *world, l *engineRun) *documentFiles {
	return &documentFiles{
		deliveries: deliveries[crewdocs.Seen]{w: w, l: l, wake: make(chan struct{}, 1)}, now: map[string]crewdocs.Seen{},
		version: map[string]*documentVersion{},
		told:    map[*documentVersion]uint64{}, taken: map[string]uint64{},
	}
}

// documentsFor returns nil on a day without a lead.
func (w documentWorld) documentsFor(c *documentFiles) outside.Documents {
	if crewWorld(w).lead() == "" {
		return nil
	}
	return c
}

// Make does nothing: the map exists already.
func (c *documentFiles) Make() error { return nil }

// Begin delivers what is there, each observation when the director allows it.
func (c *documentFiles) Begin(to func(crewdocs.Seen)) error {
	return c.w.act(c.l, "observe documents", func() error {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		c.to = to
		c.check()
		c.w.goroutines.Go(func() {
			c.deliver(func(s crewdocs.Seen) string { return s.Name }, func(crewdocs.Seen) {})
		})
		return nil
	})
}

// notifyDocuments has every running engine look; the caller holds the lock.
func (w documentWorld) notifyDocuments() {
	for _, l := range w.engines {
		if !l.dead && l.documentFiles.to != nil {
			l.documentFiles.check()
		}
	}
}

func (c *documentFiles) report(name string, l *documentVersion, err error, swapped bool) crewdocs.Seen {
	c.seq++
	seen := crewdocs.Seen{Name: name, Seq: c.seq, Kind: exchange.KindDeleted, FromSwap: swapped, At: time.Now().UTC()}
	if l != nil {
		seen.Kind, seen.Bytes, seen.Sum = exchange.KindWritten, l.bytes, l.sum()
		seen.State, _ = crewdocs.Content.Parse(l.bytes)
	}
	if err != nil {
		seen.Kind, seen.Fault = exchange.KindMalformed, err.Error()
	}
	c.add(seen)
	return seen
}

// check reports what is new; the caller holds the lock. Content that is no document may still be completed.
func (c *documentFiles) check() {
	f := c.w.documents
	for _, at := range sortedKeys(f.replaced) {
		l := f.replaced[at]
		if c.told[l] == 0 {
			_, err := crewdocs.Content.Parse(l.bytes)
			c.told[l] = c.report(strings.TrimSuffix(l.name, crewdocs.Ending), l, err, true).Seq
		}
	}
	names := map[string]bool{}
	for name := range f.files {
		names[strings.TrimSuffix(name, crewdocs.Ending)] = true
	}
	for name := range c.now {
		names[name] = true
	}
	for _, name := range sortedKeys(names) {
		l := f.files[name+crewdocs.Ending]
		if l == c.version[name] {
			continue
		}
		var err error
		if l != nil {
			if _, err = crewdocs.Content.Parse(l.bytes); err != nil && time.Since(l.since) < tornFor {
				time.AfterFunc(tornFor-time.Since(l.since), func() {
					c.w.mu.Lock()
					defer c.w.mu.Unlock()
					if !c.l.dead {
						c.check()
					}
				})
				continue
			}
		}
		c.version[name] = l
		if was := c.now[name]; l == nil || was.Own || was.Seq == 0 || was.Sum != l.sum() || was.Kind == exchange.KindDeleted {
			c.now[name] = c.report(name, l, err, false)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// at returns the name and the version of an observation, or nil if another version has taken its place.
func (c *documentFiles) at(seen crewdocs.Seen) (at string, l *documentVersion) {
	if !seen.FromSwap {
		at = seen.Name + crewdocs.Ending
		if l = c.w.documents.files[at]; l == nil || l != c.version[seen.Name] || c.now[seen.Name].Seq != seen.Seq {
			return "", nil
		}
		return at, l
	}
	for at, l := range c.w.documents.replaced {
		if c.told[l] == seen.Seq {
			return at, l
		}
	}
	return "", nil
}

// Took allows a version to be overwritten, so its content must be in the journal by now.
func (c *documentFiles) Confirm(seen crewdocs.Seen) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.l.dead {
		return
	}
	if _, l := c.at(seen); l != nil {
		checks{c.w}.check(foreignKept, l.note == "" || c.w.noted[l.note], "%q in %s counts as imported and is not in the journal", l.note,
			l.name)
	}
	if !seen.FromSwap {
		c.taken[seen.Name] = max(c.taken[seen.Name], seen.Seq)
	}
}

// PutAside renames the version that was observed.
func (c *documentFiles) PutAside(seen crewdocs.Seen, why string) (name string, err error) {
	err = c.w.act(c.l, "aside "+seen.Name, func() error {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		f := c.w.documents
		at, l := c.at(seen)
		if l == nil {
			return exchange.ErrChanged
		}
		f.n++
		name = fmt.Sprintf("%s.%s-%d", l.name, why, f.n)
		if seen.FromSwap {
			delete(f.replaced, at)
		} else {
			delete(f.files, at)
			c.seq++
			c.version[seen.Name], c.now[seen.Name] = nil, crewdocs.Seen{Name: seen.Name, Seq: c.seq, Kind: exchange.KindDeleted, Own: true}
		}
		f.aside = append(f.aside, l)
		c.w.notef("%s was renamed to %s", l.name, name)
		return nil
	})
	return name, err
}

func (c *documentFiles) Write(_ context.Context, stem string, content []byte, newest uint64, ours func(file.Sum) bool) error {
	c.w.mu.Lock()
	doc := c.w.truth.Crew.Docs[crew.DocID(stem)]
	checks{c.w}.check(durableFirst, c.l.dead || doc != nil && doc.Ours(string(file.SumOf(content))),
		"the document %s is about to be written, but its content is not stored: %s", stem, content)
	c.w.mu.Unlock()
	return c.w.act(c.l, "install "+stem, func() error {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		return c.write(stem, content, newest, ours)
	})
}

func (c *documentFiles) write(stem string, content []byte, newest uint64, ours func(file.Sum) bool) error {
	f, name := c.w.documents, stem+crewdocs.Ending
	c.check()
	seen, was := c.now[stem], f.files[name]
	if was != c.version[stem] {
		return context.DeadlineExceeded // it is no document yet
	}
	known := seen.Own || seen.Kind == exchange.KindWritten && ours(seen.Sum) || seen.Seq <= c.taken[stem]
	if stale := !seen.Own && seen.Seq > newest; stale || !known {
		return &crewdocs.Changed{Seen: seen}
	}
	if write := f.raceWrites[name]; write != nil {
		delete(f.raceWrites, name)
		write()
	}
	old := f.files[name]
	l := &documentVersion{name: name, bytes: content, since: time.Now()}
	f.files[name], c.version[stem] = l, l
	c.seq++
	c.now[stem] = crewdocs.Seen{Name: stem, Seq: c.seq, Kind: exchange.KindWritten, Sum: l.sum(), Own: true}
	c.w.notef("%s was written", name)
	if old != nil && old.foreign {
		if old.note != "" {
			f.mustBeStored[old.note] = name
		}
		if old != was { // another program wrote it after the engine's read
			f.n++
			f.replaced[fmt.Sprintf(".swap-%d-%s", f.n, name)] = old
			documentWorld{c.w}.notifyDocuments()
		}
	}
	return nil
}

var isDocumentNote = regexp.MustCompile(`note-[0-9]+n`)

// noteDocument records the notes of other programs that this change stores.
func (w documentWorld) noteDocument(body *crew.Body) {
	if body.Doc != nil {
		for _, note := range isDocumentNote.FindAllString(string(body.Doc.Extra), -1) {
			w.noted[note] = true
		}
	}
}

func (w documentWorld) newDocumentNote() string {
	w.notes++
	return fmt.Sprintf("note-%dn", w.notes)
}

// newDocument renders a document from another device; the caller holds the lock.
func (w documentWorld) newDocument(a Act, note string) []byte {
	seat := int(a.MS-1) % 9
	if is := w.crew.nth(int(a.MS)); a.Word == "taken" && is != nil {
		seat = is.seat
	}
	doc := map[string]any{
		"type": "agent-identity", "status": "sleeping", "name": "Guest " + note[5:], "color": "#123456", "colorName": "Blue",
		"gender":       "man",
		"gridPosition": seat, "faceVariant": map[string]string{"eyes": "round", "mouth": "wide"},
		"individuationArtifact": "the soul of <" + note[5:] + "> & \"more\"",
		"createdAt":             "2026-02-16T00:00:00.000Z", "lastAliveAt": "2026-02-16T12:00:00.000Z",
		"lastSessionId": "of another device", "theirs": note,
	}
	switch a.Word {
	case "alive", "expired":
		doc["status"] = a.Word
	case "hatching":
		doc["status"], doc["name"], doc["createdAt"] = "hatching", nil, file.FormatTime(w.now().Add(-2*time.Minute))
	case "bare":
		delete(doc, "status")
	case "nameless":
		doc["name"] = nil
	case "lead's":
		doc["gridPosition"] = 4
	case "broken":
		return []byte(`{"type":"agent-identity","theirs":"` + note)
	}
	return encode.JSON(doc)
}

func (w documentWorld) importDocument(a Act) {
	w.mu.Lock()
	note := w.newDocumentNote()
	data := w.newDocument(a, note)
	w.mu.Unlock()
	w.order("import "+note, note, func(ctx context.Context, l *engineRun) (uint64, error) {
		_, err := l.engine.Crew.ImportDocument(ctx, byPerson, data)
		return 0, err
	})
}

// changeDocuments has another program change files in the folder.
func (w documentWorld) changeDocuments(a Act) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, is := w.documents, w.crew.nth(int(a.MS))
	switch {
	case a.Do == "add-document":
		note := w.newDocumentNote()
		name := "guest-" + note[5:] + ".json"
		if a.Word == "odd" {
			name = "an odd name " + name
		}
		w.putDocument(name, w.newDocument(a, note), note)
	case is == nil:
		return
	case a.Do == "delete-document":
		delete(f.files, is.id+".json")
	default:
		w.editDocument(is.id+".json", a.Word)
	}
	w.notifyDocuments()
}

// raceDocumentWrite lets another program write a document just before the engine's own write
// proceeds.
func (w documentWorld) raceDocumentWrite(key, name string) {
	w.mu.Lock()
	w.documents.raceWrites[name] = func() { w.editDocument(name, "extra") }
	w.mu.Unlock()
	w.decide(key, raceWrite)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.documents.raceWrites, name)
}

func (w documentWorld) putDocument(name string, content []byte, note string) {
	w.documents.files[name] = &documentVersion{name: name, bytes: content, foreign: true, note: note, since: time.Now()}
	w.notef("another program writes %s: %s", name, note)
}

func (w documentWorld) editDocument(name, how string) {
	old := w.documents.files[name]
	if old == nil {
		return
	}
	var doc map[string]any
	if json.Unmarshal(old.bytes, &doc) != nil {
		return
	}
	note := w.newDocumentNote()
	doc["theirs"] = note
	switch how {
	case "alive":
		doc["status"], doc["lastSessionId"] = "alive", "mine"
	case "soul":
		doc["individuationArtifact"], doc["name"], doc["gridPosition"] = "another one", "Another", 0
	case "broken":
		w.putDocument(name, []byte(`{"theirs":"`+note+`"`), note)
		return
	case "empty":
		w.putDocument(name, nil, "")
		return
	case "same":
		w.putDocument(name, old.bytes, old.note)
		return
	}
	b, _ := json.MarshalIndent(doc, "", "\t")
	w.putDocument(name, b, note)
}

// checkDocuments runs at the end of a day. The files must agree with the journal, and nothing that
// other programs wrote may be lost.
func (w documentWorld) checkDocuments() {
	if crewWorld(w).lead() == "" {
		return
	}
	f := w.documents
	kept := map[string]bool{}
	for _, l := range f.aside {
		kept[l.note] = true
	}
	for id, doc := range w.truth.Crew.Docs {
		l := f.files[string(id)+".json"]
		if l == nil {
			checks(w).broken(fileIsTrue, "%s is in the journal but has no file", id)
			return
		}
		says, _, err := crewdocs.ReadDocument(l.bytes)
		checks(w).check(fileIsTrue, err == nil && crewdocs.DocumentSum(&says) == crewdocs.DocumentSum(doc),
			"the file of %s contains %s, want %s (%v)", id, l.bytes, crewdocs.WriteDocument(doc), err)
	}
	for name, l := range f.files {
		checks(w).check(foreignKept, w.truth.Crew.Docs[crew.DocID(strings.TrimSuffix(name, ".json"))] != nil,
			"%s exists, but was neither imported nor moved aside: %s", name, l.bytes)
		checks(w).check(foreignKept, l.note == "" || w.noted[l.note], "%q was written into %s and is not in the journal", l.note, name)
	}
	for name, l := range f.replaced {
		checks(w).check(foreignKept, l.note == "" || w.noted[l.note], "%q is in the replaced file %s and not in the journal", l.note, name)
	}
	for note, name := range f.mustBeStored {
		checks(w).check(foreignKept, w.noted[note] || kept[note], "%q was in %s when Fairlead overwrote it, and is not in the journal",
			note, name)
	}
}
