#!/bin/bash
#
# Installs missing packages for building, testing and trying pg_lsm, from the distribution.
#
#   tools/install_deps.sh [build|demo|test|bench|queues|scaleout|frameworks]...      (build is always included)
#
# Works on Debian and its derivatives; elsewhere it only lists what is missing. Needs root or sudo if a package is
# missing. If none is missing, it is quick and changes nothing. A PostgreSQL server that it installs gets no
# cluster. It starts nothing and does not touch existing clusters.

set -u -o pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

MISSING=()
WANTED=()
LOCALES=/usr/share/i18n/locales

# need PACKAGE TEST...: adds PACKAGE to the missing ones if the command TEST fails.
need()
{
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || MISSING+=("$package")
}

# want PACKAGE TEST...: the same for an optional package, which not every distribution has.
want()
{
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || WANTED+=("$package")
}

have()
{
	command -v "$1" >/dev/null 2>&1
}

update_once()
{
	[ -n "${UPDATED:-}" ] && return
	say "Reading package lists"
	apt_get update -q=2
	UPDATED=1
}

# Shows the output only after an error.
apt_get()
{
	local log status

	log=$(mktemp)
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -o Dpkg::Options::=--force-confdef \
		-o Dpkg::Options::=--force-confold "$@" </dev/null >"$log" 2>&1
	status=$?
	if [ $status -ne 0 ]; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		die "apt-get $1 failed" "Is the network available, and are the entries in /etc/apt right?"
	fi
	rm -f "$log"
}

# The newest server version that the distribution has and that we support.
newest_packaged_version()
{
	apt-cache search --names-only '^postgresql-server-dev-[0-9]+$' | sed 's/.*server-dev-\([0-9]*\).*/\1/' | sort -rn |
		while read -r major; do
			if [ "$major" -ge $LSM_PG_MIN ] && [ "$major" -le $LSM_PG_MAX ]; then
				echo "$major"
				break
			fi
		done
}

# Debian makes and starts a cluster when a server package is installed. This setting prevents that. It is restored
# afterwards, even if the installation fails or is interrupted.
without_cluster()
(
	conf=/etc/postgresql-common/createcluster.conf
	apt_get install --no-install-recommends postgresql-common
	saved=$(mktemp)
	cp "$conf" "$saved" || die "cannot read $conf"
	trap 'as_root cp "$saved" "$conf"; rm -f "$saved"' EXIT
	echo "create_main_cluster = false" | as_root tee -a "$conf" >/dev/null
	apt_get install --no-install-recommends "$@"
)

