package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// hostile makes a repository in the writable folder, prepares it by a shell, and lets git read it. $1 is a file of outside, $2
// a folder of outside, $3 a new name there and $4 the repository; it works if the last command does.
func hostile(prepare, use string) act {
	return func(t target) error {
		repo := filepath.Join(t.In, "repo")
		t.In = repo
		if err := os.MkdirAll(repo, 0o700); err != nil {
			return err
		}
		return gitScript(`git init -q -b main . && echo text > file && git add file && git commit -qm first` + "\n" + prepare + "\n" +
			use)(t)
	}
}

// gitScript runs a shell with an identity and without any other configuration.
func gitScript(text string) act {
	head := `export HOME="$4" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a GIT_TERMINAL_PROMPT=0
`
	return script(head + text)
}

// ran is the proof that git ran a program of the repository: it made a file outside.
const ran = `test -e "$3"`

// harmlessGit is the twin of a hostile repository: ordinary work in one.
var harmlessGit = hostile(`echo more >> file`, `git commit -qam second && git status -s && git log --oneline | wc -l | grep -q 2`)

// hook is a program that leaves a file outside.
func hook(p string) string {
	return fmt.Sprintf(`mkdir -p "$(dirname %[1]s)"; printf '#!/bin/sh\ntouch "%%s"\n' "$3" > %[1]s; chmod +x %[1]s`, p)
}

func gitSettingRan(key, use string) act {
	return hostile(hook(".git/tool")+`; git config `+key+` "$PWD/.git/tool"`, use+` >/dev/null 2>&1 || true; `+ran)
}

func gitAttempt(file, name, prepare, use string) wallAttempt {
	return wallAttempt{name: "git: " + name, call: "git " + file, row: RowGit, try: hostile(prepare, use), twin: harmlessGit}
}

func gitSetting(key, use string) wallAttempt {
	return wallAttempt{name: "git: " + key, call: "git config " + key, row: RowGit, try: gitSettingRan(key, use), twin: harmlessGit}
}

