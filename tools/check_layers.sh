#!/bin/bash
#
# Checks the rules for the files under src/ (see "Layers" in CONTRIBUTING.md and in src/README.md).
#
#   tools/check_layers.sh [TREE]
#
# - A file includes only headers of its own directory and of lower layers. Directories of one layer do not include each
#   other.
# - Every file name is unique in the tree.
# - Only src/base/ tests PG_VERSION_NUM, and only src/storage/emit.c emits WAL.
# - No file has more than 800 lines.
#
# Prints what is wrong, one finding a line, and ends with "layers: N files, M findings". Exit status 1 if there are any.

set -u -o pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}/src" || exit 2
export LC_ALL=C

MAX_LINES=800
FINDINGS=0

finding()
{
	printf '%s\n' "$*"
	FINDINGS=$((FINDINGS + 1))
}

# The layer of a directory; "." is src/ itself.
layer()
{
	case $1 in
		base) echo 0 ;;
		format) echo 1 ;;
		key) echo 2 ;;
		storage) echo 3 ;;
		index | sort) echo 4 ;;
		segment) echo 5 ;;
		manifest) echo 6 ;;
		read) echo 7 ;;
		compact) echo 8 ;;
		schedule) echo 9 ;;
		ingest) echo 10 ;;
		am | inspect | recovery | exec) echo 11 ;;
		.) echo 12 ;;
		*) return 1 ;;
	esac
}

# may_include FROM TO: whether files in the directory FROM may include headers of the directory TO.
may_include()
{
	[ "$1" = "$2" ] && return 0
	if [ "$1" = recovery ]; then
		[ "$2" = base ] || [ "$2" = format ]
		return
	fi
	if [ "$1" = exec ]; then
		[ "$2" = base ]
		return
	fi
	[ "$(layer "$2")" -lt "$(layer "$1")" ]
}

check_includes()
{
	local file=$1 dir=$2 number header target

	while IFS=: read -r number header; do
		# Our headers are named from src/ on. Whatever is not there belongs to PostgreSQL, unless it is ours without its
		# directory, which would make the rules meaningless.
		if [ ! -e "$header" ]; then
			if [[ $header == *..* || ($header != */* && -e $dir/$header) ]]; then
				finding "src/$file:$number: include \"$header\" must name the header from src/ on"
			fi
			continue
		fi
		target=$(dirname "$header")
		layer "$target" >/dev/null || continue	# reported for the directory itself
		may_include "$dir" "$target" || finding "src/$file:$number: $dir/ must not include $target/ ($header)"
	done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/;t found;d;:found;=;p' "$file" | paste -d: - -)
}

main()
{
	local files file dir lines name count=0

	files=$(find . -name '*.[ch]' | sed 's|^\./||' | sort)
	for file in $files; do
		count=$((count + 1))
		dir=$(dirname "$file")
		if ! layer "$dir" >/dev/null; then
			finding "src/$file: directory $dir/ has no layer"
			continue
		fi
		check_includes "$file" "$dir"
		lines=$(wc -l <"$file")
		[ "$lines" -le $MAX_LINES ] || finding "src/$file: $lines lines, at most $MAX_LINES are allowed"
		if [ "$dir" != base ] && grep -q PG_VERSION_NUM "$file"; then
			finding "src/$file:$(grep -n -m1 PG_VERSION_NUM "$file" | cut -d: -f1): PG_VERSION_NUM belongs in base/"
		fi
		if [ "$file" != storage/emit.c ] && grep -q '"access/xloginsert.h"' "$file"; then
			finding "src/$file: WAL records belong in storage/emit.c"
		fi
	done
	for name in $(find . -name '*.[ch]' | sed 's|.*/||' | sort | uniq -d); do
		finding "src/: more than one file is called $name"
	done
	[ $count -gt 0 ] || finding "src/: no source files"
	printf 'layers: %d files, %d findings\n' $count $FINDINGS
	[ $FINDINGS -eq 0 ]
}

main
