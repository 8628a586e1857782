#!/bin/bash
#
# Runs PostgreSQL's own scripts with lsm indexes and compares the output with the expected one. Prints "ok" or "not ok"
# for each script, with the differences.
#
# - Plain indexes become lsm indexes in btree_index, create_index, index_including and indexing.
# - Unique indexes do in insert_conflict, constraints and the isolation specs insert-conflict-*.
# - Both do in the isolation specs of serializable transactions.
#
# Differences are allowed where the method's name is printed and where allowed.txt lists them, with the reason. Scripts
# that these need run first, unchanged. Their output is not judged.
#
#   PG_CONFIG        pg_config of the server, with pg_lsm installed
#   PG_SOURCE        a PostgreSQL source tree of the same major version
#   PG_LSM_TEST_DIR  an empty folder to work in
#
# Nothing of PostgreSQL is kept here: the scripts are translated when this runs.

set -u -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PG_CONFIG=${PG_CONFIG:-pg_config}
work=${PG_LSM_TEST_DIR:?needs a folder to work in}
source=${PG_SOURCE:?needs a PostgreSQL source tree}
isolation=$source/src/test/isolation
source=$source/src/test/regress
if [ ! -d "$source/sql" ] || [ ! -d "$isolation/specs" ]; then
	echo "not ok core: $source has no regression scripts, or $isolation no specs"
	exit 1
fi

PLAIN="create_index index_including btree_index indexing"
UNIQUE="insert_conflict constraints"
# Without those about partitioned tables.
SPECS=$(cd "$isolation/specs" && grep -Lwi 'partition' insert-conflict-*.spec | sed 's/\.spec$//')
# Specs of serializable transactions with an index that can become an lsm index.
SERIALIZABLE=$(cd "$isolation/specs" && for spec in $(grep -li 'serializable' -- *.spec | grep -v '^insert-conflict'); do
	python3 "$here/translate.py" --all sql "$spec" | grep -q 'USING lsm\|WITH (lsm)' && echo "${spec%.spec}"
done)
# Before 18, core needs a unique B-tree to refresh a materialized view concurrently.
if [ "$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')" -lt 18 ]; then
	SERIALIZABLE=$(echo "$SERIALIZABLE" | grep -vx 'matview-write-skew')
fi
SPECS="$SPECS $SERIALIZABLE"
JUDGED="$PLAIN $UNIQUE"
BEFORE="test_setup point lseg line box path polygon circle copy create_misc create_operator create_procedure create_table create_type"

bindir=$("$PG_CONFIG" --bindir)
libs=$(dirname "$("$PG_CONFIG" --pgxs)")/../test/regress
mkdir -p "$work"/in/{sql,expected} "$work/lib" "$work/tmp"
cp -r "$source/data" "$work/in/"
cp "$source"/sql/*.sql "$work/in/sql/"
cp "$source"/expected/*.out "$work/in/expected/"

# The option of translate.py for a script or spec.
kind()
{
	# shellcheck disable=SC2086
	case " $(echo $PLAIN) / $(echo $SERIALIZABLE) " in
		*" $1 "*/*) ;;
		*/*" $1 "*) echo --all ;;
		*) echo --unique ;;
	esac
}

# put FROM TO: the script or spec, translated.
put()
{
	# shellcheck disable=SC2046
	python3 "$here/translate.py" $(kind "$(basename "${1%.*}")") sql "$1" >"$2" || exit 1
	if ! grep -q 'USING lsm\|WITH (lsm)' "$2"; then
		echo "not ok core/$(basename "${1%.*}"): nothing in it was translated"
		exit 1
	fi
}

mkdir -p "$work"/iso/{specs,expected} "$work/iso-tmp"
for t in $JUDGED; do
	put "$source/sql/$t.sql" "$work/in/sql/$t.sql"
done
for t in $SPECS; do
	put "$isolation/specs/$t.spec" "$work/iso/specs/$t.spec"
	cp "$isolation/expected/$t.out" "$work/iso/expected/"
done

# Some scripts load C functions of the regression suite.
gcc -O1 -w -fPIC -shared -I"$("$PG_CONFIG" --includedir-server)" -o "$work/lib/regress.so" "$source/regress.c" ||
	echo "# regress.so did not build; statements that need it will differ"

# The operator classes must be there before the first script.
cat >"$work/in/sql/lsm_setup.sql" <<-'END'
	CREATE EXTENSION pg_lsm;
END
: >"$work/in/expected/lsm_setup.out"
# The plans must be core's; forced.sh tests the prefetching scan.
cat >"$work/temp.conf" <<-END
	shared_preload_libraries = 'pg_lsm'
	pg_lsm.enable_prefetch_scan = off
	fsync = off
	max_parallel_workers_per_gather = 0
END

cd "$work" || exit 1
# Its exit status does not count: see above.
# shellcheck disable=SC2086
"$libs/pg_regress" --inputdir="$work/in" --outputdir="$work" --temp-instance="$work/tmp/instance" \
	--temp-config="$work/temp.conf" --bindir="$bindir" --dlpath="$work/lib" --dbname=regression --encoding=UTF8 --no-locale \
	--max-concurrent-tests=1 $BEFORE lsm_setup $JUDGED >"$work/pg_regress.log" 2>&1

# shellcheck disable=SC2086
"$libs/../isolation/pg_isolation_regress" --inputdir="$work/iso" --outputdir="$work/iso" \
	--temp-instance="$work/iso-tmp/instance" --temp-config="$work/temp.conf" --bindir="$bindir" --dbname=isolation \
	--encoding=UTF8 --no-locale --load-extension=pg_lsm $SPECS >"$work/pg_isolation_regress.log" 2>&1

status=0
for t in $JUDGED $SPECS; do
	from=$source/expected result=$work/results/$t.out log=$work/pg_regress.log
	if [ -e "$work/iso/specs/$t.spec" ]; then
		from=$isolation/expected result=$work/iso/results/$t.out log=$work/pg_isolation_regress.log
	fi
	if [ ! -s "$result" ]; then
		echo "not ok core/$t: it did not run"
		tail -n 20 "$log" | sed 's/^/# /'
		status=1
		continue
	fi
	# There may be several expected outputs. The best match counts.
	best=
	for expected in "$from/$t.out" "$from/${t}"_[0-9].out; do
		[ -f "$expected" ] || continue
		# Exit status 1 without differences: the comparison itself failed.
		# shellcheck disable=SC2046
		python3 "$here/translate.py" $(kind "$t") compare "$expected" "$result" "$here/allowed.txt" >"$work/$t.diff.new" ||
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
