package script

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
)

// Memory is a World without a disk and without processes, for simulators and tests. Its zero value
// is empty; every command succeeds and prints nothing.
type Memory struct {
	// Command runs a shell command; nil: exit code 0. It must return when ctx is done.
	Command func(ctx context.Context, command string, env []string, output io.Writer) (code int, err error)

	mu      sync.Mutex
	files   map[string][]byte
	spawned []string
}

// ReadFile reads a file that was written before.
func (m *Memory) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.files[name]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return slices.Clone(b), nil
}

// WriteFile keeps a file.
func (m *Memory) WriteFile(name string, content []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = make(map[string][]byte)
	}
	m.files[name] = slices.Clone(content)
	return nil
}

// AppendFile adds to a file.
func (m *Memory) AppendFile(name string, content []byte, _ bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = make(map[string][]byte)
	}
	m.files[name] = append(m.files[name], content...)
	return nil
}

// Run calls Command.
func (m *Memory) Run(ctx context.Context, command string, env []string, output io.Writer) (int, error) {
	if m.Command == nil {
		return 0, nil
	}
	return m.Command(ctx, command, env, output)
}

// Spawn remembers the command. It returns PIDs that count from 1 and are not real.
func (m *Memory) Spawn(command, _ string, _ bool, _ []string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spawned = append(m.spawned, command)
	return len(m.spawned), nil
}

// Spawned lists the spawned commands.
func (m *Memory) Spawned() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.spawned)
}

// Crash ends the play as if it had crashed.
func (m *Memory) Crash(string) error { return nil }
