package config

import (
	"cmp"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// Notify says how people are notified.
type Notify struct {
	Page    string // the address of Mission Control in links; empty: that on this machine
	Targets []NotifyTarget
}

// NotifyTarget is one target of notices.
type NotifyTarget struct {
	Name    string
	URL     Secret
	URLFile string   // has the address instead
	Events  []string // empty: the usual ones
	Quiet   Quiet
	PerHour int // messages; 0: the default for its kind
}

// Quiet are hours of each day. Equal times are no hours.
type Quiet struct {
	From, To time.Duration // since midnight
	Zone     string        // a name that time.LoadLocation knows; empty: that of this machine
}

const (
	urlFileBytesMax = 8192 // an address is shorter
	desktopURL      = "desktop"
)

func readNotify(c *checker) Notify {
	n := c.root.Get("notify")
	cfg := Notify{Page: pageOf(c, n.Get("page"))}
	if hook := n.Get("webhook"); textOf(hook) != "" {
		cfg.Targets = append(cfg.Targets, NotifyTarget{Name: "webhook", URL: noticeURL(c, hook, "http", "https")})
	}
	if boolOf(n.Get("desktop"), false) {
		cfg.Targets = append(cfg.Targets, NotifyTarget{Name: "desktop", URL: Secret{raw: desktopURL}})
	}
	for _, f := range fieldsOf(n.Get("targets")) {
		c.name(f)
		t := NotifyTarget{
			Name: f.Name, Events: textsOf(f.Value.Get("events")), Quiet: quietOf(c, f.Value),
			PerHour: intOf(f.Value.Get("per_hour"), 0),
		}
		for i := range cfg.Targets {
			if cfg.Targets[i].Name == f.Name {
				c.add(f.Place, f.Value.Path, "is there twice: notify.%s makes a target of this name; remove one of them", f.Name)
			}
		}
		address, path := f.Value.Get("url"), f.Value.Get("url_file")
		switch {
		case (textOf(address) == "") == (textOf(path) == ""):
			c.add(f.Place, f.Value.Path, "needs either url or url_file")
		case textOf(address) != "":
			t.URL = noticeURL(c, address)
		default:
			t.URLFile = urlFile(c, path)
		}
		cfg.Targets = append(cfg.Targets, t)
	}
	return cfg
}

// noticeURL checks an address as far as that is possible without knowing the services.
func noticeURL(c *checker, n *file.YAMLNode, schemes ...string) Secret {
	s, address, ok := c.reference(n, n.Path)
	u, err := url.Parse(address)
	switch {
	case !ok || len(schemes) == 0 && address == desktopURL:
	case len(schemes) > 0 && (err != nil || u.Host == "" || u.Scheme != schemes[0] && u.Scheme != schemes[1]):
		c.add(n.Place, n.Path, "is not an address that begins with http:// or https://")
	case err != nil || u.Scheme == "" || !strings.Contains(address, "://"):
		c.add(n.Place, n.Path, "is not an address; use \"desktop\", https://…, or the address of a service such as ntfy://ntfy.sh/TOPIC")
	}
	return s
}

// urlFile checks the file with an address. Others must not be able to read it, and it is not in the repository, where
// agents can.
func urlFile(c *checker, n *file.YAMLNode) string {
	path := textOf(n)
	if rest, home := strings.CutPrefix(path, "~/"); home {
		if dir, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(dir, rest)
		}
	}
	if !filepath.IsAbs(path) {
		c.add(n.Place, n.Path, "%s is not an absolute path; name a file outside the repository, such as ~/.config/fairlead/notice-url",
			shown(n))
		return ""
	}
	if c.lookupEnv == nil {
		return path // only the text is checked
	}
	info, err := os.Stat(path)
	inside := false
	if real, err := filepath.EvalSymlinks(path); err == nil {
		rel, err := filepath.Rel(c.dir, real)
		inside = err == nil && filepath.IsLocal(rel)
	}
	switch {
	case err != nil:
		c.add(n.Place, n.Path, "%s cannot be read: %s", shown(n), cmp.Or(reason(err), "see that it exists"))
	case inside:
		c.add(n.Place, n.Path, "%s is in the repository, where agents can read it; move it to your home folder", shown(n))
	case !info.Mode().IsRegular() || info.Size() > urlFileBytesMax:
		c.add(n.Place, n.Path, "%s is not a file of at most %d bytes with one address", shown(n), urlFileBytesMax)
	case info.Mode().Perm()&0o077 != 0:
		c.add(n.Place, n.Path, "%s can be read by other users; run chmod 600 on it", shown(n))
	}
	return path
}

func reason(err error) string {
	if os.IsNotExist(err) {
		return "it does not exist"
	}
	return ""
}

var quietPattern = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])$`)

// quietOf reads the quiet hours of a target.
func quietOf(c *checker, target *file.YAMLNode) Quiet {
	n, zone := target.Get("quiet"), target.Get("zone")
	q := Quiet{}
	if textOf(n) == "" {
		if textOf(zone) != "" {
			c.add(zone.Place, zone.Path, "is of no use without quiet; remove it, or add quiet hours")
		}
		return q
	}
	part := quietPattern.FindStringSubmatch(textOf(n))
	if part == nil {
		c.add(n.Place, n.Path, "%s is not hours of the day; write them like 22:00-07:30", shown(n))
		return q
	}
	of := func(hour, minute string) time.Duration {
		h, _ := strconv.Atoi(hour) // two digits
		m, _ := strconv.Atoi(minute)
		return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	}
	q.From, q.To, q.Zone = of(part[1], part[2]), of(part[3], part[4]), textOf(zone)
	if q.From == q.To {
		c.add(n.Place, n.Path, "%s would be the whole day or no time at all; give two different times, or remove the target", shown(n))
	}
	if _, err := time.LoadLocation(q.Zone); q.Zone != "" && err != nil {
		c.add(zone.Place, zone.Path,
			"%s is not a time zone that this machine knows; write it like Europe/Berlin or UTC, and see that the package tzdata is installed", shown(zone))
	}
	return q
}

// pageOf is the address in links.
func pageOf(c *checker, n *file.YAMLNode) string {
	text := textOf(n)
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		c.add(n.Place, n.Path, "%s is not the address of a page, such as https://fairlead.example.org/", shown(n))
		return ""
	}
	return strings.TrimSuffix(text, "/") + "/"
}

// Address returns the address of a target. It is secret. The error names the file or the variable, not the address.
func (t *NotifyTarget) Address(lookupEnv func(string) (string, bool)) (string, error) {
	if t.URLFile == "" {
		return t.URL.Resolve(lookupEnv)
	}
	f, err := os.Open(t.URLFile)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(f, urlFileBytesMax))
	return strings.TrimSpace(string(b)), err
}
