# Runs every script here, and fails if one fails or prints nothing.
for script in greeting/*.sh; do
	[ "$script" = greeting/test.sh ] && continue
	said=$(sh "$script" Mira) || { echo "$script failed"; exit 1; }
	[ -n "$said" ] || { echo "$script prints nothing"; exit 1; }
	echo "ok $script: $said"
done
