package places

import (
	"path/filepath"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// caches are folders that build tools fill: the variable that moves one, and where it is in the home folder without it. A program
// outside reads the person's, so the agent never writes there.
var caches = []struct{ name, variable, home string }{
	{"cache", "XDG_CACHE_HOME", ".cache"}, // of all programs that have no row of their own
	{"npm", "npm_config_cache", ".npm"},
	{"go-build", "GOCACHE", ".cache/go-build"},
	{"go-mod", "GOMODCACHE", "go/pkg/mod"},
	{"go-sum", "", "go/pkg/sumdb"},
	{"golangci-lint", "GOLANGCI_LINT_CACHE", ".cache/golangci-lint"},
	{"cargo-registry", "", ".cargo/registry"},
	{"cargo-git", "", ".cargo/git"},
	{"pip", "PIP_CACHE_DIR", ".cache/pip"},
	{"uv", "UV_CACHE_DIR", ".cache/uv"},
	{"pre-commit", "PRE_COMMIT_HOME", ".cache/pre-commit"},
	{"yarn", "YARN_CACHE_FOLDER", ".cache/yarn"},
	{"yarn-berry", "", ".yarn/berry/cache"},
	{"pnpm", "npm_config_store_dir", ".local/share/pnpm/store"},
	{"bun", "BUN_INSTALL_CACHE_DIR", ".bun/install/cache"},
	{"deno", "DENO_DIR", ".cache/deno"},
	{"gradle", "", ".gradle/caches"},
	{"maven", "", ".m2/repository"},
	{"nuget", "NUGET_PACKAGES", ".nuget/packages"},
	{"composer", "COMPOSER_CACHE_DIR", ".cache/composer"},
	{"ccache", "CCACHE_DIR", ".cache/ccache"},
}

// CachesName is the folder of the caches of all agents, in Fairlead's own folder.
const CachesName = "caches"

// caches gives the agent caches of its own, with the person's below where the system can do that.
func (m *maker) caches() {
	kept := filepath.Join(m.State, CachesName, safe(m.Agent))
	for _, c := range caches {
		at, set := m.env.get(c.variable), true
		if c.variable == "" || !filepath.IsAbs(at) {
			at, set = filepath.Join(m.real, c.home), false
		}
		own := filepath.Join(kept, c.name)
		real, err := filepath.EvalSymlinks(at)
		there := err == nil && isFolder(real)
		if !there {
			real = filepath.Clean(at)
		}
		switch {
		case m.visible(real) && m.covering(real).Access == sandbox.Write, m.wide(real), isSystem(real), m.planted(at):
			continue // it is in the workspace, or the configuration opens it
		case !there && !usual[c.name]:
			continue // it is not used here
		}
		if m.landlock() {
			if c.variable == "" {
				continue
			}
			m.point = append(m.point, own)
			m.add(sandbox.Place{Path: own, Access: sandbox.Write})
			m.env.set(c.variable, own)
			continue
		}
		place := sandbox.Place{Path: real, From: own, Access: sandbox.Write}
		if there && m.Ability.Overlays && c.name != "cache" {
			place = sandbox.Place{Path: real, Access: sandbox.Overlay, Upper: own}
		}
		m.point = append(m.point, own)
		m.add(place)
		if set {
			m.known(filepath.Clean(at), real)
		}
	}
}

// usual are caches that are kept even if the person has none.
var usual = map[string]bool{"cache": true, "npm": true, "go-build": true, "go-mod": true, "cargo-registry": true, "pip": true}
