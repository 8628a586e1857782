#!/bin/bash
#
# Tests this tree with the installed PostgreSQL.
#
#   tools/test.sh [option]... [suite]...
#
#   --incremental  build in .check/ and keep it, so that the next run compiles only what changed
#   --jobs N       suites that run at the same time (default: 2, or 1 on a single processor)
#   --keep         keep the work folder even if everything passed
#   --no-install   do not install missing packages
#   --sanitize     with AddressSanitizer and UndefinedBehaviorSanitizer
#   --valgrind     with Valgrind, some 30 times as slow
#   -h, --help     this text
#
# Suites (default: all but core_all, others and quick):
#   tap         crashes, standbys, backups (test/t)
#   build       the tree compiles without warnings, with and without assertions and stop points
#   layers      the rules of tools/check_layers.py and its test (test/layers); whether files made by tools/make_*.py are current; versions; the alerts
#   core        PostgreSQL's own scripts with lsm indexes (test/core)
#   core_all    all of its regression scripts, and its tests of recovery and subscription, with lsm indexes (18 and later)
#   regress     SQL scripts with expected output (test/regress)
#   full        the same scripts with production's settings, except those that show runs
#   control     regress and isolation with btree in place of lsm, which proves their expected output
#   unit        code that needs no server (test/unit)
#   isolation   concurrent sessions in fixed orders (test/isolation)
#   oracle      random operations on an lsm index and a B-tree, compared (test/oracle)
#   torture     servers that die, run out of room, have damaged files or hostile functions (test/torture); tools/torture.sh does more of it
#   bench       the benchmark suite at its smallest size (test/bench)
#   scaleout    a table on several servers, and the statements of docs/scale-out.md (test/scaleout)
#   frameworks  the code of the pages in docs/frameworks (test/frameworks)
#   citus       statements, moves of shards and crashes on a cluster with Citus, if it is installed (test/citus)
#   others      tests of Django and SQLAlchemy, with B-trees and with lsm indexes (test/frameworks/others.py)
#   quick       regress and isolation on one server; "make check" runs unit and quick with --incremental
#
# The script copies the tree, builds pg_lsm with assertions and stop points, and installs it into a copy of the server's
# files. Nothing else on the machine changes, and runs do not disturb each other. Each suite has a server of its own, and
# two suites run at a time. Root runs the servers as the user "postgres".
#
#   PG_CONFIG               pg_config of the PostgreSQL to test
#   PG_LSM_USER             the user who runs the servers if root runs this script
#   PG_LSM_CHECK_DIR        the folder of --incremental, if not .check
#   PG_LSM_ORACLE_SECONDS   how long the oracle runs (default: 110)
#   PG_LSM_ORACLE_SEED      the oracle's first seed (default: from the clock)
#   PG_LSM_TORTURE_SECONDS  how long the suite torture runs (default: 60)
#
# The head of test/run lists more. The script prints a line for each suite when the suite ends, details of failures, and
# "N passed, N failed" at the very end. A skipped case counts as neither. The exit status is 0 only if cases passed and
# none failed.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"
# shellcheck source-path=SCRIPTDIR source=checkers.sh
. "$HERE/checkers.sh"

# The longest comes first, so that the others run at the same time.
ALL_SUITES=(tap build layers core regress full control unit isolation oracle torture bench scaleout frameworks citus)
SUITES=()
KEEP=
INCREMENTAL=
INSTALL=1
JOBS=$(($(nproc) > 1 ? 2 : 1))
WORK=
declare -A PROCESS=()		# of each suite that runs
declare -A BEGAN=()			# when, in $SECONDS
PASSED=0
FAILED=0
STRICT='-Wall -Werror'

