package notify

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// internet is a proxy on this machine that plays the hosts of the services: requests for them end here, with
// certificates of an authority that only the process which sends knows.
type internet struct {
	answer http.HandlerFunc

	mu   sync.Mutex
	came []arrived
}

// arrived is one request as a service would get it.
type arrived struct{ host, method, path, kind, body string }

func (n *internet) all() []arrived {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.came[:len(n.came):len(n.came)]
}

// online starts an internet, and points the environment to it.
func online(t *testing.T, answer http.HandlerFunc) *internet {
	t.Helper()
	n := &internet{answer: answer}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	root, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}), 0o600); err != nil {
		t.Fatal(err)
	}
	issue := func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(2), DNSNames: []string{hello.ServerName}, NotBefore: ca.NotBefore,
			NotAfter: ca.NotAfter,
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, key)
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() { n.serve(c, &tls.Config{GetCertificate: issue}) }) //nolint:gosec // a test
		}
	})
	t.Cleanup(func() { l.Close(); served.Wait() })
	t.Setenv("HTTPS_PROXY", "http://"+l.Addr().String())
	t.Setenv("SSL_CERT_FILE", trusted)
	return n
}

// serve plays the proxy and the host behind it on one connection.
func (n *internet) serve(c net.Conn, conf *tls.Config) {
	defer c.Close()
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil || req.Method != http.MethodConnect {
		return
	}
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
	secure := tls.Server(c, conf)
	if secure.Handshake() != nil {
		return
	}
	one := &oneListener{conn: secure, over: make(chan struct{})}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n.mu.Lock()
		n.came = append(n.came, arrived{r.Host, r.Method, r.URL.Path, r.Header.Get("Content-Type"), string(body)})
		n.mu.Unlock()
		n.answer(w, r)
	}), ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			one.end.Do(func() { close(one.over) })
		}
	}}
	_ = srv.Serve(one)
}

// oneListener accepts one connection.
type oneListener struct {
	conn net.Conn
	end  sync.Once
	over chan struct{}
	mu   sync.Mutex
}

func (l *oneListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	c := l.conn
	l.conn = nil
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	<-l.over
	return nil, io.EOF
}

func (l *oneListener) Close() error   { return nil }
func (l *oneListener) Addr() net.Addr { return &net.TCPAddr{} }

// postOffice is a mail server that takes one message, or answers RCPT as the test says.
func postOffice(t *testing.T, rcpt string) (address string, mail chan string) {
	t.Helper()
	mail = make(chan string, 10)
	address = accept(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		fmt.Fprint(c, "220 test ready\r\n")
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			switch word, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " "); word {
			case "EHLO", "HELO":
				fmt.Fprint(c, "250-test\r\n250 8BITMIME\r\n")
			case "RCPT":
				fmt.Fprint(c, rcpt+"\r\n")
			case "DATA":
				fmt.Fprint(c, "354 go on\r\n")
				var text strings.Builder
				for {
					line, err := r.ReadString('\n')
					if err != nil || line == ".\r\n" {
						break
					}
					text.WriteString(line)
				}
				mail <- text.String()
				fmt.Fprint(c, "250 taken\r\n")
			case "QUIT":
				fmt.Fprint(c, "221 bye\r\n")
				return
			default:
				fmt.Fprint(c, "250 ok\r\n")
			}
		}
	})
	return address, mail
}

// accept serves connections until the test ends.
func accept(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() { defer c.Close(); serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); served.Wait() })
	return l.Addr().String()
}
