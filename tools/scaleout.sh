#!/bin/bash
#
# Spreads one table over several PostgreSQL servers, and compares answers and rates with the same table on one server.
#
#   tools/scaleout.sh [option]...       tools/scaleout.sh --help lists them; docs/scale-out.md explains the rest
#
# Options of this script, besides those:
#   --pg MAJOR         the version of PostgreSQL (default: the installed one). If this version is not installed, and
#                      you are root, everything runs in a chroot of a Debian release that has it. The first run makes
#                      the chroot.
#   --pg-config PATH   the PostgreSQL to use, whatever its version (otherwise PG_CONFIG)
#   --installed        use that server as it is, with the pg_lsm that is installed there, instead of a copy of it with
#                      pg_lsm built from this tree
#   --no-install       do not install missing packages
#
# Installs what is missing (Debian packages; needs root or sudo only for that), builds pg_lsm, and starts servers of its
# own in a temporary folder below TMPDIR: first one server, then a coordinator and N data servers. Root has the right to
# make a memory control group for each server. The table is hash-partitioned over the data servers by postgres_fdw,
# PL/Proxy or Citus. Loads it by COPY and by INSERT, runs the same queries on both, and prints the figures. Exit status:
# 0 if all answers are equal, 1 if not, 77 if the engine is not installed. Removes everything at the end.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=../bench/lib.sh
. "$TREE/bench/lib.sh"

main()
{
	take_options suite.scaleout 21 "$@"
	catch_signals
	[ -z "$PG_WANTED" ] || choose_postgres "$@"
	# The second call knows the version that the first one has installed.
	if [ -n "$INSTALL" ]; then
		export PG_CONFIG=${PG_CONFIG:-}
		"$HERE/install_deps.sh" && "$HERE/install_deps.sh" scaleout >/dev/null || exit 1
	fi
	require_postgres
	prepare_server
	build_client
	run_suite suite.scaleout --client "$WORK/client"
}

main "$@"
