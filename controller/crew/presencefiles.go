package crew

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/controller/channels"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/crewfile"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/crew"
	"github.com/fairlead-dev/fairlead/team"
)

const (
	documentsRound   = 64       // foreign files imported per round; the next round starts at once
	DocumentBytesAll = 16 << 20 // of souls and unknown fields, with an import: every snapshot contains all of them
	documentNamed    = 5        // files that one notice names
)

// DocumentSum identifies the bytes that a document is written as.
func DocumentSum(doc *crew.Document) string { return crewfile.DocumentSum(doc) }

// DocumentsBegin starts the exchange between document files and journal. It reads before it writes.
func (c *CrewController) DocumentsBegin() {
	if c.opts.Documents == nil {
		return
	}
	c.Go(func(ctx context.Context) {
		p := &DocumentPen{E: c, Files: c.opts.Documents, Papers: map[string]*DocumentPaper{}}
		p.keep(ctx)
	})
}

// DocumentPen is the only reader and writer of the document files in this process. No other write by
// Fairlead can therefore happen between a read and the following write.
type DocumentPen struct {
	E      *CrewController
	Files  seam.Documents
	Papers map[string]*DocumentPaper // by stem
	leads  bool                      // the team has a lead
	made   bool                      // the folder exists, so that other programs can put files into it
	behind bool                      // a file changed between read and write: the next round writes it
	warned string                    // last warning about the folder
	stuck  map[string]string         // files that cannot be written, and why
}

// DocumentPaper is the state of one file. All of it can be derived again.
type DocumentPaper struct {
	of     *crew.Document // of which these are:
	want   file.Sum
	agrees file.Sum    // a foreign file with the same content in other bytes: it stays
	stays  file.Sum    // a file that cannot be moved aside; the reason was already reported
	news   loop.Bucket // limits the import of foreign content
	next   time.Time   // no foreign content is imported before
}

const documentsFolderRetry = time.Second

// keep reads and writes until Fairlead stops.
func (p *DocumentPen) keep(ctx context.Context) {
	again := time.NewTimer(0) // the first round
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.E.CrewState.moved:
		case <-p.Files.News():
		case <-again.C:
		}
		changed := p.E.CrewState.changed.Load()
		wait, err := p.round(ctx)
		if !p.behind && p.E.CrewState.filed.Swap(changed) != changed && err == nil {
			err = p.E.View(ctx, func(*team.Team) {}) // a stop may have waited for this
		}
		if ctx.Err() != nil || errors.Is(err, loop.ErrClosed) {
			return
		}
		if err != nil {
			if p.warned != err.Error() {
				p.warned = err.Error()
				p.E.log.Error("the agents' documents cannot be looked at; it is tried again every second, and the journal has everything", "error", err)
			}
			wait = documentsFolderRetry
		} else {
			p.warned = ""
		}
		if wait > 0 {
			again.Reset(wait)
		}
	}
}

// known returns all documents at one moment. A document in the journal is immutable.
func (p *DocumentPen) known(ctx context.Context) (docs map[crew.DocID]*crew.Document, err error) {
	err = p.E.View(ctx, func(t *team.Team) { docs, p.leads = maps.Clone(t.Crew.Docs), t.Crew.Lead.Agent != "" })
	return docs, err
}

// round reads the files once, imports foreign content, and writes the files that differ from the
// journal. It returns the time until the next round; 0 means to wait for a change.
func (p *DocumentPen) round(ctx context.Context) (time.Duration, error) {
	docs, err := p.known(ctx)
	if err != nil {
		return 0, err
	}
	if !p.made && p.leads {
		if err := p.Files.Make(); err != nil {
			return 0, err
		}
		p.made = true
	}
	sight, err := p.Files.Look(
		func(stem string, sum file.Sum) bool {
			doc := docs[crew.DocID(stem)]
			return doc != nil && doc.Ours(string(sum))
		},
		func(content []byte) error {
			_, _, err := crewfile.ReadDocument(content)
			return err
		})
	if err != nil {
		return 0, err
	}
	wait := sight.Again
	if len(sight.Found) > 0 {
		more, err := p.takeIn(ctx, docs, sight)
		if err != nil {
			return 0, err
		}
		wait = loop.Sooner(wait, more)
		if docs, err = p.known(ctx); err != nil {
			return 0, err
		}
	}
	late, err := p.write(docs, sight)
	return loop.Sooner(wait, late), err
}

