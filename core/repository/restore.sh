#!/bin/sh
# Reads a Cairn repository of format 1 with a shell, zstd, jq and sha256sum.
#   sh restore.sh REPOSITORY                     lists the commits that stand
#   sh restore.sh REPOSITORY NUMBER DIRECTORY    restores one into a new directory; NUMBER may be "latest"
# REPOSITORY is a local copy of everything below the prefix. Nothing in it is changed.
set -eu
LC_ALL=C; export LC_ALL
chunk_size=1048576
die() { printf 'restore: %s\n' "$1" >&2; exit 1; }
sum() { sha256sum | cut -c 1-64; }

repo=$1
jq -e '.format == 1 and .chunk_size == 1048576 and .hash == "sha256"' "$repo/FORMAT.json" >/dev/null || die "FORMAT.json: not format 1"
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT

# open NUMBER: puts the text of a commit into $tmp/commit, checked against its second line.
open() {
	zstd -q -d -c "$repo/commit/$1.json.zst" >"$tmp/text"
	head -n 1 "$tmp/text" >"$tmp/commit"
	[ "$(sum <"$tmp/commit")" = "$(tail -n 1 "$tmp/text")" ] || die "commit $1 is damaged"
	jq -e '.format == 1' "$tmp/commit" >/dev/null || die "commit $1: not format 1"
}

# The gc object with the highest number says which commits are gone: those at or below up_to that are not kept.
gc='{"up_to":0,"kept":[]}'
for f in "$repo"/gc/*.json; do [ ! -e "$f" ] || gc=$(cat "$f"); done
latest=
for f in "$repo"/commit/*.json.zst; do
	n=${f##*/}; n=${n%.json.zst}
	printf %s "$gc" | jq -e --argjson n "$(expr "$n" + 0)" '$n > .up_to or any(.kept[]; . == $n)' >/dev/null || continue
	open "$n"
	[ "$(jq -r .kind "$tmp/commit")" = checkpoint ] || continue
	latest=$n
	[ $# -gt 1 ] || jq -r '"\(.number)  step \(.checkpoint.step)  \(.checkpoint.created)  \(.checkpoint.id)  \(.totals.files) files  \(.totals.bytes) bytes"' "$tmp/commit"
done
[ -n "$latest" ] || die "no commit stands"
[ $# -gt 1 ] || exit 0
[ "$2" != latest ] || set -- "$1" "$latest" "$3"

open "$(printf %020d "$(expr "$2" + 0)")"
[ ! -e "$3" ] || die "$3 exists: name a new directory"
out=$3.partial # a restore that ends with an error leaves this
mkdir "$out"
# One line a file and one a chunk. Paths are in base64: they may hold any byte but NUL.
jq -r '.packs as $packs | .files[] |
	"file \(.path_base64 // (.path | @base64)) \(.mode) \(.size)",
	(.chunks[] | "chunk \(if .[0] < 0 then "-" else $packs[.[0]] end) \(.[1]) \(.[2]) \(.[3]) \(.[4])")' "$tmp/commit" >"$tmp/plan"
echo end >>"$tmp/plan"

file=
while read -r what a b c d e; do
	if [ "$what" != chunk ] && [ -n "$file" ]; then # the file before is complete
		[ "$(wc -c <"$file")" -eq "$size" ] || die "$file: not $size bytes"
		chmod "$mode" "$file"
	fi
	case $what in
	file)
		path=$(printf %s "$a" | base64 -d; echo .); path=${path%.}
		case /$path/ in *//* | */./* | */../*) die "path $path" ;; esac
		file=$out/$path mode=$b size=$c at=0
		mkdir -p "${file%/*}"
		[ ! -e "$file" ] || die "$path: given twice"
		: >"$file"
		;;
	chunk) # a=pack b=offset c=stored length d=encoding e=SHA-256 of the content
		length=$((size - at)); [ "$length" -le $chunk_size ] || length=$chunk_size
		if [ "$d" != hole ]; then tail -c "+$((b + 1))" "$repo/pack/$a" | head -c "$c" >"$tmp/stored"; fi
		case $d in
		raw) mv "$tmp/stored" "$tmp/chunk" ;;
		zstd) zstd -q -d -c "$tmp/stored" >"$tmp/chunk" ;;
		hole) dd if=/dev/zero bs="$length" count=1 2>/dev/null >"$tmp/chunk" ;;
		*) die "encoding $d" ;;
		esac
		[ "$(sum <"$tmp/chunk")" = "$e" ] || die "$file: a chunk of pack $a is damaged"
		at=$((at + length))
		if [ "$d" = hole ]; then
			dd if=/dev/null of="$file" bs=1 seek="$at" 2>/dev/null # makes the file longer; the zeros take no space
		else
			cat "$tmp/chunk" >>"$file"
		fi
		[ "$(wc -c <"$file")" -eq "$at" ] || die "$file: a chunk is not $length bytes"
		;;
	esac
done <"$tmp/plan"
sync
mv "$out" "$3"
echo "commit $2 is in $3, complete"
