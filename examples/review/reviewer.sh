#!/bin/sh
# The reviewer's part: what it says and does when it is told something.
. ../talk.sh

# What each function has to do.
clock() { echo 'says 65 1:05; says 600 10:00'; }
slug() { echo "says 'Fair  Lead!' fair-lead"; }
initials() { echo "says 'Ada King Lovelace' AKL"; }

# write_test writes the test of a function, once.
write_test() {
	[ ! -e "../test/$1.sh" ] || return 0
	cat > "../test/$1.sh" <<TEST
# Run from the root of the repository: sh test/$1.sh
. ./lib/$1.sh
says() {
	got=\$($1 "\$1")
	[ "\$got" = "\$2" ] || { echo "$1 '\$1' says '\$got', and should say '\$2'"; exit 1; }
}
$("$1")
TEST
}

# review looks at what has changed since it looked last, and says what it found; 1: nothing has.
review() {
	for piece in clock slug initials; do
		file=../lib/$piece.sh
		[ -e "$file" ] || continue
		now=$(look "$file")
		case $(cat "../verdict/$piece" 2>/dev/null) in
		"ok $now" | "FAIL $now "*) continue ;;
		esac
		write_test "$piece"
		if why=$(cd .. && sh "test/$piece.sh" 2>&1); then
			echo "ok $now" > "../verdict/$piece"
			echo "\`test/$piece.sh\` is green: nothing to say against \`$piece\`. What is next, author?"
		else
			echo "FAIL $now $why" > "../verdict/$piece"
			echo "\`test/$piece.sh\` is red:"
			printf '\n    %s\n\n' "$why"
			echo "Please mend it, author."
		fi
		(cd .. && sh commit.sh "review: $(cut -d ' ' -f 1 "verdict/$piece") $piece" "test/$piece.sh" "verdict/$piece") > /dev/null
		return 0
	done
	return 1
}

if ! my_turn; then
	said=$(answer_people)
	echo "${said:-TURN_PASS}"
	exit
fi
mkdir -p ../test ../verdict
said=$(answer_people; review || true)
if [ -z "$said" ]; then
	echo TURN_PASS
else
	printf '%s\n\nTURN_COMPLETE\n' "$said"
fi
