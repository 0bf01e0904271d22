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
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/machine/crew"
)

// folder is where the documents are files. It outlives engines. The world's lock guards it.
type folder struct {
	leaves map[string]*leaf  // by name
	swaps  map[string]*leaf  // what our writes took out of its place, by a name of its own
	aside  []*leaf           // kept under another name
	pens   map[string]func() // a foreign write between the engine's read and its exchange
	owed   map[string]string // by the note of a foreign write that Fairlead removed: its file
	n      int
}

// leaf is one content of one file.
type leaf struct {
	name    string
	bytes   []byte
	foreign bool
	note    string // in it, if another program wrote it: unique
	since   time.Time
}

func newFolder() *folder {
	return &folder{leaves: map[string]*leaf{}, swaps: map[string]*leaf{}, pens: map[string]func(){}, owed: map[string]string{}}
}

func (l *leaf) sum() file.Sum { return file.SumOf(l.bytes) }

// clerk is the folder as one engine knows it: crewfile.DocumentFiles as its documentation says it.
type clerk struct {
	w     *world
	l     *life
	news  chan struct{}
	taken map[*leaf]bool
}

var _ seam.Documents = (*clerk)(nil)

func newClerk(w *world, l *life) *clerk {
	return &clerk{w: w, l: l, news: make(chan struct{}, 1), taken: map[*leaf]bool{}}
}

// documents is nil on a day without a lead.
func (w *world) documents(c *clerk) seam.Documents {
	if w.lead() == "" {
		return nil
	}
	return c
}

// Make has nothing to do: a map is always there.
func (c *clerk) Make() error { return nil }

func (c *clerk) News() <-chan struct{} { return c.news }

// ringAll tells every engine that lives; the caller holds the lock.
func (w *world) ringAll() {
	for _, l := range w.lives {
		select {
		case l.clerk.news <- struct{}{}:
		default:
		}
	}
}

func (c *clerk) Look(ours func(string, file.Sum) bool, sound func([]byte) error) (sight crewfile.DocumentSight, err error) {
	err = c.w.act(c.l, "peek papers", func() error {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		sight = c.look(ours, sound)
		return nil
	})
	return sight, err
}

