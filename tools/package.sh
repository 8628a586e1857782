#!/bin/bash
#
# Builds the Debian packages and tests them as users get them.
#
#   tools/package.sh [option]... [RELEASE]...
#
#   --output FOLDER   keep the packages here; otherwise they are deleted
#   -h, --help        this text
#
# Releases (default: all): bookworm (PostgreSQL 15), trixie (17), forky (18), experimental (19).
#
# For each release, the script builds source and binary packages in the chroot that .ci/run uses, and lintian checks them.
# Then it follows the lines of README.md in a fresh copy of a minimal chroot that has none of our build dependencies, runs
# the packages' own test (debian/tests/smoke), and removes the package again. On forky it also runs the steps of the images.
# At the end, pg_upgrade from 15 to 18 and from 18 to 19 takes over indexes, if both were built.
#
# Needs root. The chroots are kept in $PG_LSM_CI_CACHE (default: /var/cache/pg_lsm-ci). With all of them there, a release
# takes a few minutes, half of it to compile. The last line is "N passed, N failed".

# Scripts for the chroots are in single quotes.
# shellcheck disable=SC2016
set -u -o pipefail
TREE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$TREE/tools/lib.sh"
# shellcheck source-path=SCRIPTDIR source=chroot.sh
. "$TREE/tools/chroot.sh"

RELEASES=()
OUTPUT=
WORK=
VERSION=$(sed -n "s/^default_version = '\(.*\)'/\1/p" "$TREE/pg_lsm.control")
PASSED=0
FAILED=0

