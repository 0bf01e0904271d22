package places

import (
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// ReportsName and ArtifactsName are folders of a session's own folder in which a step writes. They are at the paths of those of
// its run.
const (
	ReportsName   = "reports"
	ArtifactsName = "artifacts"
	runName       = "run"
)

// run shows a step what it needs of its run, and gives it folders of its own for what it makes. Where nothing can be mounted, it
// writes in those of the run.
func (m *maker) run() {
	r := m.Run
	if r.Dir == "" {
		return
	}
	at := func(p string) string {
		if real, err := settled(m.Session.Root, m.Root, p); err == nil {
			return real
		}
		return p
	}
	if m.landlock() {
		m.read(at(r.Dir))
		for _, p := range []string{r.Reports, r.Artifacts} {
			m.add(sandbox.Place{Path: at(p), Access: sandbox.Write})
		}
		return
	}
	dir, own := at(r.Dir), filepath.Join(m.Own, runName)
	m.known(r.Dir, dir)
	m.add(sandbox.Place{Path: dir, From: own, Access: sandbox.Read})
	m.point = append(m.point, own)
	reports, artifacts := filepath.Join(m.Own, ReportsName), filepath.Join(m.Own, ArtifactsName)
	for _, p := range r.Files {
		for _, in := range [][2]string{{r.Reports, reports}, {r.Artifacts, artifacts}, {r.Dir, own}} {
			if rel, err := filepath.Rel(in[0], p); err == nil && filepath.IsLocal(rel) && rel != "." {
				m.taken = append(m.taken,
					takenFile{from: p, to: filepath.Join(in[1], rel), mayMiss: true, most: runFileMax, link: in[1] == own})
				break
			}
		}
	}
	for _, p := range r.Folders {
		if strings.HasPrefix(p, r.Dir+"/") && isFolder(p) {
			m.read(at(p))
		}
	}
	m.add(sandbox.Place{Path: at(r.Reports), From: reports, Access: sandbox.Write})
	m.add(sandbox.Place{Path: at(r.Artifacts), From: artifacts, Access: sandbox.Write})
}
