#!/bin/bash
# The values of Day 4 that must come out digit for digit, as PyTorch gives
# them for the same seeds, and what its program does with its arguments.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/support.sh

program=${BUILD:-build}/bin/chapter-04
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$program" --out "$scratch/out" >"$scratch/console" 2>"$scratch/errors"
verdict 'all of Day 4 runs' "$scratch/errors"

# table NAME FILE: the numbers of a table, without its header and its
# labels, are what stands on standard input.
table() {
  cat >"$scratch/expected"
  tail -n +2 "$scratch/out/$2.tsv" | cut -f 2- | tr '\t' ' ' >"$scratch/found"
  diff "$scratch/expected" "$scratch/found" >"$scratch/difference"
  verdict "$1" "$scratch/difference"
}

table 'causal: weights' causal <<'END'
1.00 0.00 0.00 0.00 0.00 0.00
0.86 0.14 0.00 0.00 0.00 0.00
0.15 0.45 0.40 0.00 0.00 0.00
0.27 0.33 0.23 0.17 0.00 0.00
0.13 0.08 0.29 0.22 0.28 0.00
0.04 0.03 0.54 0.18 0.05 0.16
END
table 'causal: the last query lines up with the last key' causal.unequal <<'END'
1 1 1 1 0 0
1 1 1 1 1 0
1 1 1 1 1 1
END
table 'mask-then-softmax: masked first' mask-then-softmax <<'END'
1.0000 0.0000 0.0000 0.0000 1.0000
0.1824 0.8176 0.0000 0.0000 1.0000
0.2312 0.1402 0.6285 0.0000 1.0000
0.2760 0.1674 0.1015 0.4551 1.0000
END
table 'mask-then-softmax: zeroed after' mask-then-softmax.zeroed <<'END'
0.4551 0.0000 0.0000 0.0000 0.4551
0.1230 0.5512 0.0000 0.0000 0.6742
0.1878 0.1139 0.5105 0.0000 0.8122
0.2760 0.1674 0.1015 0.4551 1.0000
END
table 'padding: the padded sequence' padding <<'END'
0.229 0.223 0.549 0.000 0.000
0.702 0.256 0.042 0.000 0.000
0.363 0.348 0.289 0.000 0.000
0.639 0.211 0.150 0.000 0.000
0.664 0.077 0.259 0.000 0.000
END
table 'self-cross: shapes' self-cross <<'END'
(1, 4, 16) (1, 4, 16) (1, 1, 4, 4) (1, 4, 16)
(1, 4, 16) (1, 7, 16) (1, 1, 4, 7) (1, 4, 16)
(1, 4, 16) (1, 4, 16) (1, 1, 4, 4) (1, 4, 16)
END
table 'additive: nothing to see' additive <<'END'
0.2500 0.2500 0.2500 0.2500
nan nan nan nan
0.0000 0.0000 0.0000 0.0000
END
table 'both: what leaks, padding at the end' both <<'END'
4.3994 3.1919 1.6712
0.0000 1.3464 0.0000
2.8411 0.0000 0.0000
0.0000 0.0000 0.0000
END
table 'one-pass: multiply-adds' one-pass <<'END'
57856 303616 5.2
329728 4458496 13.5
2891776 69738496 24.1
36732928 1109426176 30.2
END
table 'nothing-to-see: NaN in the textbook, none in ours' nothing-to-see <<'END'
25 10 0
24 0 0
64 64 0
64 64 0
64 64 0
40 40 0
END

! cut -f 2 "$scratch"/out/*.claims.tsv | grep -qv '^true$'
verdict 'every claim holds'
for section in causal mask-then-softmax additive padding both no-leak one-pass \
  nothing-to-see; do
  [ -s "$scratch/out/$section.claims.tsv" ]
  verdict "$section claims something"
done

# ---- The program's arguments ----

"$program" causal >"$scratch/one"
grep -q 'Weights under a causal mask' "$scratch/one" &&
  ! grep -q 'mask-then-softmax' "$scratch/one"
verdict 'one section alone' "$scratch/one"

"$program" casual >"$scratch/none" 2>"$scratch/errors"
[ $? -eq 2 ] && grep -qF "did you mean causal?" "$scratch/errors" &&
  [ ! -s "$scratch/none" ]
verdict 'a misspelt section' "$scratch/errors" 'did you mean causal'

"$program" --list >"$scratch/list"
for section in self-cross causal mask-then-softmax additive padding both \
  no-leak one-pass nothing-to-see; do
  grep -q "^ *$section " "$scratch/list"
  verdict "--list names $section" "$scratch/list"
done

# Timings apart, two runs and any number of threads print the same.
for threads in 1 3; do
  OMP_NUM_THREADS=$threads "$program" --out "$scratch/threads$threads" >"$scratch/console"
  rm "$scratch/threads$threads"/one-pass.{time.tsv,claims.tsv,gp}
done
diff -r "$scratch/threads1" "$scratch/threads3" >"$scratch/difference"
verdict 'one thread and three print the same' "$scratch/difference"

finish
