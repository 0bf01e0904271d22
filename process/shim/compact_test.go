package shim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/process/spawn"
)

// endedSession is the folder of a session that ended with this output, and the output.
func endedSession(t *testing.T, lines int) (folder string, output []byte) {
	t.Helper()
	h, err := Start(t.Context(), filepath.Join(t.TempDir(), "s-1"),
		Spec{Session: "s-1", Fence: 1, Launch: spawn.Launch{Argv: []string{"/bin/true"}}})
	ok(t, err)
	<-h.Done()
	folder = h.Folder()
	h.Close()
	var text bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&text, "line %d of a log, with %x and words that come again\n", i, i*i)
	}
	ok(t, os.WriteFile(filepath.Join(folder, spoolFile), text.Bytes(), 0o600))
	e, err := readExit(folder)
	ok(t, err)
	e.SpoolBytes = int64(text.Len())
	ok(t, writeRecord(folder, exitFile, "", e))
	lock, err := openPlain(filepath.Join(folder, lockFile), os.O_RDWR)
	ok(t, err)
	ok(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)) // waits for the shim's end
	lock.Close()
	return folder, text.Bytes()
}

func compactAll(t *testing.T, folder string) Compacted {
	t.Helper()
	done, err := Compact(t.Context(), folder, time.Now(), false)
	ok(t, err)
	return done
}

func outputFrom(t *testing.T, folder string, offset int64) []byte {
	t.Helper()
	r, err := Output(folder, offset)
	ok(t, err)
	defer r.Close()
	text, err := io.ReadAll(r)
	ok(t, err)
	return text
}

// Compressed output is the same from every offset, also for a handle that had it open before and for one after.
func TestCompact(t *testing.T) {
	folder, text := endedSession(t, 150_000)
	open, err := Output(folder, 100)
	ok(t, err)
	defer open.Close()
	done := compactAll(t, folder)
	if done.Before != int64(len(text)) || done.After*3 > done.Before {
		t.Errorf("%+v of %d bytes", done, len(text))
	}
	if _, err := os.Lstat(filepath.Join(folder, spoolFile)); !os.IsNotExist(err) {
		t.Error("the spool is still there:", err)
	}
	if had, err := io.ReadAll(open); err != nil || !bytes.Equal(had, text[100:]) {
		t.Error("a reader from before saw something else:", err)
	}
	for _, at := range []int64{
		0, 1, packBytes - 1, packBytes, packBytes + 1, 2*packBytes + 77, int64(len(text)) - 1, int64(len(text)),
		int64(len(text)) + 5,
	} {
		if got := outputFrom(t, folder, at); !bytes.Equal(got, text[min(at, int64(len(text))):]) {
			t.Errorf("from byte %d there are %d bytes, want %d", at, len(got), int64(len(text))-at)
		}
	}
	h, st, err := Adopt(t.Context(), folder, 2)
	ok(t, err)
	defer h.Close()
	r, err := h.Output(t.Context(), packBytes+3)
	ok(t, err)
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || st.Phase != Exited || !bytes.Equal(got, text[packBytes+3:]) {
		t.Error(st.Phase, err)
	}
	if size, err := OutputBytes(folder); err != nil || size != int64(len(text)) {
		t.Error(size, err)
	}
	if s, err := Look(t.Context(), folder); err != nil || s.SpoolBytes != int64(len(text)) {
		t.Errorf("%+v %v", s, err)
	}
	if again := compactAll(t, folder); again != (Compacted{}) {
		t.Errorf("a second time: %+v", again)
	}
	if zcat, err := exec.LookPath("zcat"); err == nil {
		if got, err := exec.Command("sh", "-c", zcat+" "+filepath.Join(folder, "spool.*.gz")).Output(); err != nil ||
			!bytes.Equal(got, text) {
			t.Error("zcat reads something else:", err)
		}
	}
	ok(t, os.Remove(packName(folder, 1)))
	if r, err := h.Output(t.Context(), 0); err == nil {
		got, err := io.ReadAll(r)
		if err == nil || !bytes.Equal(got, text[:packBytes]) {
			t.Errorf("without its second file there are %d bytes, and no error", len(got))
		}
		r.Close()
	}
}

