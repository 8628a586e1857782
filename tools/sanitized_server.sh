#!/bin/bash
#
# Builds PostgreSQL from the distribution's source with AddressSanitizer and assertions, in about ten minutes.
#
#   tools/sanitized_server.sh FOLDER
#   PG_CONFIG=FOLDER/bin/pg_config tools/test.sh --sanitize regress
#
# The sanitizer knows the memory contexts and buffer pins of this server (test/sanitize/valgrind/memcheck.h). In any
# other server, it knows only pg_lsm's variables and the memory that the server gets from malloc. The user who runs
# servers must be able to read FOLDER. If a build is interrupted, the next call continues it.

set -u -o pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=$(dirname "$HERE")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"

main()
{
	local folder=${1:-} options=(--enable-cassert --enable-debug --enable-tap-tests)

	[[ $folder == /* ]] || die "FOLDER must be an absolute path" "tools/sanitized_server.sh FOLDER"
	mkdir -p "$folder/source" && cd "$folder/source" || exit 1
	export ASAN_OPTIONS=detect_leaks=0		# PostgreSQL's programs do not free everything
	if [ ! -e config.status ]; then
		"$HERE/get_source.sh" --all . || exit 1
		! pkg-config --exists icu-i18n || options+=(--with-icu)
		./configure -q --prefix="$folder" "${options[@]}" CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=address' \
			CPPFLAGS="-DUSE_VALGRIND -I$TREE/test/sanitize" || die "could not configure PostgreSQL"
	fi
	if ! make -s -j"$(nproc)" world-bin >make.log 2>&1 || ! make -s install-world-bin >>make.log 2>&1; then
		die "could not build PostgreSQL" "See $folder/source/make.log."
	fi
}

main "$@"
