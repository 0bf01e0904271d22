# Where the files of this conversation belong: what an agent was told says it in one line.
workspace() {
	printf '%s\n' "$PROMPT" | sed -n 's/^- All generated files MUST be placed in: //p' | head -n 1
}
