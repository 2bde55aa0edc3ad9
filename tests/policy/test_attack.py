"""Attempts to get past `allow = ["ls", "git status", "find"]`, written down as they were tried by hand.

Each line is one idea for running something else, writing something, or reading by another's configuration.
"""

from __future__ import annotations

import pytest

from wsh.policy import Effect, Mode, PolicyRequest, Reason, decide
from wsh.policy.file.document import parse_policy

POLICY = parse_policy(
    '[headless]\nallow = ["ls", "git status", "find"]\n[interactive]\nallow = ["ls", "git status", "find"]\n'
)

JOINING = (
    "ls;id", "ls ;id", "ls\n id", "ls&id", "ls & id", "ls&&id", "ls||id", "ls|id", "ls|&id", "ls;;id", "ls\r\nid", "ls\rid",
    "ls\x0bid", "ls\x0cid", "ls\x1bid", "ls\0id", "ls\u2028id", "ls\u2029id", "ls\u0085id", "ls \\\nid", "ls \\\n;id", "ls;\\\nid",
    "ls # \nid", "ls\t;\tid", "id;ls", "ls;ls;ls;id", "ls && ls | id", "{ ls;id; }", "(ls;id)", "((ls)); id", "[[ ls ]] && id",
    "if ls; then id; fi", "while ls; do id; done", "until id; do ls; done", "for ls in a; do id; done", "case ls in ls) id;; esac",
    "select ls in a; do id; done", "function ls { id; }; ls", "ls() { id; }; ls", "ls () { id; }\nls", "! ls; id", "time ls; id",
    "coproc ls { id; }", "ls <(id)", "ls >(id)", "ls;'id'", "ls|tee f", "ls -la;id #", "exec ls; id", "ls 2>&1;id",
)  # fmt: skip
EXPANDING = (
    "ls $(id)", "ls `id`", "ls \"$(id)\"", "ls \"`id`\"", "ls ${x:-$(id)}", "ls ${x:=`id`}", "ls ${!x}", "ls ${x@P}", "ls $[1+1]",
    "ls $((1+1))", "ls $((a[$(id)]))", "ls $x", "ls ${x}", "ls $1", "ls $@", "ls $?", "ls $$", "ls $!", "ls $-", "ls $_", "ls ~", "ls ~root",
    "ls ~+", "ls a=~", "ls *", "ls ?", "ls [a-z]", "ls {a,b}", "ls {1..9}", "ls a{,b}", "ls $'a'", "ls $\"a\"", "ls @(a|b)", "ls !(a)", "ls +(a)",
    "ls !!", "ls !$", "ls \"!!\"", "ls !id", "ls -$(id)", "ls -- $(id)", "$(echo ls)", "`echo ls`", "${x:-ls}", "$x", "l$x", "l${x}s",
    "l'$(id)'s", "ls \"${x}\"", "ls <<EOF\n$(id)\nEOF", "ls <<<$(id)", "ls < f", "ls > f", "ls >> f", "ls 2> f", "ls &> f", "ls >| f",
    "ls <> f", "ls >& f", "ls 1>&2", "ls 2>&-", "> f ls", "< f ls", "2>f ls", "{fd}>f ls", "ls {fd}>f", "ls >/dev/null", "ls >/dev/tcp/h/80",
)  # fmt: skip
NAMING = (
    "/bin/ls", "./ls", "../ls", "bin/ls", "/usr/bin/../bin/ls", "ls/", "LS", "Ls", "ｌｓ", "lѕ", "l\u200bs", "l\u00ads", "\ufeffls", "\u00a0ls",
    "ls\u00a0-la", "ls\u3000-la", "ls\u2003-la", "\u202els", "l\u0301s", "ls\u0301", "ⅼs", "gіt status", "git ѕtatus", "fіnd .", "'ls '", "' ls'",
    "ls\\ -la", "'ls -la'", "\"git status\"", "git\\ status", "'git status' -s", "l\\\ns", "%ls", "-ls", "--", "- ls", "=ls", "ls=", "ls= x", "A=1 ls",
    "PATH=. ls", "A= ls", "A+=1 ls", "A[0]=1 ls", "LD_PRELOAD=./x ls", "IFS=/ ls", "BASH_ENV=x ls", "ENV=x ls", "GIT_DIR=x git status",
    "GIT_PAGER=id git status", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=id git status", "", " ", "\t", "\n", ";", "&",
    "|", "#", "# ls", ":", ".", "''", '""', "'' ls", "\\", "\\ ls", "ls\\", "ls '", 'ls "', "ls `", "ls $(", "ls (", "ls )", "ls }", "{ ls", "ls; }",
)  # fmt: skip
WRAPPING = (
    "env ls", "sudo ls", "doas ls", "command ls", "builtin ls", "exec ls", "eval ls", "eval 'ls;id'", "nohup ls", "time ls", "nice ls", "timeout 5 ls",
    "xargs ls", "sh -c ls", "bash -c 'ls'", "busybox ls", "watch ls", "script -c ls", "setsid ls", "stdbuf -o0 ls", "strace ls", "gdb ls",
    "python3 -c 1", "perl -e 1", "awk 1", "sed p f", "vim -c :q", "less f", "more f", "man ls", "tar tf x", "ssh h ls", "su -c ls", "chroot / ls",
    "unshare ls", "flock f ls", "parallel ls", "tmux new ls", "screen ls", "at now", "crontab -l", "make", "npm ls", "docker ps", "alias ls=id",
    "unalias ls", "hash -p /bin/id ls", "enable -n ls", "set -x", "source ls", ". ls", "cd /", "pushd /", "export A=1", "declare A", "trap id EXIT",
    "printf -v x ls", "read x", "type ls", "which ls", "test -f x", "[ -f x ]", "true", "echo ls",
)  # fmt: skip
FINDING = (
    "find . -exec id ;", "find . -exec id \\;", "find . -exec id {} +", "find . -exec id '{}' \\;", "find . -exec sh -c id \\;", "find . -execdir id \\;",
    "find . -ok id \\;", "find . -okdir id \\;", "find . -delete", "find . '-delete'", "find . -de\\lete", "find . \"-del\"ete", "find . -name x -delete",
    "find . -name x -o -delete", "find . ! -name x -delete", "find . \\( -delete \\)", "find . -type f -delete", "find -delete", "find / -delete",
    "find -L . -delete", "find -O3 . -delete", "find . -depth -delete", "find . -maxdepth 1 -delete", "find . , -delete", "find . -fprint f",
    "find . -fprint0 f", "find . -fprintf f %p", "find . -fls f", "find . -fprint /dev/stdout", "find -D exec .", "find -files0-from x",
    "find . -name -exec", "find . -name -delete", "find . -path -exec id", "find . -newer -delete", "find . -printf -fprint", "find . -size x -delete",
    "find . -mtime id", "find . -maxdepth -delete", "find . -perm -delete", "find . -user -exec", "find . -regextype", "find . -name", "find -- . -delete",
    "find . -executable -exec id \\;", "find . -exec", "find . -EXEC id \\;", "find . -exec=id", "find . --exec id", "find . -prune -delete",
    "find . -print0 -delete", "find . -ls -delete", "find . -quit -exec id \\;", "find . -newerXY x", "find . -capable", "find . -unknown", "find -x .",
    "find -s .", "find -E .", "find -f .", "find . -inum 1 -exec rm {} ;", "find . -name '*' -exec rm {} +", "find . -true -exec id \\; -true",
)  # fmt: skip
ASKING_GIT = (
    "git", "git -c core.fsmonitor=id status", "git -ccore.fsmonitor=id status", "git -c core.pager=id status", "git -c alias.status='!id' status",
    "git -C /other status", "git -C. status", "git --git-dir=x status", "git --git-dir x status", "git --work-tree=/ status", "git --exec-path=. status",
    "git --namespace=x status", "git --config-env=a.b=C status", "git -p status", "git --paginate status", "git -P status", "git --no-pager status",
    "git --bare status", "git --literal-pathspecs status", "git --super-prefix=x status", "git --attr-source=x status", "git --html-path status",
    "git status --help", "git status -h", "git --help status", "git help status", "git status --exec=id", "git status --upload-pack=id",
    "git status --config=x", "git status --git-dir=x", "git status --no-index", "git status --pathspec-from-file=x", "git status /etc", "git status ../other",
    "git status ~/x", "git status a/../../b", "git status -c x=y", "git status --porc", "git status --column=id --foo", "git status -x", "git status -U",
    "git stat", "git statu", "git status;id", "git status -- /etc", "git log", "git diff", "git show", "git config --list", "git commit", "git push",
    "git fetch", "git pull", "git clone x", "git submodule status", "git worktree list", "git grep x", "git bisect run id", "git rebase -x id",
    "git difftool", "git mergetool", "git gc", "git hook run x", "git maintenance run", "git credential fill", "git filter-branch", "git archive HEAD",
    "git bundle create x", "git svn x", "git p4 x", "git send-email x", "git instaweb", "git gui", "git citool", "git daemon", "git shell", "git-status",
)  # fmt: skip
LISTING = (
    "ls --help=x", "ls --color=never=x --foo", "ls --unknown", "ls --col=never", "ls -la --", "ls --time-style=+%s;id", "ls --sort=id --exec=id",
    "ls -w", "ls -w -la", "ls --width -la", "ls -I", "ls --ignore", "ls --block-size", "ls -é", "ls --quoting-style -R", "ls --=", "ls ---",
)  # fmt: skip
FINE = (
    "ls", "ls -la", "ls -l -a", "ls --color=never", "ls --color", "ls 'a b'", "ls \"a b\"", "ls a\\ b", "ls -- -x", "ls -w 80", "ls -w80", "ls --width=80",
    "ls /", "ls ../x", "ls é 日本", "ls a#b", "ls a=b", "ls -1tr", "  ls  ", "ls\t-la", "ls\n", "'ls' -la", "l's'", "\\ls", "ls ';id'", "ls '$(id)'", "ls \"a;b\"",
    "git status", "git status -s", "git status -sb", "git status --porcelain", "git status --porcelain=v2", "git status -uno", "git status -u",
    "git status --ignored", "git status src", "git status -- src/a.py", "'git' \"status\"", "git  status", "find", "find .", "find . -name '*.py'",
    "find src -type f -size +1k", "find . -maxdepth 2 -not -path './.git/*'", "find . \\( -name a -o -name b \\) -print", "find . ! -name x", "find . -mtime -7",
    "find . -perm -u+x", "find . -perm /222", "find . -newermt 2024-01-01", "find . -printf '%p\\n'", "find . -empty -ls", "find -L . -name x -print0",
    "find a b -iname 'x*' -prune -o -print", "find . -type f,d", "find . -regex '.*/a+'",
)  # fmt: skip