func (c *clerk) look(ours func(string, file.Sum) bool, sound func([]byte) error) crewfile.DocumentSight {
	sight := crewfile.DocumentSight{Lies: map[string]file.Sum{}, Busy: map[string]string{}}
	f := c.w.folder
	for _, at := range sortedKeys(f.swaps) {
		l := f.swaps[at]
		stem := strings.TrimSuffix(l.name, ".json")
		if c.taken[l] || ours(stem, l.sum()) {
			continue
		}
		found := crewfile.FoundDocument{Name: l.name, Stem: stem, At: at, Bytes: l.bytes, Sum: l.sum(), Swapped: true}
		if err := sound(l.bytes); err != nil {
			found.Fault = err.Error()
		}
		sight.Found = append(sight.Found, found)
	}
	for _, name := range sortedKeys(f.leaves) {
		l := f.leaves[name]
		stem := strings.TrimSuffix(name, ".json")
		if c.taken[l] || ours(stem, l.sum()) {
			sight.Lies[stem] = l.sum()
			continue
		}
		sight.Busy[stem] = ""
		found := crewfile.FoundDocument{Name: name, Stem: stem, At: name, Bytes: l.bytes, Sum: l.sum()}
		if err := sound(l.bytes); err != nil {
			if time.Since(l.since) < tornFor { // it is being written
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

// at is what was found, if it is still there.
func (c *clerk) at(found crewfile.FoundDocument) *leaf {
	l := c.w.folder.leaves[found.At]
	if found.Swapped {
		l = c.w.folder.swaps[found.At]
	}
	if l == nil || l.sum() != found.Sum {
		return nil
	}
	return l
}

// Took: what is taken may be written over, so it has to be in the journal by now.
func (c *clerk) Took(found crewfile.FoundDocument) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	l := c.at(found)
	if l == nil || c.l.dead {
		return
	}
	c.w.check(foreignKept, l.note == "" || c.w.noted[l.note], "%q in %s counts as taken in, and is not in the journal", l.note, l.name)
	c.taken[l] = true
}

func (c *clerk) PutAside(found crewfile.FoundDocument, why string) (name string, err error) {
	err = c.w.act(c.l, "aside "+found.Stem, func() error {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		f, l := c.w.folder, c.at(found)
		if l == nil {
			return crewfile.ErrDocumentChanged
		}
		f.n++
		name = fmt.Sprintf("%s.%s-%d", l.name, why, f.n)
		delete(f.leaves, found.At)
		delete(f.swaps, found.At)
		f.aside = append(f.aside, l)
		c.w.came("%s is kept as %s", l.name, name)
		return nil
	})
	return name, err
}

func (c *clerk) Write(stem string, content []byte, seen file.Sum, ours func(file.Sum) bool) error {
	c.w.mu.Lock()
	doc := c.w.truth.Crew.Docs[crew.DocID(stem)]
	c.w.check(durableFirst, c.l.dead || doc != nil && doc.Ours(string(file.SumOf(content))), "the document %s is to be written, and what it is to say is not stored: %s", stem, content)
	c.w.mu.Unlock()
	return c.w.act(c.l, "inks "+stem, func() error {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		return c.write(stem+".json", content, seen, ours)
	})
}

func (c *clerk) write(name string, content []byte, seen file.Sum, ours func(file.Sum) bool) error {
	f := c.w.folder
	was := file.Sum("")
	if l := f.leaves[name]; l != nil {
		was = l.sum()
	}
	if was != seen && (was == "" || !ours(was)) {
		return crewfile.ErrDocumentChanged
	}
	if pen := f.pens[name]; pen != nil {
		delete(f.pens, name)
		pen()
	}
	old := f.leaves[name]
	f.leaves[name] = &leaf{name: name, bytes: content, since: time.Now()}
	c.w.came("%s says what the journal says", name)
	if old != nil && old.foreign {
		if old.note != "" {
			f.owed[old.note] = name
		}
		if old.sum() != was { // found swapped out
			f.n++
			f.swaps[fmt.Sprintf(".swap-%d-%s", f.n, name)] = old
			c.w.ringAll()
		}
	}
	return nil
}

var isPaperNote = regexp.MustCompile(`note-[0-9]+n`)

// noteIn records what another program wrote into a document and what this change puts into the
// journal.
func (w *world) noteIn(body *crew.Body) {
	if body.Doc != nil {
		for _, note := range isPaperNote.FindAllString(string(body.Doc.Extra), -1) {
			w.noted[note] = true
		}
	}
}

func (w *world) paperNote() string {
	w.notes++
	return fmt.Sprintf("note-%dn", w.notes)
}

// paper is a document that comes from elsewhere; the caller holds the lock.
func (w *world) paper(a Act, note string) []byte {
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
	b, err := json.Marshal(doc)
	if err != nil {
		panic("sim: " + err.Error())
	}
	return b
}

// handsIn has a person import a document.
func (w *world) handsIn(a Act) {
	w.mu.Lock()
	note := w.paperNote()
	data := w.paper(a, note)
	w.mu.Unlock()
	w.give("import "+note, note, func(ctx context.Context, l *life) (uint64, error) {
		_, err := l.engine.ImportDocument(ctx, byPerson, data)
		return 0, err
	})
}

// onPaper has another program work in the folder of the documents.
func (w *world) onPaper(a Act) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, is := w.folder, w.crew.nth(int(a.MS))
	switch {
	case a.Do == "paper":
		note := w.paperNote()
		name := "guest-" + note[5:] + ".json"
		if a.Word == "odd" {
			name = "an odd name " + name
		}
		w.lay(name, w.paper(a, note), note)
	case is == nil:
		return
	case a.Do == "shred":
		delete(f.leaves, is.id+".json")
	default:
		w.blot(is.id+".json", a.Word)
	}
	w.ringAll()
}

// raceOnPaper lets a write proceed after another program's write.
func (w *world) raceOnPaper(key, name string) {
	w.mu.Lock()
	w.folder.pens[name] = func() { w.blot(name, "extra") }
	w.mu.Unlock()
	w.let(key, raced)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.folder.pens, name)
}

// lay puts a file in its place at once.
func (w *world) lay(name string, content []byte, note string) {
	w.folder.leaves[name] = &leaf{name: name, bytes: content, foreign: true, note: note, since: time.Now()}
	w.came("another program writes %s: %s", name, note)
}

// blot has another program write into the file of a known member.
func (w *world) blot(name, how string) {
	old := w.folder.leaves[name]
	if old == nil {
		return
	}
	var doc map[string]any
	if json.Unmarshal(old.bytes, &doc) != nil {
		return
	}
	note := w.paperNote()
	doc["theirs"] = note
	switch how {
	case "alive":
		doc["status"], doc["lastSessionId"] = "alive", "mine"
	case "soul":
		doc["individuationArtifact"], doc["name"], doc["gridPosition"] = "another one", "Another", 0
	case "broken":
		w.lay(name, []byte(`{"theirs":"`+note+`"`), note)
		return
	case "empty":
		w.lay(name, nil, "")
		return
	case "same":
		w.lay(name, old.bytes, old.note)
		return
	}
	b, _ := json.MarshalIndent(doc, "", "\t")
	w.lay(name, b, note)
}

// checkPapers is the end of a day: the files say what the journal says, and nothing is lost that
// others wrote.
func (w *world) checkPapers() {
	if w.lead() == "" {
		return
	}
	f := w.folder
	kept := map[string]bool{}
	for _, l := range f.aside {
		kept[l.note] = true
	}
	for id, doc := range w.truth.Crew.Docs {
		l := f.leaves[string(id)+".json"]
		if l == nil {
			w.broken(fileIsTrue, "%s is in the journal, and has no file", id)
			return
		}
		says, _, err := crewfile.ReadDocument(l.bytes)
		w.check(fileIsTrue, err == nil && crewfile.DocumentSum(&says) == crewfile.DocumentSum(doc), "the file of %s says %s, the journal %s (%v)", id, l.bytes, crewfile.WriteDocument(doc), err)
	}
	for name, l := range f.leaves {
		w.check(foreignKept, w.truth.Crew.Docs[crew.DocID(strings.TrimSuffix(name, ".json"))] != nil, "%s exists, but was neither imported nor moved aside: %s", name, l.bytes)
		w.check(foreignKept, l.note == "" || w.noted[l.note], "%q was written into %s, and is not in the journal", l.note, name)
	}
	for name, l := range f.swaps {
		w.check(foreignKept, l.note == "" || w.noted[l.note], "%q was found swapped out (%s), and is not in the journal", l.note, name)
	}
	for note, name := range f.owed {
		w.check(foreignKept, w.noted[note] || kept[note], "%q stood in %s and was written over by us, and it is not in the journal", note, name)
	}
}
