package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// SpokenMost is as much as a message may be; the daemon takes no more.
const SpokenMost = 128 << 10

// Spoken is the text of the words of a command line.
func (a *App) Spoken(words []string) (string, error) {
	text := strings.Join(words, " ")
	if len(words) == 1 && words[0] == "-" {
		read, err := io.ReadAll(io.LimitReader(a.In, SpokenMost+2)) // its last line's end is none of it
		if err != nil {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		text = strings.TrimSuffix(string(read), "\n")
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", errors.New("there is nothing to say; give some words, or - to read standard input")
	case len(text) > SpokenMost:
		return "", fmt.Errorf("the text has more than %d KiB; put it into a file of the repository and say its name", SpokenMost>>10)
	case strings.ToValidUTF8(text, "") != text:
		return "", errors.New("the text is no UTF-8; convert it first")
	}
	return text, nil
}
