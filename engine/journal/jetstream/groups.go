package jetstream

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minio/highwayhash"
)

// The files of a group of servers (raft.go of the server), all in one folder with the name of the group. Snapshots and messages have
// checksums, the others have not. All but the messages are replaced as a whole, so none of them is ever half written.
const (
	groupsFolder  = "_js_"
	snapshotForm  = "snap.%d.%d" // term and index
	snapshotHead  = 20           // term, index, and the length of what follows it before the data
	checksumSize  = 8
	serversMost   = 64      // in a group: engine hosts are few
	termMost      = 1 << 40 // elections: one a second for 30,000 years
	serverID      = 8       // letters and digits
	stateMagic    = 11      // of index.db
	groupFileMost = 1 << 30 // bytes that are read of one file: a snapshot or a block has some MB
)

// ServersGroup is the group that all servers of a cluster belong to. It decides which streams there are.
const ServersGroup = "_meta_"

// GroupDamage is a file of a group of servers that is not as its server wrote it.
type GroupDamage struct {
	Group string
	File  string
	Why   string
}

func (d *GroupDamage) Error() string {
	return fmt.Sprintf("%s of the servers' group %s is damaged: %s", d.File, d.Group, d.Why)
}

// CheckGroups reads the files of all groups in the store of a server that does not run, and returns the first damage of each group. A
// server itself does not start with a damaged snapshot, and silently drops other files: then it would vote without what it has
// acknowledged. Not found are changes of numbers in files without a checksum that leave a valid number, and a damaged last message of a
// server that was killed: it looks like one that was not written to its end.
func CheckGroups(store string) (damaged []*GroupDamage, err error) {
	all, err := accounts(store)
	if err != nil {
		return nil, err
	}
	for _, account := range all {
		groups, err := listed(filepath.Join(account, groupsFolder))
		if err != nil {
			return nil, err
		}
		for _, folder := range groups {
			g := groupFiles{folder: folder, name: filepath.Base(folder)}
			if d := g.check(); d != nil {
				damaged = append(damaged, d)
			}
		}
	}
	return damaged, nil
}

// groupFiles is the folder of a group while it is checked.
type groupFiles struct {
	folder, name string

	snapshot uint64 // the index of the newest one; 0: there is none
	first    uint64 // message after it; 0: there is none
	last     uint64 // message, or the place up to which all were erased
}

func (g *groupFiles) damage(file, why string, more ...any) *GroupDamage {
	return &GroupDamage{Group: g.name, File: file, Why: fmt.Sprintf(why, more...)}
}