parse_options()
{
	split_options "$@"
	set -- ${ARGS[@]+"${ARGS[@]}"}
	while [ $# -gt 0 ]; do
		case $1 in
			--output)
				[ -n "${2:-}" ] || die "--output needs a folder"
				mkdir -p "$2" && OUTPUT=$(cd "$2" && pwd) || exit
				shift
				;;
			-h | --help)
				sed -n '3,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
				exit 0
				;;
			-*) die "unknown option \"$1\"" "See tools/package.sh --help." ;;
			*)
				chroot_major "$1" >/dev/null || die "no such release: $1" "See tools/package.sh --help."
				RELEASES+=("$1")
				;;
		esac
		shift
	done
	[ ${#RELEASES[@]} -gt 0 ] || RELEASES=(bookworm trixie forky experimental)
}

# step NAME COMMAND...: runs a command and counts it. Shows its output if it fails.
step()
{
	local name=$1 began=$SECONDS
	shift

	if "$@" </dev/null >"$WORK/log" 2>&1; then
		echo "ok - $name ($((SECONDS - began)) s)"
		PASSED=$((PASSED + 1))
	else
		echo "not ok - $name"
		tail -n 60 "$WORK/log" | sed 's/^/    /'
		FAILED=$((FAILED + 1))
		return 1
	fi
}

# build_packages RELEASE: leaves them in the chroot, in /srv/pg_lsm_package.
build_packages()
{
	local dir=$CHROOT_CACHE/$1 place=$CHROOT_CACHE/$1/srv/pg_lsm_package

	rm -rf "$place"
	copy_tree "$TREE" "$place/pg-lsm-$VERSION" || return
	tar -C "$place" --exclude="pg-lsm-$VERSION/debian" -czf "$place/pg-lsm_$VERSION.orig.tar.gz" "pg-lsm-$VERSION" || return
	# Packages of sid would build for 18. In that chroot, the dependencies of the server's development package
	# suffice.
	in_chroot "$dir" env PG_SUPPORTED_VERSIONS="$(chroot_major "$1")" bash -euc '
		cd "$1"
		if [ "$2" = experimental ]; then
			needed="debhelper fakeroot lintian postgresql-common-dev"
			unchecked=-d
		else
			needed="build-essential debhelper fakeroot lintian libicu-dev postgresql-server-dev-all"
			unchecked=
		fi
		if ! dpkg --status $needed >/dev/null 2>&1; then
			apt-get -q=2 update
			apt-get -q=2 install --no-install-recommends $needed
		fi
		pg_buildext updatecontrol
		dpkg-buildpackage -us -uc $unchecked
		' bash "/srv/pg_lsm_package/pg-lsm-$VERSION" "$1"
}

# A first upload to Debian would close a bug, and lintian of an older release does not know the newest policy.
check_packages()
{
	in_chroot "$CHROOT_CACHE/$1" sh -c 'lintian --allow-root --fail-on error,warning --tag-display-limit 0 \
		--suppress-tags initial-upload-closes-no-bugs,newer-standards-version /srv/pg_lsm_package/*.changes'
}

# prepare_clean RELEASE: makes a chroot that has only a minimal Debian, unless it exists.
prepare_clean()
{
	local dir=$CHROOT_CACHE/$1-clean

	[ -e "$dir/ready" ] && return
	make_chroot "$1" "$dir" && touch "$dir/ready"
}

# readme_lines MAJOR: the lines of README.md, as a user types them.
readme_lines()
{
	sed -n '/^## Install/,$s/^sudo /&/p' "$TREE/README.md" | sed "/CREATE EXTENSION/q" |
		sed "s/\<18\>/$1/g; s/-d mydb/-d postgres/"
}

# install_package MAJOR: follows the lines, which need sudo.
install_package()
{
	in_chroot "$WORK/root" bash -euxc '
		[ -n "$1" ]
		apt-get -q=2 update
		apt-get -q=2 install --no-install-recommends sudo
		cd /srv/packages
		printf "%s \"%s\";\n" APT::Get::Assume-Yes true APT::Install-Recommends false >/etc/apt/apt.conf.d/no-questions
		eval "$1"' bash "$(readme_lines "$1")"
}

run_smoke()
{
	in_chroot "$WORK/root" /srv/packages/smoke
}

# remove_package MAJOR: the server continues without the package.
remove_package()
{
	in_chroot "$WORK/root" bash -euxc '
		pg_ctlcluster "$1" main start
		runuser -u postgres -- psql -c "DROP EXTENSION pg_lsm"
		pg_conftool "$1" main remove shared_preload_libraries
		pg_ctlcluster "$1" main restart
		apt-get -q=2 purge "postgresql-$1-lsm"
		pg_ctlcluster "$1" main restart
		runuser -u postgres -- psql -c "SELECT 1"
		pg_ctlcluster "$1" main stop
		! find /usr /etc -name "*pg_lsm*" | grep .' bash "$1"
}

# check_images MAJOR: the steps of packaging/image/Dockerfile, in the place of the official image.
check_images()
{
	copy_tree "$TREE" "$WORK/root/srv/tree"
	in_chroot "$WORK/root" /srv/tree/test/image/check.sh /srv/tree "$1"
}

# put_server MAJOR ROOT: copies the files of a server from its chroot, and the packaged pg_lsm.
put_server()
{
	local from

	from=$CHROOT_CACHE/$(chroot_release "$1") || return
	mkdir -p "$2/usr/lib/postgresql" "$2/usr/share/postgresql"
	cp -a "$from/usr/lib/postgresql/$1" "$2/usr/lib/postgresql/" &&
		cp -a "$from/usr/share/postgresql/$1" "$2/usr/share/postgresql/" &&
		dpkg-deb -x "$OUTPUT/postgresql-$1-lsm_$VERSION"-*.deb "$2"
}

# put_libraries FROM TO PLACE: copies the shared libraries that the old server needs and the newer release does not have.
put_libraries()
{
	local missing library

	mkdir -p "$2$3/lib"
	while
		missing=$(in_chroot "$2" sh -c 'LD_LIBRARY_PATH=$1/lib ldd "$1"/old/usr/lib/postgresql/*/bin/* "$1"/lib/* 2>/dev/null |
			sed -n "s/^[[:space:]]*\(.*\) => not found/\1/p" | sort -u' sh "$3")
		[ -n "$missing" ]
	do
		for library in $missing; do
			find "$1/usr/lib" -name "$library" -exec cp -L {} "$2$3/lib/" \; -quit
			[ -e "$2$3/lib/$library" ] || die "$1 has no $library"
		done
	done
}

# check_upgrade OLD NEW: pg_upgrade with both servers in the chroot of the newer one.
check_upgrade()
{
	local place=/srv/pg_lsm_upgrade dir status

	dir=$CHROOT_CACHE/$(chroot_release "$2")
	rm -rf "$dir$place"
	copy_tree "$TREE" "$dir$place/tree" &&
		put_server "$1" "$dir$place/old" &&
		put_server "$2" "$dir$place/new" &&
		put_libraries "$CHROOT_CACHE/$(chroot_release "$1")" "$dir" "$place" &&
		in_chroot "$dir" env LD_LIBRARY_PATH="$place/lib" PG_CONFIG="$place/new/usr/lib/postgresql/$2/bin/pg_config" \
			PG_LSM_OLD_SERVER="$place/old/usr/lib/postgresql/$1" PG_LSM_TEST_ONLY=006_dump_upgrade "$place/tree/test/run" tap
	status=$?
	rm -rf "$dir$place"
	return $status
}

test_release()
{
	local release=$1 major

	major=$(chroot_major "$release")
	step "$release: chroot" prepare_chroot "$release" || return
	step "$release: build" build_packages "$release" || return
	step "$release: lintian" check_packages "$release"
	step "$release: clean chroot" prepare_clean "$release" || return
	rm -rf "$WORK/root"
	cp -a "$CHROOT_CACHE/$release-clean" "$WORK/root"
	mkdir -p "$WORK/root/srv/packages"
	cp "$CHROOT_CACHE/$release/srv/pg_lsm_package"/*.deb "$TREE/debian/tests/smoke" "$WORK/root/srv/packages/"
	cp "$CHROOT_CACHE/$release/srv/pg_lsm_package"/{pg-lsm_*,*.deb} "$OUTPUT/"
	step "$release: install as README.md says" install_package "$major" &&
		step "$release: smoke test" run_smoke &&
		step "$release: remove" remove_package "$major" &&
		{ [ "$release" != forky ] || step "$release: images" check_images "$major"; }
}

main()
{
	local release pair

	parse_options "$@"
	[ "$(id -u)" -eq 0 ] || die "the chroots need root"
	need_debootstrap
	WORK=$(mktemp -d) || exit
	trap 'rm -rf "$WORK"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	mkdir -p "$CHROOT_CACHE"
	[ -n "$OUTPUT" ] || { OUTPUT=$WORK/output && mkdir "$OUTPUT"; }
	for release in "${RELEASES[@]}"; do
		test_release "$release"
		rm -rf "$CHROOT_CACHE/$release/srv/pg_lsm_package"
	done
	for pair in 15:18 18:19; do
		if [ -e "$(find "$OUTPUT" -name "postgresql-${pair%:*}-lsm_*.deb")" ] && [ -e "$(find "$OUTPUT" -name "postgresql-${pair#*:}-lsm_*.deb")" ]; then
			step "pg_upgrade ${pair%:*} to ${pair#*:}" check_upgrade "${pair%:*}" "${pair#*:}"
		fi
	done
	echo "$PASSED passed, $FAILED failed"
	[ $PASSED -gt 0 ] && [ $FAILED -eq 0 ]
}

main "$@"
