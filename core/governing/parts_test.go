package governing

import (
	"strings"
	"testing"
)

type change struct {
	name, was, now string
	want           bool
}

// Of a mixed file only what runs counts: each file has changes that need a separate yes, and twins that need none.
var mixed = func() []change {
	const (
		cargo = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n[dependencies]\nserde = \"1\"\n[lib]\npath = \"src/lib.rs\"\n"
		pypro = "[project]\nname = \"a\"\nversion = \"1\"\ndependencies = [\"x==1\"]\n[build-system]\nrequires = [\"hatchling\"]\n[tool.poetry]\nversion = \"1\"\n"
		attrs = "*.txt text\n*.c diff=cpp\n*.c -diff\n"
		npm   = `{"name": "a", "scripts": {"test": "true"}, "dependencies": {"x": "1"}}`
		php   = `{"name": "a/b", "require": {"x/y": "1"}, "scripts": {"test": "true"}}`
		deno  = `{"name": "@a/b", "version": "1", "tasks": {"test": "true"}, "imports": {"x": "jsr:@x/x@1"}}`
	)
	return []change{
		{"web/Package.json", npm, npm, false},
		{"package.json", npm, `{"name":"b","dependencies":{"x":"2","y":"1"},"scripts":{"test":"true"},"version":"2"}`, false},
		{"package.json", npm, `{"name": "a", "scripts": {"test": "curl evil"}}`, true},
		{"package.json", npm, `{"name": "a", "scripts": {"test": "true", "postinstall": "x"}}`, true},
		{"package.json", npm, `{"name": "a", "scripts": {"test": "true"}, "jest": {"globalSetup": "./x.js"}}`, true},
		{"package.json", npm, `{"name": "a", "Scripts": {}, "scripts": {"test": "true"}}`, true},
		{"package.json", npm, `{"name": "a", "scripts": {"test": "true"}, "scripts": {"test": "x"}}`, true},
		{"package.json", npm, npm + "{}", true},
		{"package.json", npm, `{"name": "a"`, true},
		{"package.json", npm, `[]`, true},
		{"package.json", npm, ``, true},
		{"package.json", ``, `{"name": "a", "dependencies": {}}`, false},
		{"package.json", ``, npm, true},
		{"package.json", npm, `{"scripts": {"test": "true"}, "description": "` + strings.Repeat("x", MixedBytesMax) + `"}`, true},
		{"package.json", npm, `{"scripts": {"test": "true"}, "description": "` + strings.Repeat("x", MixedBytesMax/2) + `"}`, false},

		{"composer.json", php, `{"name": "a/b", "require": {"x/y": "2"}, "scripts": {"test": "true"}}`, false},
		{"composer.json", php, `{"name": "a/b", "require": {"x/y": "1"}, "scripts": {"test": "true", "post-install-cmd": "x"}}`, true},
		{"composer.json", php, `{"scripts": {"test": "true"}, "autoload": {"files": ["x.php"]}}`, true},
		{"composer.json", php, `{"scripts": {"test": "true"}, "config": {"allow-plugins": true}}`, true},

		{"deno.json", deno, strings.Replace(deno, "@1", "@2", 1), false},
		{"deno.json", deno, strings.Replace(deno, `"true"`, `"x"`, 1), true},
		{"deno.json", deno, "// a comment\n" + deno, true},

		{"Cargo.toml", cargo, strings.Replace(cargo, "1.0.0", "1.0.1", 1), false},
		{"cargo.toml", cargo, strings.Replace(cargo, "serde = \"1\"", "serde = { version = \"2\", features = [\"derive\"] }", 1), false},
		{"Cargo.toml", cargo, cargo + "[target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n[features]\nx = []\n", false},
		{"Cargo.toml", cargo, strings.Replace(cargo, "name =", "build = \"x.rs\"\nname =", 1), true},
		{"Cargo.toml", cargo, "package.build = \"x.rs\"\n" + strings.Replace(cargo, "[package]\n", "package.", 1), true},
		{"Cargo.toml", cargo, strings.Replace(cargo, "name =", "\"buil\\u0064\" = \"x.rs\"\nname =", 1), true},
		{"Cargo.toml", cargo, cargo + "proc-macro = true\n", true},
		{"Cargo.toml", cargo, cargo + "[build-dependencies]\nx = \"1\"\n", true},
		{"Cargo.toml", cargo, cargo + "[target.x.build-dependencies]\nx = \"1\"\n", true},
		{"Cargo.toml", cargo, cargo + "[patch.crates-io]\nserde = { git = \"https://x\" }\n", true},
		{"Cargo.toml", cargo, cargo + "[[test]]\nname = \"x\"\nharness = false\n", true},
		{"Cargo.toml", cargo, cargo + "[workspace]\nmembers = [\"x\"]\n", true},
		{"Cargo.toml", cargo, cargo + "[dependencies]\n", true}, // given twice
		{"Cargo.toml", cargo, cargo + "x = \n", true},
		{"Cargo.toml", cargo, "", true},
		{"Cargo.toml", "", "[package]\nname = \"a\"\n", false},
		{"Cargo.toml", "", cargo, true},
		{"Cargo.toml", cargo, cargo + "#" + strings.Repeat("[", bracketsMax), true},
		{"Cargo.toml", cargo, cargo + "#" + strings.Repeat("[", bracketsMax/2), false},
		{"Cargo.toml", cargo, cargo + "#" + strings.Repeat(".", lineDotsMax+1), true},

		{"pyproject.toml", pypro, strings.ReplaceAll(pypro, "\"1\"", "\"2\""), false},
		{
			"pyproject.toml", pypro,
			strings.Replace(pypro, "x==1", "x==2", 1) + "[tool.ruff]\nline-length = 100\n[dependency-groups]\ntest = [\"y\"]\n", false,
		},
		{"pyproject.toml", pypro, strings.Replace(pypro, "hatchling", "evil", 1), true},
		{"pyproject.toml", pypro, strings.Replace(pypro, "requires =", "backend-path = [\".\"]\nrequires =", 1), true},
		{"pyproject.toml", pypro, pypro + "[project.scripts]\nx = \"x:main\"\n", true},
		{"pyproject.toml", pypro, pypro + "[project.entry-points.pytest11]\nx = \"x\"\n", true},
		{"pyproject.toml", pypro, pypro + "[tool.pytest.ini_options]\naddopts = \"-p x\"\n", true},
		{"pyproject.toml", pypro, pypro + "[tool.hatch.build.hooks.custom]\n", true},
		{"pyproject.toml", pypro, pypro + "[tool.poetry.scripts]\nx = \"x:main\"\n", true},
		{"pyproject.toml", pypro, pypro + "[tool.pdm.scripts]\nx = \"x\"\n", true},
		{"pyproject.toml", pypro, pypro + "[tool.poe.tasks]\nx = \"x\"\n", true},
		{"pyproject.toml", pypro, pypro + "[tool.taskipy.tasks]\nx = \"x\"\n", true},
		{"pyproject.toml", pypro, pypro + "[tool.setuptools.cmdclass]\nx = \"x.X\"\n", true},
		{"pyproject.toml", pypro, pypro + "[tool.mypy]\nplugins = [\"x.py\"]\n", true},

		{".gitattributes", attrs, "# a comment\n" + attrs + "\"a b\" text eol=lf\n*.gen linguist-generated=true\n", false},
		{".gitattributes", attrs, strings.Replace(attrs, "*.txt text", "*.txt -text export-ignore", 1), false},
		{".gitattributes", attrs, attrs + "*.c filter=x\n", true},
		{".gitattributes", attrs, attrs + "\"a b\" merge=x\n", true},
		{".gitattributes", attrs, attrs + "*.txt text\rfilter=x\n", true},
		{".gitattributes", attrs, attrs + "[attr]mine text\n", true},
		{".gitattributes", attrs, attrs + "*.c mine\n", true},
		{".gitattributes", attrs, attrs + "*.c -!text\n", true},
		{".gitattributes", attrs, strings.Replace(attrs, "*.c -diff\n", "", 1), true}, // the other line is in effect then
		{".gitattributes", attrs, strings.Replace(attrs, "*.c diff", "*.h diff", 1), true},
		{".gitattributes", attrs, attrs + "\"a text\n", true},
		{".gitattributes", attrs, attrs + "\"a\"text\n", true},
		{".gitattributes", attrs, attrs + "*.c " + strings.Repeat("text ", attributeLineMax/5), true}, // git ignores the line
		{".gitattributes", "*.txt text\n", "*.txt text\n*.png binary\n*.md -diff\n", false},
		{".gitattributes", "*.txt text\n", "", false},
		{".gitattributes", "", "*.txt text\n", false},
		{".gitattributes", "", "*.bin filter=lfs diff=lfs merge=lfs -text\n", true},

		{"setup.cfg", "[metadata]\nversion = 1\n", "[metadata]\nversion = 2\n", true},
	}
}()

func TestDiffers(t *testing.T) {
	for _, c := range mixed {
		if got := Differs(c.name, []byte(c.was), []byte(c.now)); got != c.want {
			t.Errorf("%s: %v, want %v:\n%.400s", c.name, got, c.want, c.now)
		}
		if got := Differs(c.name, []byte(c.now), []byte(c.was)); got != c.want {
			t.Errorf("%s: the other way: %v, want %v:\n%.400s", c.name, got, c.want, c.now)
		}
	}
}

// A mixed file that another pattern names, too, counts as a whole.
func TestMixedFiles(t *testing.T) {
	for name, want := range map[string]bool{
		"package.json": true, "web/Package.json": true, "Cargo.toml": true, "pyproject.toml": true, "a/.gitattributes": true,
		"composer.json": true, "deno.json": true,
		"setup.cfg": false, "Makefile": false, ".opencode/package.json": false, ".vscode/x/Cargo.toml": false, "deploy/package.json": false,
		"db/Cargo.toml": false,
	} {
		if !Match(name, nil) {
			t.Errorf("%s is not governing", name)
		}
		if got := Mixed(name, []string{"deploy/", "db/cargo.toml"}); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
