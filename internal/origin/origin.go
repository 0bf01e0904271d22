// Package origin reads the addresses at which people open Mission Control through a tunnel or a reverse proxy.
//
// An origin is a scheme, a host and a port, as a browser sends it. It needs https, because secrets travel over it; only
// an address on this machine may have http, as the near end of a tunnel does. There are no patterns: a request is at an
// origin if its host is the same, character by character.
//
// The one promise: what Parse accepts names one host, and no other text is at it.
package origin

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Max is how many origins one daemon may have: a few names for one page.
const Max = 16

const hostBytesMax = 253 // of a name in the DNS

// Origin is one address of the page. The zero value is at no host.
type Origin struct {
	scheme string
	host   string // in small letters; an IPv6 address in brackets
	port   string // empty: the scheme's own
}

var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

var ownPort = map[string]string{"http": "80", "https": "443"}

// Parse reads an origin such as https://fairlead.example.org or http://127.0.0.1:8000. The error says what is wrong
// with the text, as a sentence without a subject.
func Parse(text string) (Origin, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return Origin{}, fmt.Errorf("is not an origin such as https://fairlead.example.org")
	}
	scheme := strings.ToLower(u.Scheme)
	switch {
	case ownPort[scheme] == "":
		return Origin{}, fmt.Errorf("does not begin with https://")
	case u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" ||
		strings.HasSuffix(text, "#"):
		return Origin{}, fmt.Errorf("has more than scheme, host and port; write only https://%s", u.Host)
	case strings.Contains(u.Host, "*"):
		return Origin{}, fmt.Errorf("has a pattern; name each origin in full")
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.HasSuffix(u.Host, ":") {
		return Origin{}, fmt.Errorf("has no port after the colon")
	}
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return Origin{}, fmt.Errorf("has the port %s, which is not a number from 1 to 65535", port)
		}
	}
	loopback, ok := plainHost(host)
	switch {
	case !ok:
		return Origin{},
			fmt.Errorf("has a host that a browser would write in another way; write it as the address bar shows it after loading, in ASCII")
	case scheme == "http" && !loopback:
		return Origin{}, fmt.Errorf("has http, which others on the way can read and change; use https, or a tunnel to this machine")
	}
	if port == ownPort[scheme] {
		port = ""
	}
	return Origin{scheme: scheme, host: bracketed(host), port: port}, nil
}

// plainHost reports whether a host is a name or an address in its only form, and whether it is this machine.
func plainHost(host string) (loopback, ok bool) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback(), ip.Zone() == "" && !ip.Is4In6() && ip.String() == host
	}
	labels := strings.Split(host, ".")
	if _, err := strconv.ParseUint(labels[len(labels)-1], 0, 64); err == nil { // a browser takes 127.1 and 0x7f.1 for IPv4
		return false, false
	}
	return host == "localhost", len(host) <= hostBytesMax && hostName.MatchString(host)
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// String is the origin as a browser sends it.
func (o Origin) String() string {
	if o.port == "" {
		return o.scheme + "://" + o.host
	}
	return o.scheme + "://" + o.host + ":" + o.port
}

// At reports whether a request's Host header names this origin. The scheme's own port may be given or left out.
func (o Origin) At(host string) bool {
	if o.host == "" || host == "" {
		return false
	}
	name, port := strings.ToLower(host), ""
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, ']') {
		name, port = name[:i], name[i+1:]
		if port == "" {
			return false
		}
	}
	if port == ownPort[o.scheme] {
		port = ""
	}
	return name == o.host && port == o.port
}

// Local reports whether an origin is a loopback address, which is this machine's own or the near end of a tunnel.
func (o Origin) Local() bool {
	loopback, _ := plainHost(strings.Trim(o.host, "[]"))
	return loopback
}

// LocalAddress reports whether a URL is an http address of this machine with a port, as a daemon has one: http://127.0.0.1:7466.
func LocalAddress(text string) bool {
	o, err := Parse(text)
	if err != nil || o.scheme != "http" || !o.Local() || o.String() != text {
		return false
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(text, "http://"))
	return err == nil && port != ""
}
