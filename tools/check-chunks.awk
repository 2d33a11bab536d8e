# Reads noweb's markup of all chapters and reports what tangling would
# get wrong without a word, or with a word but no place:
#
#   a chunk that is used but never defined (or a shift taken for one),
#   a chunk that is never used and is no file,
#   a chunk that uses itself,
#   a use that shares its line with other code,
#   a chapter that is empty, has no title, or ends its lines in CR LF.
#
# On success it prints the roots, one file name a line.

function complain(place, message) {
  print place ": " message > "/dev/stderr"
  failed = 1
}

function smallest(a, b, c) {
  if (b < a) a = b
  return c < a ? c : a
}

# Edit distance: how many letters must change to turn a into b.
function distance(a, b,    i, j, before, diagonal, row) {
  for (j = 0; j <= length(b); j++) row[j] = j
  for (i = 1; i <= length(a); i++) {
    diagonal = row[0]
    row[0] = i
    for (j = 1; j <= length(b); j++) {
      before = row[j]
      row[j] = smallest(row[j] + 1, row[j - 1] + 1,
        diagonal + (substr(a, i, 1) != substr(b, j, 1)))
      diagonal = before
    }
  }
  return row[length(b)]
}

# The nearest name in a table, if it is near enough to be a slip.
function suggestion(name, names,    other, d, best, found) {
  best = 1 + int(length(name) / 3)
  for (other in names)
    if (other != name && (d = distance(name, other)) < best) {
      best = d
      found = other
    }
  return found == "" ? "" : "; did you mean <<" found ">>?"
}

function end_file() {
  if (file == "") return
  if (crlf) complain(file ":" crlf, "the line ends in CR LF; save the chapter with plain line feeds")
  else if (!text_seen) complain(file ":1", "the chapter is empty; it begins with a title such as '# Masks {#masks}'")
  else if (!titled) complain(file ":1", "the chapter has no title; its first line is one such as '# Masks {#masks}'")
}

# Walks the uses of a chunk and finds a way back to it.
function visit(name,    i) {
  if (state[name] == 1) {
    complain(defined[name], "chunk <<" name ">> uses itself")
    return
  }
  if (state[name] == 2) return
  state[name] = 1
  for (i = 1; i <= uses_of[name]; i++)
    if (used_by[name, i] in defined) visit(used_by[name, i])
  state[name] = 2
}

function end_line() {
  if (uses_on_line && (uses_on_line > 1 || code_on_line ~ /[^ \t]/))
    crowded[++crowds] = file ":" line SUBSEP last_use
  uses_on_line = 0
  code_on_line = ""
  line++
}

/^@file /      { end_file(); file = substr($0, 7); line = 1; crlf = titled = text_seen = 0; next }
/^@quote$/     { quoted = 1; next }
/^@endquote$/  { quoted = 0; next }
/^@begin code/ { code = 1; next }
/^@end code/   { code = 0; uses_on_line = 0; code_on_line = ""; next }
/^@nl$/        { end_line(); next }
/^@index nl$/  { line++; next }

/^@text / {
  if ($0 ~ /\r$/ && !crlf) crlf = line
  if ($0 ~ /[^ \t]/ && length($0) > 6) {
    if (!text_seen) { text_seen = 1; titled = !code && $0 ~ /^@text # [^ ]/ }
    if (code) code_on_line = code_on_line substr($0, 7)
  }
  next
}

/^@defn / {
  text_seen = 1
  chunk = substr($0, 7)
  if (!(chunk in defined)) { defined[chunk] = file ":" line; order[++chunks] = chunk }
  next
}

/^@use / && !quoted {
  name = substr($0, 6)
  if (!(name in first_use)) { first_use[name] = file ":" line; uses[++used] = name }
  used_by[chunk, ++uses_of[chunk]] = name
  uses_on_line++
  last_use = name
}

END {
  end_file()
  for (i = 1; i <= used; i++) {
    name = uses[i]
    if (name in defined) continue
    shift = name !~ /^[A-Za-z][^;=]*$/ || name ~ /[^A-Za-z)]$/
    if (shift) complain(first_use[name], "noweb reads <<" name ">> as a chunk; if it is two shifts, write @<< or put them on two lines")
    else complain(first_use[name], "chunk <<" name ">> is used but never defined" suggestion(name, defined))
    reported[name] = 1
  }
  for (i = 1; i <= crowds; i++) {
    split(crowded[i], part, SUBSEP)
    if (!(part[2] in reported)) complain(part[1], "the use of <<" part[2] ">> must stand alone on its line")
  }
  for (i = 1; i <= chunks; i++) {
    name = order[i]
    if (name in first_use) continue
    if (name ~ /^[A-Za-z0-9][A-Za-z0-9_-]*\.[ch]$/) roots[++root_count] = name
    else complain(defined[name], "chunk <<" name ">> is never used and is no file such as masks.c" suggestion(name, first_use))
  }
  for (i = 1; i <= chunks; i++) visit(order[i])
  if (!failed && !root_count) complain(file, "no chapter defines a file such as <<masks.c>>")
  if (failed) exit 1
  for (i = 1; i <= root_count; i++) print roots[i], defined[roots[i]]
}
