#!/bin/bash
#
# Runs PostgreSQL's own TAP tests with lsm in place of B-trees: pg_lsm.default_method is lsm in every server, and the
# databases that the tests copy have the extension. Prints "ok" or "not ok" for each test, with the failures.
#
#   test/core/tap.sh [recovery] [subscription]      default: both
#
# A test that preloads libraries preloads pg_lsm as well. A test that needs an initdb of its own runs without the extension.
# tap_allowed.txt lists the allowed failures, with the reason. Needs PostgreSQL 18 or later: the tests have foreign keys,
# and earlier versions allow them only to B-trees.
#
#   PG_CONFIG         pg_config of the server, with pg_lsm installed
#   PG_SOURCE         a PostgreSQL source tree of the same major version, with all of src/test
#   PG_LSM_TEST_DIR   an empty folder to work in
#   PG_LSM_TEST_ONLY  only these tests

set -u -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PG_CONFIG=${PG_CONFIG:-pg_config}
work=${PG_LSM_TEST_DIR:?needs a folder to work in}
source=${PG_SOURCE:?needs a PostgreSQL source tree}/src/test
libs=$(dirname "$("$PG_CONFIG" --pgxs)")/../test
configured=$("$PG_CONFIG" --configure)
PATH=$("$PG_CONFIG" --bindir):$PATH

# What the tests read.
export PATH INITDB_TEMPLATE=$work/template TEMP_CONFIG=$work/temp.conf PGPORT=65432 PG_TEST_PORT_DIR=$work/ports
export PG_REGRESS=$libs/regress/pg_regress REGRESS_SHLIB=$work/lib/regress.so EXTRA_REGRESS_OPTS=--load-extension=pg_lsm
export with_icu=no enable_injection_points=no
[[ $configured != *--with-icu* ]] || with_icu=yes
[[ $configured != *--enable-injection-points* ]] || enable_injection_points=yes

# Makes the data folder that the tests copy, and checks that a key becomes an lsm index there.
make_template()
{
	local sockets method

	sockets=$(mktemp -d /tmp/lsm_sockets.XXXXXX)
	initdb -D "$INITDB_TEMPLATE" -A trust --no-sync &&
		pg_ctl -D "$INITDB_TEMPLATE" -w start \
			-o "-c shared_preload_libraries=pg_lsm -c listen_addresses= -c fsync=off -k $sockets" || return
	for database in template1 postgres; do
		psql -XqAt -h "$sockets" -d $database -c 'CREATE EXTENSION pg_lsm'
	done
	method=$(PGOPTIONS='-c pg_lsm.default_method=lsm' psql -XqAt -h "$sockets" -d postgres -c 'CREATE TABLE t (a int PRIMARY KEY)' \
		-c "SELECT amname FROM pg_class c JOIN pg_am m ON m.oid = relam WHERE relname = 't_pkey'" -c 'DROP TABLE t')
	pg_ctl -D "$INITDB_TEMPLATE" -m fast -w stop
	rm -r "$sockets"
	[ "$method" = lsm ]
}

# judge TEST STATUS OUTPUT: prints one result. A failure counts unless it is allowed and the test ran to its end.
judge()
{
	local failures

	if grep -q '^1\.\.0 # SKIP' "$3"; then
		echo "ok $1 # SKIP $(sed -n 's/^1\.\.0 # SKIP //p' "$3")"
		return
	fi
	failures=$(grep '^not ok' "$3" | grep -vxFf <(sed -n "s#^$1: ##p" "$here/tap_allowed.txt"))
	if [ "$2" = 0 ] || { [ -z "$failures" ] && grep -q '^not ok' "$3" && grep -q '^1\.\.' "$3"; }; then
		echo "ok $1"
		return
	fi
	echo "not ok $1"
	{ echo "status $2"; echo "$failures"; tail -n 30 "$3"; } | sed 's/^/# /'
	status=1
}

mkdir -p "$work/lib"
printf '%s\n' "shared_preload_libraries = 'pg_lsm'" "pg_lsm.default_method = lsm" "fsync = off" >"$TEMP_CONFIG"
if ! make_template >"$work/template.log" 2>&1; then
	echo "not ok tap: there is no template"
	sed 's/^/# /' "$work/template.log"
	exit 1
fi
gcc -O1 -w -fPIC -shared -I"$("$PG_CONFIG" --includedir-server)" -o "$REGRESS_SHLIB" "$source/regress/regress.c" || exit 1

[ $# -gt 0 ] || set -- recovery subscription
cp -r "$source/regress" "${@/#/$source/}" "$work/"
status=0
for suite in "$@"; do
	cd "$work/$suite" || exit 1
	sed -i "s/\(shared_preload_libraries = '\)\([a-z]\)/\1pg_lsm, \2/" t/*.pl
	for script in t/*.pl; do
		name=$(basename "$script" .pl)
		[[ -z "${PG_LSM_TEST_ONLY:-}" || " $PG_LSM_TEST_ONLY " = *" $name "* ]] || continue
		mkdir -p "run/$name"
		TESTDATADIR=$PWD/run/$name/tmp_check TESTLOGDIR=$PWD/run/$name/log timeout --kill-after=20 1800 \
			perl -I "$libs/perl" -I t "$script" >"run/$name/output" 2>&1 </dev/null
		judge "$suite/$name" $? "run/$name/output"
	done
done
exit $status
