package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

const (
	lockFile  = "lock"
	fenceFile = "fence"
	agentFile = "agent.json"
	spoolFile = "spool"
	exitFile  = "exit.json"
	exitRoom  = "exit.room" // reserves disk space for exit.json, so that a full disk does not lose it
	ackedFile = "acked"
	logFile   = "shim.log"

	recordBytesMax = 64 << 10 // our own records are under 2 KiB; anything larger is not one
)

const (
	stepStarting    = "starting"     // about to fork: a reader must assume that it happened
	stepStarted     = "started"      // the agent exists
	stepCannotStart = "cannot_start" // exec failed: no agent ever ran
)

// agentRecord is agent.json: the agent that was started. It contains no environment.
type agentRecord struct {
	Version    int       `json:"v"`
	Step       string    `json:"step"`
	Why        string    `json:"why,omitempty"`
	Session    string    `json:"session"`
	Mark       string    `json:"mark"`            // HASH.SESSION
	Fence      uint64    `json:"fence,omitempty"` // the epoch of the daemon that started it; later ones are in the fence file
	BootID     string    `json:"boot_id"`
	ShimPID    int       `json:"shim_pid"`
	ShimStart  uint64    `json:"shim_start"`
	AgentPID   int       `json:"agent_pid,omitempty"`
	AgentStart uint64    `json:"agent_start,omitempty"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	Socket     string    `json:"socket,omitempty"`
	Holds      Holds     `json:"holds"`
	Ports      []int     `json:"ports,omitempty"`

	Wall   sandbox.Mechanism `json:"wall,omitempty"`
	Unheld []sandbox.Row     `json:"unheld,omitempty"`
}

func (r *agentRecord) status() Status {
	return Status{
		Session: r.Session, ShimPID: r.ShimPID, AgentPID: r.AgentPID, StartTime: r.AgentStart,
		BootID: r.BootID, StartedAt: r.StartedAt, Holds: r.Holds, Version: r.Version, Ports: r.Ports,
		Wall: r.Wall, Unheld: r.Unheld,
	}
}

// readAgent returns nil without an error if there is no record. A record of another protocol may have any step.
func readAgent(folder string) (*agentRecord, error) {
	var r agentRecord
	if ok, err := readRecord(filepath.Join(folder, agentFile), &r); !ok {
		return nil, err
	}
	switch r.Step {
	case stepStarting, stepStarted, stepCannotStart:
		return &r, nil
	}
	if r.other() != nil {
		return &r, nil //nolint:nilerr // who reads the record looks at its protocol
	}
	return nil, &damaged{filepath.Join(folder, agentFile), fmt.Errorf("step %.40q is not known", r.Step)}
}

func readExit(folder string) (*session.Exit, error) {
	var e session.Exit
	if ok, err := readRecord(filepath.Join(folder, exitFile), &e); !ok {
		return nil, err
	}
	if e.SpoolBytes < 0 {
		return nil, &damaged{filepath.Join(folder, exitFile), fmt.Errorf("spool_bytes is %d", e.SpoolBytes)}
	}
	return &e, nil
}

// damaged is a record that exists and cannot be read. It counts as "was started".
type damaged struct {
	path string
	err  error
}

func (d *damaged) Error() string {
	return fmt.Sprintf("the record %s is damaged: %v; move the folder aside and start a new session", d.path, d.err)
}
func (d *damaged) Unwrap() error { return d.err }

func readRecord(path string, into any) (ok bool, err error) {
	raw, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the shim's record: %w", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return false, &damaged{path, err}
	}
	return true, nil
}

// openPlain opens a file of a session's folder. It follows no symbolic link, including the folder
// itself, and opens only regular files with one name: the agent may write there as its user, and
// must not make Fairlead show other files or block on a pipe.
func openPlain(path string, flags int) (*os.File, error) {
	if folder, err := os.Lstat(filepath.Dir(path)); err == nil && !folder.IsDir() {
		return nil, fmt.Errorf("%s is a link or a file instead of a folder; remove it", filepath.Dir(path))
	}
	f, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link; Fairlead does not follow it, because it could point anywhere; remove it", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no plain file (%s); remove it", path, info.Mode().Type())
	}
	if err == nil {
		if sys, ok := info.Sys().(*syscall.Stat_t); ok && sys.Nlink > 1 {
			err = fmt.Errorf("%s has %d names, so it may be another file; remove it", path, sys.Nlink)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func readSmall(path string) ([]byte, error) {
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, recordBytesMax))
}

// writeSynced replaces FOLDER/name atomically; when it returns, the new content survives a power
// failure. room names a file whose disk space is used for it, if it exists.
func writeSynced(folder, name, room string, content []byte) error {
	if err := replaceFile(folder, name, room, content, fsync); err != nil {
		return err
	}
	return syncFolder(folder)
}

// replaceFile replaces FOLDER/name atomically. sync is called with the new file before it gets its name.
func replaceFile(folder, name, room string, content []byte, sync func(*os.File) error) error {
	temp := filepath.Join(folder, name+".new")
	if room != "" {
		if os.Rename(filepath.Join(folder, room), temp) != nil {
			room = ""
		}
	}
	flags := os.O_WRONLY | os.O_CREATE
	if room == "" {
		flags |= os.O_TRUNC
	}
	f, err := openPlain(temp, flags)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil {
		err = f.Truncate(int64(len(content)))
	}
	if err == nil {
		err = sync(f)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(temp, filepath.Join(folder, name))
	}
	return err
}

// fsync is a variable so that a test can count the syncs of a start.
var fsync = (*os.File).Sync

func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := fsync(d); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems sync no folders
		return err
	}
	return nil
}

func writeRecord(folder, name, room string, v any) error {
	if err := writeSynced(folder, name, room, encoded(name, v)); err != nil {
		return fmt.Errorf("write the shim's record %s: %w", filepath.Join(folder, name), err)
	}
	return nil
}

// writeStarted names the agent's process in agent.json. It is not synced: after a power failure no process
// is left that it could name, and the intent, which is synced, says that the agent may have run. A file
// system that then has neither leaves a damaged record, which counts as started as well.
func writeStarted(folder string, r *agentRecord) error {
	unsynced := func(*os.File) error { return nil }
	if err := replaceFile(folder, agentFile, "", encoded(agentFile, r), unsynced); err != nil {
		return fmt.Errorf("write the shim's record %s: %w", filepath.Join(folder, agentFile), err)
	}
	return nil
}

func encoded(name string, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("shim: %s cannot be written as JSON: %v", name, err)) // our own plain struct
	}
	return append(raw, '\n')
}
