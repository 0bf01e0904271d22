package cli

func ErrText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
