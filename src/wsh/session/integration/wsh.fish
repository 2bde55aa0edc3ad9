# Marks of prompts and commands for fish 3.1 and later, loaded by wsh after the user's configuration.
#
# Descriptor 9 holds the nonce in two pieces, the second first, with a record separator between. The handlers carry them as closed-over
# variables; a listing of the handlers shows the pieces, and nothing shows the nonce.

if status is-interactive; and not set -q __wsh_n
    set -l __wsh_a
    set -l __wsh_b
    read -z -d \x1e __wsh_a __wsh_b </dev/fd/9
    if test -n "$__wsh_b"
        set -g __wsh_n 0
        for __wsh_mode in default insert
            bind -M $__wsh_mode \e\[5179~ 'commandline -i \t'
        end

        function __wsh_began --on-event fish_preexec --inherit-variable __wsh_a --inherit-variable __wsh_b
            printf '\e]133;C;wsh=%s;n=%d;u=%s\a' $__wsh_b$__wsh_a $__wsh_n (string escape --style=url -- "$argv[1]") >/dev/tty
            set -g __wsh_n (math $__wsh_n + 1)
        end

        function __wsh_ended --on-event fish_postexec --inherit-variable __wsh_a --inherit-variable __wsh_b
            set -l ended $status $pipestatus
            printf '\e]133;D;%d;wsh=%s;n=%d;c=1;p=%s;ms=%s\a' $ended[1] $__wsh_b$__wsh_a $__wsh_n (string join '|' -- $ended[2..-1]) "$CMD_DURATION" >/dev/tty
            set -g __wsh_n (math $__wsh_n + 1)
        end

        function __wsh_refused --on-event fish_posterror --inherit-variable __wsh_a --inherit-variable __wsh_b
            printf '\e]133;D;127;wsh=%s;n=%d;c=0;e=1;u=%s\a' $__wsh_b$__wsh_a $__wsh_n (string escape --style=url -- "$argv[1]") >/dev/tty
            set -g __wsh_n (math $__wsh_n + 1)
        end

        function __wsh_ready --on-event fish_prompt --on-event fish_cancel --inherit-variable __wsh_a --inherit-variable __wsh_b
            printf '\e]7;file://%s%s\a\e]133;A;wsh=%s;n=%d;v=%s\a' "$hostname" (string escape --style=url -- "$PWD") $__wsh_b$__wsh_a $__wsh_n (string escape --style=url -- "$PWD") >/dev/tty
            set -g __wsh_n (math $__wsh_n + 1)
            if not functions -q __wsh_prompt; or not string match -q '*__wsh_prompt*' -- (functions fish_prompt)
                functions -q __wsh_prompt; and functions -e __wsh_prompt
                functions -q fish_prompt; and functions -c fish_prompt __wsh_prompt
                function fish_prompt
                    functions -q __wsh_prompt; and __wsh_prompt
                    printf '\e]133;B;wsh\a'
                end
            end
        end
    end
end
