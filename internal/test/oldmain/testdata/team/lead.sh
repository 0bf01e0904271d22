#!/bin/sh
# The lead's part: what it says and does when it is told something. What it was told is in
# told.txt; what this prints is what it says. It is run in the lead's workspace.
#
# An agent of any kind is told the same: a first line that says what is asked of it, and then
# the rest. All of that is somebody else's words: it is data here, and never run.
set -eu
: "${SESSION:?and KIND are given by the script that runs this}"
LC_ALL=C
export LC_ALL

# Those who are awake, a line each: seat, tab, name. They live in this session of the lead, so
# the list is as old as the session: who leads a new one has nobody with it.
awake=awake-$SESSION
if [ ! -e "$awake" ]; then
	rm -f awake-*
	: > "$awake"
fi

pace() { sleep "${PACE:-0.7}"; }

# report says who is alive: all of them, and nobody else. In a session that does not lead (a
# turn in a channel, say) nobody would believe it, so it is not said there.
report() {
	[ "$KIND" != lead ] || sort -n "$awake" | awk -f ../crew.awk -v what=report
}

# comes takes somebody's line into the list, once.
comes() {
	grep -v "^$1	" "$awake" > "$awake.new" || true
	printf '%s\t%s\n' "$1" "$2" >> "$awake.new"
	mv "$awake.new" "$awake"
}

# goes takes somebody out of it.
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

# answer is for one message of a person: who is meant answers, and where nobody is, everybody.
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
			echo "$1: nobody of the team is awake; \`fairlead wake\` wakes them."
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
