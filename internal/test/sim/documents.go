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

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/crewfile"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/crew"
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
	return &documentFolder{files: map[string]*documentVersion{}, replaced: map[string]*documentVersion{}, raceWrites: map[string]func(){}, mustBeStored: map[string]string{}}
}

func (l *documentVersion) sum() file.Sum { return file.SumOf(l.bytes) }

// documentFiles is one engine's access to the folder. It behaves as crewfile.DocumentFiles
// documents it.
type documentFiles struct {
	w        *world
	l        *engineRun
	news     chan struct{}
	recorded map[*documentVersion]bool
}

var _ seam.Documents = (*documentFiles)(nil)

func newDocumentFiles(w *world, l *engineRun) *documentFiles {
	return &documentFiles{w: w, l: l, news: make(chan struct{}, 1), recorded: map[*documentVersion]bool{}}
}

// documentsFor returns nil on a day without a lead.
func (w documentWorld) documentsFor(c *documentFiles) seam.Documents {
	if crewWorld(w).lead() == "" {
		return nil
	}
	return c
}

// Make does nothing: the map exists already.
func (c *documentFiles) Make() error { return nil }

func (c *documentFiles) News() <-chan struct{} { return c.news }

// notifyDocuments notifies every running engine; the caller holds the lock.
func (w documentWorld) notifyDocuments() {
	for _, l := range w.engines {
		select {
		case l.documentFiles.news <- struct{}{}:
		default:
		}
	}
}

func (c *documentFiles) Look(ours func(string, file.Sum) bool, sound func([]byte) error) (sight crewfile.DocumentSight, err error) {
	err = c.w.act(c.l, "observe documents", func() error {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		sight = c.look(ours, sound)
		return nil
	})
	return sight, err
}

func (c *documentFiles) look(ours func(string, file.Sum) bool, sound func([]byte) error) crewfile.DocumentSight {
	sight := crewfile.DocumentSight{Lies: map[string]file.Sum{}, Busy: map[string]string{}}
	f := c.w.documents
	for _, at := range sortedKeys(f.replaced) {
		l := f.replaced[at]
		stem := strings.TrimSuffix(l.name, ".json")
		if c.recorded[l] || ours(stem, l.sum()) {
			continue
		}
		found := crewfile.FoundDocument{Name: l.name, Stem: stem, At: at, Bytes: l.bytes, Sum: l.sum(), Swapped: true}
		if err := sound(l.bytes); err != nil {
			found.Fault = err.Error()
		}
		sight.Found = append(sight.Found, found)
	}
	for _, name := range sortedKeys(f.files) {
		l := f.files[name]
		stem := strings.TrimSuffix(name, ".json")
		if c.recorded[l] || ours(stem, l.sum()) {
			sight.Lies[stem] = l.sum()
			continue
		}
		sight.Busy[stem] = ""
		found := crewfile.FoundDocument{Name: name, Stem: stem, At: name, Bytes: l.bytes, Sum: l.sum()}
		if err := sound(l.bytes); err != nil {
			if time.Since(l.since) < tornFor { // another program is still writing it
				sight.Again = tornFor
				continue
			}
			found.Fault = err.Error()
		}
		sight.Found = append(sight.Found, found)
	}
	return sight
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// at returns the version that was found, or nil if it has changed.
func (c *documentFiles) at(found crewfile.FoundDocument) *documentVersion {
	l := c.w.documents.files[found.At]
	if found.Swapped {
		l = c.w.documents.replaced[found.At]
	}
	if l == nil || l.sum() != found.Sum {
		return nil
	}
	return l
}

// Took allows a version to be overwritten, so its content must be in the journal by now.
func (c *documentFiles) Took(found crewfile.FoundDocument) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	l := c.at(found)
	if l == nil || c.l.dead {
		return
	}
	checks{c.w}.check(foreignKept, l.note == "" || c.w.noted[l.note], "%q in %s counts as imported and is not in the journal", l.note, l.name)
	c.recorded[l] = true
}

func (c *documentFiles) PutAside(found crewfile.FoundDocument, why string) (name string, err error) {
	err = c.w.act(c.l, "aside "+found.Stem, func() error {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		f, l := c.w.documents, c.at(found)
		if l == nil {
			return crewfile.ErrDocumentChanged
		}
		f.n++
		name = fmt.Sprintf("%s.%s-%d", l.name, why, f.n)
		delete(f.files, found.At)
		delete(f.replaced, found.At)
		f.aside = append(f.aside, l)
		c.w.notef("%s was renamed to %s", l.name, name)
		return nil
	})
	return name, err
}

func (c *documentFiles) Write(stem string, content []byte, seen file.Sum, ours func(file.Sum) bool) error {
	c.w.mu.Lock()
	doc := c.w.truth.Crew.Docs[crew.DocID(stem)]
	checks{c.w}.check(durableFirst, c.l.dead || doc != nil && doc.Ours(string(file.SumOf(content))), "the document %s is about to be written, but its content is not stored: %s", stem, content)
	c.w.mu.Unlock()
	return c.w.act(c.l, "install "+stem, func() error {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		return c.write(stem+".json", content, seen, ours)
	})
}

func (c *documentFiles) write(name string, content []byte, seen file.Sum, ours func(file.Sum) bool) error {
	f := c.w.documents
	was := file.Sum("")
	if l := f.files[name]; l != nil {
		was = l.sum()
	}
	if was != seen && (was == "" || !ours(was)) {
		return crewfile.ErrDocumentChanged
	}
	if write := f.raceWrites[name]; write != nil {
		delete(f.raceWrites, name)
		write()
	}
	old := f.files[name]
	f.files[name] = &documentVersion{name: name, bytes: content, since: time.Now()}
	c.w.notef("%s was written", name)
	if old != nil && old.foreign {
		if old.note != "" {
			f.mustBeStored[old.note] = name
		}
		if old.sum() != was { // another program wrote it after the engine's read
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
		"type": "agent-identity", "status": "sleeping", "name": "Guest " + note[5:], "color": "#123456", "colorName": "Blue", "gender": "man",
		"gridPosition": seat, "faceVariant": map[string]string{"eyes": "round", "mouth": "wide"}, "individuationArtifact": "the soul of <" + note[5:] + "> & \"more\"",
		"createdAt": "2026-02-16T00:00:00.000Z", "lastAliveAt": "2026-02-16T12:00:00.000Z", "lastSessionId": "of another device", "theirs": note,
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
		_, err := l.engine.ImportDocument(ctx, byPerson, data)
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
		says, _, err := crewfile.ReadDocument(l.bytes)
		checks(w).check(fileIsTrue, err == nil && crewfile.DocumentSum(&says) == crewfile.DocumentSum(doc), "the file of %s contains %s, want %s (%v)", id, l.bytes, crewfile.WriteDocument(doc), err)
	}
	for name, l := range f.files {
		checks(w).check(foreignKept, w.truth.Crew.Docs[crew.DocID(strings.TrimSuffix(name, ".json"))] != nil, "%s exists, but was neither imported nor moved aside: %s", name, l.bytes)
		checks(w).check(foreignKept, l.note == "" || w.noted[l.note], "%q was written into %s and is not in the journal", l.note, name)
	}
	for name, l := range f.replaced {
		checks(w).check(foreignKept, l.note == "" || w.noted[l.note], "%q is in the replaced file %s and not in the journal", l.note, name)
	}
	for note, name := range f.mustBeStored {
		checks(w).check(foreignKept, w.noted[note] || kept[note], "%q was in %s when Fairlead overwrote it, and is not in the journal", note, name)
	}
}
