package cli

// OrDash is a text, or "-" if it is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return Plain(s)
}
