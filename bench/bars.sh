#!/bin/bash
#
# Measures what an index costs while rows come in: a table without an index, with lsm, and with btree, one after the other
# under the same conditions, and checks the results against the bars that the project has set itself.
#
#   bench/bars.sh [option of suite/bars.py]...        bench/bars.sh --help lists them
#
# Needs root, for a memory control group that the server runs in (without it: --memory 0). Builds the extension and a copy
# of the server in a temporary folder, as all commands here do, and removes it at the end. At the default size (30 million
# rows) it takes about half an hour, nearly all of it for btree, and 12 GB of disk.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=../tools/lib.sh
. "$TREE/tools/lib.sh"
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"

WORK=

main()
{
	case " $* " in
		*" --help "* | *" -h "*) exec "${PYTHON_MODULE[@]}" suite.bars --help ;;
	esac
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	"$TREE/tools/install_deps.sh" bench || exit 1
	require_postgres
	choose_server_user
	make_work pg_lsm-bench
	build_server
	build_client
	run_interruptible "${PYTHON_MODULE[@]}" suite.bars --bindir "$PG_BIN" --client "$WORK/client" --work "$WORK" \
		--user "$SERVER_USER" "$@"
}

main "$@"
