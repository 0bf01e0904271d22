package crew

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
	"github.com/fairlead-dev/fairlead/files/exchange"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

const (
	documentsRound   = 64       // foreign files imported per round; the next round starts at once
	DocumentBytesAll = 16 << 20 // of souls and unknown fields, with an import: every snapshot contains all of them
	documentNamed    = 5        // files that one notice names
)

// DocumentSum identifies the bytes that a document is written as.
func DocumentSum(doc *crew.Document) string { return crewdocs.DocumentSum(doc) }

// DocumentsBegin starts the exchange between document files and journal. It reads before it writes.
func (c *Controller) DocumentsBegin() {
	if c.opts.Documents == nil {
		return
	}
	c.loop.Go(NewDocumentFiles(c, c.opts.Documents).keep)
}

// DocumentFiles is the only reader and writer of the documents' files in this process.
type DocumentFiles struct {
	crew  *Controller
	files outside.Documents
	known map[string]*documentFile // by name
	begun bool                     // the files are watched
	leads bool                     // the team has a lead
	made  bool                     // the folder exists, so that other programs can put files into it
	warns string                   // the last warning about the folder
	stuck map[string]string        // files that cannot be written, and why

	news    chan struct{} // arrived is not empty
	mu      sync.Mutex    // guards arrived
	arrived []crewdocs.Seen
}

// documentFile is the state of one file. All of it can be derived again.
type documentFile struct {
	of     *crew.Document  // of which these are:
	want   file.Sum        // what the file has to contain
	agrees file.Sum        // foreign content with the same meaning in other bytes: it stays
	holds  file.Sum        // what the file contains, if it may be replaced
	seen   uint64          // Seq of the last observation of the file
	now    *crewdocs.Seen  // that observation, while it is undecided
	old    []crewdocs.Seen // undecided observations of replaced files
	fault  string          // why the file can neither be read nor written
	stays  file.Sum        // content that cannot be put aside; the reason was already reported
	rate   loop.Bucket     // limits the import of foreign content
	next   time.Time       // no foreign content is imported before
	fixes  loop.Bucket     // limits writes that repeat the last content
}

// NewDocumentFiles keeps files equal to the journal.
func NewDocumentFiles(c *Controller, files outside.Documents) *DocumentFiles {
	return &DocumentFiles{crew: c, files: files, known: map[string]*documentFile{}, news: make(chan struct{}, 1)}
}

const (
	documentsFolderRetry = time.Second
	documentWriteWait    = 2 * file.TornFor // for a write by another program; the other documents wait as long
)

// keep reads and writes until Fairlead stops.
func (p *DocumentFiles) keep(ctx context.Context) {
	again := time.NewTimer(0) // the first round
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.crew.CrewState.moved:
		case <-p.news:
		case <-again.C:
		}
		changed := p.crew.CrewState.changed.Load()
		wait, behind, err := p.round(ctx)
		if !behind && p.crew.CrewState.filed.Swap(changed) != changed && err == nil {
			err = p.crew.loop.View(ctx, func(*team.Team) {}) // a stop may have waited for this
		}
		if ctx.Err() != nil || errors.Is(err, loop.ErrClosed) {
			return
		}
		if err != nil {
			if p.warns != err.Error() {
				p.warns = err.Error()
				p.crew.log.Error("the agents' documents cannot be looked at; it is tried again every second, and the journal has everything",
					"error", err)
			}
			wait = documentsFolderRetry
		} else {
			p.warns = ""
		}
		if wait > 0 {
			again.Reset(wait)
		}
	}
}

// docs returns all documents at one moment. A document in the journal is immutable.
func (p *DocumentFiles) docs(ctx context.Context) (docs map[crew.DocID]*crew.Document, err error) {
	err = p.crew.loop.View(ctx, func(t *team.Team) { docs, p.leads = maps.Clone(t.Crew.Docs), t.Crew.Lead.Agent != "" })
	return docs, err
}

