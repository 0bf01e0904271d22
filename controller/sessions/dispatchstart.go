package sessions

import (
	"path/filepath"
	"sync"
)

// sandboxProof is what was found out about this machine, once.
type sandboxProof struct {
	Once sync.Once
	Why  string // why there is none; empty: it holds
}

// below is a path below a root, as the kernel names it. Links are followed to the root alone: one that
// lies below it somebody has laid there, and the sandbox refuses it.
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
