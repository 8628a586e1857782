#!/bin/bash
#
# Fuzzes the code that reads stored bytes: pages, keys, WAL records.
#
#   tools/fuzz.sh [option]... [target]...
#
#   --seconds N    how long to fuzz each target (default: 60)
#   --keep-corpus  do not replace the inputs in test/fuzz/corpus
#   -h, --help     this text
#
# Targets (default: all): leaf filter directory map buffer meta change redo key manifest. test/fuzz/f_TARGET.c says what each does.
#
# The script builds the fuzzers of test/fuzz with clang and libFuzzer (Debian: clang and libclang-rt-*-dev), with the
# address and undefined-behavior sanitizers. Fuzzing begins with pages as pg_lsm builds them (seeds.c), with
# test/fuzz/corpus, and with the inputs that earlier runs left in .fuzz/. Afterwards the script picks the fewest inputs
# that reach the same code, and puts the smallest of them into test/fuzz/corpus/TARGET, up to 20 kB in total.
# "make -C test/unit check" replays the corpus. Inputs named found-* stay: they failed once.
#
# An input that fails ends the fuzzing of its target. The script prints the input's file in .fuzz/found and the command
# that repeats the failure. After fixing the bug, copy the file to test/fuzz/corpus/TARGET/found-NAME.
#
#   CLANG          the compiler (default: clang, or the newest clang-N)
#   PG_CONFIG      pg_config of the PostgreSQL whose headers to use
#
# The exit status is 0 only if no input failed.

set -u -o pipefail
TREE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$TREE/tools/lib.sh"

ALL_TARGETS=(leaf filter directory map buffer meta change redo key manifest)
TARGETS=()
FUZZ_SECONDS=60
KEEP_CORPUS=
WORK=$TREE/.fuzz
CORPUS=$TREE/test/fuzz/corpus
MOST_BYTES=20000		# of the corpus of a target
MOST_INPUT=12000		# bytes of an input: a full page, and operations on it
# Warnings are gcc's business: clang does not know some attributes in the headers of a server that gcc built.
CHECKS='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -w'

parse_options()
{
	split_options "$@"
	set -- ${ARGS[@]+"${ARGS[@]}"}
	while [ $# -gt 0 ]; do
		case $1 in
			--seconds)
				[[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "--seconds needs a number" "See tools/fuzz.sh --help."
				FUZZ_SECONDS=$2
				shift
				;;
			--keep-corpus) KEEP_CORPUS=1 ;;
			-h | --help)
				sed -n '3,28s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
				exit 0
				;;
			-*) die "unknown option \"$1\"" "See tools/fuzz.sh --help." ;;
			*)
				[[ " ${ALL_TARGETS[*]} " == *" $1 "* ]] || die "no such target: $1" "The targets are: ${ALL_TARGETS[*]}"
				TARGETS+=("$1")
				;;
		esac
		shift
	done
	[ ${#TARGETS[@]} -gt 0 ] || TARGETS=("${ALL_TARGETS[@]}")
}

find_clang()
{
	local candidate

	for candidate in ${CLANG:-clang $(compgen -c clang- | grep -E '^clang-[0-9]+$' | sort -u -t- -k2 -rn)}; do
		if echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
			"$candidate" -fsanitize=fuzzer,address,undefined -x c - -o "$WORK/probe" 2>/dev/null; then
			CLANG=$candidate
			return
		fi
	done
	die "found no clang with libFuzzer" "Install clang and libclang-rt-dev, or name the compiler in CLANG."
}

build()
{
	local target folders=()

	for target in "${ALL_TARGETS[@]}"; do
		folders+=("$WORK/seeds/$target" "$WORK/inputs/$target" "$CORPUS/$target")
	done
	mkdir -p "$WORK/found" "${folders[@]}"
	make -C "$TREE/test/unit" -j"$(nproc)" fuzzers CC="$CLANG" OUT="$WORK/build" FUZZ="$TREE/test/fuzz" SANITIZE="$CHECKS" \
		FUZZ_MAIN=-fsanitize=fuzzer PG_CONFIG="$PG_CONFIG" >"$WORK/build.log" 2>&1 || {
		tail -n 40 "$WORK/build.log" >&2
		die "the fuzzers did not build" "The end of the build's output is above."
	}
	ASAN_OPTIONS=detect_leaks=0 "$WORK/build/seeds" "$WORK/seeds" || die "could not write the seed inputs"
}

# fuzz TARGET: prints a line with the number of executions.
fuzz()
{
	local target=$1 status log=$WORK/$1.log

	# If the sanitizer keeps back only little freed memory, fuzzing is several times as fast.
	ASAN_OPTIONS=quarantine_size_mb=16 "$WORK/build/f_$target" -max_total_time="$FUZZ_SECONDS" -timeout=20 -rss_limit_mb=2048 -max_len=$MOST_INPUT \
		-print_final_stats=1 -artifact_prefix="$WORK/found/$target-" \
		"$WORK/inputs/$target" "$CORPUS/$target" "$WORK/seeds/$target" >"$log" 2>&1
	status=$?
	printf '%-10s %9d inputs in %d s: %s\n' "$target" \
		"$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)" \
		"$(sed -n 's/^Done [0-9]* runs in \([0-9]*\) second.*/\1/p' "$log" | tail -n 1)" \
		"$([ $status -eq 0 ] && echo ok || echo FAILED)"
	[ $status -ne 0 ] || return 0
	grep -E 'does not hold|failed assertion|runtime error|ERROR: |SUMMARY|Test unit written|^    #[0-9] ' "$log" | head -n 30
	say "To repeat the failure: $WORK/build/f_$target FILE"
	return 1
}

# choose_corpus TARGET: replaces the target's inputs in the tree.
choose_corpus()
{
	local target=$1 chosen=$WORK/chosen/$1 sum=0 file size

	rm -rf "$chosen"
	mkdir -p "$chosen"
	"$WORK/build/f_$target" -set_cover_merge=1 -use_counters=0 -max_len=$MOST_INPUT "$chosen" "$CORPUS/$target" \
		"$WORK/inputs/$target" "$WORK/seeds/$target" >"$WORK/$target-merge.log" 2>&1 || return
	find "$CORPUS/$target" -type f ! -name 'found-*' -delete
	while read -r size file; do
		sum=$((sum + size))
		[ $sum -le $MOST_BYTES ] || break
		cp "$file" "$CORPUS/$target/$(basename "$file" | cut -c 1-8)"
	done < <(find "$chosen" -type f -printf '%s %p\n' | sort -n)
}

main()
{
	local target status=0

	parse_options "$@"
	require_postgres
	mkdir -p "$WORK"
	find_clang
	build
	for target in "${TARGETS[@]}"; do
		fuzz "$target" || status=1
		[ -n "$KEEP_CORPUS" ] || choose_corpus "$target"
	done
	exit $status
}

main "$@"