@pytest.mark.parametrize("command", [*JOINING, *EXPANDING, *NAMING, *WRAPPING, *FINDING, *ASKING_GIT])
def test_the_attempt_is_not_run(command: str) -> None:
    headless = decide(PolicyRequest(command=command), POLICY)
    assert headless.effect is Effect.DENY, headless
    interactive = decide(PolicyRequest(command=command, mode=Mode.INTERACTIVE), POLICY)
    assert interactive.effect is not Effect.ALLOW or all(
        decide(PolicyRequest(argv=words), POLICY).allowed for words in interactive.argv
    ), interactive


@pytest.mark.parametrize("command", LISTING)
def test_an_option_that_is_not_known_is_not_run(command: str) -> None:
    verdict = decide(PolicyRequest(command=command), POLICY)
    assert verdict.effect is Effect.DENY or command == "ls -la --", verdict


@pytest.mark.parametrize("command", FINE)
def test_the_honest_use_goes_on(command: str) -> None:
    assert decide(PolicyRequest(command=command), POLICY).allowed
    assert decide(PolicyRequest(command=command, mode=Mode.INTERACTIVE), POLICY).allowed


@pytest.mark.parametrize(
    "argv",
    [
        (), ("",), ("ls;id",), ("ls id",), (" ls",), ("ls ",), ("ls\n",), ("ls\0",), ("/bin/ls",), ("./ls",), ("git status",), ("git", "status;id"),
        ("git", "-c", "x=y", "status"), ("git", "", "status"), ("git", "status", "--help"), ("find", ".", "-exec", "id", ";"), ("find", ".", "-delete"),
        ("find", ".", "-name", "-delete"), ("sh", "-c", "ls"), ("env", "ls"), ("ls", "a\0b"), ("ls", "\ud800"), ("ls", "\u202e"), ("ls", "\x1b[0m"),
        ("ls", *["x"] * 5000), ("ls", "x" * 70_000), ("LS",), ("-c", "ls"), ("find", "-files0-from", "x"), ("ls", "--hyperlink=x", "--zzz"),
    ],
)  # fmt: skip
def test_an_argv_is_not_a_way_around(argv: tuple[str, ...]) -> None:
    for mode in Mode:
        assert not decide(PolicyRequest(argv=argv, mode=mode), POLICY).allowed


