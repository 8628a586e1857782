#!/bin/bash
#
# Runs the steps of packaging/image/Dockerfile without Docker, and tests both images. For a throwaway machine or chroot with
# PostgreSQL 18 or later installed, in the place of the official image; tools/package.sh has one. Needs root. Leaves files
# in /.
#
#   test/image/check.sh TREE MAJOR

set -eu -o pipefail
TREE=$(cd "$1" && pwd)
export PG_MAJOR=$2
BIN=/usr/lib/postgresql/$PG_MAJOR/bin
DATA=/srv/image-data
IMAGE=$TREE/packaging/image
trap 'stop_server immediate' EXIT

# run_stage NAME ROOT: runs the steps of a stage. ROOT is the root folder of the image. Only stages from scratch may have
# another one than /.
run_stage()
{
	local step words to folder=/ root=${2%/}

	while read -r step words; do
		read -ra words <<<"$words"
		case $step in
			WORKDIR) folder=${words[0]}; mkdir -p "$folder" ;;
			RUN) (cd "$folder" && sh -c "${words[*]}") ;;
			COPY)
				to=${words[-1]}
				unset 'words[-1]'
				if [ "${words[0]}" = --from=build ]; then
					mkdir -p "$root$to"
					cp -a "${words[1]%/}/." "$root$to"
				else
					copy_from_tree "$(realpath -m "$folder/$to")" "$to" "${words[@]}"
				fi
				;;
			CMD) : ;;
			*) echo "check.sh does not know $step" >&2; return 1 ;;
		esac
	done < <(sed -n "/^FROM .* AS $1\$/,/^FROM/p" "$IMAGE/Dockerfile" | grep -v '^FROM\|^#\|^$')
}

# copy_from_tree TARGET AS FILE...: as Docker does. A folder's content is copied. The target is a folder if it ends in "/".
copy_from_tree()
{
	local target=$1 as=$2 file
	shift 2

	if [ "${as%/}" != "$as" ]; then
		mkdir -p "$target"
	else
		mkdir -p "$(dirname "$target")"
	fi
	for file in "$@"; do
		if [ -d "$TREE/$file" ]; then
			mkdir -p "$target"
			cp -r "$TREE/$file/." "$target"
		else
			cp "$TREE/$file" "$target"
		fi
	done
}

stop_server()
{
	[ ! -e $DATA/postmaster.pid ] || runuser -u postgres -- "$BIN/pg_ctl" -D $DATA -m "$1" -w stop >/dev/null
}

# start_server OPTION...: starts an empty server.
start_server()
{
	stop_server immediate
	rm -rf $DATA
	install -d -o postgres $DATA
	runuser -u postgres -- "$BIN/initdb" -D $DATA --no-sync >/dev/null
	OPTIONS=$(printf ' %q' -c unix_socket_directories=/tmp -c port=5439 "$@")
	again
}

again()
{
	runuser -u postgres -- "$BIN/pg_ctl" -D $DATA -l $DATA/log -o "$OPTIONS" -w start >/dev/null || { cat $DATA/log; return 1; }
}

query()
{
	runuser -u postgres -- env PGHOST=/tmp PGPORT=5439 PATH="$BIN:$PATH" "$@"
}

# The load runs once. After a crash, its rows are there, and the indexes are sound.
try_load()
{
	cp "$IMAGE/load.sh" "$IMAGE/init.sql" /srv/
	query psql -Xq -v ON_ERROR_STOP=1 -f /srv/init.sql postgres
	query env LOAD_ONCE=1 /srv/load.sh
	stop_server immediate
	again
	[ "$(query psql -XAtq -c 'SET enable_seqscan = off; SELECT count(*) FROM events WHERE device_id >= 0' postgres)" = 5001 ]
	[ -z "$(query psql -XAtq -c 'SELECT * FROM lsm_check_all(heapallindexed => true)' postgres)" ]
	query psql -XAtq -c "SELECT probin, lsm_library_version() FROM pg_proc WHERE proname = 'lsm_handler'" postgres
}

run_stage build /
run_stage extension /extensions/pg-lsm
find /extensions -type f | sort
[ ! -e "$("$BIN/pg_config" --pkglibdir)/pg_lsm.so" ]
# As CloudNativePG sets them. The server has no other pg_lsm.
# shellcheck disable=SC2016
start_server -c shared_preload_libraries=pg_lsm -c 'extension_control_path=$system:/extensions/pg-lsm/share' \
	-c 'dynamic_library_path=$libdir:/extensions/pg-lsm/lib'
try_load
stop_server fast
rm -rf /extensions
echo "ok - the extension image"

run_stage server /
[ -e /docker-entrypoint-initdb.d/10-pg_lsm.sql ]
read -ra command < <(sed -n 's/^CMD \[\(.*\)\]/\1/p' "$IMAGE/Dockerfile" | tr -d '",')
start_server "${command[@]:1}"
try_load
echo "ok - the server image"
