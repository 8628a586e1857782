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
# Run it as root to include the kernel's out-of-memory killer: the mode "small" then has memory control groups.
#
# Builds pg_lsm with assertions and stop points into a copy of the server's files, and starts its own servers in a
# temporary folder below TMPDIR. Prints each round, then a summary and "torture: N rounds passed, N failed". The exit
# status is 0 only if nothing failed. docs/reliability.md has the figures of long runs.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=../bench/lib.sh
. "$TREE/bench/lib.sh"

# The memory control group of this run.
GROUP=

main()
{
	PYTHON_MODULE=("$PYTHON")		# torture.py is a program, not a module
	take_options "$TREE/test/torture/torture.py" 19 "$@"
	catch_signals
	trap end EXIT
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
	make_group
	torture
}

# Makes a group, of version 1 or 2, in which the servers' user may make groups (MemoryGroup in test/torture/machine.py).
# Sets GROUP. Without the right to make one, does nothing, and the suite reports that it had none.
make_group()
{
	local parent=/sys/fs/cgroup/memory

	[ "$(id -u)" -eq 0 ] || return
	if [ ! -d "$parent" ]; then
		parent=/sys/fs/cgroup
		{ echo +memory >"$parent/cgroup.subtree_control"; } 2>/dev/null || return
	fi
	GROUP=$(mktemp -d "$parent/pg_lsm_torture_XXXXXX" 2>/dev/null) || return
	mkdir "$GROUP/suite"
	# A group of version 2 whose groups have limits has no processes of its own.
	[ ! -e "$GROUP/cgroup.subtree_control" ] || echo +memory >"$GROUP/cgroup.subtree_control"
	chown "$SERVER_USER" "$GROUP" {"$GROUP","$GROUP/suite"}/cgroup.procs
	export PG_LSM_TORTURE_GROUP=$GROUP
}

# Removes the group, and those that the suite has left in it. Their last processes may be just ending.
remove_group()
{
	local _

	for _ in {1..50}; do
		rmdir "$GROUP"/*/ "$GROUP" 2>/dev/null
		[ -d "$GROUP" ] || return
		sleep 0.1
	done
	say "Could not remove $GROUP"
}

# Like clean_up, which it calls.
end()
{
	local status=$?

	trap "" INT TERM HUP
	[ -z "$GROUP" ] || remove_group
	(exit $status)
	clean_up
}

# Runs the suite as the servers' user, who may not write to the current folder. (as_server is a function, which
# run_interruptible cannot run.)
torture()
{
	local status run_as=()

	[ "$(id -u)" -ne 0 ] || run_as=(setpriv --reuid="$SERVER_USER" --regid="$SERVER_USER" --clear-groups)
	# In version 2, only processes within the group may move others from one of its groups to another.
	# shellcheck disable=SC2016
	[ ! -e "$GROUP/cgroup.subtree_control" ] ||
		run_as=(sh -c 'echo $$ >"$0" && exec "$@"' "$GROUP/suite/cgroup.procs" "${run_as[@]}")
	run_interruptible env -C "$WORK/run" TMPDIR="$WORK/run" HOME="$WORK/run" "${run_as[@]}" "$PYTHON" "$WORK/src/test/torture/torture.py" \
		--pg-config "$PG_CONFIG_COPY" --commit "$(source_commit)" ${SUITE_ARGS[@]+"${SUITE_ARGS[@]}"}
	status=$?
	if [ -d "$WORK/run/torture-failures" ]; then
		cp -r "$WORK/run/torture-failures" . && say "Logs of failures, and the figures of a soak, are in $PWD/torture-failures"
	fi
	return $status
}

main "$@"
