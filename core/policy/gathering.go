package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// readers start no program and write no file, whatever their arguments are. MAIN may run them, and agents need
// no permission for them.
const readers = "ls pwd echo stat df du basename dirname realpath readlink which type id whoami groups logname uname nproc uptime who w ps " +
	"printenv locale getconf lscpu tty true false : seq exit break continue return cat head tail wc grep egrep fgrep cut tr tac rev nl od fold expand " +
	"unexpand comm join paste cmp column hexdump cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum shasum jq " +
	"strings free sleep netstat pgrep pstree vmstat lsblk findmnt getfacl lsattr zcat xzcat bzcat test [ numfmt factor fmt"

// gatherers gather information in ordinary use. Their arguments may make them write, or start programs: the
// kernel prevents that.
const gatherers = "file diff diff3 sdiff date hostname arch base64 shuf lsof ss iostat last nm size readelf tokei find sed awk gawk mawk nawk sort uniq xxd tree rg fd fdfind bat batcat eza exa git env xargs timeout nice time command nohup stdbuf " +
	"top zgrep zegrep gzip xz bzip2 tar unzip zipinfo printf split csplit objdump yq tsort pr"

// builtins are what a shell does itself, without effects outside it.
const builtins = "cd read set export unset local declare typeset readonly shift wait let hash umask ulimit alias unalias shopt trap jobs getopts " +
	"pushd popd dirs printf test [ help times builtin"

// loaders are programs that gatherers start.
const loaders = "sh gzip xz bzip2"

// GatheringPrograms returns the names of the programs that a confined command of MAIN may execute, besides
// those of its verdict, LoadingPrograms and the shell itself.
func GatheringPrograms() []string { return strings.Fields(readers + " " + gatherers) }

// LoadingPrograms returns the names of programs that those programs start.
func LoadingPrograms() []string { return strings.Fields(loaders) }

// asked are programs that act beyond the disk, or are languages, where the kernel does not see what they do:
// only these calls of them are allowed, and only in a plain command line.
var asked = map[string]struct {
	calls   string // the first words, joined by a dot; a final * stands for any
	network bool
}{
	"gh": {"pr.view pr.list pr.diff pr.status pr.checks issue.view issue.list issue.status repo.view repo.list run.view run.list release.view release.list " +
		"workflow.view workflow.list label.list gist.view gist.list cache.list search.* auth.status status version --version help", true},
	"glab": {"mr.view mr.list mr.diff issue.view issue.list ci.list ci.status repo.view release.view release.list label.list auth.status version --version help", true},
	"npm":  {"ls list ll la root prefix explain why version --version -v help", false},
	"go":   {"version help", false},
}

// versionFlags ask a language or a tool for its version, as its only argument.
const versionFlags = "--version -V -v version -version"

// versioned are programs that MAIN may ask for their version.
const versioned = "python python3 node nodejs deno bun ruby perl php java javac gcc g++ cc clang clang++ rustc cargo make cmake ninja pip pip3 uv yarn pnpm npx tsc " +
	"docker podman kubectl helm terraform curl wget ssh psql mysql sqlite3 pytest ruff mypy"

// askedCall reports whether a call of a program that the kernel does not hold is one of those that only ask,
// and whether it needs the network. known means that the program is one of those.
func askedCall(base string, args []value) (known, fits, network bool) {
	var words []string
	for _, v := range args {
		if !v.static() {
			words = nil
			break
		}
		words = append(words, v.text)
	}
	version := len(words) == 1 && has(versionFlags, words[0])
	if base == "fairlead" {
		return true, mayAskFairlead(args), false
	}
	if has(versioned, base) {
		return true, version, false
	}
	if base == "npm" && slices.ContainsFunc(words, func(w string) bool {
		return strings.HasPrefix(w, "--") && !has("--version --all --json --long --global --depth=0 --depth=1 --omit=dev", w)
	}) {
		return true, false, false // its other settings name files and servers
	}
	a, known := asked[base]
	switch {
	case !known || len(words) == 0 || slices.Contains(words, "--web") || slices.Contains(words, "-w"): // a browser
		return known, false, false
	case has(a.calls, words[0]), len(words) > 1 && (has(a.calls, words[0]+"."+words[1]) || has(a.calls, words[0]+".*")):
		return true, true, a.network
	}
	return true, false, false
}

// gitChanging are git's commands that change the repository or reach other hosts. For the others the kernel
// decides.
const gitChanging = "add commit push pull fetch merge rebase checkout switch restore reset clean rm mv cherry-pick revert am apply gc prune init clone " +
	"filter-branch update-index update-ref write-tree commit-tree mktree mktag hash-object fast-import fast-export submodule svn send-email daemon maintenance repack " +
	"ls-remote remote-http remote-https upload-pack receive-pack shell credential difftool mergetool gui citool instaweb"

