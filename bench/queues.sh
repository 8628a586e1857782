#!/bin/bash
#
# Measures job queues and idempotency keys, all of whose indexes are B-trees or all lsm. The tables are small and in memory.
#
#   bench/queues.sh                         about twenty minutes
#   bench/queues.sh --quick                 few jobs, about a minute: shows only that everything works
#   bench/queues.sh [option]...             bench/queues.sh --help lists the others
#
# Options of this script, besides those:
#   --pg MAJOR         the version of PostgreSQL (default 18; the foreign keys of some queues need 18). If it is not
#                      installed, the benchmark runs in a chroot of a Debian release that has it. The first run makes the
#                      chroot.
#   --pg-config PATH   the PostgreSQL to use, whatever its version (otherwise PG_CONFIG)
#   --installed        use that server as it is, with the pg_lsm that is installed there, instead of a copy of it with
#                      pg_lsm built from this tree
#   --no-install       do not install anything; measures only the idempotency keys
#
# The workers are those of Procrastinate, PgQueuer, Graphile Worker and pg-boss, in the versions of bench/queues/. Needs
# Python with venv, Node.js with npm, and the network. A queue whose packages cannot be installed is left out.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"

main()
{
	take_options suite.queues 20 "$@"
	catch_signals
	choose_postgres "$@"
	[ -z "$INSTALL" ] || PG_CONFIG=${PG_CONFIG:-} "$TREE/tools/install_deps.sh" queues || exit 1
	prepare_server
	mkdir "$WORK/programs"
	cp "$HERE"/queues/* "$WORK/programs"
	[ -z "$INSTALL" ] || install_queues
	run_suite suite.queues --programs "$WORK/programs"
}

install_queues()
{
	prepare_python >"$WORK/python.log" 2>&1 || say "Without Procrastinate and PgQueuer: $(tail -n 1 "$WORK/python.log")"
	prepare_node >"$WORK/node.log" 2>&1 || say "Without Graphile Worker and pg-boss: $(tail -n 1 "$WORK/node.log")"
}

prepare_python()
{
	"$PYTHON" -m venv "$WORK/programs/python" &&
		"$WORK/programs/python/bin/pip" install --quiet --requirement "$WORK/programs/requirements.txt" &&
		touch "$WORK/programs/python/ready"
}

prepare_node()
{
	# npm tries for a quarter of an hour if it finds no registry.
	(cd "$WORK/programs" && timeout 300 npm install --silent --no-audit --no-fund) && touch "$WORK/programs/node_modules/ready"
}

main "$@"