// round imports foreign content, and writes the files that differ from the journal. It returns the time until the next
// round; 0 means to wait for a change. behind: a file changed before it was written, and the next round writes it.
func (p *DocumentFiles) round(ctx context.Context) (wait time.Duration, behind bool, err error) {
	docs, err := p.docs(ctx)
	if err != nil {
		return 0, false, err
	}
	if !p.made && p.leads {
		if err := p.files.Make(); err != nil {
			return 0, false, err
		}
		p.made = true
	}
	if !p.begun {
		if err := p.files.Begin(p.deliver); err != nil {
			return 0, false, err
		}
		p.begun = true
	}
	if waiting := p.look(docs); len(waiting) > 0 {
		if wait, err = p.takeIn(ctx, docs, waiting); err != nil {
			return 0, false, err
		}
		if docs, err = p.docs(ctx); err != nil {
			return 0, false, err
		}
	}
	late, behind, err := p.write(ctx, docs)
	return loop.Sooner(wait, late), behind, err
}

// deliver receives an observation.
func (p *DocumentFiles) deliver(seen crewdocs.Seen) {
	p.mu.Lock()
	p.arrived = append(p.arrived, seen) // the exchange delivers no more than it may hold unconfirmed
	p.mu.Unlock()
	select {
	case p.news <- struct{}{}:
	default: // a round follows already
	}
}

// file is the state of a file.
func (p *DocumentFiles) file(name string) *documentFile {
	f := p.known[name]
	if f == nil {
		f = &documentFile{}
		p.known[name] = f
	}
	return f
}

// look notes what arrived, and returns the foreign content that is undecided: that of replaced files, which is older, first.
func (p *DocumentFiles) look(docs map[crew.DocID]*crew.Document) (waiting []crewdocs.Seen) {
	p.mu.Lock()
	arrived := p.arrived
	p.arrived = nil
	p.mu.Unlock()
	for _, seen := range arrived {
		f, doc := p.file(seen.Name), docs[crew.DocID(seen.Name)]
		if !seen.FromSwap {
			f.seen, f.holds, f.now, f.fault = seen.Seq, "", nil, ""
		}
		switch {
		case seen.Kind == exchange.KindUnreadable:
			f.fault = seen.Fault
		case seen.Kind == exchange.KindDeleted || doc != nil && doc.Ours(string(seen.Sum)):
			p.took(seen)
		case seen.FromSwap:
			f.old = append(f.old, seen)
		default:
			f.now = &seen
		}
	}
	names := slices.Sorted(maps.Keys(p.known))
	for _, name := range names {
		waiting = append(waiting, p.known[name].old...)
	}
	for _, name := range names {
		if now := p.known[name].now; now != nil {
			waiting = append(waiting, *now)
		}
	}
	return waiting
}

// takeIn submits foreign content: a new agent or unknown fields. Content that is not usable is set
// aside.
func (p *DocumentFiles) takeIn(
	ctx context.Context, docs map[crew.DocID]*crew.Document, waiting []crewdocs.Seen,
) (wait time.Duration, err error) {
	var offered []crewdocs.Seen
	var reqs []loop.Request
	var aside []string
	at, taken := time.Now(), weight(docs)
	for _, seen := range waiting {
		f := p.file(seen.Name)
		if f.next.After(at) { // a program that writes without end must not fill the journal
			wait = loop.Sooner(wait, f.next.Sub(at))
			continue
		}
		if len(offered)+len(aside) >= documentsRound {
			wait = time.Nanosecond
			break
		}
		if rest := f.rate.Wait(at, documentFixesMax, documentFixesEvery); rest > 0 {
			f.next = at.Add(rest)
			wait = loop.Sooner(wait, rest)
			continue
		}
		in, agrees, fault := p.read(seen, docs)
		size := len(in.Document.Soul) + len(in.Document.Extra)
		switch {
		case fault != "":
			aside = append(aside, p.PutAside(seen, "corrupt", fault))
			wait = loop.Sooner(wait, p.retry(seen))
		case agrees:
			f.agrees = seen.Sum
			p.took(seen)
		case len(offered) > 0 && docs[in.ID] == nil && taken+size > DocumentBytesAll:
			wait = time.Nanosecond // the earlier ones may be refused, which makes room
		default:
			taken += size
			offered = append(offered, seen)
			reqs = append(reqs, loop.Request{Event: loop.EventBy(byDocument(in.From), "", in)})
		}
	}
	now := docs
	answers, err := p.crew.doAll(ctx, reqs)
	if err != nil {
		return wait, err
	}
	if len(offered) > 0 {
		if now, err = p.docs(ctx); err != nil {
			return wait, err
		}
	}
	for i, seen := range offered {
		var never *journal.Refused // it is too large for one change
		switch err := answers[i].Err; {
		case errors.Is(err, loop.ErrClosed):
			return wait, err
		case loop.IsAnswer(err) || errors.As(err, &never):
			aside = append(aside, p.PutAside(seen, "refused", err.Error()))
			wait = loop.Sooner(wait, p.retry(seen))
		case err != nil:
			return wait, err
		case now[crew.DocID(seen.Name)] == nil: // its file name was not valid for a document, so it has another one
			if _, err := p.files.PutAside(seen, "imported"); err != nil {
				p.crew.log.Warn("an imported document cannot be put aside", "file", seen.Name+crewdocs.Ending, "error", err)
			}
			p.decided(seen)
		default:
			p.took(seen)
		}
	}
	return wait, p.say(ctx, aside)
}

