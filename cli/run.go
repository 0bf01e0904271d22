package cli

// CmpErr returns the first error that is not nil.
func CmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
