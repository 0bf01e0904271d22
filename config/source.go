package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// Source is the text of fairlead.yaml and of the files that it includes, as they were read at one moment: the scripts of agents,
// and the workflow of tasks. The workflows that it lists are read when a person starts one.
type Source struct {
	Files []SourceFile // fairlead.yaml first; none: there is no such file
	Conf  *Config      // what they say; nil if Err is not
	Err   error        // of Load
}

// SourceFile is one of the files.
type SourceFile struct {
	Name string `json:"name"` // from the folder of fairlead.yaml
	Text []byte `json:"text"`
}

// ReadSource reads the files in a folder. A file that cannot be read counts as an empty one.
func ReadSource(dir string, lookupEnv func(string) (string, bool)) *Source {
	b, err := readFile(filepath.Join(dir, FileName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Source{Err: fmt.Errorf("there is no %s in %s; `fairlead init` writes one: %w", FileName, dir, fs.ErrNotExist)}
	case err != nil:
		return &Source{Err: fmt.Errorf("read %s: %w", FileName, err)}
	}
	s := &Source{Files: []SourceFile{{FileName, b}}}
	s.parse(dir, lookupEnv)
	for _, path := range s.Conf.Includes() {
		text, _ := readFile(path)
		s.Files = append(s.Files, SourceFile{nameFrom(s.Conf.Dir, path), text})
	}
	return s
}

func (s *Source) parse(dir string, lookupEnv func(string) (string, bool)) {
	if s.Conf, s.Err = parse(FileName, dir, s.Files[0].Text, lookupEnv, s.Files[1:]); s.Err == nil {
		s.Conf.Sum = SumOf(s.Files[0].Text)
	}
}

// nameFrom is how a file is called from the folder of fairlead.yaml.
func nameFrom(dir, path string) string {
	if name, err := filepath.Rel(dir, path); err == nil {
		return name
	}
	return path
}

// Includes are the files whose content is obeyed together with fairlead.yaml, by their absolute paths.
func (c *Config) Includes() (all []string) {
	if c == nil {
		return nil
	}
	for i := range c.Agents {
		all = append(all, c.Agents[i].Script)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(p string) bool { return p == "" })
}

// Sum identifies names and contents; empty if there is no fairlead.yaml. It is long, because an agent could look for two texts with
// one short sum.
func (s *Source) Sum() string {
	if len(s.Files) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, f := range s.Files {
		for _, part := range [][]byte{[]byte(f.Name), f.Text} {
			_ = binary.Write(sum, binary.BigEndian, uint64(len(part))) // a hash takes everything
			sum.Write(part)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Text returns the content of an included file; false if there is none with this path.
func (s *Source) Text(path string) ([]byte, bool) {
	text := s.Named(nameFrom(s.Conf.Dir, path))
	return text, text != nil
}

// Named returns the content of a file by its name; nil if there is none.
func (s *Source) Named(name string) []byte {
	i := slices.IndexFunc(s.Files, func(f SourceFile) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return append([]byte{}, s.Files[i].Text...)
}

// Encode returns the files as one text, for ParseSource.
func (s *Source) Encode() []byte {
	b, err := json.Marshal(s.Files)
	if err != nil {
		panic("config: texts can be encoded: " + err.Error())
	}
	return append(b, '\n')
}

// ParseSource reads what Encode returned. A file that it holds need not exist any more. The error says that the text is not from
// Encode; faults of the configuration are in Err.
func ParseSource(b []byte, dir string, lookupEnv func(string) (string, bool)) (*Source, error) {
	s := &Source{}
	if err := json.Unmarshal(b, &s.Files); err != nil {
		return nil, err
	}
	if len(s.Files) == 0 {
		return nil, errors.New("it holds no " + FileName)
	}
	s.parse(dir, lookupEnv)
	return s, nil
}
