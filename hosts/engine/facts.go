package engine

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// Facts are what a host has learned of the engine hosts of its team.
type Facts struct {
	Engines []cluster.EngineHost `json:"engines"` // by name; with this one
	Stream  bool                 `json:"stream"`  // the journal is in their stream

	Leader string `json:"leader,omitempty"` // the host that leads or led
	Config string `json:"config,omitempty"` // the identity of its fairlead.yaml

	// Lost: a person has said that the other engine hosts are lost, and this one continues with its copy of the journal. It takes
	// them out of the journal when it starts.
	Lost bool `json:"lost,omitempty"`
}

// FactsFile is the name of their file in the folder of the cluster. StoreFolder is that of the server's store.
const (
	FactsFile   = "engines.json"
	StoreFolder = "nats"
)

// LoadFacts reads what StoreFacts wrote; nothing is known if it never did.
func LoadFacts(folder string) (f Facts, err error) {
	return f, file.LoadJSON(filepath.Join(folder, FactsFile), &f)
}

// StoreFacts keeps them.
func StoreFacts(folder string, f Facts) error {
	if err := file.StoreJSON(filepath.Join(folder, FactsFile), f); err != nil {
		return fmt.Errorf("keep what is known of the engine hosts: %w", err)
	}
	return nil
}

// Equal reports whether two hosts have learned the same.
func (f Facts) Equal(other Facts) bool {
	return f.Stream == other.Stream && f.Lost == other.Lost && f.Leader == other.Leader && f.Config == other.Config &&
		slices.Equal(f.Engines, other.Engines)
}

// Many reports whether the team has enough engine hosts for a stream.
func (f Facts) Many() bool { return len(f.Engines) >= cluster.EnginesMin }

// Addresses are where the engine hosts but one listen for hosts.
func (f Facts) Addresses(but string) (all []string) {
	for _, e := range f.Engines {
		if e.Name != but {
			all = append(all, e.Address)
		}
	}
	return all
}