def test_an_argv_may_hold_what_a_shell_would_read_as_syntax() -> None:
    for argument in ("a;b", "$(id)", "`id`", "*", "a b", "'", '"', "a\nb", "> f", "&& id"):
        verdict = decide(PolicyRequest(argv=("ls", argument)), POLICY)
        assert verdict.allowed and verdict.argv == (("ls", argument),)


@pytest.mark.parametrize(
    "name",
    "PATH LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT BASH_ENV ENV IFS PS4 SHELLOPTS GIT_DIR GIT_PAGER GIT_SSH_COMMAND GIT_CONFIG_COUNT GIT_EXTERNAL_DIFF "
    "PAGER LESSOPEN EDITOR HOME TMPDIR PYTHONPATH PERL5OPT NODE_OPTIONS RIPGREP_CONFIG_PATH GCONV_PATH LOCPATH LS_COLORS FIND_BLOCK_SIZE".split(),
)
def test_the_environment_is_not_a_way_around(name: str) -> None:
    verdict = decide(PolicyRequest(argv=("ls",), env={name: "x"}), POLICY)
    assert verdict.effect is Effect.DENY and verdict.reason is Reason.ENV_NOT_ALLOWED
    assert decide(PolicyRequest(argv=("ls",), env={name: "x"}, mode=Mode.INTERACTIVE), POLICY).effect is Effect.ASK


