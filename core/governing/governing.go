// Package governing knows the files that decide what runs later, outside of the bounds of the agent that wrote them.
//
// They are the settings of agents' programs, hooks, the jobs of CI, and what build and test programs run: a person who lands one of them
// lets it run. Texts that only instruct an agent, such as AGENTS.md, are not among them: the agent acts within its own bounds.
//
// The one promise: a path that a program would take for a file of the table is found, however it is spelled.
package governing

import (
	"path"
	"strings"
	"unicode"
)

// Row is one row of the table. A pattern without a slash is the name of a file in any folder; one that ends with a slash is a folder in
// any folder, with all that is in it; another one is the end of a path.
type Row struct {
	What     string
	Patterns []string
}

// Table is the table, as doc/tasks.md has it.
var Table = []Row{
	{"Fairlead", []string{"fairlead.yaml", "agent_state.json", ".fairlead/", ".agents/workflows/"}},
	{"settings of agents' programs", []string{
		".claude/", ".codex/", ".opencode/", "opencode.json", "opencode.jsonc", ".gemini/", ".qwen/", ".cursor/",
		".copilot/", ".goose/", ".aider.conf.yml", ".mcp.json", ".continue/", ".crush.json", "crush.json",
	}},
	{"settings of editors and shells", []string{
		".vscode/", ".idea/", "*.code-workspace", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el", ".envrc",
		".env", ".env.*", "mise.toml", ".mise.toml", "mise.*.toml", ".tool-versions", ".devcontainer/", "devcontainer.json",
		"*.nix", "devbox.json",
	}},
	{"git", []string{
		".gitattributes", ".gitmodules", ".gitconfig", ".githooks/", ".husky/", ".pre-commit-config.yaml",
		".pre-commit-hooks.yaml", "lefthook.*", ".lefthook.*", "lefthook-local.*", ".lefthook/", ".overcommit.yml",
		".lintstagedrc", ".lintstagedrc.*", "lint-staged.config.*",
	}},
	{"CI", []string{
		".github/workflows/", ".github/actions/", "action.yml", "action.yaml", ".gitlab-ci.yml", ".gitlab/", ".circleci/",
		"Jenkinsfile", "Jenkinsfile.*", ".travis.yml", "azure-pipelines.yml", "azure-pipelines.*.yml",
		"bitbucket-pipelines.yml", ".drone.yml", ".woodpecker.yml", ".woodpecker/", ".buildkite/", ".forgejo/", ".gitea/",
		".cirrus.yml", "appveyor.yml", ".appveyor.yml", ".ci/", "cloudbuild.yaml", "buildspec.yml", "renovate.json",
		".github/dependabot.yml",
	}},
	{"make and its like", []string{
		"Makefile", "GNUmakefile", "makefile.*", "*.mk", "justfile", ".justfile", "*.just", "Taskfile.*", "Rakefile",
		"*.rake", "Earthfile", "Tiltfile", "Procfile", "Procfile.*", "magefile.go", "magefiles/", "SConstruct", "SConscript",
		"wscript", "BUILD", "BUILD.bazel", "WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel", "*.bzl", ".bazelrc", "build.sh",
		"configure", "configure.ac", "*.m4",
	}},
	{"C and C++", []string{
		"CMakeLists.txt", "*.cmake", "CMakePresets.json", "CMakeUserPresets.json", "meson.build", "meson_options.txt",
		"build.ninja", "conanfile.*", ".gdbinit", ".lldbinit",
	}},
	{"Rust", []string{"build.rs", "Cargo.toml", ".cargo/", "rust-toolchain", "rust-toolchain.toml"}},
	{"Go", []string{"go.work", ".golangci.*", ".goreleaser.*"}},
	{"Python", []string{
		"setup.py", "setup.cfg", "pyproject.toml", "conftest.py", "noxfile.py", "tox.ini", "pytest.ini", ".pytest.ini",
		"tasks.py", "fabfile.py", "dodo.py", "manage.py", "sitecustomize.py", "usercustomize.py", "*.pth", "pip.conf",
		".pdbrc",
	}},
	{"JavaScript", []string{
		"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/", ".pnpmfile.cjs", "pnpm-workspace.yaml", "binding.gyp",
		"bunfig.toml", "deno.json", "deno.jsonc", "*.config.js", "*.config.cjs", "*.config.mjs", "*.config.ts",
		"*.config.mts", "*.config.cts", ".*rc.js", ".*rc.cjs", ".*rc.mjs", "Gruntfile.*", "Gulpfile.*", "turbo.json",
		"nx.json",
	}},
	{"Java and Kotlin", []string{
		"pom.xml", ".mvn/", "mvnw", "mvnw.cmd", "*.gradle", "*.gradle.kts", "gradle.properties", "gradlew", "gradlew.bat",
		"gradle/", "buildSrc/", "build.xml", "build.sbt", "project/plugins.sbt",
	}},
	{".NET, Ruby, PHP and others", []string{
		"*.csproj", "*.fsproj", "*.vbproj", "*.vcxproj", "*.sln", "*.targets", "*.props", "nuget.config", "Gemfile",
		"*.gemspec", ".rspec", "composer.json", "mix.exs", "rebar.config", "Package.swift", "Podfile", "dune-project",
		"build.zig", "Setup.hs", "*.cabal",
	}},
	{"containers and machines", []string{
		"Dockerfile", "Dockerfile.*", "*.dockerfile", "Containerfile", "docker-compose.*", "compose.yml", "compose.yaml",
		"compose.*.yml", "compose.*.yaml", "Vagrantfile", "*.tf", "skaffold.yaml",
	}},
}

// Match reports whether a path of a repository is governing. more are the patterns of tasks.governing.
func Match(name string, more []string) bool {
	parts := strings.Split(fold(name), "/")
	for _, row := range Table {
		if matches(parts, row.Patterns) {
			return true
		}
	}
	return matches(parts, more)
}

// PatternFault says why a text is no pattern; empty: it is one.
func PatternFault(pattern string) string {
	if strings.Trim(pattern, "/") == "" || strings.HasPrefix(pattern, "/") {
		return "names no file below the folder of fairlead.yaml"
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(pattern, "/"), "/") {
		if _, err := path.Match(part, ""); err != nil || part == "" || part == "." || part == ".." {
			return "is no pattern; write a file's name such as *.sql, the end of a path such as db/seed.sql, or a folder such as deploy/"
		}
	}
	return ""
}

func matches(parts, patterns []string) bool {
	for _, pattern := range patterns {
		pattern = strings.TrimSuffix(pattern, "**")
		folder := strings.HasSuffix(pattern, "/")
		want := strings.Split(fold(strings.TrimSuffix(pattern, "/")), "/")
		for at := 0; at+len(want) <= len(parts); at++ {
			if (folder || at+len(want) == len(parts)) && all(parts[at:], want) {
				return true
			}
		}
	}
	return false
}

func all(parts, want []string) bool {
	for i, pattern := range want {
		if is, err := path.Match(pattern, parts[i]); err != nil || !is {
			return false
		}
	}
	return true
}

// fold is a path as file systems compare it that ignore case, some characters, and blanks and dots at the end of a name.
func fold(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r == '\\':
			return '/'
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r))
	}, name)
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = strings.TrimRight(p, " .")
	}
	return strings.Join(parts, "/")
}
