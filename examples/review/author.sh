#!/bin/sh
# The author's answer to one prompt.
. ../talk.sh

# Each function in its first version and, if that has a fault, in its corrected one.
clock() {
	echo '# clock SECONDS: prints them as minutes and seconds.'
	case $1 in
	first) echo 'clock() { printf "%d:%d\n" $(($1 / 60)) $(($1 % 60)); }' ;;
	mended) echo 'clock() { printf "%d:%02d\n" $(($1 / 60)) $(($1 % 60)); }' ;;
	esac
}
slug() {
	echo '# slug TEXT: prints it as a name that fits into an address.'
	echo 'slug() { printf "%s\n" "$1" | tr "[:upper:]" "[:lower:]" | tr -cs "[:alnum:]\n" - | sed "s/^-*//; s/-*\$//"; }'
}
initials() {
	echo '# initials NAME: prints the first letter of each word.'
	echo 'initials() { printf "%s\n" "$1" | tr " " "\n" | cut -c 1 | tr -d "\n"; echo; }'
}

commit() { (cd .. && sh commit.sh "$1" "lib/$2.sh"); }

# work does the next thing that is to be done, and says so; 1: there is nothing.
work() {
	for piece in clock slug initials; do
		file=../lib/$piece.sh
		if [ ! -e "$file" ]; then
			"$piece" first > "$file"
			said=$(commit "$piece: write it" "$piece")
			echo "I have written \`$piece\` ($said). Please look at it, reviewer."
			return 0
		fi
		verdict=$(cat "../verdict/$piece" 2>/dev/null || echo none)
		case $verdict in
		"ok "*) ;;
		"FAIL $(look "$file") "*)
			"$piece" mended > "$file"
			said=$(commit "$piece: mend what the review found" "$piece")
			echo "True, reviewer. It is mended ($said). Please look again."
			return 0
			;;
		*) return 1 ;; # it has not been reviewed yet
		esac
	done
	return 1
}

if ! my_turn; then
	said=$(answer_people)
	echo "${said:-TURN_PASS}"
	exit
fi
mkdir -p ../lib
said=$(answer_people; work || true)
if [ -z "$said" ]; then
	echo TURN_PASS
else
	printf '%s\n\nTURN_COMPLETE\n' "$said"
fi
