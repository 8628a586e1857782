#!/bin/sh
#
# Verifies all lsm indexes of a server, which pg_amcheck passes over. Prints nothing if all are sound, otherwise a line
# for each fault. The exit status is then 1. Connects as psql does (PGHOST, PGUSER, ...). A warning is no fault, for
# example that the operating system has a new version of a collation.
#
#   check_all.sh            the structure of each index
#   check_all.sh --heap     also looks for the entry of each row of the table, which takes longer

set -u
heap=false
[ "${1:-}" != --heap ] || heap=true

messages=$(mktemp) || exit 2
trap 'rm -f "$messages"' EXIT

# The owner of a database sets its search_path, but must not decide which functions run.
export PGOPTIONS="${PGOPTIONS:-} -c search_path=pg_catalog"
oids=$(psql -XAt -d postgres -c 'SELECT oid FROM pg_database WHERE datallowconn ORDER BY datname' 2>"$messages") ||
	{ cat "$messages" >&2; exit 2; }
faults=$(
	for oid in $oids; do
		# A name may contain newlines. The period protects those at its end.
		PGDATABASE=$(psql -XAt -d postgres -c "SELECT datname || '.' FROM pg_database WHERE oid = $oid" 2>"$messages") ||
			{ cat "$messages" >&2; exit 2; }
		[ -n "$PGDATABASE" ] || continue # dropped meanwhile
		export PGDATABASE="${PGDATABASE%.}"
		# \gexec runs the statement that the query returns, if the database has the extension. The types of both
		# arguments keep a function of the same name with other ones out.
		psql -XAt -v ON_ERROR_STOP=1 -v "heap=$heap" 2>"$messages" <<'END' ||
SELECT format('SELECT current_database(), * FROM %s.lsm_check_all(NULL::regnamespace, %L::boolean)', extnamespace::regnamespace, :'heap')
FROM pg_extension WHERE extname = 'pg_lsm' \gexec
END
			{ cat "$messages"; printf '%s: the check failed\n' "$PGDATABASE"; }
	done
) || exit 2
[ -z "$faults" ] || { printf '%s\n' "$faults"; exit 1; }
