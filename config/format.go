package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/governing"
	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// formatted reports what is wrong with a text of a format, the value of the tag, and returns what the field gets.
func (c *checker) formatted(n *file.YAMLNode, format string) string {
	switch format {
	case "argument":
		if strings.ContainsRune(n.Text, 0) {
			c.fault(n, "holds a zero byte, which cannot be passed to a process")
		}
	case "branch":
		if !strings.Contains(n.Text, "{id}") {
			c.fault(n, "has no {id}, so that two tasks would have one branch; the default is %s", TaskBranch)
		}
	case "calls":
		c.calls(n)
	case "executes", "writes":
		c.checked(n, policy.ParseBound(n.Text, format == "executes"))
	case "file":
		return c.existingFile(n)
	case "governing":
		if why := governing.PatternFault(n.Text); why != "" {
			c.fault(n, "%s %s", shown(n), why)
		}
	case "inside":
		if !filepath.IsLocal(n.Text) || n.Text == "." {
			c.fault(n, "%s is not below the folder of this file; name files and folders in it", shown(n))
		}
	case "listen":
		c.listen(n)
	case "name":
		if !namePattern.MatchString(n.Text) {
			c.fault(n, "%s is not a name: %s", shown(n), nameRule)
		}
	case "network":
		_, err := network.Parse([]string{n.Text})
		c.checked(n, err)
	case "page":
		if n.Text == "" {
			return ""
		}
		if u := web(n.Text); u == nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			c.fault(n, "%s is not the address of a page, such as https://fairlead.example.org/", shown(n))
		}
		return strings.TrimSuffix(n.Text, "/") + "/"
	case "place":
		return c.place(n)
	case "secret file":
		return c.secretFile(n)
	case "url", "webhook":
		c.address(n, format)
	case "variable":
		c.variable(n)
	case "workspace":
		return c.workspace(n)
	case "zone":
		if _, err := time.LoadLocation(n.Text); err != nil {
			c.fault(n, "%s is not a time zone that this machine knows; write it like Europe/Berlin or UTC, and see that the package tzdata is installed", shown(n))
		}
	}
	return n.Text
}

// checked reports an error that says what is wrong with a text, and quotes it.
func (c *checker) checked(n *file.YAMLNode, err error) {
	if err != nil {
		c.fault(n, "%s", err)
	}
}

const nameRule = "lower-case letters, digits, dot, dash and underscore, beginning with a letter or digit, 64 at most"

// A name of an agent, a channel or a target becomes part of file names, URLs and the journal's entity names.
var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// variable checks the name of a variable. It may be a value in the wrong place, so it is not quoted.
func (c *checker) variable(n *file.YAMLNode) {
	switch {
	case !envName.MatchString(n.Text):
		c.fault(n, "is not the name of a variable: letters, digits and underscore, not beginning with a digit")
	case strings.HasPrefix(n.Text, "FAIRLEAD_"):
		c.fault(n, "begins with FAIRLEAD_, which is reserved; choose another name")
	}
}

// calls checks a pattern that answers a program's question.
func (c *checker) calls(n *file.YAMLNode) {
	_, err := policy.ParsePattern(n.Text)
	c.checked(n, err)
	tool, _, _ := strings.Cut(n.Text, "(")
	if hint := didYouMean(tool, tools); hint != "" && !slices.Contains(tools, tool) {
		c.note(n, "no supported program has a tool %s%s", quoteShort(tool), hint)
	}
}

// tools are the tool names that are common to the supported programs.
var tools = []string{"Write", "Edit", "MultiEdit", "NotebookEdit", "Read", "Bash", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "Task"}

func (c *checker) listen(n *file.YAMLNode) {
	host, port, err := net.SplitHostPort(n.Text)
	if p, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || strconv.FormatUint(p, 10) != port {
		c.fault(n, "%s is not an address and a port such as %s", shown(n), ListenDefault)
	} else if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		c.fault(n, "%s could be reached from other hosts, which would need TLS and accounts; use 127.0.0.1:%s and a tunnel", shown(n), port)
	}
}

