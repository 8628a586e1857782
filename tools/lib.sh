# shellcheck shell=bash
#
# Functions shared by the scripts in this folder. To be sourced, not run.
#
# The scripts never change the machine's PostgreSQL installation. They copy the server's files (some 50 MB) to a
# temporary folder, install the extension into that copy, and start servers from there: PostgreSQL finds its files
# relative to the program, so a copy with the same layout below another root works. Several runs can therefore
# proceed at the same time, and only the folder has to be cleaned up.
#
# A caller may set:
#   PG_CONFIG          the pg_config of the PostgreSQL to use (otherwise the one in PATH, or the newest one)
#   PG_LSM_USER        the user that runs servers when we are root (otherwise "postgres")
#   TMPDIR             where temporary folders go

LSM_PG_MIN=15
LSM_PG_MAX=19

# --- messages ----------------------------------------------------------------

say()
{
	printf '%s\n' "$*"
}

# die MESSAGE [HINT...]
die()
{
	printf 'error: %s\n' "$1" >&2
	shift
	for hint in "$@"; do
		printf 'hint:  %s\n' "$hint" >&2
	done
	exit 1
}

# Splits "--name=value" into two words, so that options can be parsed one word at a time. Sets ARGS.
split_options()
{
	ARGS=()
	for word in "$@"; do
		case $word in
			--*=*) ARGS+=("${word%%=*}" "${word#*=}") ;;
			*) ARGS+=("$word") ;;
		esac
	done
}

# --- users -------------------------------------------------------------------

# Runs a command as root: directly, or through sudo without asking for a password.
as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo -n "$@"
	else
		die "this step needs root: $*" "Run the command as root, or install sudo."
	fi
}

# Decides who runs servers: ourselves, or an unprivileged user when we are root, because PostgreSQL refuses to run as
# root. Sets SERVER_USER.
choose_server_user()
{
	if [ "$(id -u)" -ne 0 ]; then
		SERVER_USER=$(id -un)
		return
	fi
	SERVER_USER=${PG_LSM_USER:-postgres}
	if ! id "$SERVER_USER" >/dev/null 2>&1; then
		useradd --system --home-dir /nonexistent --shell /bin/sh "$SERVER_USER" ||
			die "could not create the user \"$SERVER_USER\"" "Create it, or name another one in PG_LSM_USER."
	fi
	[ "$(id -u "$SERVER_USER")" -ne 0 ] || die "PG_LSM_USER must not be root"
}

# Runs a command as the server user, with the copied server's programs first in PATH. Stays in the current folder.
# Caller has called choose_server_user and private_server.
as_server()
{
	if [ "$(id -u)" -ne 0 ]; then
		env PATH="$PG_BIN:$PATH" "$@"
	else
		runuser -u "$SERVER_USER" -- env HOME="$WORK" USER="$SERVER_USER" LOGNAME="$SERVER_USER" PATH="$PG_BIN:$PATH" "$@"
	fi
}

# kill_tree PID: ends a process and all its descendants, children first.
kill_tree()
{
	local children child

	read -ra children 2>/dev/null <"/proc/$1/task/$1/children"
	for child in "${children[@]}"; do
		kill_tree "$child"
	done
	kill "$1" 2>/dev/null
}

# --- folders -----------------------------------------------------------------

# make_work NAME: makes a temporary folder that belongs to the server user. Sets WORK.
make_work()
{
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/$1.XXXXXX") || die "could not make a temporary folder in ${TMPDIR:-/tmp}"
	if [ "$(id -u)" -eq 0 ]; then
		chown "$SERVER_USER" "$WORK"
	fi
	chmod 700 "$WORK"
}

# copy_tree FROM TO: copies the sources without the files that a build or a test run leaves behind.
copy_tree()
{
	mkdir -p "$2"
	tar -C "$1" --exclude=./.git --exclude=./.check --exclude=./.fuzz --exclude=./test/unit/build \
		--exclude='*.o' --exclude='*.d' --exclude='*.bc' --exclude='*.so' --exclude='*.pyc' \
		--exclude=tmp_check --exclude=results --exclude=output_iso --exclude='regression.*' -cf - . |
		tar -C "$2" --no-same-owner -xf -
}

# --- PostgreSQL --------------------------------------------------------------

# Compiler options of test builds. They enable our assertions, and those in the server's headers, even if the server was
# built without assertions. They also enable stop points (src/base/stop_point.h), which no other build has.
# shellcheck disable=SC2034
FOR_TESTS='-DUSE_ASSERT_CHECKING=1 -DLSM_STOP_POINTS'

