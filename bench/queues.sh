#!/bin/bash
#
# Measures job queues and idempotency keys, with only B-trees and with only lsm indexes, on small tables in memory.
#
#   bench/queues.sh                         about ten minutes
#   bench/queues.sh --quick                 few jobs, about a minute: shows only that everything works
#   bench/queues.sh [option]...             bench/queues.sh --help lists the others
#
# Options for the server and the packages:
#   --pg MAJOR         the version of PostgreSQL (default 18; the foreign keys of some queues need 18). If that version is
#                      not installed and you are root, the benchmark runs in a chroot of a Debian release that has it. The
#                      first run creates the chroot.
#   --pg-config PATH   the pg_config of the server to use, of any version (default: the environment variable PG_CONFIG)
#   --installed        use the server and its installed pg_lsm as they are, instead of a copy of the server with pg_lsm
#                      built from this tree
#   --no-install       do not install anything, and measure only the idempotency keys
#
# The queues are Procrastinate, PgQueuer, Graphile Worker and pg-boss, in the versions that bench/queues/ names. They use
# their own workers, except that for pg-boss, loops fetch and complete the jobs. Needs Python with venv, Node.js with npm,
# and the network. A queue whose packages cannot be installed is left out.

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
	prepare_python >"$WORK/python.log" 2>&1 || say "Left out Procrastinate and PgQueuer: $(tail -n 1 "$WORK/python.log")"
	prepare_node >"$WORK/node.log" 2>&1 || say "Left out Graphile Worker and pg-boss: $(tail -n 1 "$WORK/node.log")"
}

prepare_python()
{
	"$PYTHON" -m venv "$WORK/programs/python" &&
		"$WORK/programs/python/bin/pip" install --quiet --requirement "$WORK/programs/requirements.txt" &&
		touch "$WORK/programs/python/ready"
}

prepare_node()
{
	# If npm cannot reach a registry, it keeps trying for a quarter of an hour.
	(cd "$WORK/programs" && timeout 300 npm install --silent --no-audit --no-fund) && touch "$WORK/programs/node_modules/ready"
}

main "$@"
