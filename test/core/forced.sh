#!/bin/bash
#
# Runs PostgreSQL's own regression scripts twice, unchanged: with the prefetching scan wherever possible, and without.
# Both runs must return the same rows, in any order if there is no ORDER BY. Plans are not compared. Prints "ok" or "not
# ok", with the differences, for each script whose plans differ, and one line for all others.
#
#   PG_CONFIG       pg_config of the server, with pg_lsm installed
#   PG_SOURCE       a PostgreSQL source tree of the same major version
#   PG_LSM_TEST_DIR    an empty folder to work in
#   PG_LSM_FORCED      "all" scripts, or "some" (default): without those that take long, or have little to do with scans

set -u -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PG_CONFIG=${PG_CONFIG:-pg_config}
work=${PG_LSM_TEST_DIR:?needs a folder to work in}
source=${PG_SOURCE:?needs a PostgreSQL source tree}/src/test/regress
if [ ! -f "$source/parallel_schedule" ]; then
	echo "not ok forced: $source has no schedule"
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
	awk -v skipped="$SKIPPED" -v kept="$KEPT" -v mode="${PG_LSM_FORCED:-some}" '
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
# run NAME FORCED
run()
{
	local at=$work/run

	rm -rf "$at"
	mkdir -p "$at/tmp"
	cp -r "$source/data" "$source/sql" "$source/expected" "$at/"
	schedule >"$at/schedule"
	cat >"$at/temp.conf" <<-END
		shared_preload_libraries = 'pg_lsm'
		fsync = off
		pg_lsm.enable_prefetch_scan = off
		pg_lsm.debug_prefetch_scan = $2
	END
	(cd "$at" && "$libs/pg_regress" --inputdir="$at" --outputdir="$at" --temp-instance="$at/tmp/instance" \
		--temp-config="$at/temp.conf" --bindir="$bindir" --dlpath="$work/lib" --dbname=regression --encoding=UTF8 \
		--no-locale --max-concurrent-tests=20 --schedule="$at/schedule" >"$work/$1.log" 2>&1)
	rm -rf "${work:?}/$1"
	mv "$at/results" "$work/$1" || { tail -n 20 "$work/$1.log"; return 1; }
}

if ! run core off || ! run forced on; then
	echo "not ok forced: the scripts did not run"
	exit 1
fi

status=0
same=0
for result in "$work"/core/*.out; do
	t=$(basename "$result" .out)
	cmp -s "$result" "$work/forced/$t.out" && same=$((same + 1)) && continue
	if python3 "$here/forced.py" "$result" "$work/forced/$t.out" "$here/forced_allowed.txt" >"$work/$t.diff" 2>&1; then
		echo "ok forced/$t"
	else
		echo "not ok forced/$t"
		sed 's/^/# /' "$work/$t.diff"
		status=1
	fi
done
# Some scripts must give the same output in both runs. But if no plan in select differs, the node was never used.
if [ "$same" -gt 0 ] && [ -e "$work/select.diff" ]; then
	echo "ok forced: $same scripts without a different plan"
else
	echo "not ok forced: no plan of the script select differs, or every script does"
	status=1
fi
exit $status
