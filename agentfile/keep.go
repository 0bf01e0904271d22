package agentfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	corruptPrefix = FileName + ".corrupt-"
	corruptMax    = 20 // copies in one folder, so that repeated malformed content does not fill the disk
)

// errCopiesMax says that content was not kept because there are too many copies.
var errCopiesMax = fmt.Errorf("%d copies are kept already, so these bytes are not; move some %s* files away", corruptMax, corruptPrefix)

// keepAside copies malformed content beside the file and returns the copy's name, which holds the file's
// modification time (SPEC C12, X5). Because the time is the file's, the same malformed file is kept once,
// also after a restart.
func keepAside(folder string, dir int, s file.Version) (name string, err error) {
	kept := s.Bytes[:min(len(s.Bytes), agentStateBytesMax)]
	base := corruptPrefix + file.TimeInName(s.ID.Mtime)
	for n := 1; n <= corruptMax; n++ {
		name = base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n) // another content with the same modification time
		}
		there, err := file.Read(dir, name, file.BytesMax)
		if err == nil && bytes.Equal(there.Bytes, kept) {
			return name, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	names, err := file.NamesIn(folder)
	if err != nil {
		return "", fmt.Errorf("look for copies in %s: %w", folder, err)
	}
	copies := 0
	for _, n := range names {
		if strings.HasPrefix(n, corruptPrefix) {
			copies++
		}
	}
	if copies >= corruptMax {
		return "", errCopiesMax
	}
	handle, err := file.Create(dir, name, kept, s.Mode|0o600)
	if err != nil {
		return "", fmt.Errorf("keep a copy as %s: %w", name, err)
	}
	defer func() { _ = handle.Close() }()
	if err := file.SyncFolder(dir); err != nil {
		return "", fmt.Errorf("sync the folder of %s: %w", name, err)
	}
	return name, nil
}