// paper is the state of a file.
func (p *DocumentPen) paper(stem string) *DocumentPaper {
	paper := p.Papers[stem]
	if paper == nil {
		paper = &DocumentPaper{}
		p.Papers[stem] = paper
	}
	return paper
}

// takeIn submits foreign content: a new agent or unknown fields. Content that is not usable is set
// aside.
func (p *DocumentPen) takeIn(ctx context.Context, docs map[crew.DocID]*crew.Document, sight crewfile.DocumentSight) (wait time.Duration, err error) {
	var offered []crewfile.FoundDocument
	var reqs []loop.Request
	var aside []string
	at, taken := time.Now(), weight(docs)
	for _, found := range sight.Found {
		paper := p.paper(found.Stem)
		if paper.next.After(at) { // a program that writes without end must not fill the journal
			wait = loop.Sooner(wait, paper.next.Sub(at))
			continue
		}
		if len(offered)+len(aside) >= documentsRound {
			wait = time.Nanosecond
			break
		}
		if rest := paper.news.Wait(at, documentFixesMax, documentFixesEvery); rest > 0 {
			paper.next = at.Add(rest)
			wait = loop.Sooner(wait, rest)
			continue
		}
		in, agrees, fault := p.read(found, docs)
		size := len(in.Document.Soul) + len(in.Document.Extra)
		switch {
		case fault != "":
			aside = append(aside, p.PutAside(found, "corrupt", fault))
		case agrees:
			paper.agrees = found.Sum
			p.took(found, sight)
		case len(offered) > 0 && docs[in.ID] == nil && taken+size > DocumentBytesAll:
			wait = time.Nanosecond // the earlier ones may be refused, which makes room
		default:
			taken += size
			offered = append(offered, found)
			reqs = append(reqs, loop.Request{Event: loop.EventBy(byDocument(found.Name), "", in)})
		}
	}
	now := docs
	answers, err := p.E.doAll(ctx, reqs)
	if err != nil {
		return wait, err
	}
	if len(offered) > 0 {
		if now, err = p.known(ctx); err != nil {
			return wait, err
		}
	}
	for i, found := range offered {
		var never *journal.Refused // it is too large for one change
		switch err := answers[i].Err; {
		case errors.Is(err, loop.ErrClosed):
			return wait, err
		case loop.IsAnswer(err) || errors.As(err, &never):
			aside = append(aside, p.PutAside(found, "refused", err.Error()))
		case err != nil:
			return wait, err
		case now[crew.DocID(found.Stem)] == nil: // its file name was not valid for a document, so it has another one
			if _, err := p.Files.PutAside(found, "imported"); err != nil {
				p.E.log.Warn("an imported document cannot be put aside", "file", found.Name, "error", err)
			}
		default:
			p.took(found, sight)
		}
	}
	return wait, p.say(ctx, aside)
}

// took allows a file to be overwritten.
func (p *DocumentPen) took(found crewfile.FoundDocument, sight crewfile.DocumentSight) {
	p.Files.Took(found)
	if !found.Swapped {
		delete(sight.Busy, found.Stem)
		sight.Lies[found.Stem] = found.Sum
	}
}

func byDocument(file string) team.Actor {
	return team.Actor{Kind: "human", ID: "file " + file}
}

