package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// start is the module that the page begins with, and sheet the one style sheet that is made of all.
const (
	start = "app.js"
	sheet = "page.css"
)

var (
	styleLink  = regexp.MustCompile(`[ \t]*<link rel="stylesheet" href="/([^"]+)">\n`)
	scriptLink = regexp.MustCompile(`(<script (?:type="module" )?src=")/`)
	imported   = regexp.MustCompile(`\b(?:from|import)\s*['"](\.[^'"\s]+)['"]`) // a call of import has a bracket
)

// files reads the embedded page and prepares it for a fast start: all style sheets become one, in their order, and the
// page names each module that it will import, so that the browser asks for all of them at once instead of level by
// level. home is the folder under which a browser may keep them for good: its name changes with any of them.
func files() (all map[string][]byte, home string, err error) {
	all = map[string][]byte{}
	err = fs.WalkDir(FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		all[name], err = fs.ReadFile(FS(), name)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	index := string(all["index.html"])
	var styles bytes.Buffer
	for _, m := range styleLink.FindAllStringSubmatch(index, -1) {
		styles.Write(all[m[1]])
	}
	all[sheet] = styles.Bytes()
	modules, err := graph(all, start)
	if err != nil {
		return nil, "", err
	}
	home = folderOf(all)
	head := fmt.Sprintf("  <link rel=\"stylesheet\" href=\"%s%s\">\n", home, sheet)
	for _, name := range modules {
		head += fmt.Sprintf("  <link rel=\"modulepreload\" href=\"%s%s\">\n", home, name)
	}
	at := styleLink.FindStringIndex(index)[0] // a page without style sheets is a bug that the tests find
	index = index[:at] + head + styleLink.ReplaceAllString(index[at:], "")
	all["index.html"] = []byte(scriptLink.ReplaceAllString(index, "${1}"+home))
	return all, home, nil
}

// graph lists the modules that a module imports, and those that they import, breadth first. A module that is imported
// later, by a call, is not among them.
func graph(all map[string][]byte, first string) ([]string, error) {
	found := []string{first}
	for at := 0; at < len(found); at++ {
		text, ok := all[found[at]]
		if !ok {
			return nil, fmt.Errorf("%s is imported and not there", found[at])
		}
		for _, m := range imported.FindAllStringSubmatch(string(text), -1) {
			name := path.Join(path.Dir(found[at]), m[1])
			if !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	return found, nil
}

// folderOf names the folder of the assets after their content.
func folderOf(all map[string][]byte) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(sum, "%s %d\n", name, len(all[name]))
		sum.Write(all[name])
	}
	return "/v/" + hex.EncodeToString(sum.Sum(nil)[:8]) + "/"
}

// unversioned is the name of an asset without the folder of this or another version of the page.
func unversioned(name string) string {
	if rest, ok := strings.CutPrefix(name, "v/"); ok {
		if _, rest, ok = strings.Cut(rest, "/"); ok {
			return rest
		}
	}
	return name
}

// packed is a text compressed for browsers that take it; none if that saves nothing.
func packed(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(body)                                  // into memory
	if err := w.Close(); err != nil || b.Len() >= len(body)*9/10 {
		return nil
	}
	return b.Bytes()
}
