package policy_test

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/policy"
)

// disk are the paths that exist in a test. It counts the looks.
type disk struct {
	paths map[string]bool
	looks int
}

func diskOf(files ...string) *disk {
	d := &disk{paths: map[string]bool{}}
	for _, f := range files {
		for ; f != "." && f != "/"; f = path.Dir(f) {
			d.paths[f] = true
		}
	}
	return d
}

func (d *disk) exists(p string) bool { d.looks++; return d.paths[strings.TrimSuffix(p, "/")] }

// SPEC D, named paths: text that is joined to a name on both sides, as in Chinese and Japanese, hides no path that exists, nor a new file
// in a folder that exists. What does not exist is not found in it.
func TestNamedPathsInJoinedText(t *testing.T) {
	d := diskOf("文档/说明.md", "文档/旧/一.md", "说明.md", "a.md", "改/文档/二.md", "メモ/予定.txt", "src/main.go", "문서/계획.md")
	for input, want := range map[string]string{
		"请修改文档/说明.md文件":             "文档/说明.md",
		"请修改说明.md文件":                "说明.md",
		"请修改a.md文件":                 "a.md",
		"请看文档/旧目录里的东西":              "文档/旧",
		"请改/文档/二.md吧":               "改/文档/二.md",
		"昨日のメモ/予定.txtを読んで":          "メモ/予定.txt",
		"请写到文档/新的.md里":              "文档/新的.md",
		"请写到文档/旧/三.md里面去":           "文档/旧/三.md",
		"把文档/说明.md和src/main.go比较一下": "src/main.go",
		"계획은문서/계획.md에있다":            "문서/계획.md",
		"“请修改文档/说明.md文件”":           "文档/说明.md",
	} {
		if paths := policy.NamedPaths(input, d.exists); !slices.Contains(paths, want) {
			t.Errorf("%q names %q, not %q", input, paths, want)
		}
	}
	if paths := policy.NamedPaths("请修改计划/说明书.md文件和总结.txt吧", d.exists); slices.ContainsFunc(paths,
		func(p string) bool { return d.exists(p) }) {
		t.Errorf("it names %q", paths)
	}
}

// Any path that exists is found between any joined text, in few looks, and each path that is found only with the disk exists or is
// in a folder that does.
func TestAnyJoinedPathIsNamed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune("请修改文档说明报告计划的在和一二三のをにメモ予定表を문서계획")
	some := func(least, most int) string {
		word := make([]rune, least+random.IntN(most-least+1))
		for i := range word {
			word[i] = letters[random.IntN(len(letters))]
		}
		return string(word)
	}
	for range 3000 {
		name := some(1, 4) + from(random, ".md", ".txt", ".go")
		for range random.IntN(3) {
			name = some(1, 3) + "/" + name
		}
		before, after := some(0, 12), some(0, 12)
		d := diskOf(name)
		input := before + name + after
		paths := policy.NamedPaths(input, d.exists)
		if !slices.Contains(paths, name) {
			t.Fatalf("%q names %q, not %q", input, paths, name)
		}
		plain := policy.NamedPaths(input, nil)
		for _, p := range paths {
			if !slices.Contains(plain, p) && !d.paths[p] && !d.paths[path.Dir(p)] {
				t.Fatalf("%q names %q", input, p)
			}
		}
	}
	d := diskOf("文档/说明.md")
	policy.NamedPaths(strings.Repeat("请修改文档/说明书.mdа文件", 4000), d.exists)
	if d.looks > 1000 {
		t.Errorf("%d looks at the disk", d.looks)
	}
}

func from(random *rand.Rand, words ...string) string { return words[random.IntN(len(words))] }