usage()
{
	sed -n '3,48s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

parse_options()
{
	split_options "$@"
	set -- ${ARGS[@]+"${ARGS[@]}"}
	while [ $# -gt 0 ]; do
		case $1 in
			--keep) KEEP=1 ;;
			--incremental) INCREMENTAL=1 ;;
			--jobs)
				[[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "--jobs needs a number" "See tools/test.sh --help."
				JOBS=$2
				shift
				;;
			--no-install) INSTALL= ;;
			--sanitize | --valgrind) choose_checker "${1#--}" ;;
			-h | --help) usage; exit 0 ;;
			-*) die "unknown option \"$1\"" "See tools/test.sh --help." ;;
			*)
				[[ " ${ALL_SUITES[*]} core_all others quick " == *" $1 "* ]] ||
					die "no such suite: $1" "There are: ${ALL_SUITES[*]} core_all others quick"
				SUITES+=("$1")
				;;
		esac
		shift
	done
	[ ${#SUITES[@]} -gt 0 ] || SUITES=("${ALL_SUITES[@]}")
}

# stop_servers DIR: stops the servers whose data is below a folder.
stop_servers()
{
	local pidfile

	while IFS= read -r pidfile; do
		as_server "$PG_BIN/pg_ctl" -D "$(dirname "$pidfile")" -m immediate -w -t 30 stop >/dev/null 2>&1
	done < <(find "$1" -name postmaster.pid 2>/dev/null)
}

clean_up()
{
	local status=$? suite

	trap - EXIT
	trap "" INT TERM HUP
	exec >&3			# a signal may have come while output was redirected
	for suite in "${!PROCESS[@]}"; do
		kill_tree "${PROCESS[$suite]}"
		FAILED=$((FAILED + 1))
	done
	wait
	if [ -n "$WORK" ]; then
		[ -z "${PG_BIN:-}" ] || stop_servers "$WORK/run"
		cd /
		# In CI, nobody looks at the folder.
		if [ -n "$KEEP" ] || { [ $status -ne 0 ] && [ -z "${CI:-}" ]; }; then
			say "The suites' files are in $WORK"
		elif [ -z "$INCREMENTAL" ]; then
			rm -rf "$WORK"
		fi
	fi
	if [ -n "${COUNTED:-}" ]; then
		say "total time: $SECONDS s"
		say "$PASSED passed, $FAILED failed"
	fi
	exit $status
}

# --- counting ----------------------------------------------------------------

# count_cases LOG: prints "passed failed" for the output of a suite. It understands three formats. A closing line "N
# passed, N failed" (or "NAME: N seeds passed, N failed") counts for everything since the previous one. TAP as perl and
# PostgreSQL 16 and later write it. And the output of pg_regress in PostgreSQL 15.
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

# Shows the details of a failure: the relevant lines of the output, its end, and the differences that pg_regress found.
show_failure()
{
	local suite=$1 file log=$WORK/log/$1.log last='/^--- the end of regress_log/,/^---$/'

	show_reports "$suite"
	say "--- $suite: failures"
	sed "${last}d" "$log" | grep -E -A 4 '^(\[[0-9:]*\] .*(Dubious|Failed)|Dubious|# +Failed|not ok|# +(got|expected):|Timeout|make.*\*\*\*)|error: |undefined reference' |
		head -n 80 | sed 's/^/    /'
	# The last output of a TAP test, only once.
	sed -n "${last}p" "$log" | head -n 100 | sed 's/^/    /'
	say "--- $suite: the end of its output"
	sed "${last}d" "$log" | tail -n 40 | sed 's/^/    /'
	while IFS= read -r file; do
		say "--- ${file#"$WORK"/}"
		head -n 120 "$file" | sed 's/^/    /'
	done < <(find "$WORK/run/$suite" -name 'regression.diffs' -size +0 2>/dev/null)
	say "---"
}

# begin_suite SUITE: runs a suite in the background. Its output goes to a log, its exit status to a file beside the log.
begin_suite()
{
	mkdir -p "$WORK/run/$1"
	[ "$(id -u)" -ne 0 ] || chown "$SERVER_USER" "$WORK/run/$1"
	checker_env "$1"
	{
		"suite_$1"
		echo $? >"$WORK/log/$1.status"
	} </dev/null >"$WORK/log/$1.log" 2>&1 3>&- 9>&- &
	PROCESS[$1]=$!
	BEGAN[$1]=$SECONDS
}

# end_suite SUITE: counts what a suite printed, and prints its line.
end_suite()
{
	local suite=$1 status=1 passed failed skipped

	wait "${PROCESS[$suite]}"
	unset "PROCESS[$suite]"
	stop_servers "$WORK/run/$suite"
	read -r status 2>/dev/null <"$WORK/log/$suite.status"
	read -r passed failed < <(count_cases "$WORK/log/$suite.log") || failed=1
	skipped=$(sed -n 's/^1\.\.0 # SKIP //p' "$WORK/log/$suite.log")
	if [ "$status$passed$failed" = 000 ] && [ -n "$skipped" ]; then
		printf '%-10s skipped: %s\n' "$suite" "$skipped"
		return
	fi
	# A suite with a bad exit status but no failed case has failed, and so has a suite without any case.
	if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$passed" -eq 0 ]; }; then
		failed=1
		[ "$status" -ne 124 ] || say "$suite ran out of time"
	fi
	failed=$((failed + $(reports "$suite" | wc -l)))
	PASSED=$((PASSED + passed))
	FAILED=$((FAILED + failed))
	printf '%-10s %5d passed, %d failed   %5d s\n' "$suite" "$passed" "$failed" $((SECONDS - BEGAN[$suite]))
	[[ $suite != oracle && $suite != torture ]] || sed -n '/first seed/s/^/           /p' "$WORK/log/$suite.log"
	[ "$failed" -eq 0 ] || show_failure "$suite"
}

# wait_for_suite: waits until at least one suite has finished, and ends all finished suites.
wait_for_suite()
{
	local suite before=${#PROCESS[@]}

	while [ ${#PROCESS[@]} -eq "$before" ]; do
		# Sleep in the background, because a signal interrupts "wait" but not a command.
		sleep 0.5 &
		wait $!
		for suite in "${!PROCESS[@]}"; do
			if [ -e "$WORK/log/$suite.status" ] || ! kill -0 "${PROCESS[$suite]}" 2>/dev/null; then
				end_suite "$suite"
			fi
		done
	done
}

run_suites()
{
	local suite

	for suite in "${SUITES[@]}"; do
		while [ ${#PROCESS[@]} -ge "$JOBS" ]; do
			wait_for_suite
		done
		begin_suite "$suite"
	done
	while [ ${#PROCESS[@]} -gt 0 ]; do
		wait_for_suite
	done
}

# in_server_env SECONDS COMMAND...: runs a command as the server user, with a time limit and the environment of a test.
in_server_env()
{
	local limit=$(($1 * SLOWNESS))
	shift

	as_server env PG_CONFIG="$PG_CONFIG_COPY" LC_ALL=C.UTF-8 TZ=UTC ${PG_SOURCE:+PG_SOURCE="$PG_SOURCE"} "${CHECKER_ENV[@]}" \
		timeout --kill-after=20 "$limit" "$@"
}

# --- suites ------------------------------------------------------------------

# The first result needs no build here: prepare() has built pg_lsm with assertions and without warnings.
suite_build()
{
	copy_tree "$TREE" "$WORK/build"
	echo "ok - builds with $STRICT $FOR_TESTS"
	if make -C "$WORK/build" -j"$(nproc)" PG_CONFIG="$PG_CONFIG" COPT="$STRICT"; then
		echo "ok - builds with $STRICT"
	else
		echo "not ok - builds with $STRICT"
		return 1
	fi
}

# layers_case NAME COMMAND...: one result of the suite. A failure sets $status of the caller.
layers_case()
{
	local name=$1
	shift

	if "$@"; then
		echo "ok - $name"
	else
		echo "not ok - $name"
		status=1
	fi
}

suite_layers()
{
	local status=0 rules=$TREE/monitoring/prometheus

	layers_case "layers" "$TREE/tools/check_layers.py" "$TREE"
	"$TREE/test/layers/broken_trees.py" || status=1
	layers_case "what is made from the list of counters" "$TREE/tools/make_counters.py" --check
	layers_case "versions" "$TREE/tools/check_versions.py"
	layers_case "collectors, dashboard and alerts agree" "$TREE/tools/make_monitoring.py" --check
	# promtool is in Debian's package prometheus.
	if command -v promtool >/dev/null; then
		layers_case "prometheus.yml" promtool check config "$rules/prometheus.yml"
		layers_case "alerts" promtool test rules "$rules/pg_lsm.test.yml"
	else
		echo "ok - alerts # SKIP there is no promtool"
	fi
	return $status
}

# The sanitizers look for leaks, too.
suite_unit()
{
	local how=()

	[ "$CHECKER" != valgrind ] || how=(SANITIZE= RUN='valgrind --quiet --error-exitcode=1')
	in_server_env 600 env -u ASAN_OPTIONS -u UBSAN_OPTIONS make -C "$WORK/src/test/unit" -j"$(nproc)" check \
		PG_CONFIG="$PG_CONFIG" "${how[@]}"
}

# run_tests SECONDS DIR SUITE...: runs suites of test/run in a folder below $WORK/run.
run_tests()
{
	local limit=$1 dir=$2
	shift 2

	PG_LSM_TEST_DIR="$WORK/run/$dir" in_server_env "$limit" "$WORK/src/test/run" "$@"
}

suite_regress()
{
	run_tests 900 regress regress
}

suite_isolation()
{
	run_tests 900 isolation isolation
}

suite_quick()
{
	run_tests 900 quick regress isolation
}

suite_full()
{
	PG_LSM_TEST_LIMITS=full run_tests 900 full regress
}

suite_control()
{
	PG_LSM_TEST_METHOD=btree run_tests 900 control regress isolation
}

suite_tap()
{
	run_tests 2700 tap tap
}

# get_source OPTION...: fetches PostgreSQL's source, unless there is one.
get_source()
{
	[ -z "${PG_SOURCE:-}" ] || return 0
	PG_CONFIG="$PG_CONFIG" "$HERE/get_source.sh" "$@" "$WORK/pgsource" && PG_SOURCE=$WORK/pgsource
}

suite_core()
{
	get_source && run_tests 1200 core core
}

# Takes half an hour.
suite_core_all()
{
	if [ "$PG_MAJOR" -lt 18 ]; then
		echo "1..0 # SKIP foreign keys need PostgreSQL 18"
		return
	fi
	get_source --all && run_tests 5400 core_all core_all
}

# Prints its seeds, so that they can be run again.
suite_oracle()
{
	TMPDIR="$WORK/run/oracle" in_server_env 900 python3 "$WORK/src/test/oracle/oracle.py" --pg-config "$PG_CONFIG_COPY" \
		--keep "$WORK/run/oracle/failures" --seconds "${PG_LSM_ORACLE_SECONDS:-110}" \
		${PG_LSM_ORACLE_SEED:+--seed "$PG_LSM_ORACLE_SEED"}
}

# Prints its seeds, so that they can be run again.
suite_torture()
{
	TMPDIR="$WORK/run/torture" in_server_env 900 python3 "$WORK/src/test/torture/torture.py" --pg-config "$PG_CONFIG_COPY" \
		--keep "$WORK/run/torture/failures" --seconds "${PG_LSM_TORTURE_SECONDS:-60}"
}

# Checks that the benchmark suite works. Timings do not matter.
suite_bench()
{
	in_server_env 1200 /usr/bin/python3 "$WORK/src/test/bench/smoke.py" "$WORK/src" "$PG_CONFIG_COPY" "$WORK/run/bench"
}

suite_scaleout()
{
	in_server_env 300 /usr/bin/python3 "$WORK/src/test/scaleout/checks.py" "$WORK/src" "$PG_CONFIG_COPY" "$WORK/run/scaleout"
}

# Skips the pages of frameworks that are not installed.
suite_frameworks()
{
	in_server_env 900 /usr/bin/python3 "$WORK/src/test/frameworks/pages.py" "$WORK/src" "$PG_CONFIG_COPY" "$WORK/run/frameworks"
}

# Skipped without the sources of Django and SQLAlchemy.
suite_others()
{
	in_server_env 14400 env PG_LSM_OTHERS="${PG_LSM_OTHERS:-}" /usr/bin/python3 "$WORK/src/test/frameworks/others.py" \
		"$PG_CONFIG_COPY" "$WORK/run/others"
}

# Skipped if Citus is not installed in the server.
suite_citus()
{
	cp "$WORK/src/test/citus"/lsm_citext* "$("$PG_CONFIG_COPY" --sharedir)/extension" || return
	in_server_env 1500 /usr/bin/python3 "$WORK/src/test/citus/citus.py" "$PG_CONFIG_COPY" "$WORK/run/citus"
}

# --- the whole ---------------------------------------------------------------

# The folder of --incremental. Starts over if the server or the compiler's options have changed. Sets WORK.
keep_work()
{
	local made_for

	WORK=${PG_LSM_CHECK_DIR:-$TREE/.check}
	made_for="$PG_CONFIG $("$PG_CONFIG" --version) $(stat -c %Y "$("$PG_CONFIG" --bindir)/postgres") $STRICT $FOR_TESTS $CHECKER"
	mkdir -p "$WORK" || exit 1
	WORK=$(cd "$WORK" && pwd)
	exec 9>"$WORK/lock"
	flock -n 9 || die "another run uses $WORK" "Wait for its end, or name another folder in PG_LSM_CHECK_DIR."
	if [ "$made_for" != "$(cat "$WORK/made_for" 2>/dev/null)" ]; then
		rm -rf "$WORK/root" "$WORK/src"
		echo "$made_for" >"$WORK/made_for"
	fi
	rm -rf "$WORK/log" "$WORK/run" "$WORK/build" "$WORK/reports"
}

# Removes files that the tree no longer has from the copy of the sources, and the library, which would still contain
# them.
remove_old_sources()
{
	local file

	while IFS= read -r file; do
		[ -e "$TREE/$file" ] || rm -f "$WORK/src/$file" "$WORK/src/pg_lsm.so"
	done < <(cd "$WORK/src" && find src test -path test/unit/build -prune -o -type f ! -name '*.[od]' ! -name '*.pyc' -print)
}

prepare()
{
	local purposes=(test)

	[[ " ${SUITES[*]} " != *" frameworks "* ]] || purposes+=(frameworks)
	if [ -n "$INSTALL" ]; then
		"$HERE/install_deps.sh" "${purposes[@]}" || exit 1
	fi
	require_postgres
	choose_server_user
	if [ -n "$INCREMENTAL" ]; then
		keep_work
	else
		make_work pg_lsm-test
	fi
	mkdir "$WORK/log" "$WORK/run"
	cd "$WORK" || exit 1
	private_server
	as_server test -x "$PG_BIN/postgres" ||
		die "the user $SERVER_USER cannot read $WORK" "Name a folder that it can read in PG_LSM_CHECK_DIR."
	copy_tree "$TREE" "$WORK/src"
	remove_old_sources
	[ "$(id -u)" -ne 0 ] || chown -R "$SERVER_USER" "$WORK/src" "$WORK/run"
	if ! build_extension "$WORK/src" "$WORK/log/install.log" COPT="$STRICT $FOR_TESTS $CHECKER_FLAGS" ||
		! build_extension "$WORK/src/test/callers" "$WORK/log/callers.log" COPT="$STRICT"; then
		tail -n 40 "$WORK/log/install.log" "$WORK/log/callers.log"
		die "pg_lsm did not build with PostgreSQL $PG_MAJOR" "The end of the build's output is above."
	fi
	install_checker
	say "built in $SECONDS s"
}

main()
{
	parse_options "$@"
	exec 3>&1
	unset MAKEFLAGS MFLAGS MAKELEVEL	# of "make check"
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP

	COUNTED=1
	FAILED=1			# until the extension is built
	prepare
	FAILED=0
	run_suites
	[ $PASSED -gt 0 ] && [ $FAILED -eq 0 ]
}

main "$@"
