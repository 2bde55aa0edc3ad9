# Marks of prompts and commands for zsh, loaded by wsh through ZDOTDIR, which is put back at once.
#
# Descriptor 9 holds, separated by NUL: the nonce, and the user's ZDOTDIR ("-" if unset, else "+" and value). All further
# startup files are found by zsh itself. The hooks go in at the first prompt, after all of them. `typeset -H` keeps
# the nonce out of listings.
#
# __wsh: 1 nonce, 2 number of the next mark, 3 a command has begun, 4 a prompt has been shown, 5 folder last reported,
#        6 how lines are edited ("e", "v" or ""), 7-8 a line that was taken away and its cursor,
#        9 the command is a pipeline, 10 the keymap may have changed

typeset -gaH __wsh
() {
  builtin emulate -L zsh
  local nonce home
  IFS= builtin read -r -d $'\0' -u 9 nonce
  IFS= builtin read -r -d $'\0' -u 9 home
  exec 9<&-
  if [[ $home == +* ]]; then builtin export ZDOTDIR=${home#+}; else builtin unset ZDOTDIR; fi
  __wsh=("$nonce" 0 0 0 "" "" "" 0 0 0)
} 2>/dev/null

if [[ -o interactive && -n ${__wsh[1]} ]]; then
  __wsh_ended() {
    { builtin local __wsh_s=$? __wsh_p="${(j:|:)pipestatus[@]}"
      builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_unset -o no_xtrace
      (( __wsh[9] )) || __wsh_p= # an assignment leaves that of the pipeline before
      if (( __wsh[4] )); then
        __wsh[2]=$(( __wsh[2] + 1 ))
        builtin printf '\e]133;D;%d;wsh=%s;n=%d;c=%d;p=%s;t=%s\a' $__wsh_s $__wsh[1] $__wsh[2] $__wsh[3] "$__wsh_p" "${EPOCHREALTIME-}" >/dev/tty
      fi
      __wsh[3]=0 __wsh[4]=1
      # Ours has to be the first hook (it reads the status) and the last (it closes the prompt).
      if [[ $precmd_functions[1] != __wsh_ended || $precmd_functions[-1] != __wsh_ready ]]; then
        precmd_functions=(__wsh_ended ${precmd_functions:#__wsh_(ended|ready)} __wsh_ready)
      fi
      if [[ $preexec_functions[-1] != __wsh_began ]]; then
        preexec_functions=(${preexec_functions:#__wsh_began} __wsh_began)
      fi
    } 2>/dev/null
  }

  __wsh_ready() {
    { builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_unset -o no_xtrace
      if [[ -n $__wsh[6] && $__wsh[10] == 1 ]]; then
        __wsh[10]=0
        if [[ $(builtin bindkey -lL main) == *vi* ]]; then __wsh[6]=v; else __wsh[6]=e; fi
      fi
      builtin local end=$'%{\e]133;B;wsh\a%}' eol=$'%{\e]6973;wsh-eol\a%}' url=$PWD
      builtin local more=$'%{\e]133;P;k=s;wsh\a%}'
      [[ ${PS2-} == *$more ]] || PS2=${${PS2-}//$more/}$more
      [[ $PS1 == *$end ]] || PS1=${PS1//$end/}$end
      [[ ${PROMPT_EOL_MARK-} == $eol* ]] || PROMPT_EOL_MARK=$eol${PROMPT_EOL_MARK-%B%S%#%s%b}
      if [[ $PWD != "$__wsh[5]" ]]; then
        __wsh[5]=$PWD
        if [[ $url == *[^a-zA-Z0-9/._~-]* ]]; then
          builtin local LC_ALL=C i c out=
          for (( i = 1; i <= ${#url}; i++ )); do
            c=$url[i]
            if [[ $c == [a-zA-Z0-9/._~-] ]]; then out+=$c; else out+=%${(l:2::0:)$(( [##16] #c & 255 ))}; fi
          done
          url=$out
        fi
        builtin printf '\e]7;file://%s%s\a' "$HOST" "$url" >/dev/tty
      fi
      __wsh[2]=$(( __wsh[2] + 1 ))
      builtin printf '\e]133;A;wsh=%s;n=%d;k=%s;d=%s\a' $__wsh[1] $__wsh[2] "$__wsh[6]" "${(qqqq)PWD}" >/dev/tty
    } 2>/dev/null
  }

  __wsh_began() {
    { builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_unset -o no_xtrace
      builtin local word
      __wsh[3]=1 __wsh[9]=0
      [[ $3 == *(bindkey|set|source|.)\ * ]] && __wsh[10]=1
      for word in ${(z)3[1,30000]}; do if [[ $word == '|' || $word == '|&' ]]; then __wsh[9]=1; fi; done
      __wsh[2]=$(( __wsh[2] + 1 ))
      builtin printf '\e]133;C;wsh=%s;n=%d;t=%s;l=%s\a' $__wsh[1] $__wsh[2] "${EPOCHREALTIME-}" "${(qqqq)1[1,30000]}" >/dev/tty
    } 2>/dev/null
  }

  # Bound to private keys in every keymap: tell the line that is being typed, take it away, put it back.
  __wsh_tell() {
    { builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_unset -o no_xtrace
      builtin local mode=i more=
      [[ $CONTEXT == cont ]] && more=1
      if [[ $KEYMAP == vicmd ]]; then
        __wsh[6]=v mode=c
        if [[ -z $BUFFER ]] && builtin zle -K viins; then mode=i; fi
      fi
      __wsh[2]=$(( __wsh[2] + 1 ))
      builtin printf '\e]133;L;wsh=%s;n=%d;k=%s;s=%s;b=%s;q=%s\a' $__wsh[1] $__wsh[2] $mode "$more" "${(qqqq)PREBUFFER[1,30000]}" "${(qqqq)BUFFER[1,30000]}" >/dev/tty
    } 2>/dev/null
  }

  __wsh_take() {
    { builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_unset -o no_xtrace
      __wsh[7]=$PREBUFFER$BUFFER __wsh[8]=$(( ${#PREBUFFER} + CURSOR ))
      if [[ $CONTEXT == cont ]]; then builtin zle send-break; else BUFFER=; fi
      __wsh_tell
    } 2>/dev/null
  }

  __wsh_put() {
    { builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_unset -o no_xtrace
      if [[ -z $BUFFER && $CONTEXT == start ]]; then BUFFER=$__wsh[7] CURSOR=$__wsh[8]; fi
      __wsh_tell
    } 2>/dev/null
  }

  # Runs before the first prompt, after every startup file and after the user's own hooks.
  __wsh_install() {
    { builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_unset -o no_xtrace
      builtin zmodload -F zsh/datetime p:EPOCHREALTIME
      builtin typeset -ga precmd_functions preexec_functions
      precmd_functions=(__wsh_ended ${precmd_functions:#__wsh_*} __wsh_ready)
      preexec_functions=(${preexec_functions:#__wsh_*} __wsh_began)
      if [[ -o zle ]]; then
        builtin local map key
        builtin zle -N __wsh_tell && builtin zle -N __wsh_take && builtin zle -N __wsh_put
        for map in emacs viins vicmd; do
          for key in 5180:tell 5181:take 5182:put; do
            builtin bindkey -M $map $'\e['${key%:*}'~' __wsh_${key#*:} && __wsh[6]=e
          done
        done
        __wsh[10]=1
      fi
      builtin unfunction __wsh_install
    } 2>/dev/null
    __wsh_ended
    __wsh_ready
  }
  if builtin zmodload zsh/sched 2>/dev/null; then
    builtin sched +0 __wsh_install
  else
    typeset -ga precmd_functions
    precmd_functions+=(__wsh_install)
  fi
fi

if [[ -r ${ZDOTDIR:-$HOME}/.zshenv ]]; then
  builtin source "${ZDOTDIR:-$HOME}/.zshenv"
fi
