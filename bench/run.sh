#!/bin/bash
#
# Reproduces published experiments and draws the results: one report, bench-results/report.html.
#
#   bench/run.sh [option]...        bench/run.sh --help lists them; bench/README.md explains the report
#
# Options of this script, besides those:
#   --pg MAJOR         the version of PostgreSQL (default 18). If it is not installed, and you are root, the benchmark runs
#                      in a chroot of a Debian release that has it. The first run makes the chroot.
#   --pg-config PATH   the PostgreSQL to use, whatever its version (otherwise PG_CONFIG)
#   --installed        use that server as it is, with the pg_lsm that is installed there, instead of a copy of it with
#                      pg_lsm built from this tree
#   --no-install       do not install missing packages
#
# Installs what is missing (Debian packages; needs root or sudo only for that), builds pg_lsm and the load generator, and
# runs servers of its own in a temporary folder below TMPDIR, which takes up to 6 GB at the default size. Root has the
# right to make a memory control group for the server; without it there is no limit, and the report says so.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"

# A hash of everything that is measured, so that a run is not resumed with another version.
source_hash()
{
	(cd "$TREE" && find src sql bench/client -type f -name '*.[chq]*' -print0 | LC_ALL=C sort -z | xargs -0 cat) |
		sha1sum | cut -c 1-12
}

main()
{
	local build=1

	take_options suite 18 "$@"
	[[ " ${SUITE_ARGS[*]-} " != *" --report-only "* ]] || build=
	if [ -n "$build" ]; then
		catch_signals
		choose_postgres "$@"
	fi
	install_packages
	"$PYTHON" -c 'import matplotlib' 2>/dev/null ||
		die "$PYTHON has no matplotlib" "Debian and Ubuntu: tools/install_deps.sh bench, or install python3-matplotlib."
	if [ -z "$build" ]; then
		"${PYTHON_MODULE[@]}" suite "${SUITE_ARGS[@]}"
		exit
	fi
	prepare_server
	build_client
	# matplotlib stores a list of fonts, and would warn if the home directory is not writable.
	[ -w "${HOME:-/}" ] || export MPLCONFIGDIR="${MPLCONFIGDIR:-$WORK/matplotlib}"
	run_suite suite --client "$WORK/client" --source "$(source_hash)"
}

main "$@"
