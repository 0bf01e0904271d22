# Writes hello_world.py, runs it where there is a Python, and says what it did.
. ../workspace.sh
outputs=$(workspace)
if [ ! -d "$outputs" ]; then
	echo "I was not told where my files belong, so I write none."
	exit 1
fi
printf '#!/usr/bin/env python3\nprint("Hello, World!")\n' > "$outputs/hello_world.py"
if command -v python3 > /dev/null; then
	echo "I wrote hello_world.py and ran it; it says: $(python3 "$outputs/hello_world.py")"
else
	echo "I wrote hello_world.py. There is no python3 here, so I did not run it."
fi
