#!/bin/bash
#
# Compares pg_lsm with PostgreSQL's B-tree on the lineitem table of TPC-H.
#
#   tools/demo.sh [option]...
#
#   --scale S      size of the data: S times 6 million rows (default 0.5)
#   --batch N      rows per transaction while loading (default 1000)
#   --keep         leave the server running, and print how to connect to it and how to remove it
#   --port N       port number, part of the socket's name (default 54329); the server does not listen on the network
#   --set NAME=V   a setting for the server, such as shared_buffers=1GB; may be repeated (default: PostgreSQL's own)
#   --no-install   do not install missing packages
#   -h, --help     this text
#
# Installs missing Debian packages (only that needs root or sudo), builds the extension, and starts a server of its own in
# a temporary folder. Generates lineitem with tpchgen-cli, shuffles the rows, and loads them by COPY into two equal tables:
# one has B-tree indexes on (l_orderkey, l_linenumber) and on (l_shipdate), the other one lsm indexes. Runs point, range
# and ordered queries on both tables, compares the answers row by row, and prints the figures. An installed PostgreSQL and
# its clusters stay as they are. Removes everything at the end.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"

SCALE=0.5
BATCH=1000
KEEP=
PORT=54329
INSTALL=1
SETTINGS=()
WORK=
STARTED=

usage()
{
	sed -n '3,19s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

# value OPTION VALUE: checks that an option was given a value.
value()
{
	[ $# -ge 2 ] || die "$1 needs a value" "See tools/demo.sh --help."
}

parse_options()
{
	split_options "$@"
	set -- ${ARGS[@]+"${ARGS[@]}"}
	while [ $# -gt 0 ]; do
		case $1 in
			--scale) value "$@"; SCALE=$2; shift ;;
			--batch) value "$@"; BATCH=$2; shift ;;
			--port) value "$@"; PORT=$2; shift ;;
			--set)
				value "$@"
				# split_options splits "--set=a=b" only at the first "=", so $2 is "a=b" either way.
				SETTINGS+=("$2")
				shift
				;;
			--keep) KEEP=1 ;;
			--no-install) INSTALL= ;;
			-h | --help) usage; exit 0 ;;
			*) die "unknown option \"$1\"" "See tools/demo.sh --help." ;;
		esac
		shift
	done
	[[ $SCALE =~ ^([0-9]+\.?[0-9]*|\.[0-9]+)$ && $SCALE =~ [1-9] ]] ||
		die "the scale must be a positive number, not \"$SCALE\"" "Try --scale 0.1 (600,000 rows) or --scale 1 (6 million)."
	[[ $BATCH =~ ^[1-9][0-9]*$ ]] || die "the batch must be a positive number of rows, not \"$BATCH\""
	if [[ ! $PORT =~ ^[0-9]+$ ]] || [ "$PORT" -lt 1024 ] || [ "$PORT" -gt 65535 ]; then
		die "the port must be a number from 1024 to 65535, not \"$PORT\""
	fi
}

clean_up()
{
	local status=$?

	trap - EXIT
	trap "" INT TERM HUP
	[ -n "$WORK" ] || exit $status
	if [ -n "$STARTED" ]; then
		if [ -n "$KEEP" ] && [ $status -eq 0 ]; then
			exit 0
		fi
		as_server pg_ctl -D "$WORK/data" -m immediate -w stop >/dev/null 2>&1
	fi
	cd / && rm -rf "$WORK"
	exit $status
}

# step TEXT: announces a step, with the elapsed seconds.
step()
{
	printf '[%4d s] %s\n' $SECONDS "$*"
}

# Fails if the disk has too little space. Per unit of scale, the demo needs 0.75 GB for text, twice 1.1 GB for a table and
# its indexes, and some WAL.
check_space()
{
	local need_mb free_mb

	need_mb=$(awk -v s="$SCALE" 'BEGIN { printf "%d", 1600 + s * 4200 }')
	free_mb=$(df -Pm "$WORK" | awk 'NR == 2 { print $4 }')
	[ "$free_mb" -ge "$need_mb" ] || die "scale $SCALE needs about $need_mb MB, and $WORK has $free_mb MB free" \
		"Choose a smaller --scale, or set TMPDIR to a folder with more space."
}

