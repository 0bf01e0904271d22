package session

import (
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

func TestMatrix(t *testing.T) {
	golden.Check(t, filepath.Join("testdata", "matrix.txt"), Table.Matrix())
}