// web returns an http or https address; nil: it is none.
func web(address string) *url.URL {
	if u, err := url.Parse(address); err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		return u
	}
	return nil
}

// address checks the address of a target as far as that is possible without knowing the services.
func (c *checker) address(n *file.YAMLNode, format string) {
	address, known := c.reference(n, c.lookupEnv)
	u, err := url.Parse(address)
	switch {
	case !known || format == "url" && address == desktopURL:
	case format == "webhook" && web(address) == nil:
		c.fault(n, "is not an address that begins with http:// or https://")
	case err != nil || u.Scheme == "" || !strings.Contains(address, "://"):
		c.fault(n, "is not an address; use \"desktop\", https://…, or the address of a service such as ntfy://ntfy.sh/TOPIC")
	}
}

// reference checks a text that may hold ${NAME} and returns its resolved value where that is possible. The resolved value must not
// appear in a message.
func (c *checker) reference(n *file.YAMLNode, lookup func(string) (string, bool)) (resolved string, known bool) {
	if known = lookup != nil; !known {
		lookup = func(string) (string, bool) { return "", true }
	}
	resolved, err := (Secret{raw: n.Text}).Resolve(lookup)
	c.checked(n, err)
	return resolved, known && err == nil
}

// absolute returns the path that a text means: from the home folder, or from the folder of the file.
func (c *checker) absolute(n *file.YAMLNode) string {
	switch home, err := os.UserHomeDir(); {
	case isRelative(n.Text):
		return filepath.Join(c.dir, n.Text)
	case filepath.IsAbs(n.Text):
		return filepath.Clean(n.Text)
	case err != nil:
		c.fault(n, "%s cannot be resolved, because the home folder is unknown; write an absolute path", shown(n))
		return ""
	default:
		return filepath.Join(home, n.Text[1:])
	}
}

func isRelative(path string) bool {
	return !filepath.IsAbs(path) && path != "~" && !strings.HasPrefix(path, "~/")
}