install_postgres()
{
	local major

	update_once
	# If a server lacks its development files, install them. Otherwise install the newest server.
	major=$(find /usr/lib/postgresql/*/bin/postgres 2>/dev/null | sed 's|/usr/lib/postgresql/\([0-9]*\)/.*|\1|' | sort -rn |
		awk -v min=$LSM_PG_MIN -v max=$LSM_PG_MAX '$1 >= min && $1 <= max { print; exit }')
	[ -n "$major" ] || major=$(newest_packaged_version)
	[ -n "$major" ] || die "the package lists have no PostgreSQL $LSM_PG_MIN to $LSM_PG_MAX" \
		"Add the repository of the PostgreSQL project (package postgresql-common, /usr/share/postgresql-common/pgdg)."
	say "Installing PostgreSQL $major"
	without_cluster "postgresql-$major" "postgresql-server-dev-$major" || exit 1
}

# Tests and benchmarks of libc's collations use en_US.UTF-8, and leave it out if the server lacks it.
make_locale()
{
	[ -e "$LOCALES/en_US" ] && ! locale -a | grep -q '^en_US\.utf8$' && (as_root true) 2>/dev/null || return 0
	as_root localedef -i en_US -f UTF-8 en_US.UTF-8
}

main()
{
	local purpose package extensions purposes=" build $* "

	for purpose in "$@"; do
		case $purpose in
			build | demo | test | bench | queues | scaleout | frameworks) ;;
			-h | --help)
				sed -n '3,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
				exit 0
				;;
			*) die "unknown purpose \"$purpose\"" "Try build, demo, test, bench, queues, scaleout or frameworks." ;;
		esac
	done

	need gcc have gcc
	need libc6-dev test -e /usr/include/stdio.h
	need make have make
	need libicu-dev test -e /usr/include/unicode/ucol.h		# the server's headers include it
	case $purposes in
		*" demo "* | *" bench "* | *" queues "* | *" scaleout "* | *" test "*) need python3 have python3 ;;
	esac
	case $purposes in
		*" demo "*)
			if ! have tpchgen-cli; then
				need python3-venv python3 -c 'import ensurepip, venv'
				need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
			fi
			;;
	esac
	case $purposes in
		*" queues "*)
			need python3-venv python3 -c 'import ensurepip, venv'
			need nodejs have node
			need npm have npm
			need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
			;;
	esac
	case $purposes in
		*" test "*)
			need perl perl -MTest::More -MTime::HiRes -e 1
			need libipc-run-perl perl -MIPC::Run -e 1
			need bzip2 have bzip2
			# Extensions that one test lets rebuild keys. If there is no server yet, the next run asks for them.
			if find_postgres; then
				extensions=$("$PG_CONFIG" --sharedir)/extension
				want "postgresql-$PG_MAJOR-partman" test -e "$extensions/pg_partman.control"
				want "postgresql-$PG_MAJOR-timescaledb" test -e "$extensions/timescaledb.control"
			fi
			;;
	esac
	case $purposes in
		*" scaleout "* | *" test "*)
			! find_postgres || want "postgresql-$PG_MAJOR-plproxy" \
				test -e "$("$PG_CONFIG" --sharedir)/extension/plproxy.control"
			;;
	esac
	case $purposes in
		*" bench "* | *" scaleout "* | *" test "*)
			need libpq-dev test -e "$("${PG_CONFIG:-pg_config}" --includedir 2>/dev/null)/libpq-fe.h"
			;;
	esac
	case $purposes in
		*" bench "* | *" test "*)
			need python3-matplotlib /usr/bin/python3 -c 'import matplotlib'
			want locales test -e "$LOCALES/en_US"
			;;
	esac

	case $purposes in
		*" frameworks "*)
			want python3-django /usr/bin/python3 -c 'import django'
			want python3-psycopg2 /usr/bin/python3 -c 'import psycopg2'
			want alembic test -e /usr/bin/alembic
			want ruby-activerecord /usr/bin/ruby -e 'require "active_record"'
			want ruby-pg /usr/bin/ruby -e 'require "pg"'
			;;
	esac

	if [ ${#WANTED[@]} -gt 0 ] && have apt-get && (as_root true) 2>/dev/null; then
		update_once
		for package in "${WANTED[@]}"; do
			apt-cache show "$package" >/dev/null 2>&1 && MISSING+=("$package")
		done
	fi
	if [ ${#MISSING[@]} -gt 0 ] || ! find_postgres; then
		have apt-get || die "missing: ${MISSING[*]:-} $(find_postgres || echo "PostgreSQL $LSM_PG_MIN to $LSM_PG_MAX with development files")" \
			"This script installs packages with apt-get only. Please install the above by other means."
	fi
	if [ ${#MISSING[@]} -gt 0 ]; then
		update_once
		say "Installing ${MISSING[*]}"
		apt_get install --no-install-recommends "${MISSING[@]}"
	fi
	make_locale
	if ! find_postgres; then
		[ -z "${PG_CONFIG:-}" ] || die "PG_CONFIG=$PG_CONFIG has no PostgreSQL $LSM_PG_MIN to $LSM_PG_MAX with development files"
		install_postgres
		find_postgres || die "PostgreSQL was installed, but pg_config finds no server and development files"
	fi
	say "PostgreSQL $PG_MAJOR ($PG_CONFIG)"
}

main "$@"
