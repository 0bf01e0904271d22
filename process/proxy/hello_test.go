package proxy

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"
)

// helloOf is the ClientHello of Go's client with a name.
func helloOf(t testing.TB, name string) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer b.Close()
	go func() {
		defer a.Close()
		_ = tls.Client(a, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	}()
	head := make([]byte, 5)
	if _, err := io.ReadFull(b, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, int(head[3])<<8|int(head[4]))
	if _, err := io.ReadFull(b, body); err != nil {
		t.Fatal(err)
	}
	return bytes.Join([][]byte{head, body}, nil)
}

// fixed is a connection on which bytes wait.
type fixed struct {
	io.Reader
	net.Conn
}

func (f *fixed) Read(b []byte) (int, error)     { return f.Reader.Read(b) }
func (*fixed) Write([]byte) (int, error)        { panic("something was written") }
func (*fixed) Close() error                     { panic("it was closed") }
func (*fixed) SetReadDeadline(time.Time) error  { return nil }
func (*fixed) SetDeadline(time.Time) error      { return nil }
func (*fixed) SetWriteDeadline(time.Time) error { return nil }

// A ClientHello is read whole: in many records, with bytes behind it, and in any portions.
func TestClientHello(t *testing.T) {
	hello := helloOf(t, "Example.org")
	var records []byte
	for i := 5; i < len(hello); i += 7 { // records of seven bytes
		part := hello[i:min(i+7, len(hello))]
		records = append(append(records, 0x16, 3, 1, 0, byte(len(part))), part...)
	}
	for name, raw := range map[string][]byte{"one record": hello, "many records": records, "more behind it": append(bytes.Clone(hello), "more"...)} {
		for _, portion := range []int{1, 3, 100_000} {
			read, got, err := clientHello(t.Context(), &fixed{Reader: &portions{raw, portion}})
			if err != nil || got != "example.org" || !bytes.HasPrefix(raw, read) || len(read) < len(hello) {
				t.Errorf("%s in portions of %d: %q, %d of %d bytes, %v", name, portion, got, len(read), len(raw), err)
			}
		}
	}
	long := bytes.Repeat([]byte{0x16, 3, 1, 0, 4, 1, 0, 0xff, 0xff}, 1) // a ClientHello of 64 KB
	long = append(long, bytes.Repeat(append([]byte{0x16, 3, 1, 0x40, 0}, make([]byte, 0x4000)...), 4)...)
	for name, raw := range map[string][]byte{
		"nothing": {}, "HTTP": []byte("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), "half": hello[:len(hello)/2], "too long": long,
		"another record": append([]byte{0x17}, hello[1:]...), "SSH": []byte("SSH-2.0-OpenSSH_9.9\r\n"),
	} {
		read, got, err := clientHello(t.Context(), &fixed{Reader: bytes.NewReader(raw)})
		if err == nil || got != "" || len(read) > clientHelloBytesMax {
			t.Errorf("%s has the name %q, %d bytes", name, got, len(read))
		}
	}
}

// portions gives bytes in portions.
type portions struct {
	left []byte
	size int
}

func (p *portions) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[:min(p.size, len(p.left))])
	p.left = p.left[n:]
	return n, nil
}

func FuzzClientHello(f *testing.F) {
	f.Add(helloOf(f, "example.org"))
	f.Add(helloOf(f, ""))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		read, name, err := clientHello(t.Context(), &fixed{Reader: bytes.NewReader(raw)})
		if !bytes.HasPrefix(raw, read) || len(read) > clientHelloBytesMax || err != nil && name != "" {
			t.Fatalf("%x: %d bytes, %q, %v", raw, len(read), name, err)
		}
	})
}