// within returns the way to a path from the folder of the file, if the path is inside.
func (c *checker) within(path string) (rel string, is bool) {
	rel, err := filepath.Rel(c.dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// existingFile reports a path that is not a file.
func (c *checker) existingFile(n *file.YAMLNode) string {
	p := c.absolute(n)
	switch info, err := os.Stat(p); {
	case slices.ContainsFunc(c.kept, func(f SourceFile) bool { return f.Name == nameFrom(c.dir, p) }):
	case os.IsNotExist(err):
		entries, _ := os.ReadDir(filepath.Dir(p)) // only for a hint
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name()
		}
		c.fault(n, "there is no file %s%s", shown(n), didYouMean(filepath.Base(p), names))
	case err != nil:
		c.fault(n, "the file %s cannot be read; check its permissions", shown(n))
	case !info.Mode().IsRegular():
		c.fault(n, "%s is not a file", shown(n))
	}
	return p
}

// secretFile checks the file with an address. Others must not be able to read it, and it is not in the repository, where agents can.
func (c *checker) secretFile(n *file.YAMLNode) string {
	path := c.absolute(n)
	if isRelative(n.Text) {
		c.fault(n, "%s is not an absolute path; name a file outside the repository, such as ~/.config/fairlead/notice-url", shown(n))
	} else if c.lookupEnv != nil { // otherwise only the text is checked
		c.checkSecretFile(n, path)
	}
	return path
}

func (c *checker) checkSecretFile(n *file.YAMLNode, path string) {
	info, err := os.Stat(path)
	real, _ := filepath.EvalSymlinks(path) // fails if Stat does
	_, inside := c.within(real)
	switch {
	case err != nil:
		c.fault(n, "%s cannot be read: it does not exist, or its folder is closed to this user", shown(n))
	case inside:
		c.fault(n, "%s is in the repository, where agents can read it; move it to your home folder", shown(n))
	case !info.Mode().IsRegular() || info.Size() > urlFileBytesMax:
		c.fault(n, "%s is not a file of at most %d bytes with one address", shown(n), urlFileBytesMax)
	case info.Mode().Perm()&0o077 != 0:
		c.fault(n, "%s can be read by other users; run chmod 600 on it", shown(n))
	}
}

// workspace returns the folder of an agent, which may not exist yet. It is empty after a fault.
func (c *checker) workspace(n *file.YAMLNode) string {
	p, err := settle(c.absolute(n))
	if err != nil {
		c.fault(n, "%s contains a symbolic link whose target does not exist", shown(n))
		return ""
	}
	rel, inside := c.within(p)
	if !inside && isRelative(n.Text) {
		c.fault(n, "%s is outside of the repository; write an absolute path for such a folder", shown(n))
		return ""
	}
	for part := range strings.SplitSeq(rel, "/") {
		if inside && slices.Contains([]string{".fairlead", ".git", ".claude"}, strings.ToLower(part)) {
			c.fault(n, "no agent may write in %s; choose another folder", part)
			return ""
		}
	}
	if info, err := os.Stat(p); err == nil && !info.IsDir() {
		c.fault(n, "%s is a file, not a folder", shown(n))
		return ""
	}
	return p
}

// settle resolves the links of the part of a path that exists, so that one folder has one spelling. A
// dangling link is an error, because the folder would later be created somewhere else.
func settle(path string) (string, error) {
	path = filepath.Clean(path)
	rest := ""
	for p := path; ; p = filepath.Dir(p) {
		if found, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(found, rest), nil
		}
		if info, err := os.Lstat(p); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return path, fmt.Errorf("the target of the symbolic link %s does not exist", p)
		}
		if p == filepath.Dir(p) {
			return path, nil
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}

// place returns the folder or socket of a wall. It is empty after a fault.
func (c *checker) place(n *file.YAMLNode) string {
	if strings.ContainsAny(n.Text, `*?[{`) {
		c.fault(n, "%s is a pattern; a wall holds whole folders and single sockets, so write the path without * ? [ {, or use permissions.can_write and cannot_write for patterns", shown(n))
		return ""
	}
	p := c.absolute(n)
	for _, whole := range []string{"/dev", "/proc", "/sys"} {
		if p == "/" || p == whole || strings.HasPrefix(p, whole+"/") {
			c.fault(n, "%s cannot be opened in a wall: a program reaches everything through /, /dev, /proc and /sys; name a folder to work in", shown(n))
			return ""
		}
	}
	return p
}

var sizePattern = regexp.MustCompile(`^([1-9][0-9]{0,5}) ?(MB|GB|TB)$`)

// bytesOf reads a size. 0 is no limit.
func bytesOf(text string) (int64, error) {
	part := sizePattern.FindStringSubmatch(text)
	if part == nil {
		if text == "0" {
			return 0, nil
		}
		return 0, errors.New("is not a size; write it like 500MB, 20GB or 1TB, or 0 for no limit")
	}
	n, _ := strconv.ParseInt(part[1], 10, 64) // of at most six digits
	return n * map[string]int64{"MB": 1e6, "GB": 1e9, "TB": 1e12}[part[2]], nil
}

// UnmarshalText reads hours such as 22:00-07:30.
func (q *Quiet) UnmarshalText(text []byte) error {
	first, last, _ := strings.Cut(string(text), "-")
	from, errFrom := time.Parse("15:04", first)
	to, errTo := time.Parse("15:04", last)
	switch {
	case errFrom != nil || errTo != nil:
		return errors.New("is not hours of the day; write them like 22:00-07:30")
	case from.Equal(to):
		return errors.New("would be the whole day or no time at all; give two different times, or remove the target")
	}
	midnight := time.Date(from.Year(), from.Month(), from.Day(), 0, 0, 0, 0, from.Location())
	q.From, q.To = from.Sub(midnight), to.Sub(midnight)
	return nil
}
