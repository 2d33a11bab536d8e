#!/bin/bash
# Tests of the build: what it makes, what it makes again, and what it says
# when a chapter, a tool or a program is not as it should be. Every case
# works on a copy of the project, so that nothing here can harm the book.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/support.sh

project=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
chapter=chapters/04-masks.nw
unset MAKEFLAGS MAKELEVEL MFLAGS BUILD

# A fresh copy of the sources with everything already made, so that a case
# costs no more than what it changes.
copy() {
  rm -rf "$tree"
  mkdir "$tree"
  cp -a "$project"/{Makefile,LICENSE,book.md,chapters,tools,weave,tangled} "$tree"
  mkdir "$tree/build"
  cp -a "$project"/build/{bin,lib,obj,roots.mk,flags} "$tree/build"
}

# build ARGUMENT...: runs make in the copy; output and status are kept.
build() {
  (cd "$tree" && make "$@") >"$scratch/output" 2>&1
  status=$?
}

lines() { wc -l <"$tree/$chapter"; }
add() { cat >>"$tree/$chapter"; }

# stops NAME TEXT: the last build failed, and said TEXT.
stops() {
  [ "$status" -ne 0 ] && grep -qF -- "$2" "$scratch/output"
  verdict "$1" "$scratch/output" "$2"
}

# ---- Chapters that noweb would tangle wrongly ----

broken_chapter() { # NAME, LINE after the end, MESSAGE; the text from stdin
  copy
  local at=$(($(lines) + $2))
  add
  build tangle
  stops "$1" "$chapter:$at: $3"
  diff -r "$project/tangled" "$tree/tangled" >"$scratch/output"
  verdict "$1 leaves the tangled C alone" "$scratch/output"
}

broken_chapter 'an undefined chunk' 3 'chunk <<a chunk that nobody defines>> is used but never defined' <<'TEXT'

<<masks.c>>=
<<a chunk that nobody defines>>
@
TEXT
broken_chapter 'an unused chunk' 2 'chunk <<a chunk that nobody uses>> is never used and is no file' <<'TEXT'

<<a chunk that nobody uses>>=
int unused;
@
TEXT
broken_chapter 'a misspelt chunk' 2 'chunk <<interface of mask>> is never used and is no file such as masks.c; did you mean <<interface of masks>>?' <<'TEXT'

<<interface of mask>>=
int misspelt;
@
TEXT
broken_chapter 'shifts read as a chunk' 3 'noweb reads << 2 >> as a chunk; if it is two shifts, write @<< or put them on two lines' <<'TEXT'

<<masks.c>>=
int shifted = 1 << 2 >> 1;
@
TEXT
broken_chapter 'a chunk that uses itself' 4 'chunk <<turn around>> uses itself' <<'TEXT'

<<masks.c>>=
<<turn around>>
<<turn around>>=
<<turn around>>
@
TEXT
broken_chapter 'a use that shares its line' 3 'the use of <<crowd>> must stand alone on its line' <<'TEXT'

<<masks.c>>=
int crowd = <<crowd>>;
<<crowd>>=
1
@
TEXT

copy
: >"$tree/$chapter"
build tangle
stops 'an empty chapter' "$chapter:1: the chapter is empty"

copy
sed -i '1s/.*/Masks/' "$tree/$chapter"
build tangle
stops 'a chapter without a title' "$chapter:1: the chapter has no title"

copy
sed -i '7s/$/\r/' "$tree/$chapter"
build tangle
stops 'a chapter with CR LF' "$chapter:7: the line ends in CR LF"

copy
printf 'no end' >>"$tree/$chapter"
build tangle
stops 'a chapter without a last line feed' "$chapter: the last line has no line feed"

copy
printf '\nNon-ASCII prose – naïve, 注意 – and\ta tab.\n\n<<masks.c>>=\n\t/* a tab */\n@\n' | add
build tangle
[ $status -eq 0 ] && grep -q "^        /\* a tab \*/" "$tree/tangled/masks.c"
verdict 'tabs and other alphabets in a chapter' "$scratch/output"

# ---- C that does not compile, programs that fail ----

copy
line=$(($(lines) + 3))
printf '\n<<masks.c>>=\nint broken = ;\n@\n' | add
build chapter-04
stops 'a syntax error is reported in the chapter' "$chapter:$line:"
[ ! "$tree/build/obj/masks.o" -nt "$tree/tangled/masks.c" ]
verdict 'and makes no object'

copy
cp -a "$project/build/out" "$tree/build/out"
add <<'TEXT'

<<names of the fourth day's experiments>>=
{"impossible", "what cannot be", impossible},
<<experiments of the fourth day>>=
static void impossible(report *page) {
    report_claim(page, "impossible", 1 > 2, "one exceeds two");
}
@
TEXT
build build/out/chapter-04/.done
stops 'a false claim stops the build' 'one exceeds two'
diff -r "$project/build/out/chapter-04" "$tree/build/out/chapter-04" >"$scratch/output"
verdict 'and leaves the tables alone' "$scratch/output"

# ---- Made once, made again ----

copy
build -s chapter-04
build -s chapter-04
! grep -qE "compiling|linking|packing" "$scratch/output"
verdict 'a second make only runs the program' "$scratch/output"
build chapter-04
! grep -qE "compiling|linking|packing" "$scratch/output"
verdict 'and says nothing of compiling' "$scratch/output"

copy
printf '\nOne more sentence at the end.\n' | add
build chapter-04
! grep -q compiling "$scratch/output"
verdict 'prose at the end of a chapter recompiles nothing' "$scratch/output"

