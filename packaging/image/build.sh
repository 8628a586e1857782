#!/bin/sh
#
# The steps of the image, which Dockerfile runs. test/image/run.sh runs the same steps in a chroot.
#
#   build.sh packages MAJOR      installs what the build needs
#   build.sh stage FOLDER        builds the tree in the current folder, and installs it below FOLDER
#   build.sh extension STAGE TO  arranges what was staged as CloudNativePG asks for: lib and share/extension

set -eu

case $1 in
	packages)
		apt-get update
		apt-get install --yes --no-install-recommends gcc libc6-dev libicu-dev make "postgresql-server-dev-$2"
		;;
	stage)
		make -j"$(nproc)"
		make install DESTDIR="$2"
		;;
	extension)
		mkdir -p "$3/lib" "$3/share/extension"
		find "$2" -name pg_lsm.so -exec cp {} "$3/lib/" \;
		find "$2" \( -name pg_lsm.control -o -name 'pg_lsm--*.sql' \) -exec cp {} "$3/share/extension/" \;
		;;
	*)
		sed -n '3,7s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
esac
