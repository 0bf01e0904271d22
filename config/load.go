package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// Load reads fairlead.yaml in a folder. lookupEnv is os.LookupEnv; if it is nil, references are not resolved,
// which is for programs that only check the text.
//
// A file with errors gives *Faults. A missing file gives an error that is fs.ErrNotExist.
func Load(dir string, lookupEnv func(string) (string, bool)) (*Config, error) {
	s := ReadSource(dir, lookupEnv)
	return s.Conf, s.Err
}

// Sum is the identity of the content of the file in a folder, as it is now.
func Sum(dir string) (string, error) {
	b, err := readFile(filepath.Join(dir, FileName))
	return sumOf(b), err
}

// SumOf is the identity of a file with this content.
func SumOf(b []byte) string { return sumOf(b) }

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// Parse reads a configuration that is in memory. name is used in messages; relative paths start from dir.
func Parse(name, dir string, b []byte, lookupEnv func(string) (string, bool)) (*Config, error) {
	return parse(name, dir, b, lookupEnv, nil)
}

// parse is Parse. The files in kept, named from dir, need not exist.
func parse(name, dir string, b []byte, lookupEnv func(string) (string, bool), kept []SourceFile) (*Config, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the folder of %s: %w", name, err)
	}
	if dir, err = settle(dir); err != nil {
		return nil, fmt.Errorf("find the folder of %s: %w", name, err)
	}
	found := &findings{file: name}
	root := parseTree(b, found)
	if root == nil {
		return nil, found.err()
	}
	checkShape(root, found)
	if root.Kind != file.YAMLObject {
		return nil, found.err()
	}
	c := &checker{findings: found, root: root, dir: dir, lookupEnv: lookupEnv, kept: kept}
	cfg := c.config()
	if err := found.err(); err != nil {
		return nil, err
	}
	sortFaults(found.notes)
	cfg.Notes = found.notes
	return cfg, nil
}

// readFile reads at most one byte more than the size limit, so that a file that is too large is noticed and
// an endless one is not read.
func readFile(path string) (_ []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, fileBytesMax+1))
}

const (
	fileBytesMax = 1 << 20 // ten times the size of a file with a thousand detailed agents
	nodesMax     = 200_000 // after aliases are followed, which stops an alias bomb; ten thousand agents with twenty values each
	depthMax     = 32      // the schema has a depth of five
)

// Tree reads the text of a configuration into nodes with their places, without checking what they say.
func Tree(b []byte) (*file.YAMLNode, error) {
	found := &findings{file: FileName}
	root := parseTree(b, found)
	return root, found.err()
}

// parseTree reads YAML into nodes. It returns nil if that is not possible and adds the reason to found.
func parseTree(b []byte, found *findings) *file.YAMLNode {
	shielded, restore := shieldReferences(b)
	format := file.YAMLFormat{
		BytesMax: fileBytesMax + len(shielded) - len(b), NodesMax: nodesMax, DepthMax: depthMax,
		TooLarge:       "is larger than 1 MiB; put prompts and scripts into their own files",
		TooMuch:        fmt.Sprintf("exceeds the size of any real team (%d values, %d deep, with aliases followed)", nodesMax, depthMax),
		Empty:          "is empty; it needs at least the line `version: 1`",
		Restore:        restore,
		Path:           join,
		NumbersMustFit: true,
	}
	root := format.Read(shielded, func(at file.Place, path, text string) { found.add(at, path, "%s", text) })
	if root != nil && root.Kind == file.YAMLNull {
		found.add(file.Place{Line: 1, Column: 1}, "", "is empty; it needs at least the line `version: 1`")
		return nil
	}
	return root
}

var referencePattern = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// shieldReferences allows ${NAME} without quotes in a flow mapping such as {key: ${NAME}}, where YAML
// would read its braces as syntax. It replaces the braces by two private-use characters, which restore
// replaces back in every scalar. Places stay the same. A file that already holds those characters is read as
// plain YAML.
func shieldReferences(b []byte) ([]byte, func(string) string) {
	const open, shut = "\uf8d0", "\uf8d1" // from Unicode's private-use area
	if bytes.Contains(b, []byte(open)) || bytes.Contains(b, []byte(shut)) {
		return b, func(s string) string { return s }
	}
	shielded := referencePattern.ReplaceAllFunc(b, func(ref []byte) []byte {
		return []byte("$" + open + string(ref[2:len(ref)-1]) + shut)
	})
	return shielded, strings.NewReplacer(open, "{", shut, "}").Replace
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// join extends a path. A key that is not a plain word is quoted and shortened. In an environment, everything
// from an equals sign on is removed, because it may be a secret value written in the wrong place.
func join(path, key string) string {
	if path == "env" || strings.HasSuffix(path, ".env") {
		if name, _, cut := strings.Cut(key, "="); cut {
			key = name + "=…"
		}
	}
	if !plainKey.MatchString(key) {
		key = quoteShort(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// quoteShort quotes text of the file for a message: one line, no control characters, limited length.
func quoteShort(s string) string {
	const runesMax = 64 // leaves room for the message on a terminal line
	return strconv.Quote(clip.Runes(s, runesMax))
}
