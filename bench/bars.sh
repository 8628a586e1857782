#!/bin/bash
#
# Checks the goals ("bars") of the project: what an lsm index costs while rows arrive, compared with no index and with
# a btree, one after the other under the same conditions.
#
#   bench/bars.sh                           all bars, with loads of 100 million rows: about two hours
#   bench/bars.sh --quick                   with 2 million rows: a few minutes, a first idea
#   bench/bars.sh --bars uuid,build         only these
#   bench/bars.sh [option]...               bench/bars.sh --help lists them; bench/README.md explains the bars
#
# Options of this script, besides those:
#   --pg MAJOR         the version of PostgreSQL (default 18). If it is not installed, and you are root, the benchmark runs
#                      in a chroot of a Debian release that has it. The first run makes the chroot.
#   --pg-config PATH   the PostgreSQL to use, whatever its version (otherwise PG_CONFIG)
#   --installed        use that server as it is, with the pg_lsm that is installed there, instead of a copy of it with
#                      pg_lsm built from this tree
#   --no-install       do not install missing packages
#
# Needs root, for a memory control group that the server runs in (without it: --memory 0). Runs servers of its own in a
# temporary folder below TMPDIR, which takes up to 15 GB at the default size, and removes it at the end.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"

main()
{
	take_options suite.bars 21 "$@"
	catch_signals
	choose_postgres "$@"
	install_packages
	prepare_server
	build_client
	run_suite suite.bars --client "$WORK/client"
}

main "$@"
