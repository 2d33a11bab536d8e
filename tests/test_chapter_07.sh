#!/bin/bash
# The values of Day 7: digit for digit where nothing is trained, in their
# ranges where something is; and what its program does with its settings.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/support.sh

program=${BUILD:-build}/bin/chapter-07
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

OMP_NUM_THREADS=2 "$program" --out "$scratch/out" --save "$scratch/model" >"$scratch/console" 2>"$scratch/errors"
verdict 'all of Day 7 runs' "$scratch/errors"

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

table 'block: the parameters of its parts' block <<'END'
64
4224
64
8352
12704
END
grep -q '(2, 8, 32) goes in and (2, 8, 32) comes out' "$scratch/out/block.claims.tsv"
verdict 'block: the shape'
grep -q '12704 parameters make (2, 10, 32) of (2, 10, 32)' "$scratch/out/post-norm.claims.tsv"
verdict 'post-norm: shape and parameters'
table 'against-recurrent: parameters' against-recurrent 2 <<'END'
6722
19266
25538
13666
26370
END
between 'against-recurrent: RNN' against-recurrent RNN 3 0.60 0.65
between 'against-recurrent: LSTM' against-recurrent LSTM 3 0.965 0.995
between 'against-recurrent: one block' against-recurrent 'one block' 3 0.995 1
between 'against-recurrent: two blocks' against-recurrent 'two blocks' 3 0.995 1
between 'attention-map: accuracy' attention-map.model 'one head' 3 0.86 0.89
between 'attention-map: row 0 looks at position 3' attention-map '0: 5' 5 0.95 1
between 'first-step: step 0' first-step 0 2 0.99 1
table 'language-models: parameters, shapes and reach' language-models 2- <<'END'
1280 (11, 256) 1
181  
1461 (11, 256) 1
10240  
11971 (11, 256) 11
END
between 'trained-on-this-book: the transformer' trained-on-this-book transformer 4 1 2.6
between 'trained-on-this-book: the feed-forward model' trained-on-this-book feed-forward 4 3 3.8
between 'no-mask: the training loss' no-mask without 3 0 0.25

! cut -f 2 "$scratch"/out/*.claims.tsv | grep -qv '^true$'
verdict 'every claim holds'
for section in block post-norm norm-placement against-recurrent attention-map \
  not-an-explanation first-step language-models trained-on-this-book no-mask; do
  [ -s "$scratch/out/$section.claims.tsv" ]
  verdict "$section claims something"
done
for figure in norm-placement.losses norm-placement.spread attention-map first-step first-step.steps \
  trained-on-this-book.bits; do
  [ -s "$scratch/out/$figure.gp" ]
  verdict "the figure $figure is drawn"
done

# ---- The text ----

! grep -qE ':::|<<|\{#|\]\(' build/prose.txt && grep -q '^The bottleneck$' build/prose.txt
verdict 'the text is prose without code and without marks'
"$program" trained-on-this-book --text "$scratch/nowhere" >"$scratch/found" 2>"$scratch/errors"
[ $? -eq 2 ] && grep -q 'nowhere.*make prose' "$scratch/errors"
verdict 'a missing text' "$scratch/errors" 'which job makes it'
head -c 9000 build/prose.txt >"$scratch/short"
"$program" no-mask --text "$scratch/short" >"$scratch/found" 2>"$scratch/errors"
[ $? -eq 2 ] && grep -q 'shorter than' "$scratch/errors"
verdict 'a text that is too short' "$scratch/errors"

# ---- Writing ----

# written NAME SETTING...: the model that was saved writes this file.
written() {
  "$program" trained-on-this-book --load "$scratch/model" --out "$scratch/$1" "${@:2}" >"$scratch/found" 2>"$scratch/errors" &&
    mv "$scratch/$1/trained-on-this-book.after.tsv" "$scratch/$1.tsv"
}
written again
cmp -s "$scratch/again.tsv" "$scratch/out/trained-on-this-book.after.tsv"
verdict 'a saved model writes the same again' "$scratch/errors"
written other --seed 4 && ! cmp -s "$scratch/other.tsv" "$scratch/again.tsv"
verdict 'another seed writes something else' "$scratch/errors"
written cold --temperature 0 --prompt 'The mask' && written colder --temperature 0 --seed 9 --prompt 'The mask' &&
  grep -q 'The mask' "$scratch/cold.tsv" && cmp -s "$scratch/cold.tsv" "$scratch/colder.tsv"
verdict 'at temperature 0 the seed does not matter, and the prompt does' "$scratch/errors"
"$program" trained-on-this-book --temperature -1 >"$scratch/found" 2>"$scratch/errors"
[ $? -eq 2 ] && grep -q -- '--temperature' "$scratch/errors"
verdict 'a negative temperature' "$scratch/errors"
head -c 1000 "$scratch/model" >"$scratch/broken"
"$program" trained-on-this-book --load "$scratch/broken" >"$scratch/found" 2>"$scratch/errors"
[ $? -eq 3 ] && grep -q 'attn_load' "$scratch/errors"
verdict 'a broken model' "$scratch/errors"

# ---- Threads ----

# The sections that train in parallel, and are not too slow for one thread.
sections='norm-placement attention-map not-an-explanation no-mask'
# shellcheck disable=SC2086
OMP_NUM_THREADS=1 "$program" --out "$scratch/one" $sections >"$scratch/console"
rm -f "$scratch/found"
for file in "$scratch"/one/*; do
  diff "$file" "$scratch/out/${file##*/}" >>"$scratch/found"
done
[ ! -s "$scratch/found" ]
verdict 'one thread and two print the same' "$scratch/found"

finish
