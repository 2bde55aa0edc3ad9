"""Argument models of git's reading subcommands.

Options before the subcommand (-c, -C, --git-dir, …) are never permitted: they choose another repository, another
configuration or a program. Those that run a textconv, an external diff, a pager or gpg, write a file, or leave the
repository are not listed. What the repository's own configuration could run is `git_guard`'s concern.
"""

from __future__ import annotations

from collections.abc import Sequence

from wsh.policy.harmless.model import ArgumentModel, Branches, Judge, NotKnown, judge, judged, model, understand


def _inside(operand: str) -> str | None:
    """Revisions and paths of this repository only."""
    if operand.startswith(("/", "~")) or ".." in operand.split("/"):
        return f"the path {operand!r} may lie outside the repository"
    return None


_STAYS_OUT = {
    "--submodule": ("", "short", "log"),
    "--ignore-submodules": ("", "all", "dirty"),
}


def _value(name: str, value: str) -> str | None:
    if name in ("--format", "--pretty", "--group", "--sort") and ("%G" in value or "signature" in value):
        return "a signature is checked by gpg"
    if name in _STAYS_OUT and value not in _STAYS_OUT[name]:
        return f"{name}={value} looks into submodules, whose own configuration could run programs"
    return None


_DIFF_FLAGS = (
    "-pusRbwazW --patch --no-patch --raw --patch-with-raw --minimal --patience --histogram --numstat "
    "--shortstat --summary "
    "--patch-with-stat --name-only --name-status --no-color --no-renames --check --full-index --binary --text "
    "--ignore-space-at-eol --ignore-cr-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines "
    "--function-context "
    "--exit-code --quiet --no-ext-diff --no-textconv --no-prefix --default-prefix --find-copies-harder --pickaxe-all "
    "--pickaxe-regex --compact-summary --cumulative --no-indent-heuristic --indent-heuristic --irreversible-delete"
)
_DIFF_VALUES = (
    "-USGlO --unified --inter-hunk-context --src-prefix --dst-prefix --line-prefix --diff-algorithm "
    "--anchored --output-indicator-new"
)
_DIFF_OPTIONAL = (
    "--stat --dirstat --color --color-words --word-diff --word-diff-regex --abbrev --find-renames --find-copies "
    "--break-rewrites -MCB "
    "--diff-filter --color-moved --color-moved-ws --ws-error-highlight --relative --ignore-submodules --submodule"
)
_LOG_FLAGS = (
    "-gitcm --oneline --graph --decorate --no-decorate --all --merges --no-merges --first-parent --reverse "
    "--date-order "
    "--author-date-order --topo-order --follow --left-right --cherry --cherry-pick --cherry-mark --left-only "
    "--right-only --boundary --abbrev-commit --no-abbrev-commit --parents --children --walk-reflogs --merge "
    "--full-history "
    "--sparse --dense --simplify-merges --simplify-by-decoration --ancestry-path --show-pulls --invert-grep "
    "--all-match "
    "--regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --relative-date --no-notes --log-size "
    "--full-diff "
    "--no-walk --do-walk --not --cc --no-mailmap --mailmap --use-mailmap --source --show-linear-break -E -F -P -i"
)
_LOG_VALUES = (
    "-nL --max-count --skip --since --after --until --before --author --committer --grep --grep-reflog "
    "--min-parents --max-parents "
    "--date --format --encoding --glob --exclude"
)
_LOG_OPTIONAL = (
    "--pretty --decorate --branches --tags --remotes --no-walk --notes --decorate-refs --decorate-refs-exclude"
)

_LOG = model(
    f"{_DIFF_FLAGS} {_LOG_FLAGS}",
    values=f"{_DIFF_VALUES} {_LOG_VALUES}",
    optional=f"{_DIFF_OPTIONAL} {_LOG_OPTIONAL}",
    digits=True,
    check_operand=_inside,
    check_value=_value,
)
_DIFF = model(
    f"{_DIFF_FLAGS} --cached --staged --merge-base --ours --theirs --base -0 -1 -2 -3",
    values=_DIFF_VALUES,
    optional=_DIFF_OPTIONAL,
    check_operand=_inside,
    check_value=_value,
)
_STATUS = model(
    "-sbvz --short --branch --no-branch --show-stash --long --verbose --no-renames --renames --ahead-behind "
    "--no-ahead-behind --no-column",
    optional="-uM --porcelain --untracked-files --ignored --ignore-submodules --column --find-renames",
    check_operand=_inside,
    check_value=_value,
)
_LISTS = frozenset("-l --list --contains --no-contains --merged --no-merged --points-at -n".split())