// mainCommand judges MAIN's shell command, which is read as an agent's is. Where the kernel holds it, names decide;
// elsewhere it must be plain and small.
func (j *judge) mainCommand() *denial {
	where := j.where
	where.Model = false
	as := newJudge(AgentRules(), false, j.call, where, j.disk)
	d := as.shellTool()
	l := as.shell
	switch {
	case l == nil:
		return d
	case l.closed || l.away || j.call.Confined && path.Clean(as.dir) != path.Clean(j.dir):
		return &denial{
			capability: "run a command in another folder", why: "its arguments take it to another folder",
			instead: "begin the command with cd",
		}
	case !j.call.Confined:
		return j.smallCommand(l)
	}
	var asks []string
	mixed := l.mixed
	for _, c := range l.commands {
		name := c.words[0]
		base := path.Base(name.text)
		known, fits, network := askedCall(base, c.words[1:])
		switch d := j.mainRuns(l, c); {
		case d != nil:
			return d
		case !name.static(), base == "cd", has(readers, base), has(l.functions, base):
		case known && fits:
			asks, j.network = append(asks, base), j.network || network
		default:
			mixed = base
		}
	}
	switch {
	case len(as.writes) > 0 || d != nil:
		return &denial{
			capability: "write files from the shell", why: cut(strings.Join(as.writes, ", ")) + " would be written",
			instead: "leave it out, or write the file with the tool Write",
		}
	case len(asks) > 0 && (l.unread != "" || mixed != ""):
		return &denial{
			capability: "run " + asks[0] + " together with other programs",
			why: asks[0] + " acts where the kernel does not see it, so it may not be used beside " +
				cmp.Or(mixed, "a form that cannot be read ("+l.unread+")"),
			instead: "give it by itself; it may be piped to head, grep, jq and the like",
		}
	}
	j.gathers, j.programs = l.unread == "", asks
	return nil
}

// mainRuns judges one command of MAIN that the kernel holds: by its name.
func (j *judge) mainRuns(l *shell, c command) *denial {
	name := c.words[0]
	base := path.Base(name.text)
	if !name.static() {
		return nil // the kernel decides
	}
	if base != name.text && !isSystems(name.text) {
		return notGathering(name.text)
	}
	s := &shell{j: j, dirs: c.dirs}
	if d := s.forbidden(base, c.words); d != nil {
		return d
	}
	known, fits, _ := askedCall(base, c.words[1:])
	command, _, _ := gitOf(c.words[1:])
	switch {
	case base == "git" && has(gitChanging, command):
		return notGathering("git " + command)
	case base == "git" && slices.ContainsFunc(c.dirs, j.isOwn):
		return ownRepository()
	case has("sh bash", base) && len(c.words) > 2 && has("-c -lc", c.words[1].text):
		return nil // its text is read too
	case base == "cd", base == "git", has(readers, base), has(l.functions, base), has(gatherers, base),
		has(builtins+" mapfile readarray", base), fits:
		return nil
	case known:
		p := notGathering(base)
		p.why = cut(spelled(c.words)) + " is not one of the calls of " + base + " that only ask"
		return p
	}
	if d := s.release(base, c.words[1:]); d != nil {
		return d
	}
	return notGathering(name.text)
}

func ownRepository() *denial {
	return &denial{
		capability: "use git in the outputs", why: "a repository there could name programs that git runs",
		instead: "use git in the project's repository",
	}
}

// isOwn reports whether a folder is one that MAIN may write.
func (j *judge) isOwn(dir string) bool {
	return slices.ContainsFunc(j.both(dir), func(p string) bool { return slices.Contains(j.outputs, p) || below(p, j.outputs) })
}

// smallCommand judges MAIN's shell command where no kernel holds it: plain commands that only read, joined by
// | && || and ;.
func (j *judge) smallCommand(l *shell) *denial {
	const capability = "run a shell command that cannot be checked"
	for _, c := range l.commands {
		name := c.words[0]
		if !name.static() {
			break
		}
		base := path.Base(name.text)
		if base != name.text && !isSystems(name.text) {
			return notGathering(name.text)
		}
		switch p := smallCall(base, c.words[1:]); {
		case base == "cd" && !c.free:
			return &denial{
				capability: "run a command in another folder",
				why:        "the folder to which its cd leads is not a plain one of the repository",
				instead:    "give the whole path of a folder",
			}
		case base != "cd" && p != nil:
			return p
		}
		if base == "git" && j.isOwn(j.dir) {
			return ownRepository()
		}
	}
	switch l.doubt {
	case "":
		return nil
	case redirectDoubt:
		return &denial{
			capability: "write files from the shell", why: "without a kernel sandbox no command may be redirected: " + l.doubt,
			instead: "leave it out, or write the file with the tool Write",
		}
	default:
		return &denial{
			capability: capability, why: "without a kernel sandbox only plain commands are allowed, and of this one " + l.doubt,
			instead: "use plain words, joined by |, && or ;",
		}
	}
}
