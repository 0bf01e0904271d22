package sessions

import (
	"path/filepath"
	"sync"
)

// sandboxProof is the result of probing the sandbox on this machine, once.
type sandboxProof struct {
	Once sync.Once
	Why  string // why there is no sandbox; empty if it works
}

// Below returns path with root resolved and the rest unresolved. A link below root may have been
// created by an agent, and the sandbox refuses it.
func Below(root, path string) (string, error) {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", err
	}
	return filepath.Join(real, rel), nil
}
