#!/bin/bash
# The values of Day 3 that must come out digit for digit.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/support.sh

program=${BUILD:-build}/bin/chapter-03
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$program" --out "$scratch/out" >"$scratch/console" 2>"$scratch/errors"
verdict 'all of Day 3 runs' "$scratch/errors"

# table NAME FILE [COLUMNS]: what stands in a table, without its header
# and its labels, or in some of its columns, is what stands on standard
# input.
table() {
  cat >"$scratch/expected"
  tail -n +2 "$scratch/out/$2.tsv" | cut -f "${3:-2-}" | tr '\t' ' ' >"$scratch/found"
  diff "$scratch/expected" "$scratch/found" >"$scratch/difference"
  verdict "$1" "$scratch/difference"
}

table 'shapes: from the input to the output' shapes <<'END'
(2, 6, 32)
(2, 4, 6, 8)
(2, 4, 6, 6)
(2, 4, 6, 6)
(2, 4, 6, 8)
(2, 6, 32)
(2, 6, 32)
END
table 'shapes: 4224 parameters' shapes.parameters <<'END'
(96, 32) 3072
(96) 96
(32, 32) 1024
(32) 32
 4224
END
table 'heads-are-free: what 1, 2, 4 and 8 heads take' heads-are-free <<'END'
4224 409600 320000 320000 10000
4224 409600 320000 320000 20000
4224 409600 320000 320000 40000
4224 409600 320000 320000 80000
END
table 'heads-differ: weights of position 0' heads-differ <<'END'
0.08 0.09 0.25 0.20 0.24 0.14
0.21 0.16 0.16 0.14 0.15 0.18
0.15 0.24 0.08 0.15 0.16 0.22
0.22 0.18 0.17 0.14 0.16 0.13
END
table 'list-of-heads: shapes and parameters' list-of-heads <<'END'
(12, 5) 
(12, 512) 2560
(12, 5) 10240
END

! cut -f 2 "$scratch"/out/*.claims.tsv | grep -qv '^true$'
verdict 'every claim holds'
for section in two-relations shapes heads-are-free heads-differ list-of-heads; do
  [ -s "$scratch/out/$section.claims.tsv" ]
  verdict "$section claims something"
done
[ -s "$scratch/out/heads-differ.maps.gp" ]
verdict 'the maps of four heads are drawn'

# All but the times.
for threads in 1 3; do
  OMP_NUM_THREADS=$threads "$program" --out "$scratch/threads$threads" \
    two-relations shapes heads-differ list-of-heads >"$scratch/console"
done
diff -r "$scratch/threads1" "$scratch/threads3" >"$scratch/difference"
verdict 'one thread and three print the same' "$scratch/difference"

finish
