# Reads noweb's markup of the chapters and prints their prose as plain
# text: no code, no formulas on lines of their own, no links or labels. A
# paragraph is a line.

/^@begin docs/ { in_prose = 1; next }
/^@end docs/ { finish(); in_prose = 0; next }
!in_prose { next }
/^@text / { line = line substr($0, 7); next }
/^@nl/ { text = line; line = ""; take(text); next }

# A line of a chapter: a blank one and the fence of a box end a paragraph.
function take(text) {
  if (text ~ /^[ \t]*$/ || text ~ /^[ \t]*:::/)
    finish()
  else
    paragraph = paragraph (paragraph == "" ? "" : " ") text
}

# Everything matching the expression goes, but for its part in brackets.
function keep_inside(text, expression,   before, found) {
  while (match(text, expression)) {
    before = substr(text, 1, RSTART - 1)
    found = substr(text, RSTART, RLENGTH)
    text = substr(text, RSTART + RLENGTH)
    sub(/^!?\[/, "", found)
    sub(/\](\{[^}]*\}|\([^)]*\))$/, "", found)
    text = before found text
  }
  return text
}

# @vaswani2017 is Vaswani.
function name_authors(text,   result, name) {
  while (match(text, /@[a-z]+[0-9]+[a-z]*/)) {
    name = substr(text, RSTART + 1, RLENGTH - 1)
    sub(/[0-9].*/, "", name)
    result = result substr(text, 1, RSTART - 1) toupper(substr(name, 1, 1)) substr(name, 2)
    text = substr(text, RSTART + RLENGTH)
  }
  return result text
}

function finish() {
  if (line != "") {
    paragraph = paragraph (paragraph == "" ? "" : " ") line
    line = ""
  }
  gsub(/\$\$[^$]*\$\$/, "", paragraph)
  gsub(/`[^`]*`\{\.cell\}/, "so many", paragraph)
  gsub(/ *\[-?@[^]]*\]/, "", paragraph)
  sub(/^#+ +/, "", paragraph)
  sub(/ *\{#[^}]*\}$/, "", paragraph)
  paragraph = keep_inside(paragraph, "!?\\[[^][]*\\](\\{[^}]*\\}|\\([^)]*\\))")
  paragraph = name_authors(paragraph)
  gsub(/[*`]/, "", paragraph)
  gsub(/  +/, " ", paragraph)
  gsub(/^ | $/, "", paragraph)
  if (paragraph != "")
    print paragraph
  paragraph = ""
}
