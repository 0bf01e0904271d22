package cli

// CmpErr is the first that is one.
func CmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