start_server()
{
	local setting

	mkdir "$WORK/sock"
	[ "$(id -u)" -ne 0 ] || chown "$SERVER_USER" "$WORK/sock"
	as_server initdb -D "$WORK/data" -U postgres -A trust -E UTF8 --locale=C >"$WORK/initdb.log" 2>&1 || {
		cat "$WORK/initdb.log" >&2
		die "initdb failed"
	}
	{
		echo "listen_addresses = ''"
		echo "unix_socket_directories = '$WORK/sock'"
		echo "port = $PORT"
		echo "shared_preload_libraries = 'pg_lsm'"
		for setting in ${SETTINGS[@]+"${SETTINGS[@]}"}; do
			echo "${setting%%=*} = '${setting#*=}'"
		done
	} | as_server tee -a "$WORK/data/postgresql.conf" >/dev/null
	if ! as_server pg_ctl -D "$WORK/data" -l "$WORK/server.log" -w -t 60 start >/dev/null; then
		tail -n 20 "$WORK/server.log" >&2
		die "the server did not start" "The end of its log is above."
	fi
	STARTED=1
	as_server psql -X -q -h "$WORK/sock" -p "$PORT" -U postgres -d postgres -v ON_ERROR_STOP=1 -c 'CREATE DATABASE demo' ||
		die "could not create the database"
}

# Writes random bytes, always the same.
fixed_random()
{
	python3 -c '
import random, sys
stream = random.Random(20240901)
try:
    while True:
        sys.stdout.buffer.write(stream.randbytes(65536))
except BrokenPipeError:
    sys.stderr.close()'
}

generate_data()
{
	local generator available_kb size_kb

	generator=$(command -v tpchgen-cli) || {
		generator=$WORK/venv/bin/tpchgen-cli
		{
			python3 -m venv "$WORK/venv" && "$WORK/venv/bin/pip" install --quiet tpchgen-cli
		} >"$WORK/pip.log" 2>&1 || {
			tail -n 10 "$WORK/pip.log" >&2
			die "could not install tpchgen-cli from PyPI" \
				"Connect to PyPI (or to a mirror set in pip's configuration), or put tpchgen-cli into PATH."
		}
	}
	"$generator" --scale-factor "$SCALE" --tables lineitem --output-dir "$WORK/tpch" >"$WORK/tpchgen.log" 2>&1 || {
		tail -n 10 "$WORK/tpchgen.log" >&2
		die "tpchgen-cli failed"
	}
	[ -s "$WORK/tpch/lineitem.tbl" ] || die "tpchgen-cli wrote no lineitem.tbl" "Its options may have changed."
	size_kb=$(du -k "$WORK/tpch/lineitem.tbl" | cut -f1)
	available_kb=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
	# Each line ends with a delimiter, which COPY rejects. shuf keeps everything in memory; sort does not.
	if [ "$((size_kb * 2))" -lt "$available_kb" ]; then
		sed 's/|$//' "$WORK/tpch/lineitem.tbl" | shuf --random-source=<(fixed_random) -o "$WORK/lineitem.tbl"
	else
		sed 's/|$//' "$WORK/tpch/lineitem.tbl" |
			LC_ALL=C sort -R --random-source=<(fixed_random) -T "$WORK" -o "$WORK/lineitem.tbl"
	fi || die "could not shuffle the rows" "Is there enough space in $WORK?"
	rm -r "$WORK/tpch"
}

say_how_to_go_on()
{
	local become=

	[ "$(id -u)" -ne 0 ] || become="runuser -u $SERVER_USER -- "
	cat <<END

The server is still running. It has the tables lineitem_btree and lineitem_lsm. Connect with
    $PG_BIN/psql -h $WORK/sock -p $PORT -U postgres demo
and try
    EXPLAIN ANALYZE SELECT * FROM lineitem_lsm WHERE l_orderkey = 1 ORDER BY l_linenumber;
    SELECT * FROM lsm_runs('lineitem_lsm_order');
    SELECT lsm_check('lineitem_lsm_order', true);
Stop and remove it with
    $become$PG_BIN/pg_ctl -D $WORK/data stop; rm -rf $WORK
END
}

main()
{
	parse_options "$@"
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP

	step "Checking what is installed"
	if [ -n "$INSTALL" ]; then
		"$HERE/install_deps.sh" demo || exit 1
	fi
	require_postgres
	command -v python3 >/dev/null || die "python3 is missing" "Run tools/install_deps.sh demo."
	choose_server_user
	make_work pg_lsm-demo
	cd "$WORK" || exit 1
	check_space

	step "Building pg_lsm for PostgreSQL $PG_MAJOR"
	build_server
	step "Starting a server in $WORK"
	start_server
	step "Generating and shuffling lineitem at scale $SCALE"
	generate_data
	python3 "$HERE/demo_client.py" --psql "$PG_BIN/psql" --host "$WORK/sock" --port "$PORT" --data "$WORK/lineitem.tbl" \
		--work "$WORK" --batch "$BATCH" --started "$SECONDS" || {
		local status=$?
		if [ $status -ne 3 ] && [ $status -ne 130 ] && [ -s "$WORK/server.log" ]; then
			printf 'The last lines of the server log:\n' >&2
			tail -n 15 "$WORK/server.log" >&2
		fi
		exit $status
	}
	rm -f "$WORK/lineitem.tbl"
	step "Done"
	[ -z "$KEEP" ] || say_how_to_go_on
}

main "$@"
