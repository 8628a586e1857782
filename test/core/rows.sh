#!/bin/bash
#
# Runs PostgreSQL's own regression scripts twice, unchanged. Both runs must return the same rows, in any order if there is
# no ORDER BY. Plans are not compared. Prints "ok" or "not ok", with the differences, for each script whose output differs,
# and one line for all others.
#
#   test/core/rows.sh forced    without the prefetching scan, and with it wherever possible
#   test/core/rows.sh lsm       with B-trees, and with lsm indexes (pg_lsm.default_method); needs PostgreSQL 18 or later
#
#   PG_CONFIG        pg_config of the server, with pg_lsm installed
#   PG_SOURCE        a PostgreSQL source tree of the same major version
#   PG_LSM_TEST_DIR  an empty folder to work in
#   PG_LSM_SCRIPTS   "all" scripts, or "some" (default): without those that take long, or have little to do with scans

set -u -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PG_CONFIG=${PG_CONFIG:-pg_config}
work=${PG_LSM_TEST_DIR:?needs a folder to work in}
source=${PG_SOURCE:?needs a PostgreSQL source tree}/src/test/regress
mode=${1:-forced}
case $mode in
	forced) settings=(enable_prefetch_scan=off debug_prefetch_scan=off) changed=debug_prefetch_scan=on differs=select ;;
	lsm) settings=(default_method=btree) changed=default_method=lsm differs=create_index ;;
	*) echo "not ok $mode: no such mode"; exit 1 ;;
esac
if [ ! -f "$source/parallel_schedule" ]; then
	echo "not ok $mode: $source has no schedule"
	exit 1
fi

SKIPPED="boolean char varchar int2 int4 int8 oid float4 float8 bit txid uuid money pg_lsn regproc strings md5 numerology
	point lseg line box path polygon circle date time timetz timestamp timestamptz interval macaddr macaddr8 multirangetypes
	horology tstypes regex type_sanity opr_sanity misc_sanity comments unicode xid mvcc database encoding euc_kr numeric
	copydml create_aggregate create_cast roleattributes hash_func errors infinite_recurse sanity_check prepared_xacts
	brin gin privileges init_privs security_label lock object_address drop_operator password brin_bloom brin_multi
	create_table_like alter_generic alter_operator async dbsize sysviews collate.icu.utf8 create_role rules psql
	psql_crosstab psql_pipeline stats_ext collate.linux.utf8 collate.windows.win1252 vacuum_parallel maintain_every
	publication subscription dependency guc tsdicts foreign_data xmlmap advisory_lock indirect_toast json jsonb
	json_encoding jsonpath jsonpath_encoding jsonb_jsonpath sqljson sqljson_queryfuncs sqljson_jsontable conversion
	largeobject xml reloptions partition_info stats compression compression_lz4 compression_pglz event_trigger
	event_trigger_login oidjoins tablespace triggers copy copyselect copyencoding pg_dependencies pg_ndistinct
	stats_import join_hash numa"
# The others need these.
KEPT="point polygon circle"

bindir=$("$PG_CONFIG" --bindir)
libs=$(dirname "$("$PG_CONFIG" --pgxs)")/../test/regress
mkdir -p "$work/lib"
gcc -O1 -w -fPIC -shared -I"$("$PG_CONFIG" --includedir-server)" -o "$work/lib/regress.so" "$source/regress.c" ||
	echo "# regress.so did not build; statements that need it will fail in both runs"

# schedule: core's schedule, without the skipped scripts.
schedule()
{
	awk -v skipped="$SKIPPED" -v kept="$KEPT" -v mode="${PG_LSM_SCRIPTS:-some}" '
		BEGIN {
			if (mode != "all")
				for (n = split(skipped, names, /[ \t\n]+/); n > 0; n--)
					skip[names[n]] = 1
			for (n = split(kept, names, " "); n > 0; n--)
				delete skip[names[n]]
		}
		/^test:/ {
			line = ""
			for (i = 2; i <= NF; i++)
				if (!($i in skip))
					line = line " " $i
			if (line != "")
				print "test:" line
		}' "$source/parallel_schedule"
}

# Both runs use the same folder, one after the other, because some output names it.
# run NAME SETTING...
run()
{
	local at=$work/run name=$1
	shift

	rm -rf "$at"
	mkdir -p "$at/tmp"
	cp -r "$source/data" "$source/sql" "$source/expected" "$at/"
	schedule >"$at/schedule"
	printf '%s\n' "shared_preload_libraries = 'pg_lsm'" "fsync = off" "${@/#/pg_lsm.}" >"$at/temp.conf"
	(cd "$at" && "$libs/pg_regress" --inputdir="$at" --outputdir="$at" --temp-instance="$at/tmp/instance" \
		--temp-config="$at/temp.conf" --bindir="$bindir" --dlpath="$work/lib" --dbname=regression --encoding=UTF8 \
		--no-locale --load-extension=pg_lsm --max-concurrent-tests=20 --schedule="$at/schedule" >"$work/$name.log" 2>&1)
	rm -rf "${work:?}/$name"
	mv "$at/results" "$work/$name" || { tail -n 20 "$work/$name.log"; return 1; }
}

if ! run before "${settings[@]}" || ! run after "${settings[@]}" "$changed"; then
	echo "not ok $mode: the scripts did not run"
	exit 1
fi

status=0
same=0
for result in "$work"/before/*.out; do
	t=$(basename "$result" .out)
	cmp -s "$result" "$work/after/$t.out" && same=$((same + 1)) && continue
	if python3 "$here/rows.py" "$result" "$work/after/$t.out" "$here/allowed.txt" >"$work/$t.diff" 2>&1; then
		echo "ok $mode/$t"
	else
		echo "not ok $mode/$t"
		sed 's/^/# /' "$work/$t.diff"
		status=1
	fi
done
# Some scripts must give the same output in both runs. But if this one does, the setting had no effect.
if [ "$same" -gt 0 ] && [ -e "$work/$differs.diff" ]; then
	echo "ok $mode: $same scripts with the same output"
else
	echo "not ok $mode: the output of the script $differs does not differ, or that of every script does"
	status=1
fi
exit $status
