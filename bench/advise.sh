#!/bin/bash
#
# Checks that lsm_advise is right: runs workloads, asks for advice, and measures both methods.
#
#   bench/advise.sh                         all workloads, on an idle machine about twenty minutes
#   bench/advise.sh --only queue            only workloads whose name contains this
#   bench/advise.sh [option]...             bench/advise.sh --help lists the others
#
# Options of this script, besides those:
#   --pg MAJOR         the version of PostgreSQL (default 18). If it is not installed, the benchmark runs in a chroot of a
#                      Debian release that has it. The first run makes the chroot.
#   --pg-config PATH   the PostgreSQL to use, whatever its version (otherwise PG_CONFIG)
#   --installed        use that server as it is, with the pg_lsm that is installed there, instead of a copy of it with
#                      pg_lsm built from this tree
#   --no-install       do not install missing packages
#
# Needs root, for memory control groups that the servers run in.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"

main()
{
	take_options suite.advise 18 "$@"
	catch_signals
	choose_postgres "$@"
	install_packages
	prepare_server
	run_suite suite.advise
}

main "$@"
