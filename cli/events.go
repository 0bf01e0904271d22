package cli

func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return Plain(s)
}
