#!/bin/bash
#
# Runs PostgreSQL's own scripts btree_index, create_index, index_including and indexing with plain indexes turned into
# lsm indexes, and compares with the expected output. Prints "ok" or "not ok" for each, with the differences.
#
# Differences are allowed where the method's name is printed and where allowed.txt says so, with the reason. Scripts that
# the four need run before them, unchanged; what they print is not judged.
#
#   PG_CONFIG       pg_config of the server, with pg_lsm installed
#   PG_SOURCE       a PostgreSQL source tree of the same major version (or its src/test/regress)
#   LSM_TEST_DIR    an empty folder to work in
#
# Nothing of PostgreSQL is kept here: the scripts are translated when this runs.

set -u -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PG_CONFIG=${PG_CONFIG:-pg_config}
work=${LSM_TEST_DIR:?needs a folder to work in}
source=${PG_SOURCE:?needs a PostgreSQL source tree}
[ -d "$source/src/test/regress" ] && source=$source/src/test/regress
if [ ! -d "$source/sql" ]; then
	echo "not ok core: $source has no regression scripts"
	exit 1
fi

JUDGED="create_index index_including btree_index indexing"
BEFORE="test_setup point lseg line box path polygon circle copy create_misc create_operator create_procedure create_table create_type"

bindir=$("$PG_CONFIG" --bindir)
libs=$(dirname "$("$PG_CONFIG" --pgxs)")/../test/regress
mkdir -p "$work"/in/{sql,expected} "$work/lib" "$work/tmp"
cp -r "$source/data" "$work/in/"
cp "$source"/sql/*.sql "$work/in/sql/"
cp "$source"/expected/*.out "$work/in/expected/"
for t in $JUDGED; do
	python3 "$here/translate.py" sql "$source/sql/$t.sql" >"$work/in/sql/$t.sql" || exit 1
	if ! grep -q 'USING lsm' "$work/in/sql/$t.sql"; then
		echo "not ok core/$t: nothing in it was translated"
		exit 1
	fi
done

# Some scripts load C functions of the regression suite.
gcc -O1 -w -fPIC -shared -I"$("$PG_CONFIG" --includedir-server)" -o "$work/lib/regress.so" "$source/regress.c" ||
	echo "# regress.so did not build; statements that need it will differ"

# The operator classes must be there before the first script.
cat >"$work/in/sql/lsm_setup.sql" <<-'END'
	CREATE EXTENSION pg_lsm;
END
: >"$work/in/expected/lsm_setup.out"
cat >"$work/temp.conf" <<-END
	shared_preload_libraries = 'pg_lsm'
	fsync = off
	max_parallel_workers_per_gather = 0
END

cd "$work" || exit 1
# Its verdict is not ours: see above.
# shellcheck disable=SC2086
"$libs/pg_regress" --inputdir="$work/in" --outputdir="$work" --temp-instance="$work/tmp/instance" \
	--temp-config="$work/temp.conf" --bindir="$bindir" --dlpath="$work/lib" --dbname=regression --encoding=UTF8 --no-locale \
	--max-concurrent-tests=1 $BEFORE lsm_setup $JUDGED >"$work/pg_regress.log" 2>&1

status=0
for t in $JUDGED; do
	if [ ! -s "$work/results/$t.out" ]; then
		echo "not ok core/$t: it did not run"
		tail -n 20 "$work/pg_regress.log" | sed 's/^/# /'
		status=1
		continue
	fi
	# There may be several expected outputs: the best counts.
	best=
	for expected in "$source/expected/$t.out" "$source/expected/${t}"_[0-9].out; do
		[ -f "$expected" ] || continue
		# Status 1 and no differences: not even a comparison.
		python3 "$here/translate.py" compare "$expected" "$work/results/$t.out" "$here/allowed.txt" >"$work/$t.diff.new" ||
			[ -s "$work/$t.diff.new" ] || echo "the comparison with $expected failed" >"$work/$t.diff.new"
		if [ -z "$best" ] || [ "$(wc -l <"$work/$t.diff.new")" -lt "$(wc -l <"$work/$t.diff")" ]; then
			mv "$work/$t.diff.new" "$work/$t.diff"
			best=$expected
		fi
	done
	[ -n "$best" ] || echo 'there is no expected output' >"$work/$t.diff"
	if [ -s "$work/$t.diff" ]; then
		echo "not ok core/$t"
		sed 's/^/# /' "$work/$t.diff"
		status=1
	else
		echo "ok core/$t"
	fi
done
exit $status
