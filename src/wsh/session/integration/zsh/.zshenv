# Marks of prompts and commands for zsh, loaded by wsh through ZDOTDIR, which is put back at once.
#
# Descriptor 9 holds, separated by NUL: the nonce, and the user's ZDOTDIR ("-" if unset, else "+" and value). All further
# startup files are found by zsh itself. The hooks go in at the first prompt, after all of them. `typeset -H` keeps
# the nonce out of listings.
#
# __wsh: 1 nonce, 2 number of the next mark, 3 a command has begun, 4 a prompt has been shown, 5 folder last reported

typeset -gaH __wsh
() {
  builtin emulate -L zsh
  local nonce home
  IFS= builtin read -r -d $'\0' -u 9 nonce
  IFS= builtin read -r -d $'\0' -u 9 home
  exec 9<&-
  if [[ $home == +* ]]; then builtin export ZDOTDIR=${home#+}; else builtin unset ZDOTDIR; fi
  __wsh=("$nonce" 0 0 0 "")
} 2>/dev/null

if [[ -o interactive && -n ${__wsh[1]} ]]; then
  __wsh_ended() {
    { builtin local __wsh_s=$? __wsh_p="${(j:|:)pipestatus[@]}"
      builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_unset -o no_xtrace
      if (( __wsh[4] )); then
        builtin printf '\e]133;D;%d;wsh=%s;n=%d;c=%d;p=%s;t=%s\a' $__wsh_s $__wsh[1] $__wsh[2] $__wsh[3] "$__wsh_p" "${EPOCHREALTIME-}" >/dev/tty
        __wsh[2]=$(( __wsh[2] + 1 ))
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
      builtin printf '\e]133;A;wsh=%s;n=%d;d=%s\a' $__wsh[1] $__wsh[2] "${(qqqq)PWD}" >/dev/tty
      __wsh[2]=$(( __wsh[2] + 1 ))
    } 2>/dev/null
  }

  __wsh_began() {
    { builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_unset -o no_xtrace
      __wsh[3]=1
      builtin printf '\e]133;C;wsh=%s;n=%d;t=%s;l=%s\a' $__wsh[1] $__wsh[2] "${EPOCHREALTIME-}" "${(qqqq)1[1,30000]}" >/dev/tty
      __wsh[2]=$(( __wsh[2] + 1 ))
    } 2>/dev/null
  }

  # Runs before the first prompt, after every startup file and after the user's own hooks.
  __wsh_install() {
    { builtin emulate -L zsh -o no_err_exit -o no_err_return -o no_unset -o no_xtrace
      builtin zmodload -F zsh/datetime p:EPOCHREALTIME
      builtin typeset -ga precmd_functions preexec_functions
      precmd_functions=(__wsh_ended ${precmd_functions:#__wsh_*} __wsh_ready)
      preexec_functions=(${preexec_functions:#__wsh_*} __wsh_began)
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
