#!/bin/bash
#
# Builds PostgreSQL from the distribution's source with AddressSanitizer and assertions, in some ten minutes.
#
#   tools/sanitized_server.sh FOLDER
#   PG_CONFIG=FOLDER/bin/pg_config tools/test.sh --sanitize regress
#
# The sanitizer knows the memory contexts and buffer pins of this server (test/sanitize/valgrind/memcheck.h). In another
# server, it knows only pg_lsm's variables and what the server has from malloc. FOLDER must be readable for the user who
# runs servers. A build that was interrupted goes on where it was.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"

main()
{
	local folder=${1:-} options=(--enable-cassert --enable-debug --enable-tap-tests)

	[[ $folder == /* ]] || die "no folder with an absolute path given" "tools/sanitized_server.sh FOLDER"
	mkdir -p "$folder/source" && cd "$folder/source" || exit 1
	export ASAN_OPTIONS=detect_leaks=0		# of PostgreSQL's programs
	if [ ! -e config.status ]; then
		"$HERE/get_source.sh" --all . || exit 1
		! pkg-config --exists icu-i18n || options+=(--with-icu)
		./configure -q --prefix="$folder" "${options[@]}" CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=address' \
			CPPFLAGS="-DUSE_VALGRIND -I$TREE/test/sanitize" || die "PostgreSQL cannot be configured here"
	fi
	if ! make -s -j"$(nproc)" world-bin >make.log 2>&1 || ! make -s install-world-bin >>make.log 2>&1; then
		die "PostgreSQL cannot be built" "See $folder/source/make.log."
	fi
}

main "$@"
