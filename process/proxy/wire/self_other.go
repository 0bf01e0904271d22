//go:build !linux

package wire

import "os"

func self() (string, error) { return os.Executable() }
