package sandbox

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// seatbeltBase is what every program on macOS may do. Everything else is denied. The mach services are those that look up users,
// settings, names and certificates; Go's TLS asks trustd. Left out on purpose: those that start programs outside (lsd,
// launchservicesd), keep keys (SecurityServer, securityd) or hold what was copied (pasteboard).
const seatbeltBase = `(version 1)
(deny default)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow mach-priv-task-port (target same-sandbox))
(allow sysctl-read)
(allow user-preference-read)
(allow pseudo-tty)
(allow ipc-posix-sem)
(allow ipc-posix-shm-read* (ipc-posix-name "apple.shm.notification_center"))
(allow mach-lookup
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.cfprefsd.agent")
  (global-name "com.apple.cfprefsd.daemon")
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.logd")
  (global-name "com.apple.networkd")
  (global-name "com.apple.ocspd")
  (global-name "com.apple.PowerManagement.control")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent"))
(allow file-read* (literal "/"))
(allow file-read-metadata (literal "/etc") (literal "/tmp") (literal "/var") (literal "/private") (literal "/private/var"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom") (subpath "/dev/fd"))
(allow file-read* file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper"))
(allow file-read* file-write* file-ioctl (literal "/dev/ptmx"))
(allow file-read* file-write* file-ioctl (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
`

// seatbeltNetwork lets programs reach hosts. A rule for what is reached names the remote address: one for the local address would
// hold nothing, because every connection has one.
const seatbeltNetwork = `(allow system-socket)
(allow network-outbound (remote ip "*:*"))
(allow network-outbound (remote unix-socket (path-literal "/private/var/run/mDNSResponder")))
(allow network-bind (local ip "*:*"))
(allow network-inbound (local ip "*:*"))
`

// seatbeltFolders are in every view on macOS, read-only, where the machine has them.
var seatbeltFolders = []string{
	"/Applications", "/Library", "/System", "/bin", "/nix", "/opt", "/private/etc", "/private/var/db/dyld", "/private/var/db/timezone",
	"/private/var/select", "/sbin", "/usr",
}

// movedFolders are links on each macOS. A rule has to name what they lead to.
var movedFolders = []string{"/etc", "/tmp", "/var"}

// Seatbelt is the profile for macOS's sandbox-exec that says what a view says. There are no mounts there: a place is at
// [Place.From], and the folders of the home and of /tmp are reached by the variables HOME and TMPDIR. Nothing runs it yet.
func Seatbelt(v View) (string, error) {
	v.By = ByNamespaces // the places are checked, which every way of making a view has
	if err := v.check(); err != nil {
		return "", err
	}
	places := seatbeltPlaces(v)
	for _, p := range append([]string{v.Session}, slices.Concat(v.Sockets, v.Execute)...) {
		if err := quotable(p); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	b.WriteString(seatbeltBase)
	if v.Execute == nil {
		b.WriteString("(allow process-exec)\n")
	}
	for _, p := range v.Execute {
		fmt.Fprintf(&b, "(allow process-exec (literal %s))\n", quoted(moved(p)))
	}
	if !v.Alone {
		b.WriteString(seatbeltNetwork)
	}
	for _, p := range places {
		if err := quotable(p.Path); err != nil {
			return "", err
		}
	}
	for _, p := range places { // the last rule that matches counts, so the innermost place is last
		at := quoted(p.Path)
		switch p.Access {
		case Read, Hide:
			if p.Access == Hide {
				fmt.Fprintf(&b, "(deny file-read* (subpath %s))\n", at)
			} else {
				fmt.Fprintf(&b, "(allow file-read* (subpath %s))\n", at)
			}
			if slices.ContainsFunc(places, func(w Place) bool { return w.Access == Write && below(p.Path, w.Path) }) {
				fmt.Fprintf(&b, "(deny file-write* (subpath %[1]s))\n(deny network-bind (local unix-socket (subpath %[1]s)))\n", at)
				fmt.Fprintf(&b, "(deny network-outbound (remote unix-socket (subpath %s)))\n", at)
			}
		case Write:
			fmt.Fprintf(&b, "(allow file-read* file-write* (subpath %[1]s))\n(allow network-bind (local unix-socket (subpath %[1]s)))\n",
				at)
			fmt.Fprintf(&b, "(allow network-outbound (remote unix-socket (subpath %s)))\n", at)
		}
	}
	if above := ancestors(places); len(above) > 0 {
		b.WriteString("(allow file-read-metadata")
		for _, dir := range above {
			fmt.Fprintf(&b, " (literal %s)", quoted(dir))
		}
		b.WriteString(")\n")
	}
	for _, dir := range fixed(places) {
		fmt.Fprintf(&b, "(deny file-write-unlink (literal %s))\n", quoted(dir))
	}
	sockets := v.Sockets
	if v.Session != "" {
		sockets = append([]string{path.Join(v.Session, path.Base(SessionSocket))}, sockets...)
	}
	for _, p := range sockets {
		fmt.Fprintf(&b, "(allow network-outbound (remote unix-socket (path-literal %s)))\n", quoted(moved(p)))
	}
	return b.String(), nil
}

// seatbeltPlaces are all places of a view as rules need them, from the outermost to the innermost.
func seatbeltPlaces(v View) (all []Place) {
	for _, p := range seatbeltFolders {
		all = append(all, Place{Path: p, Access: Read})
	}
	for at, access := range map[string]Access{v.Home: Write, v.Temp: Write, v.Session: Read} {
		if at != "" {
			all = append(all, Place{Path: moved(at), Access: access})
		}
	}
	for _, p := range v.Places {
		from := Place{Path: moved(cmp.Or(p.From, p.Path)), Access: p.Access}
		if p.Access == Overlay { // there are none: what is written is a folder of its own, and what is below is read
			from.Access = Read
			all = append(all, Place{Path: moved(p.Upper), Access: Write})
		}
		all = append(all, from)
	}
	slices.SortStableFunc(all, func(a, b Place) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// ancestors are the folders above places, which programs look at on their way.
func ancestors(places []Place) (dirs []string) {
	for _, p := range places {
		for dir := path.Dir(p.Path); dir != "/"; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// fixed are what must not be renamed or removed: each place, and what lies between it and a writable one above, since a place
// whose parent has another name is not the place of the rule.
func fixed(places []Place) (dirs []string) {
	for _, p := range places {
		if p.Access == Write {
			dirs = append(dirs, p.Path)
		}
		for dir := path.Dir(p.Path); slices.ContainsFunc(places,
			func(w Place) bool { return w.Access == Write && below(dir, w.Path) }); dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func moved(p string) string {
	for _, link := range movedFolders {
		if below(p, link) {
			return "/private" + p
		}
	}
	return p
}

// quotable refuses a path that no text of a profile can name for sure.
func quotable(p string) error {
	if strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }) {
		return fmt.Errorf("%q has characters that a rule of the sandbox cannot name; rename the folder", p)
	}
	return nil
}

func quoted(p string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p) + `"`
}
