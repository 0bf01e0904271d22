package places

import (
	"cmp"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

func keys(list map[string]sandbox.Place) iter.Seq[string] { return maps.Keys(list) }

// isBelow reports whether p is inside a folder.
func isBelow(p, folder string) bool {
	return folder == "/" && p != "/" || strings.HasPrefix(p, folder+"/")
}

// isWithin reports whether p is a folder or inside it.
func isWithin(p, folder string) bool { return p == folder || isBelow(p, folder) }

// systemFolders are in every view without a place.
var systemFolders = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/nix", "/gnu", "/snap",
}

func isSystem(p string) bool {
	return slices.ContainsFunc(systemFolders, func(f string) bool { return isWithin(p, f) })
}

// settled is the real path of a folder. Links below the team's folder, whose real path is realRoot, are not followed.
func settled(root, realRoot, p string) (string, error) {
	for _, from := range []string{root, realRoot} {
		if rel, err := filepath.Rel(from, p); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(realRoot, rel), nil
		}
	}
	return filepath.EvalSymlinks(p)
}

// errLink says that a part of a path is a link.
var errLink = errors.New("a part of it is a symbolic link, which no place goes through")

// linkless looks at a path below a folder, and fails if one of its parts is a link.
func linkless(folder, p string) (info fs.FileInfo, err error) {
	rel, err := filepath.Rel(folder, p)
	if err != nil {
		return nil, err
	}
	at := folder
	if info, err = os.Lstat(at); err != nil || rel == "." {
		return info, err
	}
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		if info, err = os.Lstat(at); err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, &fs.PathError{Op: "use", Path: at, Err: errLink}
		}
	}
	return info, nil
}

func isFolder(p string) bool {
	info, err := os.Lstat(p)
	return err == nil && info.IsDir()
}

func isThere(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

// WriteFolders returns the folders that hold everything which a can_write list names, because a place is a folder and knows no
// patterns: "src/**/*.go" is src. "." is the workspace, which the absence of a list and a pattern without a slash mean too.
func WriteFolders(list []string) (folders []string) {
	if list == nil {
		return []string{"."}
	}
	for _, entry := range list {
		if folder := folderOf(strings.TrimPrefix(entry, "./")); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	if slices.Contains(folders, ".") {
		folders = slices.DeleteFunc(folders,
			func(f string) bool { return f != "." && f[0] != '/' && f != "~" && !strings.HasPrefix(f, "~/") })
	}
	return folders
}

// folderOf returns the folder of one entry of can_write. A path whose last name has a dot is a file.
func folderOf(entry string) string {
	plain := entry
	if at := strings.IndexAny(entry, `*?[{\`); at >= 0 {
		plain = entry[:strings.LastIndexByte(entry[:at], '/')+1]
	}
	parent, name := path.Split(plain)
	switch {
	case parent == "": // a name in any folder, or a pattern for one
		return "."
	case strings.LastIndexByte(name, '.') > 0:
		plain = parent
	}
	return cmp.Or(strings.TrimRight(plain, "/"), "/")
}

// wholeFolder returns the folder that an entry of the permissions means with all that is in it; false: the entry is a pattern, a
// file, or a name in any folder.
func wholeFolder(entry string) (folder string, is bool) {
	folder = strings.TrimPrefix(entry, "./")
	plain := strings.TrimSuffix(folder, "**")
	if folder == "**" {
		return ".", true
	}
	whole := strings.HasSuffix(plain, "/")
	plain = strings.TrimRight(plain, "/")
	if plain == "" || strings.ContainsAny(plain, `*?[{\`) ||
		!whole && (!strings.Contains(plain, "/") || strings.Contains(path.Base(plain), ".")) {
		return "", false
	}
	return plain, true
}

// Patterns returns what of the permissions no place holds: the rules deny it, by what a call says.
func Patterns(canWrite, cannotWrite []string) (some []string) {
	some = partial(canWrite)
	for _, entry := range cannotWrite {
		if _, whole := wholeFolder(entry); !whole {
			some = append(some, entry)
		}
	}
	return some
}

// partial returns the entries of can_write that name less than the folder which is opened for them.
func partial(list []string) (some []string) {
	for _, entry := range list {
		if folder, whole := wholeFolder(entry); !whole || folderOf(strings.TrimPrefix(entry, "./")) != folder && folder != "." {
			some = append(some, entry)
		}
	}
	return some
}

// environ is an environment in which a later value counts.
type environ struct{ list []string }

func environOf(list []string) environ { return environ{slices.Clone(list)} }

func (e *environ) get(name string) string {
	for i := len(e.list) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(e.list[i], name+"="); ok {
			return v
		}
	}
	return ""
}

func (e *environ) drop(name string) {
	e.list = slices.DeleteFunc(e.list, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

func (e *environ) set(name, value string) {
	e.drop(name)
	e.list = append(e.list, name+"="+value)
}

// written reports whether programs of agents write in a folder: in this session, or in one of an agent whose folder is hidden here.
func (m *maker) written(dir string) bool {
	at := m.covering(dir)
	return at.From == "" && (at.Access == sandbox.Write || at.Access == sandbox.Hide) ||
		slices.ContainsFunc(m.theirs, func(other string) bool { return isWithin(dir, other) && !isWithin(m.Dir, dir) })
}

const linksMax = 40 // in one path, as the kernel's

// follow goes along the links of a path, of each of which it tells, and returns what it leads to, if that is there. False: a
// program of an agent could have made one of the links, so that it leads wherever that program wanted.
func (m *maker) follow(p string, each func(at string)) (real string, ok bool) {
	at, rest, links := "/", strings.Split(p, "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		to, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > linksMax || m.written(at) {
			return "", false
		}
		if each != nil {
			each(next)
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return at, true
}

// planted reports whether a path goes through a link that a program of an agent could have made.
func (m *maker) planted(p string) bool {
	_, ok := m.follow(p, nil)
	return !ok
}