// read turns a file into an event. agrees means that the file has the same content as the document.
func (p *DocumentPen) read(found crewfile.FoundDocument, docs map[crew.DocID]*crew.Document) (in crew.Imported, agrees bool, fault string) {
	if found.Fault != "" {
		return in, false, found.Fault
	}
	doc, bare, err := crewfile.ReadDocument(found.Bytes)
	if err != nil {
		return in, false, err.Error()
	}
	doc.ID = crew.DocID(found.Stem)
	if is := docs[doc.ID]; is != nil && !bare {
		agrees = DocumentSum(&doc) == DocumentSum(is)
	} else if is == nil && weight(docs)+len(doc.Soul)+len(doc.Extra) > DocumentBytesAll {
		return in, false, fullWords
	}
	return crew.Imported{ID: doc.ID, Document: doc, Bare: bare, From: found.Name}, agrees, ""
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
func (p *DocumentPen) PutAside(found crewfile.FoundDocument, why, fault string) string {
	name, err := p.Files.PutAside(found, why)
	switch {
	case errors.Is(err, crewfile.ErrDocumentChanged):
		return "" // another file replaced it and is read next
	case err != nil:
		paper := p.paper(found.Stem)
		if paper.stays == found.Sum+file.Sum(fault) {
			return "" // already reported; every round finds it again
		}
		paper.stays = found.Sum + file.Sum(fault)
		p.E.log.Warn("a document that cannot be taken in cannot be put aside either", "file", found.Name, "fault", fault, "error", err)
		return fmt.Sprintf("%s: %s", found.Name, fault)
	}
	p.E.log.Warn("a document that another program wrote is moved aside", "file", found.Name, "fault", fault, "kept_as", name)
	return fmt.Sprintf("%s: %s; it is kept as %s", found.Name, fault, name)
}

// say reports the files that were set aside: one notice per round, whatever their number.
func (p *DocumentPen) say(ctx context.Context, aside []string) error {
	var said []string
	for _, words := range aside {
		if words != "" {
			said = append(said, clip.Text(words, channels.WhyShownMax))
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
	_, err := p.E.Submit(ctx, sessions.ByEngine, "", crew.Faulty{Fault: text + strings.Join(said, " | ")})
	if loop.IsAnswer(err) {
		return nil
	}
	return err
}

// write updates the files that differ from the journal.
func (p *DocumentPen) write(docs map[crew.DocID]*crew.Document, sight crewfile.DocumentSight) (wait time.Duration, err error) {
	stuck := map[string]string{}
	p.behind = false
	for _, id := range slices.Sorted(maps.Keys(docs)) { // always in the same order
		doc, stem := docs[id], string(id)
		paper := p.paper(stem)
		var content []byte
		if paper.of != doc {
			content = crewfile.WriteDocument(doc)
			paper.of, paper.want, paper.agrees = doc, file.SumOf(content), p.still(paper, content)
		}
		lies := sight.Lies[stem]
		if lies == paper.want || lies != "" && lies == paper.agrees {
			continue
		}
		if why, busy := sight.Busy[stem]; busy {
			if why != "" {
				stuck[stem] = why
			}
			continue
		}
		if content == nil {
			content = crewfile.WriteDocument(doc)
		}
		err := p.Files.Write(stem, content, lies, func(sum file.Sum) bool { return doc.Ours(string(sum)) })
		switch {
		case errors.Is(err, crewfile.ErrDocumentChanged):
			p.behind, wait = true, loop.Sooner(wait, time.Millisecond)
		case err != nil:
			stuck[stem] = err.Error()
			wait = loop.Sooner(wait, documentRetry)
		}
	}
	for stem, why := range stuck {
		if p.stuck[stem] != why {
			p.E.log.Error("the file of an agent's document cannot be written; it is tried again, and the journal has it", "document", stem, "error", why)
		}
	}
	p.stuck = stuck
	for stem := range p.Papers {
		if docs[crew.DocID(stem)] == nil && p.Papers[stem].used(time.Now()) {
			delete(p.Papers, stem)
		}
	}
	return wait, nil
}

// still is the sum of a file that matched a document before the document changed. The sum is empty
// if the change affects the written bytes.
func (p *DocumentPen) still(paper *DocumentPaper, content []byte) file.Sum {
	if paper.want == file.SumOf(content) || paper.want == "" {
		return paper.agrees
	}
	return ""
}

// used reports whether the state of a file without a document can be dropped.
func (d *DocumentPaper) used(now time.Time) bool { return now.Sub(d.news.Since) > time.Minute }

// doAll submits requests in order, so that they are decided in this order, and waits for all
// answers.
func (c *CrewController) doAll(ctx context.Context, reqs []loop.Request) ([]loop.Answer, error) {
	waits := make([]func(context.Context) (uint64, error), len(reqs))
	for i, req := range reqs {
		wait, err := c.Post(ctx, req)
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
