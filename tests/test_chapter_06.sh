#!/bin/bash
# The values of Day 6 that must come out digit for digit, what its program
# and the program of worked examples do with their arguments.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/support.sh

program=${BUILD:-build}/bin/chapter-06
examples=${BUILD:-build}/bin/attention
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$program" --out "$scratch/out" >"$scratch/console" 2>"$scratch/errors"
verdict 'all of Day 6 runs' "$scratch/errors"

# table NAME FILE: the numbers of a table, without its header and its
# labels, are what stands on standard input.
table() {
  cat >"$scratch/expected"
  tail -n +2 "$scratch/out/$2.tsv" | cut -f 2- | tr '\t' ' ' >"$scratch/found"
  diff "$scratch/expected" "$scratch/found" >"$scratch/difference"
  verdict "$1" "$scratch/difference"
}

table 'library: shapes' library.shapes <<'END'
(2, 6, 32)
(2, 6, 32)
(2, 4, 6, 6)
(2, 6, 6)
END
for row in '0 1.0000 0.0000 0.0000 0.0000 0.0000 0.0000' \
  '5 0.1465 0.1975 0.1535 0.1333 0.1660 0.2033'; do
  tr '\t' ' ' <"$scratch/out/library.tsv" | grep -qx "$row"
  verdict "library: averaged weights of position ${row%% *}" "$scratch/out/library.tsv" "$row"
done
table 'cost: scores and steps' cost <<'END'
64 8 8
16384 128 128
1048576 1024 1024
67108864 8192 8192
END
table 'scores-per-head' scores-per-head <<'END'
16384 0.25 0.0625 0.1
262144 1 1 1.0
4194304 4 16 16.8
67108864 16 256 268.4
1073741824 64 4096 4295.0
END
table 'layer-parameters' layer-parameters <<'END'
4 D D 1048576 2.4
2 D H + H + D 2099712 4.7
4 D 2048 0.0
 3150336 7.1
L layers 18902016 42.5
V D 25600000 57.5
 44502016 100.0
END
cut -f 1-4 "$scratch/out/cache.tsv" | tail -n +2 | tr '\t' ' ' >"$scratch/found"
diff - "$scratch/found" >"$scratch/difference" <<'END'
64 187514880 6193152 30.3
128 844791808 14565376 58.0
256 4105502720 37601280 109.2
512 22169649152 108838912 203.7
END
verdict 'cache: multiply-adds' "$scratch/difference"
tail -n 1 "$scratch/out/memory.running.tsv" | cut -f 6- | tr '\t' ' ' >"$scratch/found"
[ "$(cat "$scratch/found")" = '0.2760 0.1674 0.1015 0.4551' ]
verdict 'memory: a reading ends at the softmax' "$scratch/found"

! cut -f 2 "$scratch"/out/*.claims.tsv | grep -qv '^true$'
verdict 'every claim holds' "$scratch/errors"
for section in library mask-convention scores-per-head layer-parameters timing memory cache; do
  [ -s "$scratch/out/$section.claims.tsv" ]
  verdict "$section claims something"
done

# ---- The program's arguments ----

# parameters ARGUMENTS...: what layer-parameters counts altogether.
parameters() {
  "$program" layer-parameters "$@" 2>"$scratch/errors" | awk '$1 == "all" && $2 != "layers" { print $2 }'
}
[ "$(parameters)" = 44502016 ]
verdict 'layer-parameters as it is printed' "$scratch/errors"
[ "$(parameters V=32000 D=4096 L=32)" = 2816147456 ]
verdict 'V, D and L can be set' "$scratch/errors"
[ "$(parameters H=0)" = '' ] && grep -q 'chapter-06: H is a whole number from 1 to ' "$scratch/errors"
verdict 'H=0 is refused' "$scratch/errors"
[ "$(parameters h=16)" = 44502016 ]
verdict 'h does not change the count' "$scratch/errors"
"$program" layer-parameters h=7 | grep -q '7 heads do not divide a width of 512'
verdict 'heads that do not divide the width are mentioned'
"$program" layer-parameters W=3 >"$scratch/none" 2>"$scratch/errors"
[ $? -eq 2 ] && [ ! -s "$scratch/none" ]
verdict 'W=3 is refused' "$scratch/errors"
"$program" --help | grep -q ' D=512 .*width'
verdict '--help shows what can be set'

# Timings apart, two runs and any number of threads print the same.
for threads in 1 3; do
  OMP_NUM_THREADS=$threads "$program" --out "$scratch/threads$threads" \
    library mask-convention cost scores-per-head layer-parameters >"$scratch/console"
done
diff -r "$scratch/threads1" "$scratch/threads3" >"$scratch/difference"
verdict 'one thread and three print the same' "$scratch/difference"

# ---- The worked examples ----

# headings ARGUMENTS...: the sections that a run shows, in one line.
headings() {
  "$examples" "$@" 2>"$scratch/errors" | awk -F: 'underlined($0) { print before } { before = $1 }
    function underlined(line) { return line ~ /^-+$/ && before !~ /^ / && before != "" }' | paste -sd' '
}
every='one-query selecting scaling-entropy mask-then-softmax scores-per-head layer-parameters'
[ "$(headings)" = "$every" ]
verdict 'attention: all without an option' "$scratch/errors"
for pair in '--one=one-query' '--select=selecting' '--scale=scaling-entropy' '--mask=mask-then-softmax' \
  '--params=layer-parameters scores-per-head'; do
  [ "$(headings "${pair%%=*}")" = "${pair#*=}" ]
  verdict "attention ${pair%%=*}" "$scratch/errors" "${pair#*=}"
done
[ "$(headings --mask --one)" = 'mask-then-softmax one-query' ]
verdict 'attention: options in their order' "$scratch/errors"
"$examples" --par >"$scratch/none" 2>"$scratch/errors"
[ $? -eq 2 ] && [ ! -s "$scratch/none" ] && grep -q 'no option "--par"' "$scratch/errors"
verdict 'attention: an unknown option' "$scratch/errors"
"$examples" --help | grep -q -e '--params'
verdict 'attention --help'

# Its tables are those of the days.
"$examples" --out "$scratch/examples" >"$scratch/console" 2>"$scratch/errors"
verdict 'attention writes its tables' "$scratch/errors"
for day in 02 04 06; do
  "${BUILD:-build}/bin/chapter-$day" --list | awk '{ print $1 }' >"$scratch/sections"
  for section in $every; do
    grep -qx "$section" "$scratch/sections" || continue
    "${BUILD:-build}/bin/chapter-$day" --out "$scratch/day" "$section" >"$scratch/console"
    cmp -s "$scratch/day/$section.tsv" "$scratch/examples/$section.tsv"
    verdict "attention and Day ${day#0} agree about $section"
  done
done

finish
