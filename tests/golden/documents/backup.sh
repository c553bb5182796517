#!/usr/bin/env bash
# Copy a folder to a dated archive and keep the newest few.
#
# Usage: backup.sh FOLDER TARGET [KEEP]

set -euo pipefail

readonly DEFAULT_KEEP=7

usage() {
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

log() {
    printf '%s %s\n' "$(date -u +%FT%TZ)" "$*" >&2
}

# Write the archive under another name first, so that a half-written one is never taken for a whole one.
archive() {
    local folder=$1 target=$2 name
    name="$(basename "$folder")-$(date -u +%Y%m%dT%H%M%SZ).tar.gz"
    tar --create --gzip --file "$target/.$name.part" --directory "$(dirname "$folder")" \
        "$(basename "$folder")"
    mv "$target/.$name.part" "$target/$name"
    log "wrote $target/$name"
}

prune() {
    local target=$1 keep=$2 old
    find "$target" -maxdepth 1 -name '*.tar.gz' -printf '%T@ %p\n' | sort -rn | tail -n "+$((keep + 1))" |
        cut -d' ' -f2- |
        while IFS= read -r old; do
            rm -- "$old"
            log "removed $old"
        done
}

main() {
    [[ $# -ge 2 ]] || usage
    local folder=$1 target=$2 keep=${3:-$DEFAULT_KEEP}
    [[ -d $folder ]] || { log "$folder is no folder"; exit 1; }
    mkdir -p "$target"
    archive "$folder" "$target"
    prune "$target" "$keep"
}

main "$@"
