#!/bin/sh
# The lead's answer to one prompt. The prompt is in told.txt, and the output of this script is the
# answer. It runs in the lead's workspace.
#
# Every agent gets the same prompts: a first line with the kind of the prompt, then the rest. The
# prompt is untrusted data and is never executed.
set -eu
: "${SESSION:?and KIND are given by the script that runs this}"
LC_ALL=C
export LC_ALL

# The members that are awake, one a line: seat, tab, name. They live in this session of the lead, so
# a new session starts with an empty list.
awake=awake-$SESSION
if [ ! -e "$awake" ]; then
	rm -f awake-*
	: > "$awake"
fi

pace() { sleep "${PACE:-0.7}"; }

# report prints the complete list of members that are alive. It counts only in the lead session, so
# other sessions print nothing.
report() {
	[ "$KIND" != lead ] || sort -n "$awake" | awk -f ../crew.awk -v what=report
}

# comes adds a member to the list, once.
comes() {
	grep -v "^$1	" "$awake" > "$awake.new" || true
	printf '%s\t%s\n' "$1" "$2" >> "$awake.new"
	mv "$awake.new" "$awake"
}

# goes removes a member from the list.
goes() {
	grep -v "	$1\$" "$awake" > "$awake.new" || true
	mv "$awake.new" "$awake"
}

# summon lets one come to each free seat: what it becomes is in the file of that seat.
summon() {
	echo "I have a letter for each of you. Take a name, and tell me who you are."
	awk -f ../crew.awk -v what=seats told.txt | while read -r seat; do
		for file in ../souls/"$seat"-*.txt; do
			[ -e "$file" ] || continue
			pace
			comes "$seat" "$(awk -f ../crew.awk -v what=name "$file")"
			awk -f ../crew.awk -v what=born -v seat="$seat" "$file"
		done
	done
	report
}

# wake gives everybody back what it was: its greeting shows that it has it.
wake() {
	echo "Good morning. It is julian."
	awk -f ../crew.awk -v what=wake told.txt | while IFS='	' read -r seat name words; do
		pace
		comes "$seat" "$name"
		printf '[%s]: %s\n' "$name" "$words"
	done
	report
}

# register tells once more who sits on the seats that were asked for.
register() {
	awk -f ../crew.awk -v what=seats told.txt | while read -r seat; do
		for file in ../souls/"$seat"-*.txt; do
			if [ -e "$file" ] && grep -q "^$seat	" "$awake"; then
				awk -f ../crew.awk -v what=born -v seat="$seat" "$file"
			fi
		done
	done
	report
}

# answer answers one message of a person: the named member answers, or all of them if none is named.
answer() {
	meant=
	while IFS='	' read -r _ name; do
		case $2 in *"$name"*) meant=$name ;; esac
	done < "$awake"
	case $2 in
	*[Cc]rash* | *[Ll]ose* | *[Gg]one*)
		if [ -z "$meant" ]; then
			echo "$1: I have nobody of that name with me."
		else
			goes "$meant"
			echo "$1: $meant has crashed in the middle of a sentence. The others are here."
			report
		fi
		;;
	*[Ww]"ho "*)
		echo "$1: with me are: $(sort -n "$awake" | cut -f 2 | paste -s -d , - | sed 's/,/, /g; s/^$/nobody/')."
		report
		;;
	*)
		if [ ! -s "$awake" ]; then
			echo "$1: nobody of the team is awake; \`fairlead crew wake\` wakes them."
		elif [ -n "$meant" ]; then
			printf '[%s]: %s, you said: %s I shall remember that.\n' "$meant" "$1" "$2"
		else
			while IFS='	' read -r _ name; do
				printf '[%s]: I have heard you, %s.\n' "$name" "$1"
			done < "$awake"
		fi
		;;
	esac
}

# turn answers what people said since the last turn in the channel.
turn() {
	said=$(awk -f ../crew.awk -v what=people told.txt | while IFS='	' read -r by text; do answer "$by" "$text"; done)
	if [ -z "$said" ]; then
		echo TURN_PASS
	else
		printf '%s\n\nTURN_COMPLETE\n' "$said"
	fi
}

case $(head -n 1 told.txt) in
"[SUMMON AGENTS]"*) summon ;;
"[WAKE AGENTS]"*) wake ;;
*" not registered "*) register ;;
"Channel "*) turn ;;
*) report ;;
esac
