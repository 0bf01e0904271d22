package server

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/origin"
)

// A daemon answers only to names of this machine and to the origins of fairlead.yaml, and only to its own page or to
// programs. Headers in which a proxy describes the browser are not read at all: any client can send them. So a page of
// another site, and a name that an attacker points to this machine, get no answer.

// originOf returns the origin at which a request names this server, as a browser would send it, and whether that is one of
// origins: then it came through a tunnel or a proxy. Empty: the request names another host. A foreign name that
// resolves to loopback (DNS rebinding) does not count, nor does any header about forwarding.
func originOf(r *http.Request, own []string, origins []origin.Origin) (at string, outside bool) {
	if namesHere(r, own) {
		return "http://" + r.Host, false
	}
	for _, o := range origins {
		if o.At(r.Host) {
			return o.String(), true
		}
	}
	return "", false
}

// namesHere reports whether the request names this server itself as its host.
func namesHere(r *http.Request, hosts []string) bool {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(r.Host, "["), "]"), "80"
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	ours := local != nil && port == strconv.Itoa(local.Port)
	for _, known := range hosts {
		if strings.EqualFold(known, net.JoinHostPort(host, port)) || ours && strings.EqualFold(known, host) {
			return true
		}
	}
	if !ours {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// fromOwnPage reports whether a request comes from our own page or from no page at all. To a browser,
// another program's page on this machine is the same site, so the origin must match as well. Opening
// the page by a link is harmless from every site.
func fromOwnPage(r *http.Request, at string) bool {
	if from := r.Header.Get("Origin"); from != "" && !strings.EqualFold(from, at) {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	default:
		return r.Method == http.MethodGet && r.URL.Path == "/" &&
			r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	}
}
