package diff

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// FilesMax is how many files a list has at most.
const FilesMax = 3000

// Entry is one changed file, as git names it.
type Entry struct {
	ChangedFile
	Paths    []string // of the file in git's bytes: the new one, and the old one if it was renamed or copied
	From, To string   // ids of the contents; zeros: there is none
}

var errList = errors.New("the list of changed files cannot be understood")

// ReadList reads what `git diff --raw --numstat -z --no-abbrev` prints. more is how many files were left out.
func ReadList(text string) (all []Entry, more int, err error) {
	fields := strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
	if text == "" {
		return nil, 0, nil
	}
	take := func() (field string, err error) {
		if len(fields) == 0 {
			return "", errList
		}
		field, fields = fields[0], fields[1:]
		return field, nil
	}
	for len(fields) > 0 && strings.HasPrefix(fields[0], ":") {
		e, paths, err := rawEntry(fields[0])
		if err != nil {
			return nil, 0, err
		}
		fields = fields[1:]
		for range paths {
			name, err := take()
			if err != nil || name == "" {
				return nil, 0, errList
			}
			e.Paths = append([]string{name}, e.Paths...) // git prints the old name first
		}
		e.Name = shown(e.Paths[0])
		if paths == 2 {
			e.OldName = shown(e.Paths[1])
		}
		all = append(all, e)
	}
	for i := range all {
		line, err := take()
		if err != nil {
			return nil, 0, err
		}
		added, rest, ok := strings.Cut(line, "\t")
		deleted, name, ok2 := strings.Cut(rest, "\t")
		if !ok || !ok2 {
			return nil, 0, errList
		}
		if name == "" { // a rename: two names follow
			for range 2 {
				if name, err = take(); err != nil {
					return nil, 0, err
				}
			}
		}
		if name != all[i].Paths[0] {
			return nil, 0, errList
		}
		if added == "-" && deleted == "-" {
			all[i].Binary = true
			continue
		}
		a, err := strconv.Atoi(added)
		b, err2 := strconv.Atoi(deleted)
		if err := errors.Join(err, err2); err != nil {
			return nil, 0, fmt.Errorf("%w: %w", errList, err)
		}
		all[i].Added, all[i].Deleted = a, b
	}
	if len(fields) > 0 {
		return nil, 0, errList
	}
	if len(all) > FilesMax {
		return all[:FilesMax], len(all) - FilesMax, nil
	}
	return all, 0, nil
}

// rawEntry reads ":100644 100644 ID ID M", and how many names follow.
func rawEntry(field string) (e Entry, paths int, err error) {
	part := strings.Split(field[1:], " ")
	if len(part) != 5 || part[4] == "" {
		return e, 0, errList
	}
	e.From, e.To = part[2], part[3]
	if !objectID(e.From) || !objectID(e.To) {
		return e, 0, errList
	}
	paths = 1
	switch part[4][0] {
	case 'A':
		e.Status = Added
	case 'D':
		e.Status = Deleted
	case 'R':
		e.Status, paths = Renamed, 2
	case 'C':
		e.Status, paths = Copied, 2
	default:
		e.Status = Modified
	}
	if was, is := part[0], part[1]; paths == 2 || e.Status == Modified {
		if was != is {
			e.OldMode, e.NewMode = mode(was), mode(is)
		}
	} else if e.Status == Added && is != "100644" {
		e.NewMode = mode(is)
	}
	return e, paths, nil
}

// objectID reports whether a text is the id of an object.
func objectID(id string) bool {
	return len(id) >= 40 && len(id) <= 64 && strings.Trim(id, "0123456789abcdef") == ""
}

// mode says what kind of file a mode is.
func mode(m string) string {
	switch m {
	case "100644":
		return "file"
	case "100755":
		return "executable file"
	case "120000":
		return "symbolic link"
	case "160000":
		return "submodule"
	default:
		return "mode " + shown(m)
	}
}

// shown is a name as text: not all bytes that git allows are.
func shown(name string) string {
	return clip.Text(name, nameBytesMax)
}