def test_wrong_names_of_variables_are_refused_in_every_mode() -> None:
    for env in ({"": "x"}, {"A=B": "x"}, {"A\0": "x"}, {"LANG": "a\0b"}):
        for mode in Mode:
            assert decide(PolicyRequest(argv=("ls",), env=env, mode=mode), POLICY).effect is Effect.DENY


def test_both_or_neither_of_command_and_argv_is_no_way_around() -> None:
    assert not decide(PolicyRequest(), POLICY).allowed
    both = decide(PolicyRequest(command="rm -rf /", argv=("ls",)), POLICY)
    assert both.argv in ((), (("ls",),)), "what is decided on is what is handed back to be run"


@pytest.mark.parametrize(
    ("name", "value"),
    [("LANGUAGE", "../../../tmp/x"), ("LANG", "/tmp/x"), ("LC_ALL", "a/b"), ("TZ", "/tmp/x"), ("TZ", ":/tmp/x"), ("TZ", "../x"), ("TERM", "../x")],
)  # fmt: skip
def test_a_variable_does_not_lead_to_a_file(name: str, value: str) -> None:
    policy = parse_policy('[headless]\nallow = ["ls"]\n')
    for mode in Mode:
        verdict = decide(PolicyRequest(argv=("ls",), env={name: value}, mode=mode), policy)
        assert verdict.effect is Effect.DENY and verdict.reason is Reason.ENV_NOT_ALLOWED


def test_languages_and_time_zones_are_names() -> None:
    policy = parse_policy('[headless]\nallow = ["ls"]\n')
    fine = {
        "LANG": "de_DE.UTF-8@euro",
        "LANGUAGE": "de:en",
        "LC_ALL": "C",
        "TZ": ":Europe/Berlin",
        "TERM": "xterm-256color",
    }
    assert decide(PolicyRequest(argv=("ls",), env=fine), policy).allowed