def _listing(known: ArgumentModel) -> Judge:
    """`git branch`, `git tag`: with an operand they create, unless an option asks for a list."""

    def apply(arguments: Sequence[str]) -> str | None:
        try:
            found = understand(known, arguments)
        except NotKnown as problem:
            return str(problem)
        if found.operands and not found.names() & _LISTS:
            return "with a name and without --list it creates or changes"
        return None

    return apply


_BRANCH = model(
    "-arvql --all --remotes --verbose --quiet --list --show-current --ignore-case --no-color --no-abbrev --no-column",
    values="--sort --format",
    defaulting="--points-at --contains --no-contains --merged --no-merged",
    optional="--color --column --abbrev",
    check_value=_value,
)
_TAG = model(
    "-li --list --ignore-case --no-color --no-column",
    values="--sort --format",
    defaulting="--points-at --contains --no-contains --merged --no-merged",
    optional="-n --color --column",
    check_value=_value,
)


def _git(arguments: Sequence[str]) -> str | None:
    if len(arguments) > 1 and "--help" in arguments:
        return "--help starts the manual viewer that the configuration names"
    return _BRANCHES(arguments)


def _only(*permitted: tuple[str, ...]) -> Judge:
    def apply(arguments: Sequence[str]) -> str | None:
        given = tuple(arguments)
        if given in permitted:
            return None
        return f"only {' | '.join(' '.join(words) or '(nothing)' for words in permitted)} is known to be harmless"

    return apply


def _remote(arguments: Sequence[str]) -> str | None:
    if len(arguments) == 2 and arguments[0] == "get-url" and not arguments[1].startswith("-"):
        return None
    return _only((), ("-v",), ("--verbose",))(arguments)


def _stash(arguments: Sequence[str]) -> str | None:
    if arguments[:1] == ["list"] or tuple(arguments[:1]) == ("list",):
        return judge(_LOG, arguments[1:])
    if tuple(arguments[:1]) == ("show",):
        return judge(_DIFF, arguments[1:])
    return "only stash list and stash show are known to be harmless"


def _reflog(arguments: Sequence[str]) -> str | None:
    if arguments and arguments[0] in ("expire", "delete", "drop", "write"):
        return "it changes the reflog"
    rest = arguments[1:] if tuple(arguments[:1]) in (("show",), ("list",)) else arguments
    return judge(_LOG, rest)


def _config(arguments: Sequence[str]) -> str | None:
    if tuple(arguments) in (("--list",), ("-l",), ("list",), ("--list", "--show-origin"), ("--list", "--name-only")):
        return None
    if len(arguments) == 2 and arguments[0] in ("--get", "--get-all", "get") and not arguments[1].startswith("-"):
        return None
    return "only --list and --get NAME are known to be harmless"


