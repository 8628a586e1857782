#!/bin/bash
#
# Checks the project's goals ("bars"). Most bars are ratios of an lsm index to no index or to a btree. The methods take
# turns under the same conditions.
#
#   bench/bars.sh                           all bars, with loads of up to 100 million rows: about two hours
#   bench/bars.sh --quick                   with 2 million rows: a few minutes, for a rough idea
#   bench/bars.sh --bars uuid,build         only these
#   bench/bars.sh [option]...               bench/bars.sh --help lists them; bench/README.md explains the bars
#
# Options for the server and the packages:
#   --pg MAJOR         the version of PostgreSQL (default 18). If that version is not installed and you are root, the
#                      benchmark runs in a chroot of a Debian release that has it. The first run creates the chroot.
#   --pg-config PATH   the pg_config of any supported version (default: the environment variable PG_CONFIG)
#   --installed        use the server and its installed pg_lsm as they are, instead of a copy of the server with pg_lsm
#                      built from this tree
#   --no-install       do not install missing packages
#
# Needs root, to run the server in a memory control group (without root, use --memory 0). Runs its own servers in a
# temporary folder below TMPDIR. The folder takes up to 15 GB with the default --rows, and is removed at the end.

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