// took allows a file to be overwritten.
func (p *DocumentFiles) took(seen crewdocs.Seen) {
	p.files.Confirm(seen)
	p.decided(seen)
	if f := p.file(seen.Name); !seen.FromSwap && f.seen == seen.Seq {
		f.holds = seen.Sum
	}
}

// decided drops an observation.
func (p *DocumentFiles) decided(seen crewdocs.Seen) {
	f := p.file(seen.Name)
	f.old = slices.DeleteFunc(f.old, func(s crewdocs.Seen) bool { return s.Seq == seen.Seq })
	if f.now != nil && f.now.Seq == seen.Seq {
		f.now = nil
	}
}

// retry is when to try again what is still undecided; 0: it is decided.
func (p *DocumentFiles) retry(seen crewdocs.Seen) time.Duration {
	f := p.file(seen.Name)
	if f.now != nil && f.now.Seq == seen.Seq || slices.ContainsFunc(f.old, func(s crewdocs.Seen) bool { return s.Seq == seen.Seq }) {
		return documentRetry
	}
	return 0
}

func byDocument(file string) change.Actor {
	return change.Actor{Kind: "human", ID: "file " + file}
}

// read turns a file into an event. agrees means that the file has the same content as the document.
func (p *DocumentFiles) read(seen crewdocs.Seen, docs map[crew.DocID]*crew.Document) (in crew.Imported, agrees bool, fault string) {
	if seen.Kind == exchange.KindMalformed {
		return in, false, seen.Fault
	}
	doc, bare := seen.State.Document, seen.State.Bare
	doc.ID = crew.DocID(seen.Name)
	if is := docs[doc.ID]; is != nil && !bare {
		agrees = DocumentSum(&doc) == DocumentSum(is)
	} else if is == nil && weight(docs)+len(doc.Soul)+len(doc.Extra) > DocumentBytesAll {
		return in, false, fullWords
	}
	return crew.Imported{ID: doc.ID, Document: doc, Bare: bare, From: seen.Name + crewdocs.Ending}, agrees, ""
}

const fullWords = "the documents of this team hold 16 MiB of souls and other fields already, which is the most that is taken in"

// weight is the number of bytes of documents in every snapshot.
func weight(docs map[crew.DocID]*crew.Document) (bytes int) {
	for _, doc := range docs {
		bytes += len(doc.Soul) + len(doc.Extra)
	}
	return bytes
}

// PutAside renames a file that cannot be imported. The new name gives the reason, and a notice
// reports it.
func (p *DocumentFiles) PutAside(seen crewdocs.Seen, why, fault string) string {
	name, err := p.files.PutAside(seen, why)
	from := seen.Name + crewdocs.Ending
	switch {
	case errors.Is(err, exchange.ErrChanged):
		p.decided(seen) // another content replaced it and arrives next
		return ""
	case err != nil:
		f := p.file(seen.Name)
		if f.stays == seen.Sum+file.Sum(fault) {
			return "" // already reported; every round finds it again
		}
		f.stays = seen.Sum + file.Sum(fault)
		p.crew.log.Warn("a document that cannot be taken in cannot be put aside either", "file", from, "fault", fault, "error", err)
		return fmt.Sprintf("%s: %s", from, fault)
	}
	p.decided(seen)
	p.crew.log.Warn("a document that another program wrote is moved aside", "file", from, "fault", fault, "kept_as", name)
	return fmt.Sprintf("%s: %s; it is kept as %s", from, fault, name)
}

