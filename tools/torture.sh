#!/bin/bash
#
# Tortures lsm indexes: kills servers at every step, takes away their memory and disks, damages their files, and calls
# hostile functions. Then compares what is left with what must have survived.
#
#   tools/torture.sh --seconds 3600         tools/torture.sh --help lists all options
#
# This script adds these options:
#   --pg MAJOR         the version of PostgreSQL (default: the installed one). If this version is not installed, and
#                      you are root, everything runs in a chroot of a Debian release that has it. The first run makes
#                      the chroot.
#   --pg-config PATH   the PostgreSQL to use, whatever its version (default: $PG_CONFIG)
#   --no-install       do not install missing packages
#
# Builds pg_lsm with assertions and stop points into a copy of the server's files, and starts its own servers in a
# temporary folder below TMPDIR. Prints each round, then a summary and "torture: N rounds passed, N failed". The exit
# status is 0 only if nothing failed. docs/reliability.md has the figures of long runs.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=../bench/lib.sh
. "$TREE/bench/lib.sh"

main()
{
	PYTHON_MODULE=("$PYTHON")		# torture.py is a program, not a module
	take_options "$TREE/test/torture/torture.py" 17 "$@"
	catch_signals
	[ -z "$PG_WANTED" ] || choose_postgres "$@"
	if [ -n "$INSTALL" ]; then
		export PG_CONFIG=${PG_CONFIG:-}
		"$HERE/install_deps.sh" test || exit 1
	fi
	require_postgres
	choose_server_user
	make_work pg_lsm-torture
	say "Building"
	build_server COPT="$FOR_TESTS"
	mkdir "$WORK/run"
	[ "$(id -u)" -ne 0 ] || chown -R "$SERVER_USER" "$WORK/run"
	chmod 755 "$WORK"
	torture
}

# Runs the suite as the servers' user, who may not write to the current folder. (as_server is a function, which
# run_interruptible cannot run.)
torture()
{
	local status run_as=()

	[ "$(id -u)" -ne 0 ] || run_as=(setpriv --reuid="$SERVER_USER" --regid="$SERVER_USER" --clear-groups)
	run_interruptible env -C "$WORK/run" TMPDIR="$WORK/run" HOME="$WORK/run" "${run_as[@]}" "$PYTHON" "$WORK/src/test/torture/torture.py" \
		--pg-config "$PG_CONFIG_COPY" --commit "$(source_commit)" ${SUITE_ARGS[@]+"${SUITE_ARGS[@]}"}
	status=$?
	if [ -d "$WORK/run/torture-failures" ]; then
		cp -r "$WORK/run/torture-failures" . && say "Logs of failures, and the figures of a soak, are in $PWD/torture-failures"
	fi
	return $status
}

main "$@"
