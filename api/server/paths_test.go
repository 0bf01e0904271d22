package server

import "testing"

// socketOf is where a served workspace listens.
func socketOf(t testing.TB, s *served) string {
	t.Helper()
	path, err := SocketPath(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
