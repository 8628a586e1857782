#!/bin/bash
#
# Runs PostgreSQL's own scripts with lsm in place of B-trees (pg_lsm.default_method), and compares the output with the
# expected one, including plans. Prints "ok" or "not ok" for each script, with the differences.
#
# - regress: six scripts about indexes and keys. Scripts that these need run first, and are not judged. rows.sh runs all.
# - isolation: all specs. Before 18, without those that need B-trees: they have foreign keys or attach partitions.
#
# Differences are allowed where the method's name is printed and where allowed.txt lists them, with the reason.
#
#   PG_CONFIG        pg_config of the server, with pg_lsm installed
#   PG_SOURCE        a PostgreSQL source tree of the same major version
#   PG_LSM_TEST_DIR  an empty folder to work in

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

JUDGED="create_index index_including btree_index indexing insert_conflict constraints"
SPECS=$(sed -n 's/^test: //p' "$isolation/isolation_schedule")
if [ "$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')" -lt 18 ]; then
	SPECS=$(cd "$isolation/specs" && for spec in $SPECS; do grep -qiwE 'references|attach partition' "$spec.spec" || echo "$spec"; done)
fi
BEFORE="test_setup point lseg line box path polygon circle copy create_misc create_operator create_procedure create_table create_type"

bindir=$("$PG_CONFIG" --bindir)
libs=$(dirname "$("$PG_CONFIG" --pgxs)")/../test/regress
mkdir -p "$work"/{lib,tmp,in,iso,iso-tmp}
cp -r "$source"/{data,sql,expected} "$work/in/"
cp -r "$isolation"/{specs,expected} "$work/iso/"

# Some scripts load C functions of the regression suite.
gcc -O1 -w -fPIC -shared -I"$("$PG_CONFIG" --includedir-server)" -o "$work/lib/regress.so" "$source/regress.c" ||
	echo "# regress.so did not build; statements that need it will differ"

# The plans must be core's; rows.sh tests the prefetching scan.
cat >"$work/temp.conf" <<-END
	shared_preload_libraries = 'pg_lsm'
	pg_lsm.default_method = lsm
	pg_lsm.enable_prefetch_scan = off
	fsync = off
END

cd "$work" || exit 1
# Their exit status does not count: see above.
# shellcheck disable=SC2086
"$libs/../isolation/pg_isolation_regress" --inputdir="$work/iso" --outputdir="$work/iso" \
	--temp-instance="$work/iso-tmp/instance" --temp-config="$work/temp.conf" --bindir="$bindir" --dbname=isolation_regression \
	--encoding=UTF8 --no-locale --load-extension=pg_lsm $SPECS >"$work/pg_isolation_regress.log" 2>&1

echo "max_parallel_workers_per_gather = 0" >>"$work/temp.conf"
# shellcheck disable=SC2086
"$libs/pg_regress" --inputdir="$work/in" --outputdir="$work" --temp-instance="$work/tmp/instance" \
	--temp-config="$work/temp.conf" --bindir="$bindir" --dlpath="$work/lib" --dbname=regression --encoding=UTF8 --no-locale \
	--load-extension=pg_lsm --max-concurrent-tests=1 $BEFORE $JUDGED >"$work/pg_regress.log" 2>&1

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
		python3 "$here/output.py" "$expected" "$result" "$here/allowed.txt" >"$work/$t.diff.new" ||
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
if grep -q ' lsm (' "$work/results/create_index.out"; then
	echo "ok core: indexes are lsm indexes"
else
	echo "not ok core: indexes are not lsm indexes"
	status=1
fi
exit $status
