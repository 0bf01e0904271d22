# Writes a table down, and says what it did.
. ../workspace.sh
outputs=$(workspace)
if [ ! -d "$outputs" ]; then
	echo "I was not told where my files belong, so I write none."
	exit 1
fi
printf 'create table greetings (id integer primary key, text text not null);\n' > "$outputs/schema.sql"
echo "I wrote schema.sql, with one table in it."
