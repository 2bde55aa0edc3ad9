# Marks of prompts and commands for bash 4.4 and later, loaded by wsh in place of the first startup file.
#
# Descriptor 9 holds, separated by NUL: four numbers (the nonce is the xor of each pair), how bash was started ("rc",
# "login" or "posix"), the startup file ("" for the usual one, "-" for none), and the user's ENV ("-" if unset, else "+" and value).
# The user's own startup files run from here, at top level. Functions are defined before that, so that no alias or
# function of theirs can get into ours. State lives in one array, because bash never exports arrays: a nested shell
# that inherits PS0 or PS1 finds the array missing, and prints no mark.
#
# __wsh_s: status of the last command and of its parts
# __wsh: 0 number of the next mark, 1-4 nonce, 5 a command has begun, 6 folder last reported, 7 always empty,
#        8 how many of these there are, 9 a prompt has been shown, 10-11 the marks around PS1, 12 the mark in PS0, 13 a semicolon,
#        14 the number of the next line of the history, 15 the mark in PS2, 16 how lines are edited ("e", "v" or ""),
#        17-18 a line that was taken away and its cursor, 19 the first of PROMPT_COMMAND,
#        from 20 on lines of the history that have begun since the prompt, each behind the number of its mark

if [[ -n ${BASH_VERSION-} && -z ${__wsh+x} ]]; then

__wsh_ended() {
  __wsh_s=("$?" "${PIPESTATUS[@]}")
  # bash-preexec may come first and keeps both for those behind it.
  if [[ -n ${BP_PIPESTATUS+x} && ${PROMPT_COMMAND[0]-} != "${__wsh[19]}" ]]; then
    __wsh_s=("${__bp_last_ret_value:-0}" "${BP_PIPESTATUS[@]}")
  fi
  builtin local IFS='|'
  if [[ ${PS0-} != *"${__wsh[12]}"* ]]; then __wsh[5]=2; fi # nobody could tell that a command began
  if [[ -n ${__wsh[9]} ]]; then
    builtin printf '\e]133;D;%d;wsh=%d.%d;n=%d;c=%d;p=%s;t=%s\a' "${__wsh_s[0]}" \
      "$((__wsh[1] ^ __wsh[2]))" "$((__wsh[3] ^ __wsh[4]))" "$((__wsh[0]++))" "$((__wsh[5]))" \
      "${__wsh_s[*]:1}" "${EPOCHREALTIME-}" >/dev/tty
  fi
  __wsh=("${__wsh[@]:0:__wsh[8]}")
  __wsh[5]=0 __wsh[9]=1
  # An older bash runs all of PROMPT_COMMAND as one text, and its rest wants to see the status of the command.
  if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 501)) && [[ $- != *e* ]]; then return "${__wsh_s[0]}"; fi
  return 0
} 2>/dev/null

