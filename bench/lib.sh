# shellcheck shell=bash
#
# What bars.sh and run.sh share. To be sourced behind tools/lib.sh.

# Debian's own Python: matplotlib is installed for that one, and another may come first in PATH.
# shellcheck disable=SC2034
PYTHON=/usr/bin/python3
[ -x "$PYTHON" ] || PYTHON=python3
# Runs a module of bench/; the caller sets HERE.
# shellcheck disable=SC2034,SC2154
PYTHON_MODULE=(env PYTHONPATH="$HERE" PYTHONDONTWRITEBYTECODE=1 "$PYTHON" -m)

# What the options set that both have.
# shellcheck disable=SC2034
INSTALL=1
# shellcheck disable=SC2034
INSTALLED=

# parse_server_option ARGUMENT...: if an option that both have comes first, sets what it says and PARSED, the number of
# arguments that it takes. Status 1: it is another one.
parse_server_option()
{
	PARSED=1
	case $1 in
		--pg-config) [ $# -ge 2 ] || die "--pg-config needs a value"; PG_CONFIG=$2; PARSED=2 ;;
		--pg-config=*) PG_CONFIG=${1#*=} ;;
		--installed) INSTALLED=1 ;;
		--no-install) INSTALL= ;;
		*) return 1 ;;
	esac
}

clean_up()
{
	local status=$?

	trap - EXIT
	trap "" INT TERM HUP
	cd /
	[ -z "$WORK" ] || rm -rf "$WORK"
	exit $status
}

# Builds the load generator as $WORK/client.
build_client()
{
	make -C "$TREE/bench/client" OUT="$WORK" PG_CONFIG="$PG_CONFIG" >"$WORK/client.log" 2>&1 || {
		cat "$WORK/client.log" >&2
		die "the load generator did not build" "Is libpq-dev installed?"
	}
}

# The commit that is measured, for the results.
source_commit()
{
	local commit

	commit=$(git -c safe.directory="$TREE" -C "$TREE" rev-parse --short=12 HEAD 2>/dev/null) || commit=unknown
	[ -z "$(git -c safe.directory="$TREE" -C "$TREE" status --porcelain -- src sql 2>/dev/null)" ] || commit="$commit, changed"
	echo "$commit"
}

# Runs a program (not a function) that handles interrupts itself, and returns its status. A shell that is interrupted while
# it waits for a command in the foreground runs its trap only afterwards; so this works for a signal to us alone as well.
run_interruptible()
{
	local status

	"$@" &
	CHILD=$!
	trap 'kill -INT $CHILD 2>/dev/null' INT
	trap 'kill -TERM $CHILD 2>/dev/null' TERM HUP
	while true; do
		wait $CHILD
		status=$?
		kill -0 $CHILD 2>/dev/null || break
	done
	wait $CHILD 2>/dev/null
	return $status
}
