#!/bin/sh
# usage: test.sh hello|notes <program>: runs an example and compares what it prints.
set -eu
program=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
store=$dir/some/store

expect() {
  if [ "$1" != "$2" ]; then
    printf 'expected:\n%s\ngot:\n%s\n' "$1" "$2"
    exit 1
  fi
}

case $1 in
  hello)
    expect 'hello, run 1 of' "$("$program" "$store" | cut -d' ' -f1-4)"
    expect 'hello, run 2 of' "$("$program" "$store" | cut -d' ' -f1-4)"
    ;;
  notes)
    "$program" "$store" add shop/milk 'two bottles'
    "$program" "$store" add shop/bread 'rye'
    "$program" "$store" add work/call 'the dentist'
    if "$program" "$store" add work/call 'again' 2>"$dir/error"; then exit 1; fi
    expect "there is a note 'work/call' already" "$(cat "$dir/error")"
    "$program" "$store" move shop/milk shop/oats
    "$program" "$store" remove work/call
    if "$program" "$store" remove work/call 2>/dev/null; then exit 1; fi
    expect 'shop/bread: rye
shop/oats: two bottles' "$("$program" "$store" list)"
    expect 'shop/oats: two bottles' "$("$program" "$store" list shop/o)"
    ;;
esac
echo "$1: as expected"