// gitAttempts are repositories that lead git out, with git in the view.
var gitAttempts = []wallAttempt{
	gitAttempt("hooks", "a hook before a commit", hook(".git/hooks/pre-commit"), `git commit -q --allow-empty -m x; `+ran),
	gitAttempt("hooks", "a hook after a checkout", hook(".git/hooks/post-checkout"), `git checkout -q -b other; `+ran),
	gitAttempt("hooks", "a hook of references", hook(".git/hooks/reference-transaction"), `git branch other; `+ran),
	gitSetting("core.fsmonitor", "git status"),
	gitSetting("diff.external", `echo more >> file; git diff`),
	gitSetting("core.editor", "git commit --amend"),
	gitSetting("gpg.program", "git commit -S --allow-empty -m x"),
	gitAttempt("hooks", "a folder of hooks", hook("mine/pre-commit")+`; git config core.hooksPath mine`,
		`git commit -q --allow-empty -m x; `+ran),
	gitSetting("core.sshCommand", "git ls-remote ssh://none/x"),
	gitSetting("alias.x", "git config alias.x \"!$PWD/.git/tool\"; git x"),
	gitSetting("credential.helper", `printf 'protocol=https\nhost=none\n\n' | git credential fill`),
	gitAttempt("attributes", "a filter",
		hook(".git/tool")+`; git config filter.x.clean "$PWD/.git/tool; cat"; echo 'file filter=x' > .git/info/attributes; echo b > file`,
		`git add file; `+ran),
	gitAttempt("attributes", "a filter at a checkout",
		hook(".git/tool")+`; git config filter.x.smudge "$PWD/.git/tool; cat"; echo 'file filter=x' > .gitattributes; rm file`,
		`git checkout -q file; `+ran),
	gitAttempt("attributes", "a text conversion",
		hook(".git/tool")+`; git config diff.x.textconv "$PWD/.git/tool; cat"; echo 'file diff=x' > .gitattributes; echo b > file`,
		`git diff >/dev/null; `+ran),
	gitAttempt("attributes", "a merge driver",
		hook(".git/tool")+
			`; git config merge.x.driver "$PWD/.git/tool"; echo 'file merge=x' > .gitattributes; git checkout -qb o; echo o > file; git commit -qam o; git checkout -q main; echo m > file; git commit -qam m`, `git merge o >/dev/null 2>&1 || true; `+ran),
	gitAttempt("include", "a configuration of outside", `git config include.path "$2/config"`, `git config fairlead.secret`),
	gitAttempt("alternates", "objects of outside", `echo "$2/repo/.git/objects" > .git/objects/info/alternates`,
		`git cat-file -p "$(cat "$2/commit")"`),
	gitAttempt("objects", "objects behind a link", `rm -rf .git/objects; ln -s "$2/repo/.git/objects" .git/objects`,
		`git cat-file -p "$(cat "$2/commit")"`),
	gitAttempt("commondir", "another common folder", `echo "$2/repo/.git" > .git/commondir`, `git log --format=%s main | grep -q outside`),
	gitAttempt("gitdir", "another repository by a file", `rm -rf .git; echo "gitdir: $2/repo/.git" > .git`,
		`git log --format=%s | grep -q outside`),
	gitAttempt("gitdir", "another repository by a link", `rm -rf .git; ln -s "$2/repo/.git" .git`, `git log --format=%s | grep -q outside`),
	gitAttempt("refs", "references behind a link", `rm -rf .git/refs; ln -s "$2/repo/.git/refs" .git/refs`, `git rev-parse main`),
	gitAttempt("refs", "write a reference behind a link", `rm -rf .git/refs/heads; ln -s "$2/repo/.git/refs/heads" .git/refs/heads`,
		`git update-ref refs/heads/evil "$(git hash-object -w file)" || git commit-tree "$(git write-tree)" -m x | xargs git update-ref refs/heads/evil; test -e "$2/repo/.git/refs/heads/evil"`),
	gitAttempt("HEAD", "HEAD as a link", `ln -sf refs/heads/main .git/HEAD; rm -rf .git/refs; ln -s "$2/repo/.git/refs" .git/refs`,
		`git rev-parse --verify HEAD`),
	gitAttempt("logs", "a log behind a link", `mkdir -p .git/logs/refs/heads; rm -f .git/logs/HEAD; ln -s "$1" .git/logs/HEAD`,
		`git commit -q --allow-empty -m x; grep -q commit "$1"`),
	gitAttempt("index", "an index behind a link", `git config core.worktree "$2"`, `git add inner && git show :inner >/dev/null`),
	gitAttempt("config", "a working folder outside", `git config core.worktree "$2"`,
		`echo evil > .git/x; git checkout -q -f main; test -e "$2/file"`),
	gitAttempt("modules", "a submodule by a path", `git config protocol.file.allow always`,
		`git -c protocol.file.allow=always submodule add "$2/repo" sub >/dev/null 2>&1; test -e sub/.git`),
	gitAttempt("worktrees", "a working tree outside", ``, `test -e "$1"; git worktree add -q "$3" 2>/dev/null; test -e "$3"`),
	gitAttempt("ignore", "names by a file of outside", `git config core.excludesFile "$1"; touch `+secretOfFiles,
		`said=$(git status --porcelain `+secretOfFiles+`); test -z "$said"`),
	gitAttempt("clone", "a copy of a repository of outside", ``, `git clone -q "$2/repo" copy && test -e copy/.git`),
	gitAttempt("bundle", "a bundle outside", ``, `test -e "$1"; git bundle create "$3" main >/dev/null 2>&1; `+ran),
}

// checkoutAttempts change a checkout that may only be read. Its twin is the same in a clone.
var checkoutAttempts = checkouts(
	"a commit", `git commit -q --allow-empty -m x`,
	"a branch", `git branch "b$$"`,
	"a reference", `git update-ref "refs/heads/r$$" HEAD`,
	"a setting", `git config "fairlead.n$$" x`,
	"an object", `echo "$$ $1" | git hash-object -w --stdin`,
	"a hook", `printf '#!/bin/sh\n' > .git/hooks/pre-push`,
	"attributes", `mkdir -p .git/info; echo '* filter=x' >> .git/info/attributes`,
	"alternates", `echo /tmp > .git/objects/info/alternates; rm .git/objects/info/alternates`,
	"a common folder", `echo x > .git/commondir.new`,
	"grafts", `mkdir -p .git/info; git rev-parse HEAD > .git/info/grafts.new`,
	"a replacement", `git update-ref "refs/replace/$(git rev-parse HEAD)" "$(git commit-tree "HEAD^{tree}" -m other)"`,
	"the index", `git read-tree HEAD`,
	"HEAD", `git symbolic-ref HEAD refs/heads/main`,
	"a monitor", `git config core.fsmonitor true`,
	"a stash", `git rev-parse HEAD > .git/ORIG_HEAD`,
	"a remote", `git remote add "x$$" /tmp`,
)

func checkouts(pairs ...string) (all []wallAttempt) {
	for i := 0; i < len(pairs); i += 2 {
		run := gitScript(`cd "$4"; GIT_EDITOR=true; export GIT_EDITOR; git status -s >/dev/null; git log -1 --format=%h >/dev/null; ` +
			strings.TrimSpace(pairs[i+1]))
		all = append(all,
			wallAttempt{name: "git in the checkout: " + pairs[i], call: "checkout " + pairs[i], row: RowGit, try: func(t target) error {
				t.In = t.Repo
				return run(t)
			}})
	}
	return all
}
