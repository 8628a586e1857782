#!/bin/sh
#
# Verifies all lsm indexes of a server, which pg_amcheck passes over. Prints nothing if all are sound, otherwise a line
# for each fault. The exit status is then 1. Connects as psql does (PGHOST, PGUSER, ...).
#
#   check_all.sh            the structure of each index
#   check_all.sh --heap     also looks for the entry of each row of the table, which takes longer

set -u
heap=false
[ "${1:-}" != --heap ] || heap=true

databases=$(psql -XAt -d postgres -c 'SELECT datname FROM pg_database WHERE datallowconn ORDER BY 1') || exit 2
faults=$(
	printf '%s\n' "$databases" | while IFS= read -r database; do
		# \gexec runs the statement that the query returns, if the database has the extension.
		PGDATABASE=$database psql -XAt -v ON_ERROR_STOP=1 -v "heap=$heap" 2>&1 <<'END' || echo "$database: the check failed"
SELECT format('SELECT current_database(), * FROM %s.lsm_check_all(heapallindexed => %L)', extnamespace::regnamespace, :'heap')
FROM pg_extension WHERE extname = 'pg_lsm' \gexec
END
	done
)
[ -z "$faults" ] || { printf '%s\n' "$faults"; exit 1; }
