package places

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

const (
	pathFoldersMax = 128  // folders on PATH that are looked at
	namesMax       = 4096 // names in one of them: a larger one is a mistake
	leadsMax       = 128  // folders that their links lead to: each is a mount
	bundlesUpMax   = 32   // folders above a program in which its package is looked for
	unseenMax      = 64   // programs that are said not to be visible: an agent can leave links to any number
)

// managers are version managers and language installations: the variable that names their folder, and where they are in the home
// folder without it. What of them has credentials is left out.
var managers = []struct {
	variable string
	homes    []string
	parts    []string // of the folder; empty: all of it
}{
	{"NVM_DIR", []string{".nvm"}, nil},
	{"FNM_DIR", []string{".local/share/fnm", ".fnm"}, nil},
	{"VOLTA_HOME", []string{".volta"}, nil},
	{"N_PREFIX", []string{"n"}, nil},
	{"NODENV_ROOT", []string{".nodenv"}, nil},
	{"PYENV_ROOT", []string{".pyenv"}, nil},
	{"RBENV_ROOT", []string{".rbenv"}, nil},
	{"rvm_path", []string{".rvm"}, nil},
	{"GOENV_ROOT", []string{".goenv"}, nil},
	{"JENV_ROOT", []string{".jenv"}, nil},
	{"PHPENV_ROOT", []string{".phpenv"}, nil},
	{"ASDF_DATA_DIR", []string{".asdf"}, nil},
	{"MISE_DATA_DIR", []string{".local/share/mise"}, nil},
	{"MISE_CONFIG_DIR", []string{".config/mise"}, nil},
	{"PROTO_HOME", []string{".proto"}, nil},
	{"RUSTUP_HOME", []string{".rustup"}, nil},
	{"CARGO_HOME", []string{".cargo"}, []string{"bin"}},
	{"GOROOT", []string{"sdk"}, nil},
	{"GOPATH", []string{"go"}, []string{"bin"}},
	{"GOBIN", nil, nil},
	{"SDKMAN_DIR", []string{".sdkman"}, nil},
	{"JAVA_HOME", []string{".jdks"}, nil},
	{"HOMEBREW_PREFIX", []string{".linuxbrew"}, nil},
	{"BUN_INSTALL", []string{".bun"}, nil},
	{"DENO_INSTALL", []string{".deno"}, nil},
	{"PNPM_HOME", []string{".local/share/pnpm"}, nil},
	{"PIPX_HOME", []string{".local/share/pipx", ".local/pipx"}, nil},
	{"UV_PYTHON_INSTALL_DIR", []string{".local/share/uv"}, nil},
	{"UV_TOOL_DIR", nil, nil},
	{"RYE_HOME", []string{".rye"}, nil},
	{"POETRY_HOME", []string{".local/share/pypoetry"}, nil},
	{"CONDA_PREFIX", []string{"miniconda3", "anaconda3", "miniforge3", ".conda/envs"}, nil},
	{"MAMBA_ROOT_PREFIX", []string{"micromamba", "mambaforge"}, nil},
	{"VIRTUAL_ENV", nil, nil},
	{"GHCUP_INSTALL_BASE_PREFIX", []string{".ghcup"}, nil},
	{"", []string{".cabal"}, []string{"bin"}},
	{"STACK_ROOT", []string{".stack"}, []string{"programs"}},
	{"OPAMROOT", []string{".opam"}, nil},
	{"JULIAUP_DEPOT_PATH", []string{".julia", ".juliaup"}, []string{"juliaup", "bin"}},
	{"DOTNET_ROOT", []string{".dotnet"}, nil},
	{"ELAN_HOME", []string{".elan"}, nil},
	{"SWIFTLY_HOME_DIR", []string{".local/share/swiftly"}, nil},
	{"FOUNDRY_DIR", []string{".foundry"}, []string{"bin"}},
	{"NPM_CONFIG_PREFIX", []string{".npm-global", ".npm-packages"}, nil},
	{"", []string{".yarn", ".config/yarn/global/node_modules"}, []string{"bin", ".bin"}},
	{"PLAYWRIGHT_BROWSERS_PATH", []string{".cache/ms-playwright"}, nil},
	{"", []string{".local/bin", ".local/lib", "bin"}, nil},
}

