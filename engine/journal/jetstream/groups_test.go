package jetstream

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

// written is a message as a server writes it to a block.
func written(group string, block int, place uint64, text string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(recordHead+len(text)+recordSum)) //nolint:gosec // it is short
	b = binary.LittleEndian.AppendUint64(b, place)
	b = binary.LittleEndian.AppendUint64(b, 7)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = append(b, text...)
	return binary.LittleEndian.AppendUint64(b, serverSum(fmt.Sprintf("%s-%d", group, block), b[4:20], nil, b[recordHead:]))
}

func snapshotOf(group string, term, index uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, term)
	b = binary.LittleEndian.AppendUint64(b, index)
	b = append(binary.LittleEndian.AppendUint32(b, 0), "all streams"...)
	return binary.LittleEndian.AppendUint64(b, serverSum(group, b))
}

// Files of a group are as the server left them, also when it was killed, or they are damaged.
func TestCheckGroups(t *testing.T) {
	t.Parallel()
	const name = "G"
	one, two, three := written(name, 1, 5, "one"), written(name, 1, 6, "two"), written(name, 1, 7, "three")
	commit := func(place uint64) string {
		b := binary.LittleEndian.AppendUint64(nil, place)
		return string(binary.LittleEndian.AppendUint64(b, serverSum(name, b)))
	}
	peers := string(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 3), 3)) + "AAAAAAAABBBBBBBBCCCCCCCC\x00\x00"
	flipped := func(b []byte, at int) []byte { b = slices.Clone(b); b[at] ^= 1; return b }
	whole := string(slices.Concat(one, two, three))
	for _, tt := range []struct {
		what  string
		files map[string]string // that differ; none: "-"
		want  string            // in the damage; empty: none
	}{
		{"sound", nil, ""},
		{
			"a new group",
			map[string]string{"msgs/1.blk": "-", "snapshots/snap.1.4": "-", "peers.idx": "-", "tav.idx": "-", "commit.idx": "-"},
			"",
		},
		{"killed while it wrote a message", map[string]string{"msgs/1.blk": whole[:len(whole)-5], "commit.idx": commit(6)}, ""},
		{"a loss of power left zeros behind", map[string]string{"msgs/1.blk": whole + strings.Repeat("\x00", 50)}, ""},
		{
			"killed while it replaced a snapshot",
			map[string]string{"snapshots/snap.1.6": string(snapshotOf(name, 1, 6)), "snapshots/snap.1.8.tmp": "x"},
			"",
		},
		{"all is in the snapshot", map[string]string{"msgs/1.blk": string(written(name, 1, 4|1<<62, "")), "commit.idx": commit(4)}, ""},
		{"no vote yet", map[string]string{"tav.idx": "-"}, ""},
		{"a commit that was cut", map[string]string{"commit.idx": "abc"}, ""},

		{"a message that was committed is cut", map[string]string{"msgs/1.blk": whole[:len(whole)-5]}, "7 to 7 are missing"},
		{"a block is missing", map[string]string{"msgs/1.blk": "-"}, "5 to 7 are missing"},
		{"a bit in the first message", map[string]string{"msgs/1.blk": string(flipped([]byte(whole), 24))}, "at byte 0"},
		{"a bit in a length", map[string]string{"msgs/1.blk": string(flipped([]byte(whole), len(one)+2))}, "at byte 33"},
		{
			"a message is cut, and more blocks follow",
			map[string]string{"msgs/1.blk": whole[:len(whole)-5], "msgs/2.blk": string(written(name, 2, 8, "four"))},
			"1.blk",
		},
		{"the first messages are missing", map[string]string{"msgs/1.blk": string(slices.Concat(two, three))}, "5 to 5 are missing"},
		{"the snapshot is missing", map[string]string{"snapshots/snap.1.4": "-"}, "1 to 4 are missing"},
		{"the snapshot of another place", map[string]string{"snapshots/snap.1.4": string(snapshotOf(name, 1, 3))}, "another snapshot"},
		{"a bit in the snapshot", map[string]string{"snapshots/snap.1.4": string(flipped(snapshotOf(name, 1, 4), 22))}, "checksum"},
		{"an older snapshot", map[string]string{"snapshots/snap.1.2": "x"}, "snap.1.2"},
		{"a vote for no server", map[string]string{"tav.idx": strings.Repeat("\x00", 16)}, "vote"},
		{"too many servers", map[string]string{"peers.idx": "\xff" + peers[1:]}, "255"},
		{"no servers", map[string]string{"peers.idx": "-"}, "0 bytes"},
	} {
		store := t.TempDir()
		files := map[string]string{
			"msgs/1.blk": whole, "snapshots/snap.1.4": string(snapshotOf(name, 1, 4)), "peers.idx": peers,
			"tav.idx": "\x01\x00\x00\x00\x00\x00\x00\x00AAAAAAAA", "commit.idx": commit(7),
		}
		for file, text := range tt.files {
			files[file] = text
		}
		for _, group := range []string{name, "other"} { // which is new
			if err := os.MkdirAll(filepath.Join(store, folder, "$SYS", groupsFolder, group, "msgs"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for file, text := range files {
			path := filepath.Join(store, folder, "$SYS", groupsFolder, name, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if text != "-" && os.WriteFile(path, []byte(text), 0o600) != nil {
				t.Fatal(path)
			}
		}
		found, err := CheckGroups(store)
		switch {
		case err != nil:
			t.Errorf("%s: %v", tt.what, err)
		case tt.want == "" && len(found) > 0:
			t.Errorf("%s: %v", tt.what, found[0])
		case tt.want != "" && (len(found) != 1 || found[0].Group != name || !strings.Contains(found[0].Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.what, found, tt.want)
		}
	}
	if found, err := CheckGroups(filepath.Join(t.TempDir(), "none")); err != nil || len(found) > 0 {
		t.Errorf("no store yet: %v, %v", found, err)
	}
}

// A server that does not answer the one that leads has no complete copy, whatever was known of it before.
func TestComplete(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		peer js.PeerInfo
		want bool
	}{
		{js.PeerInfo{Current: true, Active: time.Second}, true},
		{js.PeerInfo{Current: true, Active: 9 * time.Second}, false}, // it runs without its store
		{js.PeerInfo{Current: true, Offline: true}, false},
		{js.PeerInfo{Current: true, Lag: 1}, false},
		{js.PeerInfo{}, false},
	} {
		if is := Complete(&tt.peer); is != tt.want {
			t.Errorf("%+v: %t", tt.peer, is)
		}
	}
}

// What a repair puts aside is kept as it was, and only the last repairs are.
func TestPutAside(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	var last string
	for n := range asideMost + 2 {
		file := filepath.Join(store, folder, "$SYS", groupsFolder, "G", "peers.idx")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, fmt.Append(nil, n), 0o600); err != nil {
			t.Fatal(err)
		}
		aside, err := putAside(store, []string{"none", ""}, []string{"G"})
		if err != nil || aside <= last {
			t.Fatal(aside, err)
		}
		last = aside
		if text, err := os.ReadFile(filepath.Join(aside, "$SYS", groupsFolder, "G", "peers.idx")); err != nil ||
			string(text) != fmt.Sprint(n) {
			t.Errorf("%q, %v", text, err)
		}
		if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
			t.Error("the group is still there", err)
		}
	}
	if kept, err := listed(filepath.Join(store, asideFolder)); err != nil || len(kept) != asideMost || slices.Max(kept) != last {
		t.Errorf("%v, %v", kept, err)
	}
	if aside, err := putAside(store, nil, []string{"G"}); err != nil || aside != "" {
		t.Errorf("a folder for nothing: %q, %v", aside, err)
	}
}