// A dry run says what would be, and changes nothing; what is younger, runs, is small or does not get smaller stays.
func TestCompactLeaves(t *testing.T) {
	folder, text := endedSession(t, 60_000)
	dry, err := Compact(t.Context(), folder, time.Now().Add(time.Hour), true)
	ok(t, err)
	young, err := Compact(t.Context(), folder, time.Now().Add(-time.Hour), false)
	ok(t, err)
	if young != (Compacted{}) || !bytes.Equal(outputFrom(t, folder, 0), text) {
		t.Errorf("young: %+v", young)
	}
	if real := compactAll(t, folder); dry.Before != real.Before || dry.After != real.After {
		t.Errorf("a dry run said %+v, and it was %+v", dry, real)
	}

	small, _ := endedSession(t, 3)
	noise, _ := endedSession(t, 1)
	random := make([]byte, 3*packLeast)
	seed := rand.NewChaCha8([32]byte{})
	_, _ = seed.Read(random) // it never fails
	ok(t, os.WriteFile(filepath.Join(noise, spoolFile), random, 0o600))
	for name, folder := range map[string]string{"small": small, "noise": noise} {
		if done := compactAll(t, folder); done != (Compacted{}) {
			t.Errorf("%s: %+v", name, done)
		}
		if _, err := os.Lstat(filepath.Join(folder, spoolFile)); err != nil {
			t.Error(name, err)
		}
		if _, err := os.Lstat(packName(folder, 0)); !os.IsNotExist(err) {
			t.Error(name, err)
		}
	}

	h := start(t, t.TempDir(), agent(t, "hang"))
	ok(t, os.WriteFile(filepath.Join(h.Folder(), spoolFile), text, 0o600))
	if done, err := Compact(t.Context(), h.Folder(), time.Now().Add(time.Hour), false); err != nil || done != (Compacted{}) {
		t.Errorf("of a running session: %+v %v", done, err)
	}
}

// Killed at each sync, with a torn file of an earlier attempt besides, nothing is lost, and the next attempt ends.
func TestCompactKilled(t *testing.T) {
	self, err := os.Executable()
	ok(t, err)
	for at := 1; at <= 4; at++ { // three files, and the folder
		folder, text := endedSession(t, 150_000)
		ok(t, os.WriteFile(packName(folder, 0), []byte("torn"), 0o600))
		cmd := exec.Command(self, "__agent", "compact", folder, strconv.Itoa(at))
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.Exited() {
			t.Fatalf("sync %d: it was not killed: %v %s", at, err, out)
		}
		if got := outputFrom(t, folder, 0); !bytes.Equal(got, text) {
			t.Errorf("killed at sync %d, %d bytes are left of %d", at, len(got), len(text))
		}
		if done := compactAll(t, folder); done.Before != int64(len(text)) {
			t.Errorf("after a kill at sync %d: %+v", at, done)
		}
		if got := outputFrom(t, folder, 0); !bytes.Equal(got, text) {
			t.Errorf("compacted after a kill at sync %d, %d bytes are left of %d", at, len(got), len(text))
		}
	}
}

// compactAndDie compacts a folder and kills its own process at the n-th sync.
func compactAndDie(folder, nth string) {
	n, _ := strconv.Atoi(nth)
	fsync = func(f *os.File) error {
		if n--; n == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return f.Sync()
	}
	fmt.Println(Compact(context.Background(), folder, time.Now(), false))
}

// Damaged compressed output is an error that names the file, from the first byte that is wrong.
func TestCompactDamaged(t *testing.T) {
	folder, text := endedSession(t, 60_000)
	compactAll(t, folder)
	path := packName(folder, 0)
	good, err := os.ReadFile(path)
	ok(t, err)
	for name, bad := range map[string][]byte{
		"cut":         good[:len(good)-3],
		"not ours":    append([]byte("plain text, and longer than a header of gzip is"), good...),
		"a bit":       flipped(good, len(good)/2),
		"much longer": append(bytes.Clone(good), good[:30]...),
	} {
		ok(t, os.WriteFile(path, bad, 0o600))
		r, err := Output(folder, 0)
		var got []byte
		if err == nil {
			got, err = io.ReadAll(r)
			r.Close()
		}
		if err == nil || !bytes.HasPrefix(text, got) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 4
	return b
}
