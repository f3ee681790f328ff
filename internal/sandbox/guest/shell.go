package guest

// A command runs in a shell of its own that begins with the state that the last
// one left and leaves its own state at the end. To the commands that is one shell
// session, yet none of them can break it: a shell that calls exit or exec, or is
// killed, leaves at worst no new state.
//
// A command may name the folder in which it starts; then the folder of the state that
// it leaves is the one that it found. Each session has a state of its own.
//
// The scripts below get the state's file, or nothing for a fresh shell, the command's
// file, and last the folder.
// Everything in them is built in, so no process is started besides the command's.
// The state goes to a file that is empty then. Its last line marks it as whole. When
// memory runs short, the kernel is to take the command and not the guest.

const stateMark = "# whole"

// bashScript keeps folder, variables, functions, aliases, options and the file
// mode mask. Options that are as in a new shell are left out: to write them line by line
// takes as long as all else of it. The guest leaves out variables of the shell's own; see withoutOwn.
const bashScript = `
__toryo_state=$1 __toryo_command=$2 __toryo_folder=$5 __toryo_was= __toryo_set=$SHELLOPTS __toryo_shopt=$BASHOPTS
ulimit -c 0 2>/dev/null
{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null
[ "$3" = 0 ] || ulimit -u "$3" 2>/dev/null
[ "$4" = 0 ] || ulimit -f "$4" 2>/dev/null
set --
[ -r "$__toryo_state" ] && . "$__toryo_state" 2>/dev/null
[ -z "$__toryo_folder" ] || { __toryo_was=$PWD; \builtin cd -- "$__toryo_folder" || exit; }
[ -z "$__toryo_state" ] || trap '{
  [ "$SHELLOPTS" = "$__toryo_set" ] || set +o
  set +eux
  [ -z "$__toryo_was" ] || \builtin cd -- "$__toryo_was"
  declare -p
  declare -f; alias -p; umask -p
  [ "$BASHOPTS" = "$__toryo_shopt" ] || shopt -p
  printf "builtin cd -- %q\n" "$PWD"
  printf "%s\n" "` + stateMark + `"
} >>"$__toryo_state.new" 2>/dev/null' EXIT
. "$__toryo_command"
`

// plainScript is for a shell that is not bash: it keeps the folder, exported
// variables and the file mode mask.
const plainScript = `
__toryo_state=$1 __toryo_command=$2 __toryo_folder=$5 __toryo_was=
ulimit -c 0 2>/dev/null
{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null
[ "$3" = 0 ] || ulimit -p "$3" 2>/dev/null
set --
[ -r "$__toryo_state" ] && . "$__toryo_state" 2>/dev/null
[ -z "$__toryo_folder" ] || { __toryo_was=$PWD; \command cd -- "$__toryo_folder" || exit; }
[ -z "$__toryo_state" ] || trap '{
  [ -z "$__toryo_was" ] || \command cd -- "$__toryo_was"
  export PWD
  export -p
  echo "umask $(umask)"
  printf "%s\n" "cd -- \"\$PWD\"" "` + stateMark + `"
} >>"$__toryo_state.new" 2>/dev/null' EXIT
. "$__toryo_command"
`
