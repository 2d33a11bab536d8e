#!/bin/bash
# The values of Day 5: digit for digit where nothing is trained, in their
# ranges where something is.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/support.sh

build=${BUILD:-build}
program=$build/bin/chapter-05
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Twelve training runs take their time, and the book has just made them.
out=$build/out/chapter-05
if [ ! -f "$out/.done" ] || [ "$program" -nt "$out/.done" ]; then
  out=$scratch/out
  "$program" --out "$out" >"$scratch/console" 2>"$scratch/errors"
  verdict 'all of Day 5 runs' "$scratch/errors"
fi

# table NAME FILE [COLUMNS]: what stands in a table, without its header
# and its labels, or in some of its columns, is what stands on standard
# input.
table() {
  cat >"$scratch/expected"
  tail -n +2 "$out/$2.tsv" | cut -f "${3:-2-}" | tr '\t' ' ' >"$scratch/found"
  diff "$scratch/expected" "$scratch/found" >"$scratch/difference"
  verdict "$1" "$scratch/difference"
}

# between NAME FILE ROW COLUMN LOW HIGH: a number in its range; the row
# is found by its label, the column counted from 1.
between() {
  awk -F '\t' -v row="$3" -v column="$4" -v low="$5" -v high="$6" \
    '$1 == row { found = $column; ok = found >= low && found <= high }
     END { print row ": " found; exit !ok }' "$out/$2.tsv" >"$scratch/found"
  verdict "$1" "$scratch/found" "$5 to $6"
}

table 'learned: shapes' learned <<'END'
(1, 4, 16)
(4, 16)
(1, 4, 16)
END
between 'learned: a word moves' learned.moved 'word 5 moves from 0 to 1' 2 0.7602 0.7602

table 'sinusoidal: six positions' sinusoidal <<'END'
+0.00 +1.00 +0.00 +1.00 +0.00 +1.00 +0.00 +1.00
+0.84 +0.54 +0.10 +1.00 +0.01 +1.00 +0.00 +1.00
+0.91 -0.42 +0.20 +0.98 +0.02 +1.00 +0.00 +1.00
+0.14 -0.99 +0.30 +0.96 +0.03 +1.00 +0.00 +1.00
-0.76 -0.65 +0.39 +0.92 +0.04 +1.00 +0.00 +1.00
-0.96 +0.28 +0.48 +0.88 +0.05 +1.00 +0.00 +1.00
END
table 'sinusoidal: dot products with position 0' sinusoidal.dots <<'END'
4.00
3.54
2.56
1.96
2.27
3.16
END
# NumPy's sines and cosines, in double precision, give these.
table 'sinusoidal: wider clocks' sinusoidal.widths <<'END'
3 0.884 0.424 0.390 0.281
4 0.957 0.629 0.583 0.257
11 0.970 0.669 0.477 0.159
43 0.973 0.679 0.437 0.176
END

# A turned query and key: every row holds one number four times.
awk -F '\t' 'NR > 1 { for (i = 3; i <= 5; i++) if ($i != $2) different = 1 }
  END { exit different }' "$out/rotary-offsets.tsv"
verdict 'rotary: only the offset counts' "$out/rotary-offsets.tsv"

table 'bias: distances up to the reach' bias-by-distance <<'END'
+0 +1 +2 +3 +3 +3
-1 +0 +1 +2 +3 +3
-2 -1 +0 +1 +2 +3
-3 -2 -1 +0 +1 +2
-3 -3 -2 -1 +0 +1
-3 -3 -3 -2 -1 +0
END
table 'schemes: parameters' schemes.cost 2 <<'END'
4096
0
0
17
END

between 'positions-matter: without' positions-matter 'without positions' 2 0.575 0.595
between 'positions-matter: with' positions-matter 'with positions' 2 0.995 1
between 'positions-matter: the bound of Day 1' positions-matter 'best rule for counts' 2 0.6701 0.6701

for scheme in 3 4 5 6; do
  between "beyond-training-length: scheme $scheme at length 16" beyond-training-length 16 "$scheme" 0.99 1
done
between 'beyond-training-length: learned at 32' beyond-training-length 32 3 0 0.6
between 'beyond-training-length: rotary at 32' beyond-training-length 32 5 0.99 1

table 'first-element: parameters' first-element 2 <<'END'
5218
3298
1186
4546
END
for seed in 3 4 5; do
  between "first-element: seed $((seed - 3)) with positions" first-element 'attention' "$seed" 0.98 1
  between "first-element: seed $((seed - 3)) without" first-element 'attention, no positions' "$seed" 0 0.65
done

! cut -f 2 "$out"/*.claims.tsv | grep -qv '^true$'
verdict 'every claim holds'
for section in learned positions-matter sinusoidal rotary-offsets schemes \
  beyond-training-length first-element; do
  [ -s "$out/$section.claims.tsv" ]
  verdict "$section claims something"
done

# ---- The program's arguments ----

"$program" sinusoidal >"$scratch/one"
grep -q 'Wider and wider clocks' "$scratch/one" && ! grep -q 'positions-matter' "$scratch/one"
verdict 'one section alone' "$scratch/one"

"$program" sinusoidol >"$scratch/none" 2>"$scratch/errors"
[ $? -eq 2 ] && grep -Eq 'did you mean "?sinusoidal' "$scratch/errors" && [ ! -s "$scratch/none" ]
verdict 'a misspelt section' "$scratch/errors" 'did you mean sinusoidal'

"$program" --list >"$scratch/list"
for section in learned positions-matter sinusoidal rotary-offsets bias-by-distance schemes \
  beyond-training-length first-element; do
  grep -q "^ *$section " "$scratch/list"
  verdict "--list names $section" "$scratch/list"
done

# Any number of threads prints the same as the book has.
OMP_NUM_THREADS=3 "$program" --out "$scratch/threads" learned positions-matter \
  rotary-offsets beyond-training-length >"$scratch/console"
for file in "$scratch/threads"/*.tsv "$scratch/threads"/*.gp; do
  diff "$file" "$out/${file##*/}"
done >"$scratch/difference"
[ ! -s "$scratch/difference" ]
verdict 'three threads print the same' "$scratch/difference"

finish
