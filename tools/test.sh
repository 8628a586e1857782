#!/bin/bash
#
# Runs all tests against the PostgreSQL that is installed.
#
#   tools/test.sh [option]... [suite]...
#
#   --keep         keep the work folder also when everything passed
#   --no-install   do not install missing packages
#   -h, --help     this text
#
# Suites, run in this order unless some are named:
#   build       compiles without warnings, with and without assertions and stop points
#   layers      the rules of tools/check_layers.py, and that what tools/make_counters.py makes is up to date
#   unit        pure code, without a server (test/unit)
#   regress     SQL scripts with expected output (test/regress)
#   full        the same with the settings of production, but for those that show runs
#   control     regress and isolation with btree in place of lsm: what they expect must hold there
#   isolation   concurrent sessions in fixed orders (test/isolation)
#   tap         crashes, standbys, backups (test/t)
#   core        PostgreSQL's own scripts with lsm indexes (test/core)
#   oracle      random operations, compared with a B-tree (test/oracle)
#   bench       the benchmark suite at its smallest size (test/bench)
#
# The extension is built from a copy of the tree, with assertions and stop points, and installed into a copy of the
# server's files, so that nothing on the machine changes and runs do not disturb each other. PG_CONFIG chooses among
# several PostgreSQL versions. As root the servers run as the user "postgres" (PG_LSM_USER names another one).
# PG_LSM_ORACLE_SECONDS says how long the oracle runs (default 110), PG_LSM_ORACLE_SEED with which seed it begins
# (default: from the clock).
#
# Prints a line for each suite, details of failures, and at the very end "N passed, N failed"; a case that was skipped
# counts as neither. The exit status is 0 only if cases passed and none failed.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"

ALL_SUITES=(build layers unit regress full control isolation tap core oracle bench)
SUITES=()
KEEP=
INSTALL=1
WORK=
JOB=						# the suite that is running
PASSED=0
FAILED=0
STRICT='-Wall -Werror'
# Our assertions, in a server that has none of its own. What the server's headers assert comes along. And stop points
# (src/base/stop_point.h), which no other build has.
FOR_TESTS='-DUSE_ASSERT_CHECKING=1 -DLSM_STOP_POINTS'

