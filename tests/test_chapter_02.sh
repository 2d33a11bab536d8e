#!/bin/bash
# The values of Day 2 that must come out digit for digit, as PyTorch and
# NumPy give them for the same seeds.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/support.sh

program=${BUILD:-build}/bin/chapter-02
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$program" --out "$scratch/out" >"$scratch/console" 2>"$scratch/errors"
verdict 'all of Day 2 runs' "$scratch/errors"

# table NAME FILE [COLUMNS]: what stands in a table, without its header
# and its labels, or in some of its columns, is what stands on standard
# input.
table() {
  cat >"$scratch/expected"
  tail -n +2 "$scratch/out/$2.tsv" | cut -f "${3:-2-}" | tr '\t' ' ' >"$scratch/found"
  diff "$scratch/expected" "$scratch/found" >"$scratch/difference"
  verdict "$1" "$scratch/difference"
}

table 'one-query: from scores to weights' one-query <<'END'
0.3200 0.1848 1.2029 0.3369
0.1300 0.0751 1.0779 0.3019
0.4400 0.2540 1.2892 0.3611
  3.5701 1.0000
END
table 'one-query: output' one-query.output <<'END'
0.4118 0.4514 0.5816
END
table 'one-query: entropy' one-query.entropy 2 <<'END'
1.5811
1.5850
END
table 'selecting: weights and entropies' selecting <<'END'
0.8520 0.0634 0.0846 0.7507
0.0829 0.0829 0.8343 0.8135
0.3333 0.3333 0.3333 1.5850
END
table 'qkv: weights' qkv <<'END'
0.623 0.181 0.063 0.108 0.026
0.277 0.304 0.105 0.175 0.138
0.030 0.058 0.091 0.060 0.760
0.061 0.174 0.110 0.162 0.493
0.045 0.039 0.425 0.070 0.420
END
table 'qkv: shapes' qkv.shapes <<'END'
(5, 8)
(5, 8)
(5, 8)
(5, 8)
(5, 5)
(5, 8)
END
table 'steps: scores' steps.scores <<'END'
0.47 -0.97 -0.27 -1.25
-0.46 -0.39 -0.89 -0.09
-0.63 -0.73 -0.30 -0.52
-0.41 -0.08 -0.66 -0.24
END
table 'steps: weights' steps.weights <<'END'
0.343 0.207 0.264 0.187
0.249 0.255 0.213 0.283
0.242 0.234 0.272 0.252
0.244 0.274 0.223 0.259
END
head -n 2 "$scratch/out/steps.output.tsv" >"$scratch/out/first.tsv"
table 'steps: first row of the output' first <<'END'
-0.0922 0.3253 0.2059 -0.4530 -0.0881 -0.5665 -0.1528 0.4932
END
table 'why-sqrt: deviation and largest weights' why-sqrt 3- <<'END'
3.579 0.7797 0.3327
5.087 0.9167 0.1394
27.192 0.9995 0.2701
END
table 'scaling-entropy: means of 200 trials' scaling-entropy <<'END'
1.756 1.7771 2.4764 0.5492
3.568 0.9743 2.4970 0.7488
7.202 0.5058 2.4844 0.8577
14.483 0.2512 2.4555 0.9282
28.591 0.1333 2.4894 0.9611
END
table 'equivariance: where the rows went' equivariance 2 <<'END'
2
0
3
1
END
table 'shuffle: in order and shuffled' shuffle <<'END'
-0.18954 0.12116
-0.18954 0.12116
END
table 'characters: codes and targets' characters 3,5 <<'END'
84 114
114 97
97 110
110 115
115 102
102 111
111 114
114 109
109 101
101 100
100 46
END
table 'characters: the embedding has 1280 parameters' characters.sizes 3 <<'END'
1280
1280
1280
1280
END

! cut -f 2 "$scratch"/out/*.claims.tsv | grep -qv '^true$'
verdict 'every claim holds'
for section in one-query selecting qkv steps why-sqrt scaling-entropy \
  equivariance shuffle characters; do
  [ -s "$scratch/out/$section.claims.tsv" ]
  verdict "$section claims something"
done
for figure in scaling-entropy.entropies scaling-entropy.gradients \
  characters.scores characters.weights; do
  [ -s "$scratch/out/$figure.gp" ]
  verdict "the figure $figure is drawn"
done

"$program" one-query >"$scratch/one"
grep -q 'How undecided' "$scratch/one" && ! grep -q 'selecting' "$scratch/one"
verdict 'one section alone' "$scratch/one"

for threads in 1 3; do
  OMP_NUM_THREADS=$threads "$program" --out "$scratch/threads$threads" >"$scratch/console"
done
diff -r "$scratch/threads1" "$scratch/threads3" >"$scratch/difference"
verdict 'one thread and three print the same' "$scratch/difference"

finish
