# shellcheck shell=bash
# Sourced by the shell tests: counts what passed and what failed.
passed=0 failed=0

# verdict NAME [FILE [TEXT]]: judges by the status of the command before
# it. On failure it shows the TEXT that was expected and the end of FILE.
verdict() {
  # The status of the test is what this is about.
  # shellcheck disable=SC2319
  local holds=$?
  if [ $holds -eq 0 ]; then
    passed=$((passed + 1))
    echo "ok - $1"
    return
  fi
  failed=$((failed + 1))
  echo "not ok - $1"
  [ -z "${3-}" ] || echo "# expected: $3"
  [ -z "${2-}" ] || tail -n 8 "$2" | sed 's/^/# /'
}

finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
