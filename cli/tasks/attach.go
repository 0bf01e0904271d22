package tasks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/view"
)

// Attach reads the files that are given with a task. The daemon checks their sizes and their number.
func Attach(paths []string) (all []view.TaskAttachment, err error) {
	for _, path := range paths {
		one, err := attachment(path)
		if err != nil {
			return nil, &cli.Coded{Code: cli.ExitUsage, Err: err}
		}
		all = append(all, one)
	}
	return all, nil
}

func attachment(path string) (one view.TaskAttachment, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return one, fmt.Errorf("--attach: %w", err)
	}
	if !info.Mode().IsRegular() {
		return one, fmt.Errorf("--attach: %s is not a file", cli.Line(path, cli.PathWidth))
	}
	file, err := os.Open(path)
	if err != nil {
		return one, fmt.Errorf("--attach: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, driver.ImageBytesMax+1)) // a text has a lower limit
	if err != nil {
		return one, fmt.Errorf("--attach: %w", err)
	}
	one.Name = filepath.Base(path)
	switch _, err := driver.ImageType(data); {
	case err == nil:
		one.Image = data
	case !errors.Is(err, driver.ErrNotImage):
		return one, fmt.Errorf("--attach: %s cannot be attached: it is %w", cli.Line(path, cli.PathWidth), err)
	case !utf8.Valid(data):
		return one, fmt.Errorf("--attach: %s is neither a text file nor a PNG, JPEG, GIF or WebP image; put it into the repository, or name its path in the text", cli.Line(path, cli.PathWidth))
	default:
		one.Text = string(data)
	}
	return one, nil
}
