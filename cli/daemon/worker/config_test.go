package worker

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var example = Config{Name: "b", Team: "shop", Addresses: []string{"a:4222", "[fd00::1]:4222"}, Labels: []string{"gpu"}, Capacity: 4}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	if Joined(dir) {
		t.Error("an empty folder has joined")
	}
	if err := SaveConfig(dir, example); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(Folder(dir), configFile)
	info, err := os.Stat(path)
	if got, fault := LoadConfig(dir); err != nil || fault != nil || !reflect.DeepEqual(got, example) || !Joined(dir) ||
		info.Mode().Perm() != 0o600 {
		t.Fatalf("%+v, %v, %v, %v", got, fault, err, info.Mode())
	}
	for text, want := range map[string]string{
		`{"name":"b","team":"shop","addresses":["a:4222"],"capacity":4,"role":"engine"}`: "unknown field",
		`{"name":"b","team":"shop","addresses":["a:4222"],"capacity":4} {}`:              "more than one",
		`{"name":"B b","team":"shop","addresses":["a:4222"],"capacity":4}`:               "the name of a host",
		`{"name":"b","team":"","addresses":["a:4222"],"capacity":4}`:                     "the name of a team",
		`{"name":"b","team":"shop","addresses":[],"capacity":4}`:                         "1 to 16 addresses",
		`{"name":"b","team":"shop","addresses":["a"],"capacity":4}`:                      "expected HOST:PORT",
		`{"name":"b","team":"shop","addresses":["a:4222"],"capacity":0}`:                 "the capacity of a host",
		`{"name":"b","team":"shop","addresses":["a:4222"],"capacity":4,"labels":["G"]}`:  "labels",
		`{"name":`:                          "cannot be read",
		strings.Repeat(" ", fileBytesMax+1): "more than 65536 bytes",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadConfig(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
	if err := SaveConfig(dir, Config{}); err == nil {
		t.Error("an empty configuration was written")
	}
	if err := SaveConfig(dir, example); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // what is refused
		t.Fatal(err)
	}
	if _, err := LoadConfig(dir); err == nil || !strings.Contains(err.Error(), "other users can read") {
		t.Errorf("a file of mode 0644: %v", err)
	}
	if err := os.Rename(path, path+".real"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path+".real", path); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConfig(dir); err == nil {
		t.Error("a link was followed")
	}
}

// A host that cannot read the highest epoch that it saw does not begin with a lower one.
func TestEpochFile(t *testing.T) {
	folder := t.TempDir()
	if epoch, err := loadEpoch(folder); epoch != 0 || err != nil {
		t.Fatalf("%d, %v", epoch, err)
	}
	if err := storeEpoch(folder, 1<<63); err != nil {
		t.Fatal(err)
	}
	if epoch, err := loadEpoch(folder); epoch != 1<<63 || err != nil {
		t.Fatalf("%d, %v", epoch, err)
	}
	for _, text := range []string{"", "\n", "-1\n", "7 \n", "18446744073709551616\n"} {
		if err := os.WriteFile(filepath.Join(folder, epochFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if epoch, err := loadEpoch(folder); err == nil {
			t.Errorf("%q is epoch %d", text, epoch)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"name":"b","team":"shop","addresses":["a:4222"],"labels":["gpu"],"capacity":4}`))
	f.Add([]byte(`{"addresses":["[::1]:1"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if os.MkdirAll(Folder(dir), 0o700) != nil || os.WriteFile(filepath.Join(Folder(dir), configFile), text, 0o600) != nil {
			t.Fatal("the test cannot write")
		}
		c, err := LoadConfig(dir)
		if err != nil {
			return
		}
		if err := SaveConfig(dir, c); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
		if again, err := LoadConfig(dir); err != nil || len(again.Addresses) != len(c.Addresses) || again.Name != c.Name {
			t.Errorf("%+v, %v", again, err)
		}
	})
}
