#!/bin/bash
# Tests of the woven book: what stands on its pages and in its PDF, and
# what the weave says when a chapter asks for something that is not there.
# Works on the book as it was made.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/support.sh

build=${BUILD:-build}
pages=$build/book
project=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# ---- Pages ----

for chapter in chapters/*.nw; do
  key=${chapter##*/}
  [ -s "$pages/${key%.nw}.html" ] || echo "$chapter"
done >"$scratch/unwoven"
[ ! -s "$scratch/unwoven" ]
verdict 'every chapter has its page' "$scratch/unwoven"

# Tags that HTML leaves open are closed, so that XML's rules apply.
for page in "$pages"/*.html; do
  sed -E -e '/<script>/,/<\/script>/d' -e 's/<!DOCTYPE html>//' -e 's/&nbsp;/ /g' \
    -e 's#<(meta|link|hr|br|col|img)([^>]*[^/])?>#<\1\2/>#g' "$page" >"$scratch/page.xml"
  xmllint --huge --noout "$scratch/page.xml" 2>&1 | sed "s,^.*page.xml,$page,"
done >"$scratch/malformed"
[ ! -s "$scratch/malformed" ]
verdict 'pages are well formed' "$scratch/malformed"

# One line for each name and each link of each page.
for page in "$pages"/*.html; do
  name=${page##*/}
  grep -oE '[ <]id="[^"]*"' "$page" | sed "s/.*id=\"/id $name /; s/\"\$//"
  grep -oE ' href="[^"]*"' "$page" | sed "s/.*href=\"/href $name /; s/\"\$//"
done >"$scratch/names"

awk '$1 == "id" && seen[$2 " " $3]++ { print $2 ": the name " $3 " twice" }' "$scratch/names" >"$scratch/twice"
[ ! -s "$scratch/twice" ]
verdict 'a name is given once a page' "$scratch/twice"

awk 'NR == FNR { if ($1 == "id") known[$2 "#" $3] = 1; next }
  $1 != "href" || $3 ~ /^(https?|mailto):/ { next }
  { split($3, part, "#"); page = part[1] == "" ? $2 : part[1] }
  part[1] != "" { files[page] = $2 }
  index($3, "#") && !(page "#" part[2] in known) { print $2 ": leads nowhere: " $3 }
  END { for (file in files) if ((getline line < (directory "/" file)) < 0) print files[file] ": no file " file }
' directory="$pages" "$scratch/names" "$scratch/names" >"$scratch/broken"
[ ! -s "$scratch/broken" ]
verdict 'all links and anchors resolve' "$scratch/broken"

grep -nE '<(link|script|img|iframe|source|video|audio|use|image)[^>]*(src|href)="(https?:)?//' "$pages"/*.html >"$scratch/requests"
grep -nE '@import|url\("?(https?:)?//' "$pages"/style.css "$pages"/*.html >>"$scratch/requests"
[ ! -s "$scratch/requests" ]
verdict 'a page asks nothing of the network' "$scratch/requests"

# The code of a chapter, chunk by chunk, as noweb reads it …
code_of_source() {
  expand "$1" | awk '
    /^<<.*>>=$/ { code = 1; print "[chunk]"; next }
    /^@($| )/ { code = 0; next }
    code {
      sub(/^@@/, "@"); gsub(/@<</, "<<"); gsub(/@>>/, ">>")
      if (/^ *<<.*>>$/) gsub(/\[\[|\]\]/, "")
      print
    }'
}
# … and as its page shows it.
code_of_page() {
  awk '/<template / { exit }
    { rest = $0 }
    {
      while (rest != "" || !printed) {
        printed = 1
        if (!code) {
          at = index(rest, "<pre tabindex=\"0\"><code>")
          if (!at) break
          print "[chunk]"
          rest = substr(rest, at + 24); code = 1
        }
        at = index(rest, "</code></pre>")
        if (!at) { print rest; break }
        if (at > 1 || $0 == rest) print substr(rest, 1, at - 1)
        rest = substr(rest, at + 13); code = 0
      }
      printed = 0
      if (code && rest == "" && $0 == "") print ""
    }' "$1" |
    sed -E -e 's#⟨<i>(([^<]|<[^/]|</[^i])*)</i> <span class="number">[^<]*</span>⟩#\&lt;\&lt;\1\&gt;\&gt;#g' -e 's/<[^>]*>//g' \
      -e "s/&lt;/</g; s/&gt;/>/g; s/&quot;/\"/g; s/&#39;/'/g; s/&amp;/\\&/g"
}
for chapter in chapters/*.nw; do
  key=${chapter##*/}
  code_of_source "$chapter" | sed 's/ *$//' | grep -v '^$' >"$scratch/source"
  code_of_page "$pages/${key%.nw}.html" | sed 's/ *$//' | grep -v '^$' >"$scratch/shown"
  diff "$scratch/source" "$scratch/shown" >"$scratch/difference" || { echo "$chapter"; head -n 5 "$scratch/difference"; }
