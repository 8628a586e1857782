#!/bin/bash
#
# Fetches PostgreSQL's own regression scripts, which Debian has only in source packages.
#
#   tools/get_source.sh [--all] FOLDER
#
# Unpacks src/test/regress, src/test/isolation and Valgrind's suppressions of the installed major version into FOLDER, with
# --all the whole source. Takes the tarball from a cache ($PG_LSM_CACHE, by default ~/.cache/pg_lsm). If the cache has
# none, downloads the distribution's source package: the installed minor version if available, otherwise the newest one,
# or an earlier one. Uses its own package lists, and does not change the system's lists.

set -u -o pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

CACHE=${PG_LSM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/pg_lsm}
APT=

# apt_source COMMAND ARGUMENT...: runs apt-get or apt-cache with the system's package sources, for source packages.
apt_source()
{
	local command=$1
	shift
	"$command" -q=2 -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$APT/sources" -o Dir::State::lists="$APT/lists" \
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root "$@" </dev/null
}

# download MAJOR: leaves postgresql-MAJOR_*.orig.tar.* in the cache.
download()
{
	local major=$1 file version

	mkdir -p "$APT/sources" "$APT/lists/partial" "$APT/download"
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
		[ -e "$file" ] || continue
		sed 's/^deb[[:space:]]/deb-src /; s/^Types:.*/Types: deb-src/' "$file" >"$APT/sources/$(basename "$file")"
	done
	# Ignore errors: third-party repositories may have no source packages.
	apt_source apt-get update >"$APT/log" 2>&1
	cd "$APT/download" || return
	for version in $(dpkg-query -W -f '${Version}\n' "postgresql-$major" 2>/dev/null) \
		$(apt_source apt-cache showsrc "postgresql-$major" 2>/dev/null | sed -n 's/^Version: //p' | sort -rV); do
		if apt_source apt-get source --download-only --tar-only --only-source "postgresql-$major=$version" >>"$APT/log" 2>&1; then
			mkdir -p "$CACHE" && mv "postgresql-${major}_"*.orig.tar.* "$CACHE/"
			return
		fi
	done
	download_older "$major" && return
	tail -n 10 "$APT/log" >&2
	return 1
}

# download_older MAJOR: downloads the newest of the five previous minor versions that the mirror has. A mirror may not yet
# have the file that its list names, and the scripts of older minor versions are nearly the same. The list does not contain
# the older file, so apt cannot verify it.
download_older()
{
	local major=$1 url newest minor file

	url=$(apt_source apt-get source --print-uris --tar-only --only-source "postgresql-$major" 2>/dev/null |
		sed -n "s/^'\([^']*\.orig\.tar\.[^']*\)'.*/\1/p" | head -n 1)
	newest=$(sed -n "s/.*_$major\.\([0-9]*\)\.orig\..*/\1/p" <<<"$url")
	[ -n "$newest" ] || return
	for ((minor = newest - 1; minor > 0 && minor >= newest - 5; minor--)); do
		file=postgresql-${major}_$major.$minor.orig.tar.${url##*.}
		if /usr/lib/apt/apt-helper download-file "${url%/*}/$file" "$APT/download/$file" >>"$APT/log" 2>&1; then
			mkdir -p "$CACHE" && mv "$APT/download/$file" "$CACHE/"
			return
		fi
	done
	return 1
}

main()
{
	local folder tarball members=('*/src/test/regress' '*/src/test/isolation' '*/src/tools/valgrind.supp')

	if [ "${1:-}" = --all ]; then
		members=()
		shift
	fi
	folder=${1:-}
	[ -n "$folder" ] || die "no folder given" "tools/get_source.sh [--all] FOLDER"
	mkdir -p "$folder" || exit 1
	folder=$(cd "$folder" && pwd)
	require_postgres
	tarball=$(find "$CACHE" -name "postgresql-${PG_MAJOR}_*.orig.tar.*" 2>/dev/null | sort -V | tail -n 1)
	if [ -z "$tarball" ]; then
		command -v apt-get >/dev/null || die "the sources of PostgreSQL $PG_MAJOR can be fetched only with apt-get" \
			"Set PG_SOURCE to a source tree of the same version."
		APT=$(mktemp -d)
		trap 'rm -rf "$APT"' EXIT
		(download "$PG_MAJOR") || die "could not fetch the source package of PostgreSQL $PG_MAJOR"
		tarball=$(find "$CACHE" -name "postgresql-${PG_MAJOR}_*.orig.tar.*" | sort -V | tail -n 1)
	fi
	tar -C "$folder" --strip-components=1 --wildcards --no-same-owner -xf "$tarball" "${members[@]}" ||
		die "could not unpack $tarball" "Is it damaged, or is bzip2 missing? Delete it to have it fetched again."
	say "$(basename "$tarball")"
}

main "$@"