copy
sed -i '3s/^/One more line of prose.\n/' "$tree/$chapter"
build chapter-04 chapter-02
grep -q "compiling tangled/masks.c" "$scratch/output" && ! grep -q "compiling tangled/generators.c" "$scratch/output"
verdict 'prose that moves code recompiles only what is tangled from there' "$scratch/output"

copy
build chapter-04 CFLAGS=-O1
grep -q "compiling tangled/generators.c" "$scratch/output"
verdict 'another flag recompiles everything' "$scratch/output"

# ---- Tools that are missing ----

# A PATH with every command but the ones named.
path_without() {
  rm -rf "$scratch/path"
  mkdir "$scratch/path"
  local folder tool
  for folder in /usr/local/bin /usr/bin /bin; do
    for tool in "$folder"/*; do
      [ -e "$scratch/path/${tool##*/}" ] || ln -s "$tool" "$scratch/path/${tool##*/}"
    done
  done
  for tool; do rm -f "$scratch/path/$tool"; done
}

for tool in noweave pandoc gnuplot xelatex; do
  copy
  path_without $tool
  PATH=$scratch/path build book
  stops "without $tool the book is not begun" "missing: $tool; the package"
  [ ! -e "$tree/build/out" ] && [ ! -e "$tree/build/book" ]
  verdict "without $tool nothing is made"
done

copy
path_without pandoc gnuplot xelatex
PATH=$scratch/path build -s chapter-04
[ $status -eq 0 ]
verdict "a day's program needs neither pandoc nor TeX nor gnuplot" "$scratch/output"

copy
PKG_CONFIG_LIBDIR=$scratch build chapter-04
stops 'without a BLAS' 'missing: openblas; the package libopenblas-dev brings it'

# ---- What is shipped ----

copy
build dist
[ $status -eq 0 ]
verdict 'make dist packs a tarball' "$scratch/output"
mkdir "$scratch/dist"
tar -xzf "$tree"/build/attention-*.tar.gz -C "$scratch/dist"
dist=$(echo "$scratch"/dist/*)
! grep -rq "^ *#line" "$dist"
verdict 'it holds no line directive'
(cd "$dist" && make -j2) >"$scratch/output" 2>&1
verdict 'it builds with a compiler and a BLAS alone' "$scratch/output"
cmp <("$dist/chapter-04" causal) <("$project/build/bin/chapter-04" causal) && [ -s "$dist/build/prose.txt" ]
verdict 'and computes the same masks'
(cd "$dist" && rm files.o && make JSON_LIBS= files.o) >"$scratch/output" 2>&1 &&
  grep -q 'no cJSON here: models cannot be saved and loaded' "$scratch/output"
verdict 'without cJSON it builds and says what is lost' "$scratch/output"

copy
build install DESTDIR="$scratch/root" PREFIX=/usr
[ $status -eq 0 ]
verdict 'make install' "$scratch/output"
cat >"$scratch/user.c" <<'TEXT'
#include <attention.h>
#include <stdio.h>
int main(void)
{
  attn_torch_generator generator;
  attn_torch_seed(&generator, 0);
  printf("%u\n", (unsigned)attn_torch_u32(&generator));
  return 0;
}
TEXT
export PKG_CONFIG_SYSROOT_DIR=$scratch/root PKG_CONFIG_PATH=$scratch/root/usr/lib/pkgconfig
for kind in shared static; do
  # The flags are to be split into words.
  # shellcheck disable=SC2046
  if [ $kind = shared ]; then
    cc "$scratch/user.c" -o "$scratch/user" $(pkg-config --cflags --libs attention)
  else
    cc "$scratch/user.c" -o "$scratch/user" -I"$scratch/root/usr/include" "$scratch/root/usr/lib/libattention.a" -fopenmp \
      $(env -u PKG_CONFIG_SYSROOT_DIR pkg-config --libs openblas) -lm
  fi >"$scratch/output" 2>&1
  # The first draw of MT19937 seeded with zero is a published constant.
  [ "$(LD_LIBRARY_PATH=$scratch/root/usr/lib "$scratch/user")" = 2357136044 ]
  verdict "a program that uses the $kind library" "$scratch/output"
done
unset PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH
! grep -n '#line\|Tangled from' "$scratch/root/usr/include/attention.h" >"$scratch/output"
verdict 'the installed header sends nobody to the chapters' "$scratch/output"
if command -v c++ >/dev/null 2>&1; then
  cat >"$scratch/user.cc" <<'TEXT'
#include <attention.h>
int main() {
  attn_arena *memory = attn_arena_new();
  const attn_tensor *t = attn_tensor_new(memory, ATTN_SHAPE(2, 3));
  const bool right = t->rank == 2 && t->shape[0] == 2 && t->shape[1] == 3;
  attn_arena_free(memory);
  return right ? 0 : 1;
}
TEXT
  # shellcheck disable=SC2046
  c++ -std=c++11 "$scratch/user.cc" -o "$scratch/user" -I"$scratch/root/usr/include" \
    "$scratch/root/usr/lib/libattention.a" -fopenmp $(pkg-config --libs openblas) -lm >"$scratch/output" 2>&1 && "$scratch/user"
  verdict 'a program in C++' "$scratch/output"
fi
build install PREFIX="$scratch/two words"
[ $status -eq 0 ] && [ -f "$scratch/two words/include/attention.h" ] && [ -f "$scratch/two words/lib/libattention.so" ]
verdict 'make install into a place of two words' "$scratch/output"

copy
build help
grep -q "make check" "$scratch/output"
verdict 'make help lists the jobs'
build clean
[ -z "$(find "$tree/build" "$tree/tangled" -type f ! -name .gitignore)" ]
verdict 'make clean leaves the two folders empty'

finish