__wsh_ready() {
  builtin local "ps=${PS1-}"
  __wsh[16]=''
  if [[ -o emacs ]]; then __wsh[16]=e; elif [[ -o vi ]]; then __wsh[16]=v; fi
  if [[ ${PS1+${PS1@a}} == *r* ]]; then
    builtin printf '\e]133;A;wsh=%d.%d;n=%d;h=%s;k=%s;d=%s\a\e]133;B;wsh\a' "$((__wsh[1] ^ __wsh[2]))" \
      "$((__wsh[3] ^ __wsh[4]))" "$((__wsh[0]++))" "${__wsh[14]@P}" "${__wsh[16]}" "${PWD@Q}" >/dev/tty
  elif [[ $ps != "${__wsh[10]}"*"${__wsh[11]}" ]]; then
    ps=${ps//"${__wsh[10]}"/}
    PS1=${__wsh[10]}${ps//"${__wsh[11]}"/}${__wsh[11]}
  fi
  if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)) && [[ ${PROMPT_COMMAND[0]-} != "${__wsh[19]}" ]]; then
    PROMPT_COMMAND=("${__wsh[19]}" "${PROMPT_COMMAND[@]//"${__wsh[19]}"/}") # somebody put theirs in front
  fi
  ps=${PS0-}
  if [[ $ps != *"${__wsh[12]}" && ${PS0+${PS0@a}} != *r* ]]; then
    PS0=${ps//"${__wsh[12]}"/}${__wsh[12]}
  fi
  ps=${PS2-}
  if [[ $ps != *"${__wsh[15]}" && ${PS2+${PS2@a}} != *r* ]]; then
    PS2=${ps//"${__wsh[15]}"/}${__wsh[15]}
  fi
  if [[ $PWD != "${__wsh[6]}" ]]; then
    __wsh[6]=$PWD
    builtin local "url=$PWD"
    if [[ $url == *[!a-zA-Z0-9/._~-]* ]]; then
      builtin local LC_ALL=C i c
      url=''
      for ((i = 0; i < ${#PWD}; i++)); do
        c=${PWD:i:1}
        if [[ $c == [!a-zA-Z0-9/._~-] ]]; then
          builtin printf -v c %d "'$c"
          builtin printf -v c '%%%02X' "$((c & 255))"
        fi
        url+=$c
      done
    fi
    builtin printf '\e]7;file://%s%s\a' "${HOSTNAME-}" "$url" >/dev/tty
  fi
  return 0
} 2>/dev/null

__wsh_line() { HISTTIMEFORMAT='' builtin history 1; } 2>/dev/null

# Bound to private keys in every keymap: tell the line that is being typed, take it away, put it back.
__wsh_tell() {
  builtin local "line=${READLINE_LINE:0:30000}"
  builtin printf '\e]133;L;wsh=%d.%d;n=%d;k=%s;q=%s\a' "$((__wsh[1] ^ __wsh[2]))" "$((__wsh[3] ^ __wsh[4]))" \
    "$((__wsh[0]++))" "$1" "${line@Q}" >/dev/tty
  return 0
} 2>/dev/null

__wsh_take() {
  __wsh[17]=$READLINE_LINE __wsh[18]=$READLINE_POINT READLINE_LINE='' READLINE_POINT=0
  __wsh_tell "$1"
} 2>/dev/null

__wsh_put() {
  if [[ -z $READLINE_LINE ]]; then READLINE_LINE=${__wsh[17]} READLINE_POINT=${__wsh[18]}; fi
  __wsh_tell "$1"
} 2>/dev/null

# Expanded by bash itself when it shows a prompt: no process, no DEBUG trap, no trace. The nonce is put together there.
__wsh_install() {
  builtin local nonce='wsh=$((__wsh[1]^__wsh[2])).$((__wsh[3]^__wsh[4]));n=$((__wsh[0]++))'
  __wsh[10]='\[${__wsh[1]+\e]133;A;'$nonce';h=\!;k=${__wsh[16]};d=${PWD@Q}\a}\]'
  __wsh[11]='\[${__wsh[1]+\e]133;B;wsh\a}\]'
  # Removing the line from ";" is only a way to have it fetched and kept; bash skips that for an empty value.
  __wsh[12]='${__wsh[1]+\e]133;C;'$nonce'${__wsh[13]#${__wsh[__wsh[8]+__wsh[0]]:=$(__wsh_line)}}h=${__wsh[__wsh[8]+__wsh[0]]@Q}'
  __wsh[12]+=';t=${EPOCHREALTIME-}\a${__wsh[7]:$((__wsh[5]=1)):0}}'
  __wsh[15]='\[${__wsh[1]+\e]133;P;k=s;wsh\a}\]'
  builtin local "map=" "key="
  for map in emacs-standard:e vi-insert:i vi-command:c; do
    for key in 5180:tell 5181:take 5182:put; do
      builtin bind -m "${map%:*}" -x "\"\\e[${key%:*}~\": { __wsh_${key#*:} ${map#*:}; } 2>/dev/null"
    done
    # In the middle of a command bash may take no more than a simple one from a key.
    builtin bind -m "${map%:*}" -x "\"\\e[5183~\": __wsh_tell ${map#*:}"
  done 2>/dev/null
  builtin shopt -q promptvars || return 0
  if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
    PROMPT_COMMAND=("${__wsh[19]}" ${PROMPT_COMMAND+"${PROMPT_COMMAND[@]}"} '{ __wsh_ready; } >/dev/null 2>&1')
  else
    PROMPT_COMMAND=$'{ __wsh_ended; } >/dev/null 2>&1\n'${PROMPT_COMMAND-}$'\n{ __wsh_ready; } >/dev/null 2>&1'
  fi
}

__wsh=(0)
for __wsh_i in 1 2 3 4; do IFS= read -r -d '' -u 9 "__wsh[__wsh_i]"; done
IFS= read -r -d '' -u 9 __wsh_start
IFS= read -r -d '' -u 9 __wsh_file
IFS= read -r -d '' -u 9 __wsh_env
exec 9<&-
__wsh[5]=0 __wsh[6]='' __wsh[7]='' __wsh[8]=20 __wsh[9]='' __wsh[13]=';' __wsh[14]='\!' __wsh[16]='' __wsh[17]='' __wsh[18]=0
__wsh[19]='{ __wsh_ended; } >/dev/null 2>&1'

if [[ $__wsh_start != rc ]]; then
  # bash was started with --posix, for that alone makes it read the file named by ENV and no other.
  set +o posix
  if [[ $__wsh_env == +* ]]; then ENV=${__wsh_env#+}; else unset ENV; fi
  [[ ${HISTFILE-} == ~/.sh_history ]] && HISTFILE=~/.bash_history
  unset __wsh_i __wsh_start __wsh_env
  if [[ $__wsh_file != - ]]; then
    [[ -r /etc/profile ]] && . /etc/profile
    for __wsh_file in ~/.bash_profile ~/.bash_login ~/.profile; do
      if [[ -r $__wsh_file ]]; then . "$__wsh_file"; break; fi
    done
  fi
else
  unset __wsh_i __wsh_start __wsh_env
  [[ -z $__wsh_file ]] && __wsh_file=~/.bashrc
  [[ $__wsh_file != - && -r $__wsh_file ]] && . "$__wsh_file"
fi
unset __wsh_file
if [[ -n ${__wsh[4]} ]] && ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)); then __wsh_install; fi
unset -f __wsh_install

fi
