# shellcheck shell=bash
#
# Functions shared by the scripts of this folder, and by scaleout.sh and torture.sh in tools/. The caller sets HERE and TREE.

# shellcheck disable=SC2153 source-path=SCRIPTDIR source=../tools/lib.sh
. "$TREE/tools/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../tools/chroot.sh
. "$TREE/tools/chroot.sh"

# Debian's own Python, for which matplotlib is installed. Another Python may come first in PATH.
# shellcheck disable=SC2034
PYTHON=/usr/bin/python3
[ -x "$PYTHON" ] || PYTHON=python3
# Runs a module of bench/.
# shellcheck disable=SC2034,SC2154
PYTHON_MODULE=(env PYTHONPATH="$TREE/bench" PYTHONDONTWRITEBYTECODE=1 "$PYTHON" -m)

# The version that most new users install.
PG_DEFAULT=18

# The folder of a run, and the options that are for the Python module.
WORK=
SUITE_ARGS=()
# Set by the options that all scripts have.
INSTALL=1
INSTALLED=
PG_WANTED=
# The running program, and whether it is in a chroot.
CHILD=
IN_CHROOT=

# parse_server_option ARGUMENT...: if the first argument is an option that all scripts have, applies the option and sets
# PARSED to the number of arguments that the option takes up, itself included. Otherwise returns 1.
parse_server_option()
{
	PARSED=1
	case $1 in
		--pg) [ $# -ge 2 ] || die "--pg needs a value"; PG_WANTED=$2; PARSED=2 ;;
		--pg=*) PG_WANTED=${1#*=} ;;
		--pg-config) [ $# -ge 2 ] || die "--pg-config needs a value"; PG_CONFIG=$2; PARSED=2 ;;
		--pg-config=*) PG_CONFIG=${1#*=} ;;
		--installed) INSTALLED=1 ;;
		--no-install) INSTALL= ;;
		*) return 1 ;;
	esac
}

# take_options MODULE LAST ARGUMENT...: applies the options that all scripts have, and keeps the others, which are for
# the module, in SUITE_ARGS. The help consists of the script's header, up to line LAST, and of the module's help.
take_options()
{
	local module=$1 last=$2
	shift 2

	while [ $# -gt 0 ]; do
		if parse_server_option "$@"; then
			shift "$PARSED"
			continue
		fi
		case $1 in
			-h | --help)
				sed -n "3,${last}s/^# \{0,1\}//p" "$0"
				exec "${PYTHON_MODULE[@]}" "$module" --help
				;;
		esac
		SUITE_ARGS+=("$1")
		shift
	done
}

