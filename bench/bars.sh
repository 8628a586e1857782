#!/bin/bash
#
# Measures what an index costs while rows come in: a table without an index, with lsm, and with btree, one after the other
# under the same conditions, and checks the results against the bars that the project has set itself.
#
#   bench/bars.sh [option of bars.py]...        bench/bars.sh --help lists them
#
# Needs root, for a memory control group that the server runs in (without it: --memory 0). Builds the extension and a copy
# of the server in a temporary folder, as all commands here do, and removes it at the end. At the default size (30 million
# rows) it takes about half an hour, nearly all of it for btree, and 12 GB of disk.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=../tools/lib.sh
. "$TREE/tools/lib.sh"

WORK=

clean_up()
{
	local status=$?

	trap - EXIT
	trap "" INT TERM HUP
	cd /
	[ -z "$WORK" ] || rm -rf "$WORK"
	exit $status
}

build_client()
{
	gcc -O2 -Wall -o "$WORK/load" "$HERE/load.c" -I"$("$PG_CONFIG" --includedir)" -L"$("$PG_CONFIG" --libdir)" -lpq ||
		die "the load generator did not build" "Is libpq-dev installed?"
}

main()
{
	local start=$PWD

	case " $* " in
		*" --help "* | *" -h "*) exec python3 "$HERE/bars.py" --help ;;
	esac
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	"$TREE/tools/install_deps.sh" bench || exit 1
	require_postgres
	choose_server_user
	make_work pg_lsm-bench
	private_server
	copy_tree "$TREE" "$WORK/src"
	if ! build_extension "$WORK/src" "$WORK/build.log"; then
		tail -n 30 "$WORK/build.log" >&2
		die "pg_lsm did not build with PostgreSQL $PG_MAJOR" "The end of the build's output is above."
	fi
	build_client
	cd "$start" || exit 1
	# Not by exec: the trap must run.
	python3 "$HERE/bars.py" --bindir "$PG_BIN" --load "$WORK/load" --work "$WORK" --user "$SERVER_USER" "$@"
}

main "$@"
