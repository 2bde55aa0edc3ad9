# Marks of prompts and commands for fish 3.1 and later, loaded by wsh after the user's configuration.
#
# Descriptor 9 holds the nonce in two pieces, the second first, with a record separator between. The handlers carry them as closed-over
# variables; a listing of the handlers shows the pieces, and nothing shows the nonce. A number is taken before its mark is printed, and
# printing comes last: an interrupt between the two skips a number, and never uses one twice.

if status is-interactive; and not set -q __wsh_n
    set -l __wsh_a
    set -l __wsh_b
    read -z -d \x1e __wsh_a __wsh_b </dev/fd/9
    if test -n "$__wsh_b"
        set -g __wsh_n 0
        set -g __wsh_kept '' 0
        for __wsh_mode in default insert visual replace replace_one
            bind -M $__wsh_mode \e\[5179~ 'commandline -i \t'
            bind -M $__wsh_mode \e\[5180~ __wsh_tell
            bind -M $__wsh_mode \e\[5181~ __wsh_take
            bind -M $__wsh_mode \e\[5182~ __wsh_put
        end

        # Bound to private keys: tell the line that is being typed, take it away, put it back.
        function __wsh_tell --inherit-variable __wsh_a --inherit-variable __wsh_b
            set -l line (commandline -b | string collect)
            set -l mode i
            test "$fish_bind_mode" = default; and string match -q '*vi*' -- "$fish_key_bindings"; and set mode c
            if test -z "$line" -a $mode = c
                set fish_bind_mode insert
                set mode i
                commandline -f repaint-mode
            end
            set -g __wsh_n (math $__wsh_n + 1)
            printf '\e]133;L;wsh=%s;n=%d;k=%s;q=%s\a' $__wsh_b$__wsh_a $__wsh_n $mode (string escape --style=url -- "$line") >/dev/tty
        end

        function __wsh_take
            set -g __wsh_kept (commandline -b | string collect) (commandline -C)
            test (count $__wsh_kept) = 2; or set -g __wsh_kept '' 0
            commandline -r ''
            __wsh_tell
        end

        function __wsh_put
            set -l line (commandline -b | string collect)
            if test -z "$line"
                commandline -r -- "$__wsh_kept[1]"
                commandline -C $__wsh_kept[2]
            end
            __wsh_tell
        end

        function __wsh_began --on-event fish_preexec --inherit-variable __wsh_a --inherit-variable __wsh_b
            set -g __wsh_n (math $__wsh_n + 1)
            printf '\e]133;C;wsh=%s;n=%d;u=%s\a' $__wsh_b$__wsh_a $__wsh_n (string escape --style=url -- "$argv[1]") >/dev/tty
        end

        function __wsh_ended --on-event fish_postexec --inherit-variable __wsh_a --inherit-variable __wsh_b
            set -l ended $status $pipestatus
            set -g __wsh_n (math $__wsh_n + 1)
            printf '\e]133;D;%d;wsh=%s;n=%d;c=1;p=%s;ms=%s\a' $ended[1] $__wsh_b$__wsh_a $__wsh_n (string join '|' -- $ended[2..-1]) "$CMD_DURATION" >/dev/tty
        end

        function __wsh_refused --on-event fish_posterror --inherit-variable __wsh_a --inherit-variable __wsh_b
            set -g __wsh_n (math $__wsh_n + 1)
            printf '\e]133;D;127;wsh=%s;n=%d;c=0;e=1;u=%s\a' $__wsh_b$__wsh_a $__wsh_n (string escape --style=url -- "$argv[1]") >/dev/tty
        end

        function __wsh_ready --on-event fish_prompt --on-event fish_cancel --inherit-variable __wsh_a --inherit-variable __wsh_b
            set -l editor e
            string match -q '*vi*' -- "$fish_key_bindings"; and set editor v
            set -g __wsh_n (math $__wsh_n + 1)
            printf '\e]7;file://%s%s\a\e]133;A;wsh=%s;n=%d;k=%s;v=%s\a' "$hostname" (string escape --style=url -- "$PWD") $__wsh_b$__wsh_a $__wsh_n $editor (string escape --style=url -- "$PWD") >/dev/tty
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