// versionFiles of the home folder say which version of a program a manager takes.
var versionFiles = []string{".tool-versions", ".python-version", ".node-version", ".nvmrc", ".ruby-version", ".java-version"}

const versionFileMax = 64 << 10

// toolchains makes visible what programs are made of: folders on PATH and what the links in them lead to, version managers, and
// the program of the agent. Nothing of it can be written. A brief command has the programs that it names.
func (m *maker) toolchains() {
	if m.Brief {
		for _, file := range m.Command {
			if !m.visible(file) {
				m.bundle(file)
				m.named(file)
			}
		}
		return
	}
	for _, row := range managers {
		var roots []string
		if at := m.env.get(row.variable); row.variable != "" && filepath.IsAbs(at) {
			roots = append(roots, filepath.SplitList(at)[0])
		}
		for _, home := range row.homes {
			roots = append(roots, filepath.Join(m.real, home))
		}
		for _, root := range roots {
			if len(row.parts) == 0 {
				m.tool(root)
			}
			for _, part := range row.parts {
				m.tool(filepath.Join(root, part))
			}
		}
	}
	for _, name := range versionFiles {
		if text, err := readSmall(filepath.Join(m.real, name), versionFileMax); err == nil {
			m.files[filepath.Join(m.View.Home, name)] = text
		}
	}
	var kept []string
	for _, dir := range filepath.SplitList(m.env.get("PATH")) {
		if !filepath.IsAbs(dir) || len(kept) >= pathFoldersMax {
			continue
		}
		if dir = filepath.Clean(dir); slices.Contains(kept, dir) {
			continue
		}
		m.tool(dir)
		m.reached(dir)
		if m.usable(dir) {
			kept = append(kept, dir)
			m.leads(dir)
		}
	}
	if m.env.get("PATH") != "" {
		m.env.set("PATH", strings.Join(kept, string(filepath.ListSeparator)))
	}
	words := append(slices.Clone(m.Argv), m.Command...)
	for i, word := range append(words, m.Exe) {
		if filepath.IsAbs(word) && (i == 0 || isProgram(word)) {
			m.bundle(word)
			m.named(word)
			m.reached(word)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(m.unseen)) {
		if real, err := filepath.EvalSymlinks(file); err == nil && !m.visible(real) && len(m.Said) < unseenMax {
			m.Said = append(m.Said, "the program "+file+" is not visible: "+m.unseen[file])
		}
	}
}

// usable reports whether a folder on PATH can be read in the view.
func (m *maker) usable(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	real, err := filepath.EvalSymlinks(dir)
	return err == nil && m.visible(real) &&
		(m.visible(dir) || slices.ContainsFunc(m.aliases, func(pair [2]string) bool { return isWithin(dir, pair[0]) }))
}

// tool makes a folder of programs visible, if it is one that is not already, and that has nothing else in it.
func (m *maker) tool(p string) {
	if _, err := os.Lstat(p); err != nil {
		return // most of them are not there, and following a path costs a call for each part
	}
	real, ok := m.follow(p, nil)
	if !ok || !isFolder(real) || m.wide(real) || isWithin(m.Dir, real) || isWithin(m.Root, real) || isWithin(m.State, real) ||
		isWithin(real, m.State) {
		return
	}
	if _, is := m.list[real]; !is && !m.visible(real) && !m.hidden(real) {
		m.read(real)
	}
	m.known(p, real)
}

// hidden reports whether the configuration hides a folder.
func (m *maker) hidden(p string) bool { return m.covering(p).Access == sandbox.Hide }

// leads makes visible what the links in a folder of PATH lead to.
func (m *maker) leads(dir string) {
	if isSystem(dir) && !strings.HasPrefix(dir, "/usr/local") {
		return // the links of the distribution's programs stay in its folders
	}
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	entries, err := f.ReadDir(namesMax)
	if err != nil && !errors.Is(err, io.EOF) {
		return
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if m.led >= leadsMax {
			m.Said = append(m.Said, "the programs on PATH lead to too many folders; some of them are not visible")
			return
		}
		m.bundle(filepath.Join(dir, e.Name()))
	}
}

// bundle makes the folder of a program visible, with what belongs to it, and the program that interprets it.
func (m *maker) bundle(file string) {
	real, ok := m.follow(file, nil)
	if !ok {
		m.unseen[file] = "a link to it is in a folder that an agent writes; name its folder in sandbox.read"
		return
	}
	if !isThere(real) || m.visible(real) && !isSystem(filepath.Dir(file)) || m.written(filepath.Dir(real)) {
		return
	}
	before := len(m.list)
	m.reached(file)
	m.tool(bundleOf(real))
	m.tool(filepath.Dir(real))
	if len(m.list) > before {
		m.led += len(m.list) - before
	}
	if !m.visible(real) {
		m.unseen[real] = "its folder has other things in it; install it in a folder of its own"
	}
	if interpreter := interpreterOf(real); interpreter != "" && interpreter != real {
		if at, ok := m.follow(interpreter, nil); ok && isThere(at) && !m.visible(at) {
			m.tool(bundleOf(at))
			m.tool(filepath.Dir(at))
		}
	}
}

// named makes a file visible that the agent's command names, and whose folder has other things in it. It is a place on one file, which
// protects nothing: a file that is replaced during the session is the old one inside.
func (m *maker) named(file string) {
	if real, ok := m.follow(file, nil); ok && isThere(real) && !m.visible(real) && !m.hidden(real) {
		m.read(real)
		m.known(filepath.Clean(file), real)
	}
}

// reached makes a program visible by the path that names it: the folders of links to it, and behind a link to a folder what is
// visible of that folder.
func (m *maker) reached(p string) {
	before := len(m.aliases)
	m.follow(p, func(at string) {
		real, ok := m.follow(at, nil)
		if !ok || !isThere(real) {
			return
		}
		if folder := filepath.Dir(at); !isFolder(real) {
			if m.tool(folder); m.visible(folder) {
				return
			}
		}
		m.known(at, real)
	})
	slices.Reverse(m.aliases[before:]) // what is behind a link has its places first
}

// bundleOf is the folder of a program with what it is made of: the outermost node_modules, or the folder above bin with its lib.
func bundleOf(file string) string {
	dir := filepath.Dir(file)
	found := dir
	for at, n := dir, 0; at != "/" && n < bundlesUpMax; at, n = filepath.Dir(at), n+1 {
		if filepath.Base(at) == "node_modules" {
			found = at
		}
	}
	if found == dir && slices.Contains([]string{"bin", "sbin", "libexec"}, filepath.Base(dir)) {
		if above := filepath.Dir(dir); filepath.Base(above) != ".local" &&
			(isFolder(filepath.Join(above, "lib")) || isFolder(filepath.Join(above, "libexec"))) {
			found = above
		}
	}
	return found
}

// interpreterOf is the absolute path on the first line of a script; empty: there is none.
func interpreterOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	line := make([]byte, 256) // the kernel's limit
	n, _ := io.ReadFull(f, line)
	text, is := strings.CutPrefix(string(line[:n]), "#!")
	words := strings.Fields(strings.SplitN(text, "\n", 2)[0])
	if !is || len(words) == 0 || !filepath.IsAbs(words[0]) {
		return ""
	}
	return words[0]
}

// isProgram reports whether a word of a command is a file.
func isProgram(word string) bool {
	info, err := os.Stat(word)
	return err == nil && info.Mode().IsRegular()
}
