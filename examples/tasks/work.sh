#!/bin/sh
# The work of ada and bob. The task, and what they are told when it comes back, is in $PROMPT.
cd "$(git rev-parse --show-toplevel)" || exit 1

write() { # FILE LINE...: a script with a comment and a command
	printf '%s\n' "$2" "$3" > "greeting/$1"
}
commit() {
	git -c user.name="$NAME" -c user.email="$NAME@example.invalid" -c commit.gpgsign=false -c core.hooksPath=/dev/null commit -q -a -m "$1"
}

case $PROMPT in
*"it conflicts with branch"*)
	write greet.sh '# Greets a visitor: greet.sh NAME' 'echo "Good day, ${1:-visitor}."'
	git add greeting && commit "Merge greeting: politely, and by name"
	;;
*farewell*)
	if [ -e greeting/bye.sh ]; then
		write bye.sh '# Says farewell to a visitor: bye.sh NAME' 'echo "Bye, ${1:-visitor}."'
	else
		write bye.sh '# Says farewell to a visitor.' 'echo "Bye."'
	fi
	git add greeting && commit "A farewell"
	;;
*"by name"*)
	write greet.sh '# Greets a visitor: greet.sh NAME' 'echo "Hello, ${1:-visitor}."'
	commit "Greet by name"
	;;
*politely*)
	write greet.sh '# Greets a visitor: greet.sh NAME' 'echo "Good day."'
	commit "Greet politely"
	;;
*)
	echo "this example knows three tasks: write a farewell, greet visitors by name, greet visitors politely"
	;;
esac
