package cli

const (
	StepWidth  = 32  // of a step's name, which may be longer
	ErrorWidth = 300 // of an error that an agent reported
)

// Why is a reason in parentheses, or "".
func Why(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
