package sessions

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// freeMemory is what programs can have without others being swapped out, and all that there is.
func freeMemory() (free, all int64, known bool) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		word := strings.Fields(lines.Text())
		if len(word) < 2 {
			continue
		}
		n, err := strconv.ParseInt(word[1], 10, 64)
		switch word[0] {
		case "MemTotal:":
			all = n << 10
		case "MemAvailable:":
			free, known = n<<10, err == nil
		}
	}
	return free, all, known && all > 0
}
