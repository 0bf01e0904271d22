package seam

import (
	"github.com/fairlead-dev/fairlead/crewfile"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// Documents accesses the folder of the crew's documents; crewfile.DocumentFiles is the production
// implementation.
type Documents interface {
	Make() error
	News() <-chan struct{}
	Look(ours func(stem string, sum file.Sum) bool, sound func([]byte) error) (crewfile.DocumentSight, error)
	Took(crewfile.FoundDocument)
	PutAside(found crewfile.FoundDocument, why string) (string, error)
	Write(stem string, content []byte, seen file.Sum, ours func(file.Sum) bool) error
}
