package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// SpokenMost is the maximum size of a message in bytes; the daemon has the same limit.
const SpokenMost = 128 << 10

// Spoken returns the text of a command line's words.
func (a *App) Spoken(words []string) (string, error) {
	text := strings.Join(words, " ")
	if len(words) == 1 && words[0] == "-" {
		read, err := io.ReadAll(io.LimitReader(a.In, SpokenMost+2)) // the last line's end is not part of the text
		if err != nil {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		text = strings.TrimSuffix(string(read), "\n")
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", errors.New("the text is empty; give some words, or - to read standard input")
	case len(text) > SpokenMost:
		return "", fmt.Errorf("the text has more than %d KiB; put it into a file of the repository and name it", SpokenMost>>10)
	case strings.ToValidUTF8(text, "") != text:
		return "", errors.New("the text is not UTF-8; convert it first")
	}
	return text, nil
}
