package crewdocs

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/files/exchange"
)

// Ending ends the names of the crew's documents. What precedes it is the document's ID.
const Ending = ".json"

// File is what the file of a document says.
type File struct {
	Document crew.Document
	Bare     bool // see ReadDocument
}

// Content is a crew's document for the exchange.
var Content = exchange.Content[File]{Name: "document", Ending: Ending, Most: DocumentBytesMax, Parse: parse}

func parse(b []byte) (f File, err error) {
	f.Document, f.Bare, err = ReadDocument(b)
	return f, err
}

// Seen is one observation of a document's file, Changed the error of a write that found another one.
type (
	Seen    = exchange.Seen[File]
	Changed = exchange.Changed[File]
)

// Documents are the files of a crew's documents, in one folder.
type Documents struct {
	*exchange.Files[File]
	folder string
}

// Watch prepares the exchange of a folder, which need not exist yet; Begin starts it.
func Watch(folder string, log *slog.Logger) *Documents {
	return &Documents{exchange.Watch(Content, log), folder}
}

// Begin delivers the folder's files, and from then on what changes in it.
func (d *Documents) Begin(to func(Seen)) error {
	d.Deliver(to)
	return d.Add("the crew", d.folder)
}

// Make creates the folder, so that other programs can put files into it.
func (d *Documents) Make() error {
	if err := os.MkdirAll(d.folder, exchange.FolderMode); err != nil {
		return fmt.Errorf("make the folder of the agents' documents: %w", err)
	}
	return nil
}
