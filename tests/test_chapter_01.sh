#!/bin/bash
# The values of Day 1: digit for digit where nothing is trained, in their
# ranges where something is.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/support.sh

program=${BUILD:-build}/bin/chapter-01
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

OMP_NUM_THREADS=3 "$program" --out "$scratch/out" >"$scratch/console" 2>"$scratch/errors"
verdict 'all of Day 1 runs' "$scratch/errors"

# table NAME FILE [COLUMNS]: what stands in a table, without its header
# and its labels, or in some of its columns, is what stands on standard
# input.
table() {
  cat >"$scratch/expected"
  tail -n +2 "$scratch/out/$2.tsv" | cut -f "${3:-2-}" | tr '\t' ' ' >"$scratch/found"
  diff "$scratch/expected" "$scratch/found" >"$scratch/difference"
  verdict "$1" "$scratch/difference"
}

# between NAME FILE ROW COLUMN LOW HIGH: a number in its range; the row
# is found by its label, the column counted from 1.
between() {
  awk -F '\t' -v row="$3" -v column="$4" -v low="$5" -v high="$6" \
    '$1 == row { found = $column; ok = found >= low && found <= high }
     END { print row ": " found; exit !ok }' "$scratch/out/$2.tsv" >"$scratch/found"
  verdict "$1" "$scratch/found"
}

table 'task: the first rows and their labels' task <<'END'
9 5 6 2 6 6 4 7 0
1 6 6 3 3 5 3 1 1
3 7 5 7 4 5 1 4 0
5 7 9 5 9 9 6 4 1
END
table 'task: the share of yes' task.sets <<'END'
8000 0.5090
2000 0.5020
END
between 'task: the best rule for counts' task.counts 'best rule on all rows' 2 0.6701 0.6701
between 'task: a network for counts' task.counts 'trained network' 2 0.62 0.67
between 'task: a linear layer for counts' task.counts 'trained linear layer' 2 0.47 0.53
for size in 2 4 8; do
  between "bottleneck: h = $size" bottleneck $size 5 0.47 0.53
done
between 'bottleneck: h = 64' bottleneck 64 5 0.965 0.995
table 'bottleneck: floats and bits of the state' bottleneck 2,3 <<'END'
4 128
8 256
16 512
32 1024
64 2048
128 4096
END
table 'weighted-average: three averages' weighted-average 6- <<'END'
2.000 2.000
0.500 0.875
0.500 0.575
END
table 'path-length: steps' path-length <<'END'
1 1
9 1
29 1
59 1
END
grep -v '^open' "$scratch/out/gradient-path.tsv" >"$scratch/out/paths.tsv"
table 'gradient-path: both ends, and their ratio' paths 2-4 <<'END'
2.427e-17 1.129e-05 4.65e+11
2.503e-17 2.982e-05 1.19e+12
6.268e-06 6.604e-06 1.05
END
[ "$(awk '/^\$series_0/, /^END/' "$scratch/out/gradient-path.steps.gp" | grep -c '^[0-9]')" -eq 60 ]
verdict 'gradient-path: all sixty steps are drawn'

! cut -f 2 "$scratch"/out/*.claims.tsv | grep -qv '^true$'
verdict 'every claim holds'
for section in task bottleneck weighted-average path-length gradient-path; do
  [ -s "$scratch/out/$section.claims.tsv" ]
  verdict "$section claims something"
done
for figure in bottleneck.sizes weighted-average.plane path-length.paths gradient-path.steps; do
  [ -s "$scratch/out/$figure.gp" ]
  verdict "the figure $figure is drawn"
done

OMP_NUM_THREADS=1 "$program" --out "$scratch/one" >"$scratch/console"
rm -f "$scratch/out/paths.tsv"
diff -r "$scratch/one" "$scratch/out" >"$scratch/difference"
verdict 'one thread and three print the same' "$scratch/difference"

finish