const whyShownMax = 300 // bytes of why a document was set aside

// say reports the files that were set aside: one notice per round, whatever their number.
func (p *DocumentFiles) say(ctx context.Context, aside []string) error {
	var said []string
	for _, words := range aside {
		if words != "" {
			said = append(said, clip.Text(words, whyShownMax))
		}
	}
	if len(said) == 0 {
		return nil
	}
	text := "not taken in: "
	if more := len(said) - documentNamed; more > 0 {
		text = fmt.Sprintf("%d documents were not taken in, among them: ", len(said))
		said = said[:documentNamed]
	}
	_, err := p.crew.loop.Submit(ctx, sessions.ByEngine, "", crew.Faulty{Fault: text + strings.Join(said, " | ")})
	if loop.IsAnswer(err) {
		return nil
	}
	return err
}

// write updates the files that differ from the journal.
func (p *DocumentFiles) write(ctx context.Context, docs map[crew.DocID]*crew.Document) (wait time.Duration, behind bool, err error) {
	stuck := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(docs)) { // always in the same order
		doc, name := docs[id], string(id)
		f := p.file(name)
		var content []byte
		if f.of != doc {
			content = crewdocs.WriteDocument(doc)
			sum := file.SumOf(content)
			if f.want != "" && f.want != sum {
				f.agrees = "" // it agreed with other content
			}
			f.of, f.want = doc, sum
		}
		switch {
		case f.holds == f.want || f.holds != "" && f.holds == f.agrees:
			continue
		case f.fault != "":
			stuck[name] = f.fault
			continue
		case f.now != nil:
			continue // it is taken in first
		}
		if content == nil { // the same again, because another program keeps changing the file
			if rest := f.fixes.Wait(time.Now(), documentFixesMax, documentFixesEvery); rest > 0 {
				wait = loop.Sooner(wait, rest)
				continue
			}
			content = crewdocs.WriteDocument(doc)
		}
		begun, cancel := context.WithTimeout(ctx, documentWriteWait)
		err := p.files.Write(begun, name, content, f.seen, func(sum file.Sum) bool { return doc.Ours(string(sum)) })
		cancel()
		switch {
		case err == nil:
			f.holds = f.want
		case errors.Is(err, exchange.ErrChanged):
			behind = true // what is there was delivered, and the next round takes it in
		case ctx.Err() != nil:
			return 0, false, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded): // another program is writing it
			wait = loop.Sooner(wait, documentRetry)
		default:
			stuck[name] = err.Error()
			wait = loop.Sooner(wait, documentRetry)
		}
	}
	for name, why := range stuck {
		if p.stuck[name] != why {
			p.crew.log.Error("the file of an agent's document cannot be written; it is tried again, and the journal has it",
				"document", name, "error", why)
		}
	}
	p.stuck = stuck
	for name, f := range p.known {
		if docs[crew.DocID(name)] == nil && f.now == nil && len(f.old) == 0 && time.Since(f.rate.Since) > time.Minute {
			delete(p.known, name)
		}
	}
	return wait, behind, nil
}

// doAll submits requests in order, so that they are decided in this order, and waits for all
// answers.
func (c *Controller) doAll(ctx context.Context, reqs []loop.Request) ([]loop.Answer, error) {
	waits := make([]func(context.Context) (uint64, error), len(reqs))
	for i, req := range reqs {
		wait, err := c.loop.Post(ctx, req)
		if err != nil {
			return nil, err
		}
		waits[i] = wait
	}
	answers := make([]loop.Answer, len(reqs))
	for i, wait := range waits {
		answers[i].Seq, answers[i].Err = wait(ctx)
		if ctx.Err() != nil || errors.Is(answers[i].Err, loop.ErrClosed) {
			return nil, answers[i].Err
		}
	}
	return answers, nil
}

const (
	documentRetry = time.Second // after a document could not be written

	// Limit for repeated writes against a program that overwrites a document: a burst, then one write
	// per interval.
	// every interval.
	documentFixesMax   = 20
	documentFixesEvery = time.Second
)

// documentsSettled reports whether the agents' document files match the journal. A stop waits for
// it, so that a copy of the files is up to date.
func (c *Controller) documentsSettled() bool {
	return c.opts.Documents == nil || c.CrewState.filed.Load() == c.CrewState.changed.Load()
}
