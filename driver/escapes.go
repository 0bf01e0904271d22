package driver

import "strings"

// WithoutEscapes removes the escape sequences of terminals (ECMA-48), which programs write into
// messages. An incomplete sequence loses only its beginning, so that no text is lost with it.
func WithoutEscapes(text string) string {
	if !strings.ContainsRune(text, '\x1b') {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		if text[i] != '\x1b' {
			b.WriteByte(text[i])
			i++
			continue
		}
		i = afterEscape(text, i+1)
	}
	return b.String()
}

// afterEscape returns the index after the escape sequence whose second byte is at i.
func afterEscape(text string, i int) int {
	if i >= len(text) {
		return i
	}
	switch text[i] {
	case '[': // control sequence: parameters, then one final byte
		for k := i + 1; k < len(text) && text[k] >= 0x20 && text[k] <= 0x7e; k++ {
			if text[k] >= 0x40 {
				return k + 1
			}
		}
		return i + 1
	case ']', 'P', 'X', '^', '_': // a string, up to BEL or ESC \
		for k := i + 1; k < len(text); k++ {
			switch {
			case text[k] == '\a':
				return k + 1
			case text[k] == '\x1b' && k+1 < len(text) && text[k+1] == '\\':
				return k + 2
			case text[k] == '\x1b':
				return k
			}
		}
		return i + 1
	}
	k := i
	for k < len(text) && text[k] >= 0x20 && text[k] <= 0x2f {
		k++
	}
	if k < len(text) && text[k] >= 0x30 && text[k] <= 0x7e {
		return k + 1
	}
	return k
}
