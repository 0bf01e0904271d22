package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	asideFolder = "damaged" // in StoreDir, beside the folder of the server
	// repairs whose files are kept: each may be as large as a copy of the journal, and a disk that fails is repaired often
	asideMost = 3
	asideForm = "20060102T150405.000000000"
)

// Renew puts the damaged files of groups aside, so that a server that does not run takes the state of these groups from the others when it
// starts. A group of a stream goes with the server's copy of it. The others must have all of these streams. That the others have all of
// [ServersGroup] is for the caller to know. aside is the folder of the files.
func Renew(ctx context.Context, nc *nats.Conn, store, server string, damaged []*GroupDamage) (aside string, err error) {
	r, err := at(nc, "")
	if err != nil {
		return "", err
	}
	used := map[string]string{} // the stream of a group
	names := r.js.StreamNames(ctx)
	for name := range names.Name() {
		stream := &remote{nc: nc, js: r.js, name: name}
		info, err := stream.state(ctx, tryWait)
		if err != nil {
			return "", fmt.Errorf("look for the other copies of stream %s: %w", name, err)
		}
		if info.Cluster != nil {
			used[info.Cluster.RaftGroup] = name
		}
	}
	if err := names.Err(); err != nil {
		return "", fmt.Errorf("look for the streams of the other servers: %w", err)
	}
	var streams, groups []string
	for _, d := range damaged {
		groups = append(groups, d.Group)
		name := used[d.Group]
		if name == "" { // the servers' own, or one that is not used any longer
			continue
		}
		streams = append(streams, name)
		info, err := (&remote{nc: nc, js: r.js, name: name}).state(ctx, tryWait)
		if err == nil {
			err = others(server)(info.Cluster)
		}
		if err != nil {
			return "", fmt.Errorf("the other copies of stream %s are not complete: %w", name, err)
		}
	}
	return putAside(store, streams, groups)
}

// putAside moves the files of streams and of groups of servers, of all accounts of a server that has ended, into a folder of its own. The
// oldest folders are removed. An empty name is ignored; no folder is made for nothing.
func putAside(store string, streams, groups []string) (folder string, err error) {
	all, err := accounts(store)
	if err != nil {
		return "", err
	}
	kept := filepath.Join(store, asideFolder)
	folder = filepath.Join(kept, time.Now().UTC().Format(asideForm))
	moved := false
	move := func(account, kind, name string) error {
		from, to := filepath.Join(account, kind, name), filepath.Join(folder, filepath.Base(account), kind)
		if _, err := os.Lstat(from); name == "" || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		moved = true
		return errors.Join(os.MkdirAll(to, 0o700), os.Rename(from, filepath.Join(to, name)))
	}
	for _, account := range all {
		for _, name := range groups { // first: without its copy a group would not fetch it
			err = errors.Join(err, move(account, groupsFolder, name))
		}
		for _, name := range streams {
			err = errors.Join(err, move(account, "streams", name))
		}
	}
	if err != nil {
		return folder, fmt.Errorf("put damaged files aside: %w", err)
	}
	if !moved {
		return "", nil
	}
	before, err := listed(kept)
	slices.Sort(before)
	for _, old := range before[:max(0, len(before)-asideMost)] {
		err = errors.Join(err, os.RemoveAll(old))
	}
	return folder, err
}