# pg_major PG_CONFIG: prints the major version.
pg_major()
{
	"$1" --version 2>/dev/null | sed -n 's/^PostgreSQL \([0-9]*\).*/\1/p'
}

# Whether a pg_config has a supported version and everything needed to build extensions and run a server.
pg_usable()
{
	local major

	major=$(pg_major "$1")
	[ -n "$major" ] && [ "$major" -ge $LSM_PG_MIN ] && [ "$major" -le $LSM_PG_MAX ] || return 1
	[ -e "$("$1" --pgxs)" ] && [ -x "$("$1" --bindir)/postgres" ] && [ -e "$("$1" --includedir-server)/postgres.h" ]
}

# find_postgres [MAJOR]: finds the PostgreSQL to use: $PG_CONFIG, else the one in PATH, else the newest one in Debian's
# folders. With MAJOR, accepts only that version. Sets PG_CONFIG and PG_MAJOR. Returns 1 if there is none.
# shellcheck disable=SC2034
find_postgres()
{
	local candidate wanted=${1:-}

	if [ -n "${PG_CONFIG:-}" ]; then
		pg_usable "$PG_CONFIG" || return 1
		PG_MAJOR=$(pg_major "$PG_CONFIG")
		[ "${wanted:-$PG_MAJOR}" = "$PG_MAJOR" ]
		return
	fi
	for candidate in "$(command -v pg_config 2>/dev/null)" \
		$(printf '%s\n' /usr/lib/postgresql/*/bin/pg_config /usr/local/pgsql/bin/pg_config | sort -rV); do
		if [ -x "$candidate" ] && pg_usable "$candidate"; then
			PG_MAJOR=$(pg_major "$candidate")
			[ "${wanted:-$PG_MAJOR}" = "$PG_MAJOR" ] || continue
			PG_CONFIG=$candidate
			return 0
		fi
	done
	return 1
}

require_postgres()
{
	find_postgres && return
	die "found no PostgreSQL $LSM_PG_MIN to $LSM_PG_MAX with its development files${PG_CONFIG:+ at $PG_CONFIG}" \
		"Debian and Ubuntu: run tools/install_deps.sh, or install postgresql-NN and postgresql-server-dev-NN." \
		"Elsewhere: name the pg_config to use in the environment variable PG_CONFIG."
}

# Copies the server's files below $WORK/root, in their layout below /, unless they are there. Sets PG_BIN and PG_PKGLIB,
# folders within the copy, and PG_CONFIG_COPY, a pg_config that describes the copy.
private_server()
{
	local dir root=$WORK/root

	if [ ! -e "$root/complete" ]; then
		for dir in --bindir --pkglibdir --sharedir; do
			dir=$("$PG_CONFIG" $dir)
			mkdir -p "$root$dir"
			cp -a "$dir/." "$root$dir/"
		done
		dir=$("$PG_CONFIG" --includedir)
		mkdir -p "$(dirname "$root$dir")"
		[ -e "$root$dir" ] || ln -s "$dir" "$root$dir"
		touch "$root/complete"
	fi
	PG_BIN=$root$("$PG_CONFIG" --bindir)
	PG_PKGLIB=$root$("$PG_CONFIG" --pkglibdir)
	PG_CONFIG_COPY=$PG_BIN/pg_config
	[ "$("$PG_CONFIG_COPY" --pkglibdir)" = "$PG_PKGLIB" ] ||
		die "this PostgreSQL cannot be run from a copy of its files" "Please report the output of pg_config."
}

# build_extension TREE LOG [MAKE ARGUMENT...]: builds the sources in TREE and installs them into the copied server.
# Skips the bitcode for the JIT compiler: an access method does not use it, and it takes as long to build as the rest.
build_extension()
{
	local tree=$1 log=$2
	shift 2

	{
		make -C "$tree" -j"$(nproc)" PG_CONFIG="$PG_CONFIG" with_llvm=no "$@" &&
			make -C "$tree" PG_CONFIG="$PG_CONFIG" with_llvm=no DESTDIR="$WORK/root" install "$@"
	} >"$log" 2>&1
}

# build_server [MAKE ARGUMENT...]: copies the server, and builds the tree $TREE, which the caller sets, into the copy.
# Sets PG_BIN.
build_server()
{
	private_server
	copy_tree "$TREE" "$WORK/src"
	if ! build_extension "$WORK/src" "$WORK/build.log" "$@"; then
		tail -n 30 "$WORK/build.log" >&2
		die "pg_lsm did not build with PostgreSQL $PG_MAJOR" "The end of the build's output is above."
	fi
}
