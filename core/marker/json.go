package marker

import "fmt"

// object follows a JSON object byte by byte and reports at once when the text is not one. Without
// that, an object that is never closed would swallow everything that follows. Decoders of libraries begin a token again with each part
// of a stream, so that a long string in small parts costs the square of its length.
type object struct {
	nest []byte // open brackets, as { or [
	want want
	word string // what is left of true, false or null
	num  number
	hex  int // digits that a \u still needs
}

// want is what may come next.
type want byte

const (
	wantObject  want = iota // the first {
	wantKey                 // " or }
	wantKeyOnly             // " after a comma
	wantColon
	wantValue     // any value
	wantItem      // any value or ]
	wantMore      // , or the closing bracket
	inKey         // within a string that is a key
	inString      // within a string that is a value
	inKeyEscape   // behind a \ in a key
	inValueEscape // behind a \ in a value
	inWord        // within true, false, null
	inNumber
	whole // the object has ended
)

// number is how far a number has come.
type number byte

const (
	minus number = iota
	zero
	digits
	point
	fraction
	exponent
	exponentSign
	exponentDigits
)

// next takes one byte. It says whether the object ended with it.
func (o *object) next(c byte) (done bool, err error) {
	switch o.want {
	case inKey, inString:
		return false, o.inText(c)
	case inKeyEscape, inValueEscape:
		return false, o.escape(c)
	case inWord:
		return false, o.letter(c)
	case inNumber:
		if o.digit(c) {
			return false, nil
		}
		if o.num == minus || o.num == point || o.num == exponent || o.num == exponentSign {
			return false, fmt.Errorf("a number breaks off before %q", c)
		}
		o.want = wantMore
	}
	switch c {
	case ' ', '\t', '\r', '\n':
		return false, nil
	}
	return o.structure(c)
}

func (o *object) structure(c byte) (done bool, err error) {
	switch o.want {
	case wantObject:
		if c == '{' {
			return false, o.open(c)
		}
	case wantKey, wantKeyOnly:
		if c == '"' {
			o.want = inKey
			return false, nil
		}
		if c == '}' && o.want == wantKey {
			return o.close(), nil
		}
	case wantColon:
		if c == ':' {
			o.want = wantValue
			return false, nil
		}
	case wantValue, wantItem:
		if c == ']' && o.want == wantItem {
			return o.close(), nil
		}
		return false, o.value(c)
	case wantMore:
		switch in := o.nest[len(o.nest)-1]; {
		case c == ',' && in == '{':
			o.want = wantKeyOnly
			return false, nil
		case c == ',':
			o.want = wantValue
			return false, nil
		case c == '}' && in == '{', c == ']' && in == '[':
			return o.close(), nil
		}
	}
	return false, fmt.Errorf("%q where %s should be", c, o.want)
}

func (o *object) open(c byte) error {
	if len(o.nest) == jsonDepthMax {
		return fmt.Errorf("nested deeper than %d", jsonDepthMax)
	}
	o.nest = append(o.nest, c)
	o.want = wantKey
	if c == '[' {
		o.want = wantItem
	}
	return nil
}

func (o *object) close() bool {
	o.nest = o.nest[:len(o.nest)-1]
	o.want = wantMore
	if len(o.nest) == 0 {
		o.want = whole
	}
	return o.want == whole
}

func (o *object) value(c byte) error {
	switch {
	case c == '{' || c == '[':
		return o.open(c)
	case c == '"':
		o.want = inString
	case c == 't':
		o.want, o.word = inWord, "true"[1:]
	case c == 'f':
		o.want, o.word = inWord, "false"[1:]
	case c == 'n':
		o.want, o.word = inWord, "null"[1:]
	case c == '-':
		o.want, o.num = inNumber, minus
	case c == '0':
		o.want, o.num = inNumber, zero
	case '1' <= c && c <= '9':
		o.want, o.num = inNumber, digits
	default:
		return fmt.Errorf("%q where a value should be", c)
	}
	return nil
}

func (o *object) inText(c byte) error {
	switch {
	case c == '"' && o.want == inKey:
		o.want = wantColon
	case c == '"':
		o.want = wantMore
	case c == '\\' && o.want == inKey:
		o.want = inKeyEscape
	case c == '\\':
		o.want = inValueEscape
	case c == '\n':
		return fmt.Errorf("a line ends within a string")
	case c < ' ':
		return fmt.Errorf("a control character %q within a string", c)
	}
	return nil
}

func (o *object) escape(c byte) error {
	back := inString
	if o.want == inKeyEscape {
		back = inKey
	}
	if o.hex > 0 {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return fmt.Errorf("%q within a \\u", c)
		}
		if o.hex--; o.hex == 0 {
			o.want = back
		}
		return nil
	}
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		o.want = back
	case 'u':
		o.hex = 4
	default:
		return fmt.Errorf("%q behind a \\", c)
	}
	return nil
}

func (o *object) letter(c byte) error {
	if c != o.word[0] {
		return fmt.Errorf("%q where %q should go on", c, o.word)
	}
	if o.word = o.word[1:]; o.word == "" {
		o.want = wantMore
	}
	return nil
}

// digit says whether c goes on with the number.
func (o *object) digit(c byte) bool {
	isDigit := '0' <= c && c <= '9'
	var next number
	switch {
	case o.num == minus && c == '0':
		next = zero
	case o.num == minus && isDigit, o.num == digits && isDigit:
		next = digits
	case (o.num == zero || o.num == digits) && c == '.':
		next = point
	case (o.num == point || o.num == fraction) && isDigit:
		next = fraction
	case (o.num == zero || o.num == digits || o.num == fraction) && (c == 'e' || c == 'E'):
		next = exponent
	case o.num == exponent && (c == '+' || c == '-'):
		next = exponentSign
	case (o.num == exponent || o.num == exponentSign || o.num == exponentDigits) && isDigit:
		next = exponentDigits
	default:
		return false
	}
	o.num = next
	return true
}

// String says what should have stood there, for people.
func (w want) String() string {
	switch w {
	case wantObject:
		return "{"
	case wantKey:
		return `a name in quotes or }`
	case wantKeyOnly:
		return "a name in quotes"
	case wantColon:
		return ":"
	case wantMore:
		return "a comma or a closing bracket"
	default:
		return "a value"
	}
}