// read reads a file of the group; nil: there is none.
func (g *groupFiles) read(name string) ([]byte, *GroupDamage) {
	path := filepath.Join(g.folder, name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Size() > groupFileMost {
		return nil, g.damage(name, "it has %d bytes", info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, g.damage(name, "it cannot be read: %v", err)
	}
	if text == nil {
		text = []byte{}
	}
	return text, nil
}

func (g *groupFiles) check() *GroupDamage {
	for _, look := range []func() *GroupDamage{g.snapshots, g.messages, g.complete, g.vote, g.peers} {
		if d := look(); d != nil {
			return d
		}
	}
	return nil
}

func (g *groupFiles) names(folder string) ([]string, *GroupDamage) {
	paths, err := listed(filepath.Join(g.folder, folder))
	if err != nil {
		return nil, g.damage(folder, "%v", err)
	}
	for i := range paths {
		paths[i] = filepath.Join(folder, filepath.Base(paths[i]))
	}
	return paths, nil
}

// snapshots checks the snapshots: one, or two if the server was killed while it replaced one.
func (g *groupFiles) snapshots() *GroupDamage {
	names, d := g.names("snapshots")
	if d != nil {
		return d
	}
	for _, name := range names {
		var term, index uint64
		if n, _ := fmt.Sscanf(filepath.Base(name), snapshotForm, &term, &index); n != 2 ||
			filepath.Base(name) != fmt.Sprintf(snapshotForm, term, index) {
			continue // the server removes it
		}
		text, d := g.read(name)
		if d != nil {
			return d
		}
		end := len(text) - checksumSize
		switch {
		case end < snapshotHead:
			return g.damage(name, "it has %d bytes only", len(text))
		case binary.LittleEndian.Uint64(text[end:]) != serverSum(g.name, text[:end]):
			return g.damage(name, "its checksum is not that of its content")
		case binary.LittleEndian.Uint64(text) != term || binary.LittleEndian.Uint64(text[8:]) != index:
			return g.damage(name, "its content is that of another snapshot")
		}
		g.snapshot = max(g.snapshot, index)
	}
	return nil
}

// serverSum is the checksum of the server, with the name of what is summed as its key.
func serverSum(name string, parts ...[]byte) uint64 {
	key := sha256.Sum256([]byte(name))
	sum, err := highwayhash.New64(key[:])
	if err != nil {
		panic(err) // the key has the right length
	}
	for _, part := range parts {
		_, _ = sum.Write(part) // a hash takes everything
	}
	return binary.LittleEndian.Uint64(sum.Sum(nil))
}

// messages checks the blocks with the messages since the snapshot.
func (g *groupFiles) messages() *GroupDamage {
	names, d := g.names("msgs")
	if d != nil {
		return d
	}
	names = slices.DeleteFunc(names, func(name string) bool { return filepath.Ext(name) != ".blk" })
	slices.SortFunc(names, func(a, b string) int { return blockNumber(a) - blockNumber(b) })
	for i, name := range names {
		text, d := g.read(name)
		if d != nil {
			return d
		}
		key := fmt.Sprintf("%s-%d", g.name, blockNumber(name))
		for at := 0; at < len(text); {
			size, place := record(key, text[at:])
			if size == 0 {
				if i == len(names)-1 && !anyRecord(key, text[at+1:]) {
					break // the server was killed while it wrote the last one, which it had not acknowledged
				}
				return g.damage(name, "the message at byte %d is not what was written", at)
			}
			at += size
			g.last = max(g.last, place&^erased)
			if place&erased == 0 && place > g.snapshot && g.first == 0 {
				g.first = place
			}
		}
	}
	return nil
}

// record is the size of the message that a block begins with, and its place with the marks of an erased one; 0: it is none that was
// written.
func record(key string, text []byte) (size int, place uint64) {
	if len(text) < recordHead+recordSum {
		return 0, 0
	}
	length := binary.LittleEndian.Uint32(text)
	subject := recordHead + int(binary.LittleEndian.Uint16(text[20:]))
	begin := subject
	if length&withHeaders != 0 {
		begin += 4
	}
	length &^= withHeaders
	if length > recordMost || int(length) > len(text) || begin > int(length)-recordSum {
		return 0, 0
	}
	end := int(length) - recordSum
	if binary.LittleEndian.Uint64(text[end:]) != serverSum(key, text[4:20], text[recordHead:subject], text[begin:end]) {
		return 0, 0
	}
	return int(length), binary.LittleEndian.Uint64(text[4:])
}

// anyRecord reports whether a message begins anywhere in a part of a block.
func anyRecord(key string, text []byte) bool {
	for at := range text {
		if size, _ := record(key, text[at:]); size > 0 {
			return true
		}
	}
	return false
}

// complete checks that nothing is missing between the snapshot and the last message that the server knew of.
func (g *groupFiles) complete() *GroupDamage {
	switch {
	case g.first > g.snapshot+1:
		return g.damage("msgs", "the messages from %d to %d are missing", g.snapshot+1, g.first-1)
	case g.first == 0 && g.last > g.snapshot:
		return g.damage("msgs", "the messages from %d to %d, or a snapshot of them, are missing", g.snapshot+1, g.last)
	}
	has := max(g.snapshot, g.last)
	commit, _ := g.read("commit.idx") // the server makes both again if it cannot read them
	index, _ := g.read(filepath.Join("msgs", "index.db"))
	if last := max(g.committed(commit), g.indexed(index)); last > has {
		return g.damage("msgs", "the messages from %d to %d are missing", has+1, last)
	}
	return nil
}

// committed is the place that commit.idx has; 0: none.
func (g *groupFiles) committed(text []byte) uint64 {
	if len(text) != 8+checksumSize || binary.LittleEndian.Uint64(text[8:]) != serverSum(g.name, text[:8]) {
		return 0
	}
	return binary.LittleEndian.Uint64(text)
}

// indexed is the last place that index.db has; 0: none.
func (g *groupFiles) indexed(text []byte) (last uint64) {
	end := len(text) - checksumSize
	if end < 2 || text[0] != stateMagic || binary.LittleEndian.Uint64(text[end:]) != serverSum(g.name, text[:end]) {
		return 0
	}
	rest := text[2:end]
	for range 5 { // the number of messages, of bytes, the first place, its time, the last place
		value, n := binary.Uvarint(rest)
		if n <= 0 {
			return 0
		}
		last, rest = value, rest[n:]
	}
	return last
}

// vote checks the file with the term and the vote. A server that never voted has none.
func (g *groupFiles) vote() *GroupDamage {
	const name = "tav.idx"
	text, d := g.read(name)
	switch {
	case d != nil || text == nil:
		return d
	case len(text) != 8 && len(text) != 8+serverID:
		return g.damage(name, "it has %d bytes", len(text))
	case binary.LittleEndian.Uint64(text) > termMost:
		return g.damage(name, "it has the term %d", binary.LittleEndian.Uint64(text))
	case !serverNames(text[8:]):
		return g.damage(name, "it has a vote for %q", text[8:])
	}
	return nil
}

// peers checks the file with the servers of the group. Without it the server takes the group for a new one.
func (g *groupFiles) peers() *GroupDamage {
	const name = "peers.idx"
	text, d := g.read(name)
	switch {
	case d != nil:
		return d
	case text == nil && g.snapshot == 0 && g.last == 0:
		return nil // the server was killed when it made the group
	case len(text) < 8:
		return g.damage(name, "it has %d bytes", len(text))
	}
	size, known := binary.LittleEndian.Uint32(text), binary.LittleEndian.Uint32(text[4:])
	switch {
	case known > serversMost || size > serversMost:
		return g.damage(name, "it has %d servers of %d", known, size)
	case len(text) != 8+serverID*int(known)+2:
		return g.damage(name, "it has %d bytes for %d servers", len(text), known)
	case !serverNames(text[8 : len(text)-2]):
		return g.damage(name, "it names the servers %q", text[8:len(text)-2])
	}
	return nil
}

func serverNames(text []byte) bool {
	return !slices.ContainsFunc(text, func(b byte) bool {
		return !strings.ContainsRune("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", rune(b))
	})
}
