# shellcheck shell=bash
#
# The checkers of tools/test.sh: the sanitizers and Valgrind. To be sourced, not run.
#
# A script replaces the program "postgres" of the copied server, and runs the program under the checker. So it does not
# matter who starts the server. Each suite has a folder for reports, and fails if there is a report in it.
#
# The sanitizers see pg_lsm. They see the server as well if it was built with them (tools/sanitized_server.sh).
# Valgrind sees both.

CHECKER=			# sanitize, valgrind, or empty
CHECKER_FLAGS=		# of the compiler
SLOWNESS=1			# how many times as long tests may take

# choose_checker NAME
# shellcheck disable=SC2034
choose_checker()
{
	CHECKER=$1
	CHECKER_FLAGS='-O1 -fno-omit-frame-pointer'
	SLOWNESS=30
	if [ "$1" = sanitize ]; then
		CHECKER_FLAGS+=' -fsanitize=address,undefined -fno-sanitize-recover=all'
		SLOWNESS=4
		# Neither the server nor psql frees everything before it exits.
		export ASAN_OPTIONS=detect_leaks=0
	fi
}

# replace_program NAME < SCRIPT: replaces a program of the copied server with a script, which finds the program as
# $0.checked.
replace_program()
{
	[ -e "$PG_BIN/$1.checked" ] || mv "$PG_BIN/$1" "$PG_BIN/$1.checked"
	cat >"$PG_BIN/$1"
	chmod 755 "$PG_BIN/$1"
}

# Puts the copied server under the checker. pg_lsm is installed in it.
install_checker()
{
	mkdir -p "$WORK/reports"
	case $CHECKER in
		sanitize) preload_sanitizers ;;
		valgrind) run_in_valgrind ;;
	esac
}

# A server built without the sanitizers must load their libraries before all others. Every server must load UBSan's
# library early: the library reads its options from the environment, and the server overwrites the environment with the
# title of the process. The program keeps its name, because it finds its files by that name, and "pg_ctl restart" finds
# the program by it.
preload_sanitizers()
{
	local libraries first=$PG_PKGLIB/sanitize_first.so

	libraries=$(ldd "$PG_PKGLIB/pg_lsm.so" | sed -n 's/.*=> \(.*lib\(a\|ub\)san[^ ]*\) .*/\1:/p' | sort | tr -d '\n')
	[[ $libraries == *libasan*libubsan* ]] || die "pg_lsm is not linked with libasan and libubsan" "Use gcc."
	gcc -shared -fPIC -Wl,-z,initfirst -o "$first" "$TREE/test/sanitize/first.c" || exit 1
	replace_program postgres <<-END
		#!/bin/bash
		LD_PRELOAD="$libraries$first\${LD_PRELOAD:+:\$LD_PRELOAD}" exec -a "\$0" "\$0.checked" "\$@"
	END
}

# Under Valgrind, a program always has the name of its file. So the script tells "pg_ctl restart" what to start. What
# initdb starts does not run pg_lsm, so it runs without Valgrind, which would be slow.
run_in_valgrind()
{
	local source=${PG_SOURCE:-}

	command -v valgrind >/dev/null || die "Valgrind is not installed" "Install the package valgrind."
	if [ ! -e "$source/src/tools/valgrind.supp" ]; then
		source=$WORK/pgsource
		PG_CONFIG="$PG_CONFIG" "$HERE/get_source.sh" "$source" || exit 1
	fi
	cp "$source/src/tools/valgrind.supp" "$WORK/valgrind.supp"
	replace_program postgres <<-END
		#!/bin/bash
		case \${1:-} in
			--boot | --check | --single | -V | --version) exec -a "\$0" "\$0.checked" "\$@" ;;
		esac
		exec valgrind --quiet --leak-check=no --error-limit=no --num-callers=30 \\
			--suppressions="$WORK/valgrind.supp" --suppressions="$WORK/src/test/sanitize/valgrind.supp" \\
			--log-file="\${CHECKER_REPORTS:?}/postgres.%p" "\$0.checked" "\$@"
	END
	replace_program pg_ctl <<-'END'
		#!/bin/bash
		exec -a "$0" "$0.checked" "$@" -p "${0%/*}/postgres"
	END
}

# checker_env SUITE: sets CHECKER_ENV, the variables to add to the environment of a suite.
# shellcheck disable=SC2034
checker_env()
{
	local reports=$WORK/reports/$1 options

	CHECKER_ENV=()
	[ -n "$CHECKER" ] || return 0
	mkdir -p "$reports"
	[ "$(id -u)" -ne 0 ] || chown "$SERVER_USER" "$reports"
	# abort_on_error: after a crash, the postmaster logs which statement ran. verify_asan_link_order=0: tests preload
	# libraries into pg_ctl.
	options=abort_on_error=1:log_path=$reports/postgres
	CHECKER_ENV=(
		CHECKER_REPORTS="$reports"
		ASAN_OPTIONS="detect_leaks=0:detect_odr_violation=0:detect_stack_use_after_return=0:allocator_may_return_null=1:quarantine_size_mb=32:verify_asan_link_order=0:$options"
		UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:$options"
		PG_LSM_SLOWNESS="$SLOWNESS"
		PG_TEST_TIMEOUT_DEFAULT=$((180 * SLOWNESS))
		PGCTLTIMEOUT=$((60 * SLOWNESS))
		PGISOLATIONTIMEOUT=$((300 * SLOWNESS))
	)
}

# reports SUITE: prints the names of a suite's reports. (The sanitizers also write warnings.)
reports()
{
	if [ "$CHECKER" = sanitize ]; then
		grep -rlE 'ERROR: [A-Za-z]+Sanitizer|runtime error: ' "$WORK/reports/$1"
	elif [ -n "$CHECKER" ]; then
		find "$WORK/reports/$1" -type f -size +0
	fi
}

# show_reports SUITE: shows the first reports of a suite.
show_reports()
{
	local file

	reports "$1" | head -n 4 | while IFS= read -r file; do
		say "--- $1: report of $CHECKER: $(basename "$file")"
		head -n 50 "$file" | sed 's/^/    /'
	done
}
