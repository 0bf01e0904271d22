package cli

import (
	"fmt"
)

// HowMany returns a number with its noun, singular or plural.
func HowMany[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
