# Runs go test with two controls in each package that has tests: files that exist only
# in an overlay. Before this stand three variables: folder, template, and a pattern of
# the names of the controls, which is empty if there are to be none.
#
#     sh go.sh go test ARGUMENTS
go=$1
shift 2
case $1 in # go takes this one as the first argument only
-C | --C) cd "$2" || exit 1; shift 2 ;;
-C=* | --C=*) cd "${1#*=}" || exit 1; shift ;;
esac
[ "$controls" ] || exec "$go" test -json "$@"

# Go list is given the packages, and the flags that choose files. A pattern of names
# is extended by the controls.
flags= packages= value= started=
for word; do
  [ "$started" ] || set --
  started=1
  case $value in
  '')
    flag=${word#-} flag=${flag#-} flag=${flag#test.}
    case $word in
    -*) case $flag in
      run=?*) word="$word|$controls" ;;
      race | race=* | msan | msan=* | asan | asan=* | tags=* | mod=* | modfile=* | compiler=*) flags="$flags -$flag" ;;
      run | tags | mod | modfile | compiler | asmflags | bench | benchtime | blockprofile | blockprofilerate | buildmode | count | covermode | coverpkg | coverprofile | \
      cpu | cpuprofile | fuzz | fuzzminimizetime | fuzztime | gccgoflags | gcflags | installsuffix | ldflags | memprofile | memprofilerate | mutexprofile | \
      mutexprofilefraction | outputdir | p | parallel | pgo | pkgdir | shuffle | skip | timeout | toolexec | trace | vet) value=$flag ;;
      esac ;;
    *) packages="$packages $word" ;;
    esac ;;
  run) word="$word${word:+|$controls}" value= ;;
  tags | mod | modfile | compiler) flags="$flags -$value=$word" value= ;;
  *) value= ;;
  esac
  set -- "$@" "$word"
done

set -f # packages have no spaces and no patterns of the shell
flagged() { if [ "$flags" ]; then GOFLAGS="$GOFLAGS$flags" "$go" "$@"; else "$go" "$@"; fi; }
case $("$go" env GOVERSION) in
go1.2[0-3] | go1.2[0-3][!0-9]*) # vet does not know overlays: what go test vets is vetted here
  flagged vet -atomic -bool -buildtags -errorsas -ifaceassert -nilfunc -printf -stringintconv $packages >/dev/null 2>&1 || exec "$go" test -json "$@"
  set -- "$@" -vet=off ;;
esac
overlay=$folder/overlay-$$.json
flagged list -e -find -f "$template" $packages 2>/dev/null | {
  printf '{"Replace":{'
  comma=
  while read -r first last entries; do
    [ "$first" ] || continue
    printf 'package %s\n' "$first" | cat - "$folder/first.txt" >"$folder/first-$first.txt"
    printf 'package %s\n' "$last" | cat - "$folder/last.txt" >"$folder/last-$last.txt"
    printf '%s%s' "$comma" "$entries"
    comma=,
  done
  printf '}}'
} >"$overlay" || exit 125
exec "$go" test -json -overlay "$overlay" "$@"
