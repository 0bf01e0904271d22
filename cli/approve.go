package cli

// ErrText is the text of an error, or "" for nil.
func ErrText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
