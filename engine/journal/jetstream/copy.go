package jetstream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
)

// How the server writes a message to a file of a stream (filestore.go there): its length with 22 bytes of numbers and a checksum of
// 8, its place, a time and the length of its subject, then the subject, the headers with their length if there are any, and the message. No
// file is compressed or encrypted.
const (
	recordHead  = 22
	recordSum   = 8
	recordMost  = 32 << 20
	withHeaders = 1 << 31
	erased      = 3 << 62 // a place without a message
)

const (
	copyTries = 10              // a server that was just started fetches what it lacks
	copyPause = 2 * time.Second // between two of them
)

// ScrubCopy is Scrub for the copy in the folder of one server, whichever server leads: it reads the server's files, while that
// runs or does not.
func ScrubCopy(ctx context.Context, store, stream, server string, mirror journal.Journal) (found []sqlite.Finding) {
	for try := 1; ; try++ {
		until, _, err := mirror.Head(ctx)
		if err != nil {
			return []sqlite.Finding{{What: err.Error(), Do: "fix that, then compare again"}}
		}
		files, err := openCopy(store, stream)
		if err != nil {
			return []sqlite.Finding{{What: err.Error(), Do: "fix that, then compare again"}}
		}
		s := scrub{server: server, stream: stream, message: files.message, versions: map[string]uint64{}}
		found = s.run(ctx, mirror, until)
		if !s.short || try == copyTries {
			return found
		}
		select {
		case <-time.After(copyPause):
		case <-ctx.Done():
			return found
		}
	}
}

// copied reads the messages of a copy in their order.
type copied struct {
	blocks []string // that were not read yet
	rest   []byte   // of the one that is read
	place  uint64   // of the message that was read last
	data   []byte
}

// HasCopy reports whether a server has files of a stream.
func HasCopy(store, stream string) bool {
	c, err := openCopy(store, stream)
	return err == nil && len(c.blocks) > 0
}

func openCopy(store, stream string) (*copied, error) {
	all, err := accounts(store)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, account := range all {
		blocks, err := listed(filepath.Join(account, "streams", stream, "msgs"))
		if err != nil {
			return nil, err
		}
		found = append(found, blocks...)
	}
	found = slices.DeleteFunc(found, func(path string) bool { return filepath.Ext(path) != ".blk" })
	slices.SortFunc(found, func(a, b string) int { return blockNumber(a) - blockNumber(b) })
	return &copied{blocks: found}, nil
}

// blockNumber is the number in the name of a block, a file of messages.
func blockNumber(path string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".blk"))
	return n
}

// accounts are the folders of a server's accounts.
func accounts(store string) ([]string, error) { return listed(filepath.Join(store, folder)) }

// listed is what is in a folder; nothing if there is no folder. filepath.Glob would misread the name of a store that has a [.
func listed(folder string) (paths []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for the copy of the journal: %w", err)
	}
	for _, e := range entries {
		paths = append(paths, filepath.Join(folder, e.Name()))
	}
	return paths, nil
}

// message is the one at a place, nil if there is none; errEnd: there is none from there on. The places have to rise.
func (c *copied) message(_ context.Context, place uint64) ([]byte, error) {
	for c.place < place {
		if more, err := c.next(); err != nil {
			return nil, err
		} else if !more {
			return nil, errEnd
		}
	}
	if c.place > place {
		return nil, nil
	}
	return c.data, nil
}

var errEnd = errors.New("the copy ends")

// next reads a message. What cannot be one ends its file: what follows is missing then.
func (c *copied) next() (more bool, err error) {
	for {
		if len(c.rest) < recordHead {
			if len(c.blocks) == 0 {
				return false, nil
			}
			if c.rest, err = os.ReadFile(c.blocks[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, fmt.Errorf("read the copy of the journal: %w", err)
			}
			c.blocks = c.blocks[1:]
			continue
		}
		length, at := binary.LittleEndian.Uint32(c.rest), binary.LittleEndian.Uint64(c.rest[4:])
		begin := recordHead + int(binary.LittleEndian.Uint16(c.rest[20:]))
		headers := length&withHeaders != 0
		length &^= withHeaders
		if headers {
			begin += 4
		}
		if length > recordMost || int(length) > len(c.rest) || begin > int(length)-recordSum {
			c.rest = nil
			continue
		}
		if headers {
			begin += int(binary.LittleEndian.Uint32(c.rest[begin-4:]))
		}
		end := int(length) - recordSum
		record := c.rest
		c.rest = c.rest[length:]
		if at&erased != 0 || begin > end || at <= c.place {
			continue
		}
		c.place, c.data = at, record[begin:end]
		return true, nil
	}
}
