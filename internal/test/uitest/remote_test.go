package uitest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/ports"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// remoteTeam is a server that also answers at an origin; its agent asks before it does something.
func remoteTeam(t *testing.T, origin string) *uitest.Server {
	t.Helper()
	return uitest.NewServer(t, map[string]string{
		"fairlead.yaml": "version: 1\norigins: [\"" + origin + "\"]\nagents:\n  coder: {driver: script, script: s.yaml}\n",
		"s.yaml":        "steps:\n  - ask: May I clean up?\n    tool: Bash\n    args: {command: rm -rf build}\n",
	})
}

// usedFrom signs a browser in at an origin as a person does, sees an event over the stream, and
// approves it. A request of a page of a third origin is refused, although it has the secret of this
// browser.
func usedFrom(t *testing.T, p *uitest.Page, s *uitest.Server, origin string, client *http.Client) {
	t.Helper()
	local, token, _ := strings.Cut(s.URL, "?token=")
	p.Open(origin + "/")
	p.WaitText("main", "fairlead open")
	p.Press(uitest.LoginCode(t, local, token) + "\r")
	p.WaitText(".now-head", "Nothing needs you.")
	p.Until("the page has a stream", `document.querySelector('.line-live:not(.line-polls)')`)
	s.Do("POST", "/agents/coder/once", strings.NewReader(`{}`))
	p.WaitText(".need", "rm -rf build")
	p.Click(".need", "Allow once")
	p.WaitText(".now-head", "Nothing needs you.")
	if text := string(s.Do("GET", "/questions/q1", nil)); !strings.Contains(text, `"allow":true`) {
		t.Errorf("the question is %s", text)
	}
	p.Until("the page still has a stream", `document.querySelector('.line-live:not(.line-polls)')`)

	secret := uitest.Eval[string](p, `localStorage.getItem('fairlead.secret')`)
	for from, want := range map[string]int{
		origin: http.StatusOK, "https://other.example": http.StatusForbidden,
		strings.TrimSuffix(local, "/"): http.StatusForbidden,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin+"/api/v1/hold", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", from)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+secret)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("a request from %s: %s, want %d", from, res.Status, want)
		}
	}
	p.NoConsoleErrors()
}

// TestRemoteByProxy opens the page through a reverse proxy with TLS, at an origin of its own, as
// doc/remote.md describes.
func TestRemoteByProxy(t *testing.T) {
	t.Parallel()
	const name = "fairlead.example.org"
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	host := fmt.Sprintf("%s:%d", name, listener.Addr().(*net.TCPAddr).Port)
	s := remoteTeam(t, "https://"+host)
	local, _, _ := strings.Cut(s.URL, "/?")
	to, err := url.Parse(local)
	if err != nil {
		t.Fatal(err)
	}
	front := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = host // written out, so that no client can choose it
	}}}
	go func() { _ = front.Serve(listener) }() // it ends with Close
	t.Cleanup(func() { _ = front.Close() })

	roots := x509.NewCertPool()
	roots.AddCert(cert)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, listener.Addr().String())
		},
	}}
	t.Cleanup(client.CloseIdleConnections)
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	usedFrom(t, uitest.BrowseAway(t, name, base64.StdEncoding.EncodeToString(sum[:])), s, "https://"+host, client)
}

// TestRemoteBySSH opens the page through an ssh tunnel, as doc/remote.md describes, with an ssh
// server and keys of the test.
func TestRemoteBySSH(t *testing.T) {
	t.Parallel()
	uitest.Chromium(t)
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		if sshd = "/usr/sbin/sshd"; !isFile(sshd) {
			uitest.Lacks(t,
				"this test opens a tunnel through sshd, and there is none; install it (Debian: apt-get install openssh-server openssh-client)")
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if me.Uid == "0" && os.MkdirAll("/run/sshd", 0o755) != nil { // where no init has made it; sshd of another user needs none
		uitest.Lacks(t, "sshd needs the folder /run/sshd when root runs it, and it cannot be made")
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"host", "me"} {
		if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
			path(name)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(path(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write := func(name, text string) {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port, near := ports.Free(1), ports.Free(1)
	origin := fmt.Sprintf("http://127.0.0.1:%d", near)
	s := remoteTeam(t, origin)
	local, _, _ := strings.Cut(s.URL, "/?")
	write("authorized", read("me.pub"))
	write("known", fmt.Sprintf("[127.0.0.1]:%d %s", port, read("host.pub")))
	write("config",
		fmt.Sprintf("ListenAddress 127.0.0.1:%d\nHostKey %s\nAuthorizedKeysFile %s\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\nPidFile none\nPermitRootLogin prohibit-password\n", port, path("host"), path("authorized")))
	run := func(ready int, name string, words ...string) {
		t.Helper()
		cmd := exec.Command(name, words...)
		log, err := os.Create(path(filepath.Base(name) + ".log"))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }() // it is killed
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended; _ = log.Close() })
		wait.Until(t, name+" is ready", func() bool {
			select {
			case <-ended:
				t.Fatalf("%s ended: %s", name, read(filepath.Base(name)+".log"))
			default:
			}
			conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ready))
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		})
	}
	run(port, sshd, "-D", "-e", "-f", path("config"))
	run(near, "ssh", "-N", "-F", "none", "-i", path("me"), "-p", fmt.Sprint(port), "-L",
		fmt.Sprintf("%d:%s", near, strings.TrimPrefix(local, "http://")),
		"-o", "UserKnownHostsFile="+path("known"), "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
		"-o", "ExitOnForwardFailure=yes", me.Username+"@127.0.0.1")
	usedFrom(t, uitest.Browse(t), s, origin, http.DefaultClient)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
