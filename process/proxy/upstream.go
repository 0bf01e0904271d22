package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

// upstream is how this process reaches the network: directly, or through the proxy of the daemon's environment.
type upstream struct {
	proxy *url.URL // nil: directly
	roots *x509.CertPool
	not   []string // no_proxy
}

func newUpstream(u wire.Upstream) (*upstream, error) {
	up := &upstream{not: strings.FieldsFunc(strings.ToLower(u.NoProxy), func(r rune) bool { return r == ',' || r == ' ' })}
	if text := u.Proxy; text != "" {
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		at, err := url.Parse(text)
		if err != nil || at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https" {
			return nil, errors.New("https_proxy is no address such as http://proxy.example.org:3128; correct it in the daemon's environment (SOCKS is not known here)")
		}
		up.proxy = at
	}
	if len(u.Authorities) > 0 {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(u.Authorities) {
			return nil, errors.New("the extra certificate authorities have no certificate in PEM; correct SSL_CERT_FILE in the daemon's environment")
		}
		up.roots = roots
	}
	return up, nil
}

// tls is for connections that this process makes itself.
func (u *upstream) tls() *tls.Config {
	return &tls.Config{RootCAs: u.roots, MinVersion: tls.VersionTLS12}
}

// serves reports whether a host is reached through the upstream proxy. addr is the name if that is an address.
func (u *upstream) serves(name string, addr netip.Addr, port int) bool {
	if u.proxy == nil || name == "localhost" || addr.IsLoopback() {
		return false
	}
	for _, item := range u.not {
		if host, text, err := net.SplitHostPort(item); err == nil {
			if text != strconv.Itoa(port) {
				continue
			}
			item = host
		}
		item = strings.TrimPrefix(item, "*")
		prefix, noPrefix := netip.ParsePrefix(item)
		domain := strings.TrimPrefix(item, ".")
		switch {
		case item == "", // *
			noPrefix == nil && prefix.Contains(addr),
			item == name,
			domain != "" && strings.HasSuffix(name, "."+domain):
			return false
		}
	}
	return true
}

// connect connects to a host through the upstream proxy. Its own address is the person's, and is not judged.
func (u *upstream) connect(ctx context.Context, o outside, name string, port int) (half, error) {
	proxyPort := map[string]int{"http": 80, "https": httpsPort}[u.proxy.Scheme]
	if text := u.proxy.Port(); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, errors.New("https_proxy has no port")
		}
		proxyPort = int(n)
	}
	addrs := []netip.Addr{{}}
	var err error
	if addrs[0], err = netip.ParseAddr(u.proxy.Hostname()); err != nil {
		if addrs, err = o.look(ctx, network.Host{Named: true}, u.proxy.Hostname()); err != nil {
			return nil, fmt.Errorf("the upstream proxy: %w", err)
		}
	}
	to := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		to[i] = netip.AddrPortFrom(a.Unmap(), uint16(proxyPort))
	}
	out, err := o.race(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("the upstream proxy: %w", err)
	}
	below := out
	stop := context.AfterFunc(ctx, func() { _ = below.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if u.proxy.Scheme == "https" {
		config := u.tls()
		config.ServerName = u.proxy.Hostname()
		secured := tls.Client(out, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			out.Close()
			return nil, fmt.Errorf("the upstream proxy: %w", err)
		}
		out = secured
	}
	if err := u.ask(out, net.JoinHostPort(name, strconv.Itoa(port))); err != nil {
		out.Close()
		return nil, fmt.Errorf("the upstream proxy: %w", err)
	}
	return out, nil
}

// ask sends CONNECT, and reads no more than its answer.
func (u *upstream) ask(out half, target string) error {
	request := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n"
	if user := u.proxy.User; user != nil {
		word, _ := user.Password()
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+word)) + "\r\n"
	}
	if _, err := io.WriteString(out, request+"\r\n"); err != nil {
		return err
	}
	const answerBytesMax = 8 << 10 // a page that says why it refuses comes behind its head
	var head []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(head), "\r\n\r\n"); head = append(head, one[0]) {
		if len(head) > answerBytesMax {
			return errors.New("its answer is too long")
		}
		if _, err := out.Read(one); err != nil {
			return fmt.Errorf("its answer broke off: %w", err)
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(head))), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return errors.New("its answer is no HTTP")
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", shown(answer.Status))
	}
	return nil
}
