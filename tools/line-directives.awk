# A noweb filter that writes #line directives as text, so that a compiler,
# a debugger and a coverage report point into the chapter. notangle's own
# -L does that too, but drops the indentation of nested chunks.
#
# A directive is due where a chunk begins and where the code goes on after
# another chunk was inserted. If that line only inserts the next chunk,
# the directive of that chunk suffices.

function directive() {
  printf "@text #line %d \"%s\"\n@nl\n", line, file
  due = 0
}

function release() {
  if (due) directive()
  if (held != "") print held
  held = ""
}

/^@file /        { file = substr($0, 7); line = 1 }
/^@begin code/   { code = 1; due = 0; held = "" }
/^@end code/     { code = 0; due = 0; held = "" }
/^@defn /        { starting = 1 }
/^@index nl$/    { line++ }

code && /^@text / {
  if (due && $0 ~ /^@text [ \t]*$/) { held = held == "" ? $0 : held "\n" $0; next }
  release()
}
code && /^@use / { if (held != "") print held; held = ""; due = 0; after_use = 1 }
/^@nl$/ {
  if (code && held != "") release()
  line++
  print
  if (code && (starting || after_use)) { due = 1; starting = after_use = 0 }
  next
}
{ print }