_LS_FILES = model(
    "-cdmosuktvfz --cached --deleted --modified --others --stage --unmerged --killed --directory --no-empty-directory "
    "--exclude-standard --error-unmatch --full-name --deduplicate --eol --ignored -i",
    values="-xX --exclude --exclude-from --exclude-per-directory --format",
    optional="--abbrev",
    check_operand=_inside,
    check_value=_value,
)
_LS_TREE = model(
    "-drtlz --long --name-only --name-status --object-only --full-name --full-tree",
    values="--format",
    optional="--abbrev",
)
# No -S: a file of revisions, whose first line git prints if it is none.
_BLAME = model(
    "-bltfnsewp --root --show-stats --porcelain --line-porcelain --incremental --show-name --show-number "
    "--show-email -c",
    values="-L --date --encoding --reverse --ignore-rev",
    optional="--abbrev -MC",
    check_operand=_inside,
)
_REV_PARSE = model(
    "-q --verify --quiet --short --abbrev-ref --symbolic --symbolic-full-name --show-toplevel --git-dir "
    "--absolute-git-dir "
    "--is-inside-work-tree --is-inside-git-dir --is-bare-repository --show-prefix --show-cdup --all --branches "
    "--tags --remotes "
    "--git-common-dir --revs-only --no-revs --flags --no-flags --not --show-superproject-working-tree "
    "--is-shallow-repository",
    values="--git-path --default --since --until --disambiguate",
    optional="--short --abbrev-ref --branches --tags --remotes --show-object-format",
)
_GREP = model(
    "-aiIwvhHEGPFnlLzoczrpWqs --text --ignore-case --word-regexp --invert-match --full-name --extended-regexp "
    "--basic-regexp "
    "--perl-regexp --fixed-strings --line-number --column --files-with-matches --name-only "
    "--files-without-match --null "
    "--only-matching --count --heading --break --show-function --function-context --cached --untracked "
    "--no-color --all-match "
    "--and --or --not --quiet --no-textconv",
    values="-eABCfm --max-depth --after-context --before-context --context --threads --max-count",
    optional="--color",
    check_operand=_inside,
)
_DESCRIBE = model(
    "--all --tags --contains --long --always --exact-match --first-parent --debug",
    values="--match --exclude --candidates",
    optional="--dirty --broken --abbrev",
)
_REFS = model(
    "--head --heads --tags --branches --verify --dereference --hash -dsqvh --quiet --ignore-case",
    values="--sort --format --count --exclude",
    defaulting="--points-at --contains --no-contains --merged --no-merged",
    optional="--hash --abbrev --color",
    check_value=_value,
)
_SHORTLOG = model(
    "-nsecg --numbered --summary --email --committer --no-merges --all",
    values="--since --until --author --group --max-count",
    optional="-w",
    check_value=_value,
)
_CAT_FILE = model("-tsep", operands=2, check_operand=_inside)
_REV_LIST = model(
    _LOG_FLAGS + " --count --objects --objects-edge --header --timestamp --disk-usage --quiet --no-commit-header",
    values=_LOG_VALUES,
    optional=_LOG_OPTIONAL + " --missing",
    digits=True,
    check_operand=_inside,
    check_value=_value,
)

_BRANCHES = Branches(
    {
        "status": judged(_STATUS),
        "log": judged(_LOG),
        "show": judged(_LOG),
        "diff": judged(_DIFF),
        "whatchanged": judged(_LOG),
        "diff-tree": judged(_LOG),
        "branch": _listing(_BRANCH),
        "tag": _listing(_TAG),
        "remote": _remote,
        "stash": _stash,
        "reflog": _reflog,
        "config": _config,
        "worktree": _only(("list",), ("list", "--porcelain"), ("list", "-v")),
        "ls-files": judged(_LS_FILES),
        "ls-tree": judged(_LS_TREE),
        "blame": judged(_BLAME),
        "annotate": judged(_BLAME),
        "rev-parse": judged(_REV_PARSE),
        "rev-list": judged(_REV_LIST),
        "grep": judged(_GREP),
        "describe": judged(_DESCRIBE),
        "show-ref": judged(_REFS),
        "for-each-ref": judged(_REFS),
        "shortlog": judged(_SHORTLOG),
        "cat-file": judged(_CAT_FILE),
        "merge-base": judged(model("-a --all --octopus --independent --is-ancestor --fork-point")),
        "name-rev": judged(model("--tags --all --name-only --always", values="--refs --exclude")),
        "cherry": judged(model("-v --verbose", optional="--abbrev")),
        "count-objects": judged(model("-vH --verbose --human-readable", operands=0)),
        "check-ignore": judged(model("-qvnz --quiet --verbose --non-matching --no-index", check_operand=_inside)),
        "check-attr": judged(model("-az --all --cached", check_operand=_inside)),
        "version": judged(model("--build-options", operands=0)),
    },
    alone=frozenset({"--version", "--help", "-v", "-h"}),
)

GIT: Judge = _git
