package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/internal/file"

	"golang.org/x/sys/unix"
)

// Config is what a host keeps of the team that it has joined.
type Config struct {
	Name      string   `json:"name"`
	Team      string   `json:"team"`
	Addresses []string `json:"addresses"` // of the leader, HOST:PORT
	Labels    []string `json:"labels,omitempty"`
	Capacity  int      `json:"capacity"` // sessions at one time

	Engine string `json:"-"` // of an engine host: the address at which it listens, which another file has
}

const (
	fileBytesMax  = 64 << 10
	addressesMax  = 16
	teamBytesMax  = 255
	capacityMax   = 10000 // as core/host has it
	labelsMax     = 32    // as core/host has it
	addressBytes  = 300   // a domain name has 253
	configFile    = "host.json"
	epochFile     = "epoch"
	restoreOrJoin = "restore it from a backup, or leave the team and join again"
)

// Folder is where a host of a repository keeps its files, and its identity.
func Folder(dir string) string { return filepath.Join(dir, ".fairlead", "cluster") }

// Joined reports whether a repository's folder belongs to a host that runs sessions for another machine.
func Joined(dir string) bool {
	_, err := os.Lstat(filepath.Join(Folder(dir), configFile))
	return err == nil
}

// LoadConfig reads what SaveConfig wrote.
func LoadConfig(dir string) (Config, error) {
	var c Config
	path := filepath.Join(Folder(dir), configFile)
	if err := load(path, &c); err != nil {
		return c, err
	}
	if wrong := c.Wrong(); wrong != "" {
		return c, fmt.Errorf("%s: %s; %s", path, wrong, restoreOrJoin)
	}
	return c, nil
}

// SaveConfig writes the file that makes a folder one of a host.
func SaveConfig(dir string, c Config) error {
	if wrong := c.Wrong(); wrong != "" {
		return errors.New(wrong)
	}
	if err := os.MkdirAll(Folder(dir), 0o700); err != nil {
		return fmt.Errorf("make the folder of the host: %w", err)
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return store(Folder(dir), configFile, text)
}

// Wrong says what is wrong with it; empty: nothing is.
func (c Config) Wrong() string {
	switch {
	case !host.IsWord(c.Name):
		return "the name of a host must have 1 to 63 characters a-z, 0-9 and -"
	case c.Team == "" || len(c.Team) > teamBytesMax:
		return fmt.Sprintf("the name of a team must have 1 to %d bytes", teamBytesMax)
	case len(c.Addresses) == 0 || len(c.Addresses) > addressesMax:
		return fmt.Sprintf("a leader has 1 to %d addresses, not %d", addressesMax, len(c.Addresses))
	case len(c.Labels) > labelsMax || slices.ContainsFunc(c.Labels, func(l string) bool { return !host.IsWord(l) }):
		return fmt.Sprintf("a host may have %d labels, each of 1 to 63 characters a-z, 0-9 and -", labelsMax)
	case c.Capacity < 1 || c.Capacity > capacityMax:
		return fmt.Sprintf("the capacity of a host is 1 to %d sessions, not %d", capacityMax, c.Capacity)
	}
	for _, address := range c.Addresses {
		if name, port, err := net.SplitHostPort(address); err != nil || name == "" || port == "" || len(address) > addressBytes {
			return fmt.Sprintf("%q is not an address; expected HOST:PORT, as in a:4222", address)
		}
	}
	return ""
}

// read reads a small file of this package, which no other user may read.
func read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a plain file; remove it", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("other users can read %s, or change it; look at it, then run `chmod 600 %s`", path, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err == nil && len(text) > fileBytesMax {
		err = fmt.Errorf("%s has more than %d bytes; %s", path, fileBytesMax, restoreOrJoin)
	}
	return text, err
}

// load reads one JSON value, without unknown fields and without anything behind it.
func load(path string, into any) error {
	text, err := read(path)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("it has more than one JSON value")
		}
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w; %s", path, err, restoreOrJoin)
	}
	return nil
}

// loadEpoch reads the highest epoch that this host saw. A file that cannot be read stops the host: with a lower epoch
// it would obey a leader that was replaced.
func loadEpoch(folder string) (uint64, error) {
	path := filepath.Join(folder, epochFile)
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	epoch, err := strconv.ParseUint(strings.TrimSuffix(string(text), "\n"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s has no epoch; %s", path, restoreOrJoin)
	}
	return epoch, nil
}

// store makes a file durable, with its name.
func store(folder, name string, text []byte) error {
	err := file.Replace(filepath.Join(folder, name), append(text, '\n'), 0o600)
	if err != nil {
		return err
	}
	fd, _, err := file.OpenFolder(folder)
	if err != nil {
		return err
	}
	defer file.CloseFolder(fd)
	return file.SyncFolder(fd)
}

// KeepEpoch keeps the epoch of a leader that may become a host of another one.
func KeepEpoch(dir string, epoch uint64) error { return storeEpoch(Folder(dir), epoch) }

func storeEpoch(folder string, epoch uint64) error {
	return store(folder, epochFile, strconv.AppendUint(nil, epoch, 10))
}