done >"$scratch/lost"
[ ! -s "$scratch/lost" ]
verdict 'every line of every chunk appears on its page' "$scratch/lost"

grep -c '@defn ' "$build/book.stream" >"$scratch/defined"
grep -oE '<div class="chunk" id="' "$pages"/*.html | wc -l | tr -d ' ' >"$scratch/counted"
diff "$scratch/defined" "$scratch/counted" >"$scratch/difference"
verdict 'every chunk has a place of its own' "$scratch/difference"

# noweb's finder of definitions misses some prototypes of several lines.
grep -oE '\battn_[a-z0-9_]+ ?\(' tangled/attention.h | tr -d ' (' | sort -u | while read -r name; do
  grep -q "id=\"identifier-$name\"" "$pages/identifiers.html" ||
    echo "$name is defined nowhere: \"@ %def $name\" after the chunk that declares it"
done >"$scratch/undefined"
[ ! -s "$scratch/undefined" ]
verdict 'the index of identifiers holds every public function' "$scratch/undefined"

# ---- Numbers ----

# Decimals typed in running text: outside code, math and cells. One digit
# after zeros is a rate or a bound, and turns up in tables by chance.
typed_numbers() {
  awk '
    /^<<.*>>=$/ { code = 1; next }
    /^@($| )/ { code = 0; sub(/^@ ?/, "") }
    !code && /^ *(```|~~~)/ { fence = !fence; next }
    code || fence { next }
    {
      line = pending $0; pending = ""
      gsub(/\[\[[^]]*\]\]/, "", line); gsub(/``[^`]*``/, "", line); gsub(/`[^`]*`/, "", line); gsub(/\$[^$]*\$/, "", line)
      gsub(/\]\([^)]*\)/, "]", line); gsub(/\[[^]@]*@[^]]*\]/, "", line); gsub(/\{[^}]*\}/, "", line)
      # A span of code or math that goes on in the next line waits for it.
      if (line ~ /[`$]/ && $0 !~ /^ *$/) { pending = $0 " "; next }
      while (match(line, /[0-9]+\.[0-9]+/)) {
        number = digits = substr(line, RSTART, RLENGTH)
        gsub(/^[0.]+/, "", digits)
        if (length(digits) > 1) print FNR, number
        line = substr(line, RSTART + RLENGTH)
      }
    }' "$1"
}
for program in "$build"/out/chapter-*; do
  chapter=$(ls chapters/"${program##*chapter-}"-*.nw 2>/dev/null) || continue
  cat "$program"/*.tsv 2>/dev/null | grep -oE '[0-9]+\.[0-9]+' | sort -u >"$scratch/printed"
  typed_numbers "$chapter" | while read -r line number; do
    ! grep -qxF -- "$number" "$scratch/printed" || echo "$chapter:$line: $number is typed, and in a table of the chapter"
  done
done >"$scratch/typed"
[ ! -s "$scratch/typed" ]
verdict 'no number of a table is typed in the prose of its chapter' "$scratch/typed"

# ---- The printed book ----

pdftotext -raw "$build/attention.pdf" - 2>/dev/null | tr -d ' \n\f\r' | sed 's/−/-/g; s/\xc2\xa0//g' >"$scratch/printed"
[ -s "$scratch/printed" ]
verdict 'the PDF has text' "$scratch/printed"

# Every row of every table that a page shows, as the PDF would print it.
grep -ohE '<figure class="table" id="table-[^"]*"' "$pages"/*.html | sed 's/.*id="table-//; s/"$//' | sort >"$scratch/tables"
while read -r id; do
  for table in "$build"/out/*/*.tsv; do
    name=${table##*/}
    name=${name%.tsv}
    [ "${name//./-}" = "$id" ] || continue
    tail -n +2 "$table" | sed -E 's/(^|[[:space:]])(0\.?0*)e[-+][0-9]+/\1\2/g; s/([0-9])e([-+])0*([0-9]+)/\1×10\2\3/g; s/×10\+/×10/g; s/[[:space:]]//g' |
      while read -r row; do
        grep -qF -- "$row" "$scratch/printed" || echo "$table: $row"
      done
  done
done <"$scratch/tables" >"$scratch/missing"
[ -s "$scratch/tables" ] && [ ! -s "$scratch/missing" ]
verdict 'the PDF holds every row of every table' "$scratch/missing"

pdfinfo -dests "$build/attention.pdf" 2>/dev/null | grep -c '"' >"$scratch/destinations"
[ "$(cat "$scratch/destinations")" -gt "$(cat "$scratch/defined")" ]
verdict 'the PDF has a destination for every chunk' "$scratch/destinations"

grep -aE 'Missing character|undefined on input' "$build/print/attention.log" >"$scratch/holes"
[ ! -s "$scratch/holes" ]
verdict 'the PDF lacks no sign and no reference' "$scratch/holes"

# A note in the margin of a note in the margin would be lost.
awk '/begin\{weaveaside\}/ { aside = 1 }
  aside && /\\weaveclaim\{/ { print FILENAME ":" FNR ": " $0; lost = 1 }
  /end\{weaveaside\}/ { aside = 0 }
  END { exit lost }' "$build/attention.tex" >"$scratch/lost"
verdict 'a claim in an aside tells its numbers there' "$scratch/lost"

# ---- What the weave says ----

tree=$scratch/tree
chapter=chapters/04-masks.nw
noweb=$(tools/noweb-library)

# A copy of the chapter and of what its programs printed.
copy() {
  rm -rf "$tree"
  mkdir -p "$tree/chapters" "$tree/build"
  cp "$chapter" "$tree/$chapter"
  cp chapters/references.bib "$tree/chapters"
  cp -R "$build/out" "$tree/build/out"
  cp "$build/book.map" "$tree/build"
  ln -s "$project/weave" "$tree/weave"
  : >"$tree/book.md"
}
add() { # text after the end of the chapter, which may end in code
  printf '@\n' >>"$tree/$chapter"
  cat >>"$tree/$chapter"
}
end_of_chapter() { wc -l <"$tree/$chapter"; }

# Weaves the page of the copy, or the book of that one chapter.
weave() { # page KEY or book
  (
    cd "$tree" || exit 1
    "$noweb/markup" "$chapter" >first && "$noweb/autodefs.c" <first >second &&
      "$noweb/finduses" <second >first && "$noweb/noidx" <first >stream || exit 1
    weave/weave "$@" stream output
  ) >"$scratch/said" 2>&1
  status=$?
}

copy
weave page 04-masks
[ $status -eq 0 ] && [ -s "$tree/output" ]
verdict 'the copy of a chapter weaves' "$scratch/said"

refuses() { # NAME MESSAGE: in both formats the place is named and nothing is written
  : >"$tree/output"
  weave page 04-masks
  [ $status -ne 0 ] && grep -qF -- "$2" "$scratch/said" && [ ! -e "$tree/output" ] && [ ! -e "$tree/output.part" ]
  verdict "$1 is refused" "$scratch/said" "$2"
}

# broken NAME LINE MESSAGE: text from the standard input goes after the
# chapter; the message is about its line LINE.
broken() {
  copy
  local at=$(($(end_of_chapter) + 1 + $2))
  add
  refuses "$1" "$chapter:$at: $3"
}

broken 'a table of no section' 2 'no table nowhere; there is ' <<'TEXT'

![Nothing.](table:nowhere)
TEXT
broken 'an unknown table of a section' 2 'no table causal/nowhere; there is causal, causal/' <<'TEXT'

![Nothing.](table:causal/nowhere)
TEXT
broken 'a figure of no section' 2 'no figure nowhere; there is ' <<'TEXT'

![Nothing.](figure:nowhere)
TEXT
broken 'a table inside a paragraph' 3 'a table stands alone in its paragraph' <<'TEXT'

Some words before
![Nothing.](table:causal) the table.
TEXT
broken 'a cell of no table' 3 'no table nowhere; there is ' <<'TEXT'

A number,
`nowhere[0, 1]`{.cell}.
TEXT
broken 'a cell of no row' 2 'no row "seven" in table causal; its rows are ' <<'TEXT'

A number, `causal[seven, 1]`{.cell}.
TEXT
broken 'a cell of no column' 2 'no column "seven" in table causal; its columns are ' <<'TEXT'

A number, `causal[0, seven]`{.cell}.
TEXT
broken 'a cell that is none' 2 'a cell is written SECTION[ROW, COLUMN]' <<'TEXT'

A number, `causal 0 1`{.cell}.
TEXT
broken 'a claim that no program makes' 3 'no program makes the claim causal/nowhere; there is causal/' <<'TEXT'

[A sentence
over two lines.]{claim="causal/nowhere"}
TEXT
broken 'a link to nothing' 2 'nothing in the book is called #nowhere' <<'TEXT'

See [there](#nowhere).
TEXT
broken 'an unknown reference' 2 'no reference is called @nobody1900' <<'TEXT'

Somebody said so [@nobody1900].
TEXT
broken 'an unknown chunk in the prose' 2 'no chunk is called <<a chunk that nobody defines>>' <<'TEXT'

As in [[<<a chunk that nobody defines>>]].
TEXT
broken 'a formula that has no MathML' 3 'pandoc makes no MathML of $\notacommand{' <<'TEXT'

Some words and
$\notacommand{x} + 1$.
TEXT
broken 'an aside without end' 2 '"::: aside" is never closed' <<'TEXT'

::: aside
Some words.
TEXT

copy
claims=$tree/build/out/chapter-04/causal.claims.tsv
name=$(cut -f 1 "$claims" | head -n 1)
line=$(grep -n "claim=\"causal/$name\"" "$chapter" | cut -d : -f 1)
sed "1s/	true	/	false	/" "$claims" >"$claims.new" && mv "$claims.new" "$claims"
refuses 'a false claim' "$chapter:$line: this is false: \""
grep -qF "chapter-04 causal says: $(head -n 1 "$claims" | cut -f 3)" "$scratch/said"
verdict 'a false claim is told with its numbers' "$scratch/said"

copy
printf 'unseen\ttrue\tnobody has seen this\n' >>"$claims"
refuses 'a claim that no chapter shows' "chapter-04 makes the claim causal/unseen, which no chapter shows"

copy
sed '1,/^# /s/^# .*//' "$chapter" >"$tree/$chapter"
refuses 'a chapter without a title' "$chapter:1: a chapter starts with its title"
copy
: >"$tree/$chapter"
weave page 04-masks
[ $status -ne 0 ] && [ ! -e "$tree/output" ]
verdict 'an empty chapter is refused' "$scratch/said"

copy
add <<'TEXT'

![Nothing.](table:nowhere)

See [there](#nowhere).
TEXT
: >"$tree/output"
weave book
[ $status -ne 0 ] && [ "$(grep -c "^$chapter:" "$scratch/said")" -ge 2 ] && [ ! -e "$tree/output" ]
verdict 'the printed book refuses too, and tells everything at once' "$scratch/said"

copy
weave page 04-masks
cp "$tree/output" "$scratch/plain.html"
sed 's/$/\r/' "$chapter" >"$tree/$chapter"
weave page 04-masks
cmp -s "$tree/output" "$scratch/plain.html"
verdict 'lines may end as on Windows' "$scratch/said"

copy
add <<'TEXT'

Zwölf größere Übungen: 中文, Ελληνικά, ½, “quoted”.
TEXT
weave page 04-masks
grep -qF 'Zwölf größere Übungen: 中文, Ελληνικά, ½, “quoted”.' "$tree/output"
verdict 'prose may use any script' "$scratch/said"

finish