usage()
{
	sed -n '3,32s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

parse_options()
{
	while [ $# -gt 0 ]; do
		case $1 in
			--keep) KEEP=1 ;;
			--no-install) INSTALL= ;;
			-h | --help) usage; exit 0 ;;
			-*) die "unknown option \"$1\"" "See tools/test.sh --help." ;;
			*)
				[[ " ${ALL_SUITES[*]} " == *" $1 "* ]] || die "no such suite: $1" "There are: ${ALL_SUITES[*]}"
				SUITES+=("$1")
				;;
		esac
		shift
	done
	[ ${#SUITES[@]} -gt 0 ] || SUITES=("${ALL_SUITES[@]}")
}

# Stops servers that a suite left, and only those: the ones whose data is below our folder.
stop_servers()
{
	local pidfile

	while IFS= read -r pidfile; do
		as_server "$PG_BIN/pg_ctl" -D "$(dirname "$pidfile")" -m immediate -w -t 30 stop >/dev/null 2>&1
	done < <(find "$WORK" -name postmaster.pid 2>/dev/null)
}

clean_up()
{
	local status=$?

	trap - EXIT
	trap "" INT TERM HUP
	exec >&3			# a signal may have come while output was redirected
	if [ -n "$JOB" ]; then
		kill_tree "$JOB"
		wait
		FAILED=$((FAILED + 1))
	fi
	if [ -n "$WORK" ]; then
		[ -z "${PG_BIN:-}" ] || stop_servers
		cd /
		# In CI nobody will look.
		if [ -n "$KEEP" ] || { [ $status -ne 0 ] && [ -z "${CI:-}" ]; }; then
			say "What the suites left is in $WORK"
		else
			rm -rf "$WORK"
		fi
	fi
	if [ -n "${COUNTED:-}" ]; then
		say "$PASSED passed, $FAILED failed"
	fi
	exit $status
}

# --- counting ----------------------------------------------------------------

# count_cases LOG: prints "passed failed" for the output of a suite. Understood are a closing line "N passed, N failed"
# (perhaps "NAME: N seeds passed, N failed"), which counts for everything before it since the last one, TAP as perl and PostgreSQL 16 and later
# write it, and pg_regress as PostgreSQL 15 writes it.
count_cases()
{
	awk '
		/^([a-z]+: )?[0-9]+ ([a-z]+ )?passed, [0-9]+ failed/ {
			sub(/^[a-z]+: /, "")
			p = closed_p += $1
			sub(/^.*passed, /, "")
			f = closed_f += $1
			next
		}
		/^ok .*# (SKIP|skip)/ { next }
		/^ok( |$)/ { p++ }
		/^not ok( |$)/ { f++ }
		/^(test| ) .*\.\.\. ok( |$)/ { p++ }
		/^(test| ) .*\.\.\. FAILED/ { f++ }
		END { print p + 0, f + 0 }' "$1"
}

# Shows what there is to see of a failure: what the output says of it, its end, and the differences that pg_regress found.
show_failure()
{
	local suite=$1 file log=$WORK/log/$1.log last='/^--- the end of regress_log/,/^---$/'

	say "--- $suite: what failed"
	sed "${last}d" "$log" | grep -E -A 4 '^(\[[0-9:]*\] .*(Dubious|Failed)|Dubious|# +Failed|not ok|# +(got|expected):|Timeout)' |
		head -n 80 | sed 's/^/    /'
	# What a TAP test said last; this only once.
	sed -n "${last}p" "$log" | head -n 100 | sed 's/^/    /'
	say "--- $suite: the end of its output"
	sed "${last}d" "$log" | tail -n 40 | sed 's/^/    /'
	while IFS= read -r file; do
		say "--- ${file#"$WORK"/}"
		head -n 120 "$file" | sed 's/^/    /'
	done < <(find "$WORK/run/$suite" -name 'regression.diffs' -size +0 2>/dev/null)
	say "---"
}

# run_suite SUITE COMMAND...: runs the command, its output going to the suite's log, counts, and prints the line.
run_suite()
{
	local suite=$1 begin=$SECONDS status=0 passed failed
	shift

	# In the background, because a signal interrupts "wait", but not a command.
	"$@" </dev/null >"$WORK/log/$suite.log" 2>&1 3>&- &
	JOB=$!
	wait $JOB || status=$?
	JOB=
	read -r passed failed < <(count_cases "$WORK/log/$suite.log") || failed=1
	# Whoever ends badly without a failed case, or without any case, has failed.
	if [ "$failed" -eq 0 ] && { [ $status -ne 0 ] || [ "$passed" -eq 0 ]; }; then
		failed=1
		[ $status -ne 124 ] || say "$suite ran out of time"
	fi
	PASSED=$((PASSED + passed))
	FAILED=$((FAILED + failed))
	printf '%-10s %5d passed, %d failed   %5d s\n' "$suite" "$passed" "$failed" $((SECONDS - begin))
	if [ "$failed" -ne 0 ]; then
		show_failure "$suite"
	fi
	stop_servers
}

# in_server_env SECONDS COMMAND...: as the server user, with a time limit, and with the environment of a test.
in_server_env()
{
	local limit=$1
	shift

	as_server env PG_CONFIG="$PG_CONFIG_COPY" LC_ALL=C.UTF-8 TZ=UTC ${PG_SOURCE:+PG_SOURCE="$PG_SOURCE"} \
		timeout --kill-after=20 "$limit" "$@"
}

# --- suites ------------------------------------------------------------------

# The version for the tests is installed by this suite's sibling prepare(); here it is about warnings only.
suite_build()
{
	local options status=0

	for options in "$STRICT" "$STRICT $FOR_TESTS"; do
		rm -rf "$WORK/build"
		copy_tree "$TREE" "$WORK/build"
		if make -C "$WORK/build" -j"$(nproc)" PG_CONFIG="$PG_CONFIG" with_llvm=no COPT="$options"; then
			echo "ok - builds with $options"
		else
			echo "not ok - builds with $options"
			status=1
		fi
	done
	rm -rf "$WORK/build"
	return $status
}

suite_layers()
{
	local status=0

	if "$TREE/tools/check_layers.py" "$TREE"; then
		echo "ok - layers"
	else
		echo "not ok - layers"
		status=1
	fi
	if "$TREE/tools/make_counters.py" --check; then
		echo "ok - what is made from the list of counters"
	else
		echo "not ok - what is made from the list of counters"
		status=1
	fi
	return $status
}

suite_unit()
{
	in_server_env 300 make -C "$WORK/src/test/unit" check PG_CONFIG="$PG_CONFIG"
}

# suite_server SUITE SECONDS [NAME]: the suites that need a server have a runner of their own. NAME, if it is another one,
# is how a variant of the suite is called.
suite_server()
{
	local suite=$1 limit=$2 name=${3:-$1}

	mkdir -p "$WORK/run/$name"
	[ "$(id -u)" -ne 0 ] || chown "$SERVER_USER" "$WORK/run/$name"
	PG_LSM_TEST_DIR="$WORK/run/$name" in_server_env "$limit" "$WORK/src/test/run" "$suite"
}

suite_full()
{
	PG_LSM_TEST_LIMITS=full suite_server regress 900 full
}

suite_control()
{
	local status=0

	PG_LSM_TEST_METHOD=btree suite_server regress 900 control || status=1
	PG_LSM_TEST_METHOD=btree suite_server isolation 900 control-isolation || status=1
	return $status
}

suite_core()
{
	if [ -z "${PG_SOURCE:-}" ]; then
		PG_CONFIG="$PG_CONFIG" "$HERE/get_source.sh" "$WORK/pgsource" || return
		PG_SOURCE=$WORK/pgsource
	fi
	suite_server core 1200
}

# Names its seeds, so that they can be run again.
suite_oracle()
{
	mkdir -p "$WORK/run/oracle"
	[ "$(id -u)" -ne 0 ] || chown "$SERVER_USER" "$WORK/run/oracle"
	TMPDIR="$WORK/run/oracle" in_server_env 900 python3 "$WORK/src/test/oracle/oracle.py" --pg-config "$PG_CONFIG_COPY" \
		--keep "$WORK/run/oracle/failures" --seconds "${PG_LSM_ORACLE_SECONDS:-110}" \
		${PG_LSM_ORACLE_SEED:+--seed "$PG_LSM_ORACLE_SEED"}
}

# No timing is looked at: that it works is what counts.
suite_bench()
{
	mkdir -p "$WORK/run/bench"
	[ "$(id -u)" -ne 0 ] || chown "$SERVER_USER" "$WORK/run/bench"
	in_server_env 600 /usr/bin/python3 "$WORK/src/test/bench/smoke.py" "$WORK/src" "$PG_CONFIG_COPY" "$WORK/run/bench"
}

run_one()
{
	case $1 in
		build | layers | unit) run_suite "$1" "suite_$1" ;;
		regress | isolation) run_suite "$1" suite_server "$1" 900 ;;
		tap) run_suite tap suite_server tap 1200 ;;
		full) run_suite full suite_full ;;
		control) run_suite control suite_control ;;
		core) run_suite core suite_core ;;
		bench) run_suite bench suite_bench ;;
		oracle)
			run_suite oracle suite_oracle
			sed -n '/first seed/s/^/           /p' "$WORK/log/oracle.log"
			;;
	esac
}

# --- the whole ---------------------------------------------------------------

prepare()
{
	if [ -n "$INSTALL" ]; then
		"$HERE/install_deps.sh" test || exit 1
	fi
	require_postgres
	choose_server_user
	make_work pg_lsm-test
	mkdir "$WORK/log" "$WORK/run"
	cd "$WORK" || exit 1
	private_server
	copy_tree "$TREE" "$WORK/src"
	[ "$(id -u)" -ne 0 ] || chown -R "$SERVER_USER" "$WORK/src" "$WORK/run"
	if ! build_extension "$WORK/src" "$WORK/log/install.log" COPT="$STRICT $FOR_TESTS"; then
		tail -n 40 "$WORK/log/install.log"
		die "pg_lsm did not build with PostgreSQL $PG_MAJOR" "The end of the build's output is above."
	fi
}

main()
{
	local suite

	parse_options "$@"
	exec 3>&1
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP

	COUNTED=1
	FAILED=1			# until the extension is built
	prepare
	FAILED=0
	for suite in "${SUITES[@]}"; do
		run_one "$suite"
	done
	[ $PASSED -gt 0 ] && [ $FAILED -eq 0 ]
}

main "$@"
