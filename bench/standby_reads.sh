#!/bin/bash
#
# Measures reads on two standbys, alone and while the primary takes a load at full speed, with a B-tree and with lsm.
#
#   bench/standby_reads.sh                  indexes larger than memory, about ten minutes
#   bench/standby_reads.sh --quick          small tables, about a minute: shows only that everything works
#   bench/standby_reads.sh [option]...      bench/standby_reads.sh --help lists the others
#
# Options of this script, besides those:
#   --pg MAJOR         the version of PostgreSQL (default 18). If it is not installed, the benchmark runs in a chroot of a
#                      Debian release that has it. The first run makes the chroot.
#   --pg-config PATH   the PostgreSQL to use, whatever its version (otherwise PG_CONFIG)
#   --installed        use that server as it is, with the pg_lsm that is installed there, instead of a copy of it with
#                      pg_lsm built from this tree
#   --no-install       do not install missing packages
#
# Only root can make memory control groups for the servers. Without them, memory is not limited.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"

main()
{
	take_options suite.standby_reads 18 "$@"
	catch_signals
	choose_postgres "$@"
	install_packages
	prepare_server
	build_client
	run_suite suite.standby_reads --client "$WORK/client"
}

main "$@"
