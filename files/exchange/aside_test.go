package exchange_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/files/exchange"

	"golang.org/x/sys/unix"
)

// asideWord makes the test binary watch the folder that it names, until it is killed.
const asideWord = "EXCHANGE_TEST_ASIDE"

func watchUntilKilled(folder string) {
	w := exchange.Watch(agentState.content, nil)
	w.Deliver(w.Confirm)
	if err := w.Add(agentState.name, folder); err != nil {
		panic(err)
	}
	select {}
}

// sumOf is the digest of a file, whatever its size.
func sumOf(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		t.Fatal(err)
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// blocksOf is how many bytes of the disk a file takes.
func blocksOf(t *testing.T, path string) int64 {
	t.Helper()
	var is unix.Stat_t
	if err := unix.Stat(path, &is); err != nil {
		t.Fatal(err)
	}
	return is.Blocks * 512
}

// SPEC C12: a malformed file of any size is put aside whole. The holes of a sparse file stay holes in its copy.
func TestMalformedOfAnySize(t *testing.T) {
	k := agentState
	const sparse = 64 << 20 // a copy with the holes filled would take all of it
	for _, test := range []struct {
		name string
		size int64
		at   []int64 // where a sparse file has a byte; none: it is no sparse file
	}{
		{name: "empty"},
		{name: "one byte", size: 1},
		{name: "64 KiB", size: 64 << 10},
		{name: "above the limit of a valid file", size: int64(k.content.Most) + 1},
		{name: "20 MiB", size: 20 << 20},
		{name: "sparse", size: sparse, at: []int64{7, sparse / 2, sparse - 3}},
		{name: "a hole only", size: sparse, at: []int64{}},
		{name: "a hole at the end", size: sparse, at: []int64{0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := exchange.Watch(k.content, nil)
			arrived := make(chan seenFile, 16)
			w.Deliver(func(s seenFile) { arrived <- s })
			defer w.Close()
			folder := t.TempDir()
			path := filepath.Join(folder, k.base)
			f, err := os.Create(path)
			if err == nil && test.at == nil {
				_, err = f.Write(bytes.Repeat([]byte("x"), int(test.size)))
			}
			for _, at := range test.at {
				if err == nil {
					_, err = f.WriteAt([]byte("x"), at)
				}
			}
			if err == nil {
				err = f.Truncate(test.size)
			}
			if err == nil {
				err = f.Close()
			}
			if err == nil {
				err = w.Add(k.name, folder)
			}
			if err != nil {
				t.Fatal(err)
			}
			s := <-arrived
			if s.Kind != exchange.KindMalformed || s.KeptAs == "" {
				t.Fatalf("%s %s, kept as %q", s.Kind, s.Fault, s.KeptAs)
			}
			kept := filepath.Join(folder, s.KeptAs)
			if sumOf(t, kept) != sumOf(t, path) {
				t.Error("the copy differs")
			}
			if is, was := blocksOf(t, kept), blocksOf(t, path); is > was+(1<<20) {
				t.Errorf("the copy takes %d bytes of the disk, the file %d", is, was)
			}
		})
	}
}

// SPEC C12: a daemon that is killed while it puts a file aside leaves no name without the whole content, and the next one puts the file
// aside and removes the incomplete copy.
func TestKilledWhilePuttingAside(t *testing.T) {
	k := agentState
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const size = 20 << 20
	for round := range 4 {
		folder := t.TempDir()
		path := filepath.Join(folder, k.base)
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
		child := exec.Command(self)
		child.Env = append(os.Environ(), asideWord+"="+folder)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		// It is killed when its copy has a quarter, a half and so on of the content, or is complete.
		for {
			parts, _ := filepath.Glob(filepath.Join(folder, k.fresh+"*"))
			names, _ := filepath.Glob(filepath.Join(folder, k.corrupt+"*"))
			if len(names) > 0 {
				break
			}
			if len(parts) > 0 {
				if is, err := os.Stat(parts[0]); err == nil && is.Size() >= int64(round)*size/4 {
					break
				}
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait()
		names, _ := filepath.Glob(filepath.Join(folder, k.corrupt+"*"))
		for _, name := range names {
			if sumOf(t, name) != sumOf(t, path) {
				t.Errorf("%s is not the whole file", filepath.Base(name))
			}
		}
		w := exchange.Watch(k.content, nil)
		arrived := make(chan seenFile, 16)
		w.Deliver(func(s seenFile) { arrived <- s })
		if err := w.Add(k.name, folder); err != nil {
			t.Fatal(err)
		}
		s := <-arrived
		if s.Kind != exchange.KindMalformed || s.KeptAs == "" || sumOf(t, filepath.Join(folder, s.KeptAs)) != sumOf(t, path) {
			t.Errorf("the next one: %s %s, kept as %q", s.Kind, s.Fault, s.KeptAs)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(folder, k.fresh+"*")); len(left) > 0 {
			t.Errorf("incomplete copies are left: %q", left)
		}
	}
}