catch_signals()
{
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

install_packages()
{
	[ -z "$INSTALL" ] || PG_CONFIG=${PG_CONFIG:-} "$TREE/tools/install_deps.sh" bench || exit 1
}

# Makes the folder WORK. Unless --installed is given, builds pg_lsm into a copy of the server. Sets PG_BIN to the folder
# of the server's programs.
prepare_server()
{
	choose_server_user
	make_work pg_lsm-bench
	say "Building"
	if [ -n "$INSTALLED" ]; then
		PG_BIN=$("$PG_CONFIG" --bindir)
	else
		build_server
	fi
}

clean_up()
{
	local status=$?

	trap - EXIT
	trap "" INT TERM HUP
	cd /
	[ -z "$WORK" ] || rm -rf "$WORK"
	exit $status
}

# Builds the load generator as $WORK/client.
build_client()
{
	make -C "$TREE/bench/client" OUT="$WORK" PG_CONFIG="$PG_CONFIG" >"$WORK/client.log" 2>&1 || {
		cat "$WORK/client.log" >&2
		die "the load generator did not build" "Is libpq-dev installed?"
	}
}

# Prints the measured commit, for the results.
source_commit()
{
	local commit

	commit=$(git -c safe.directory="$TREE" -C "$TREE" rev-parse --short=12 HEAD 2>/dev/null) || commit=unknown
	[ -z "$(git -c safe.directory="$TREE" -C "$TREE" status --porcelain -- src sql 2>/dev/null)" ] || commit="$commit, changed"
	echo "$commit"
}

# choose_postgres ARGUMENT...: sets PG_CONFIG to the server of the requested version. If this machine lacks the
# version, runs this script again, with these arguments, in a chroot that has the version, and exits with the status of
# that run.
choose_postgres()
{
	[ -z "$PG_WANTED" ] || [[ $PG_WANTED =~ ^[0-9]+$ && $PG_WANTED -ge $LSM_PG_MIN && $PG_WANTED -le $LSM_PG_MAX ]] ||
		die "pg_lsm supports PostgreSQL $LSM_PG_MIN to $LSM_PG_MAX, not \"$PG_WANTED\""
	if [ -n "${PG_CONFIG:-}" ]; then
		find_postgres || die "found no PostgreSQL $LSM_PG_MIN to $LSM_PG_MAX with its development files at $PG_CONFIG"
		[ "${PG_WANTED:-$PG_MAJOR}" = "$PG_MAJOR" ] ||
			die "$PG_CONFIG has version $PG_MAJOR, not $PG_WANTED" "Leave out --pg-config and PG_CONFIG, or --pg."
		return
	fi
	PG_WANTED=${PG_WANTED:-$PG_DEFAULT}
	find_postgres "$PG_WANTED" && return
	need_chroot
	share_folders
	# The chroot has no git. The last --commit counts, so this one replaces the one that the script finds there.
	chroot_command "$CHROOT_CACHE/$RELEASE" env -C "$PWD" TMPDIR="${TMPDIR:-/tmp}" \
		"$HERE/$(basename "$0")" --pg "$PG_WANTED" "$@" --commit "$(source_commit)"
	IN_CHROOT=1
	# In the background of a shell without job control, the script could not catch SIGINT.
	set -m
	run_interruptible "${CHROOT[@]}" </dev/null
	exit
}

# Makes sure that there is a chroot with PG_WANTED. Sets RELEASE.
need_chroot()
{
	local installed log

	installed=$(find_postgres && echo "Or measure the installed version: --pg $PG_MAJOR.")
	RELEASE=$(chroot_release "$PG_WANTED") ||
		die "PostgreSQL $PG_WANTED is not installed, and no Debian release has it" ${installed:+"$installed"}
	[ "$(id -u)" -eq 0 ] || die "PostgreSQL $PG_WANTED is not installed, and a chroot with it needs root" \
		"Run this as root, or install postgresql-$PG_WANTED and postgresql-server-dev-$PG_WANTED." ${installed:+"$installed"}
	[ -z "$INSTALLED" ] || die "PostgreSQL $PG_WANTED is not installed, but --installed requires it" ${installed:+"$installed"}
	if [ ! -e "$CHROOT_CACHE/$RELEASE/ready" ]; then
		[ -n "$INSTALL" ] || die "there is no chroot with PostgreSQL $PG_WANTED, and --no-install forbids making one" \
			${installed:+"$installed"}
		need_debootstrap
		say "Making a chroot with PostgreSQL $PG_WANTED in $CHROOT_CACHE/$RELEASE"
		log=$(mktemp)
		if ! prepare_chroot "$RELEASE" </dev/null >"$log" 2>&1; then
			tail -n 20 "$log" >&2
			rm -f "$log"
			die "could not make the chroot" "The end of the output is above. Is the network available?"
		fi
		rm -f "$log"
	fi
	[ -e "$CHROOT_CACHE/$RELEASE/usr/lib/postgresql/$PG_WANTED" ] ||
		die "the chroot in $CHROOT_CACHE/$RELEASE has no PostgreSQL $PG_WANTED" "Delete the folder."
}

# Lets the chroot see all folders of this machine except system folders, so that paths mean the same in it. It also sees
# /sys, for the control groups. The tree, the current folder and TMPDIR are shared as well if they are in /var/tmp or
# at least two levels below /usr or /var. In other system folders they are an error.
share_folders()
{
	local folder system='^/(bin|boot|dev|etc|lib[^/]*|proc|run|sbin|usr|var)(/|$)'

	CHROOT_FOLDERS=()
	for folder in /*; do
		[ ! -d "$folder" ] || [[ $folder =~ $system ]] || CHROOT_FOLDERS+=("$folder")
	done
	for folder in "$TREE" "$PWD" "${TMPDIR:-/tmp}"; do
		case $folder in
			/var/tmp | /usr/*/* | /var/*/*) CHROOT_FOLDERS+=("$folder") ;;
			*)
				[ "$folder" != / ] && [[ ! $folder =~ $system ]] ||
					die "the benchmark cannot use $folder in a chroot, which has a folder of its own there" \
						"Keep the sources, the current folder and TMPDIR in /home, /root or /tmp, for example."
				;;
		esac
	done
}

# run_suite MODULE [ARGUMENT]...: runs a module of bench/ on the server of prepare_server, with these arguments and
# those of the command line. Does not use exec, because the EXIT trap must run.
run_suite()
{
	local module=$1
	shift

	run_interruptible "${PYTHON_MODULE[@]}" "$module" --bindir "$PG_BIN" --work "$WORK" --user "$SERVER_USER" \
		--commit "$(source_commit)" "$@" ${SUITE_ARGS[@]+"${SUITE_ARGS[@]}"}
}

# signal_child SIGNAL: sends a signal to the program, or, if a chroot is in use, to the first process in the chroot.
signal_child()
{
	local target=$CHILD

	[ -z "$IN_CHROOT" ] || read -r target 2>/dev/null <"/proc/$CHILD/task/$CHILD/children"
	# shellcheck disable=SC2086
	kill "-$1" $target 2>/dev/null
}

# Runs a program (not a function) that handles interrupts itself, and returns its status. While a shell waits for a
# command in the foreground, it runs no traps. So the program runs in the background, and the traps pass signals on to
# it, even those that only this shell gets.
run_interruptible()
{
	local status

	"$@" &
	CHILD=$!
	trap 'signal_child INT' INT
	trap 'signal_child TERM' TERM HUP
	while true; do
		wait $CHILD
		status=$?
		kill -0 $CHILD 2>/dev/null || break
	done
	wait $CHILD 2>/dev/null
	return $status
}
