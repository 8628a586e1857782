# shellcheck shell=bash
#
# Chroots of other Debian releases, for the PostgreSQL versions that this machine lacks. Sourced after
# lib.sh by scripts that set TREE. All functions need root.
#
# prepare_chroot makes a chroot in a folder that is kept ($PG_LSM_CI_CACHE, /var/cache/pg_lsm-ci unless set), and later runs
# reuse it. To renew it, delete it. Mounts are made in a namespace of their own, so that they vanish with the last process.

CHROOT_CACHE=${PG_LSM_CI_CACHE:-/var/cache/pg_lsm-ci}
CHROOT_FOLDERS=()
export DEBIAN_FRONTEND=noninteractive

# chroot_release MAJOR: prints the release that has this version of PostgreSQL.
chroot_release()
{
	case $1 in
		15) echo bookworm ;;
		17) echo trixie ;;
		18) echo forky ;;
		19) echo experimental ;;
		*) return 1 ;;
	esac
}

# chroot_major RELEASE: the reverse.
chroot_major()
{
	local major

	for major in 15 17 18 19; do
		[ "$(chroot_release $major)" != "$1" ] || { echo $major; return; }
	done
	return 1
}

need_debootstrap()
{
	command -v debootstrap >/dev/null && return
	apt-get -q=2 update </dev/null >/dev/null
	apt-get -q=2 install --no-install-recommends debootstrap </dev/null >/dev/null ||
		die "could not install debootstrap" "Is the network available?"
}

# chroot_command DIR COMMAND...: sets CHROOT, which runs a command in a chroot, in mount and process namespaces of its own. The
# chroot sees the folders of CHROOT_FOLDERS at the same paths.
chroot_command()
{
	local dir=$1
	shift

	cp -L /etc/resolv.conf /etc/hosts "$dir/etc/" 2>/dev/null
	# shellcheck disable=SC2016
	CHROOT=(unshare --mount --pid --fork --kill-child -- sh -c '
		mount -t proc proc "$1/proc" && mkdir -p "$1/dev/shm" && mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm" || exit
		dir=$1; folders=$2; shift 2
		while [ "$folders" -gt 0 ]; do
			mkdir -p "$dir$1" && mount --rbind "$1" "$dir$1" || exit
			folders=$((folders - 1)); shift
		done
		exec chroot "$dir" "$@"' sh "$dir" ${#CHROOT_FOLDERS[@]} ${CHROOT_FOLDERS[@]+"${CHROOT_FOLDERS[@]}"} \
		env -u TMPDIR HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@")
}

# in_chroot DIR COMMAND...: runs a command in a chroot.
in_chroot()
{
	chroot_command "$@"
	"${CHROOT[@]}"
}

# put_tree DIR: copies the sources to /srv/pg_lsm in a chroot.
put_tree()
{
	rm -rf "$1/srv/pg_lsm"
	copy_tree "$TREE" "$1/srv/pg_lsm"
}

# add_experimental DIR: lets a chroot of sid take PostgreSQL 19 from experimental, and nothing else.
add_experimental()
{
	local line

	line=$(grep -m 1 '^deb ' "$1/etc/apt/sources.list") || return
	echo "${line/ sid / experimental }" >>"$1/etc/apt/sources.list"
	printf '%s\n' 'Package: postgresql-19 postgresql-*-19 libpq5 libpq-dev libpq-oauth' 'Pin: release a=experimental' \
		'Pin-Priority: 990' >"$1/etc/apt/preferences.d/postgresql"
}

# make_chroot RELEASE DIR: makes a chroot that has only a minimal Debian.
make_chroot()
{
	local release=$1 dir=$2 script=$1

	rm -rf "$dir"
	mkdir -p "$dir"
	# A release that this machine's debootstrap does not know yet is made like the newest one it knows.
	[ -e "/usr/share/debootstrap/scripts/$release" ] || script=sid
	# experimental is an addition to sid.
	debootstrap --variant=minbase "${release/experimental/sid}" "$dir" "" "$script" || return
	[ "$release" != experimental ] || add_experimental "$dir"
	printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
	chmod +x "$dir/usr/sbin/policy-rc.d"
	echo force-unsafe-io >"$dir/etc/dpkg/dpkg.cfg.d/ci"
	# A mirror, or a clock, may be some weeks off. Signatures are checked all the same.
	echo 'Acquire::Check-Valid-Until "false";' >"$dir/etc/apt/apt.conf.d/ci"
}

# prepare_chroot RELEASE: makes the chroot of a release with all that the tests need, unless it is there.
prepare_chroot()
{
	local dir=$CHROOT_CACHE/$1

	[ -e "$dir/ready" ] && return
	make_chroot "$1" "$dir" || return
	printf '%s\n' 'path-exclude=/usr/share/doc/*' 'path-exclude=/usr/share/man/*' >>"$dir/etc/dpkg/dpkg.cfg.d/ci"
	put_tree "$dir"
	in_chroot "$dir" /srv/pg_lsm/tools/install_deps.sh test || return
	rm -rf "$dir"/var/cache/apt/archives/*.deb
	touch "$dir/ready"
}
