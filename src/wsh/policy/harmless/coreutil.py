"""Argument models of the usual small programs that only read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from wsh.policy.harmless.model import ArgumentModel, Judge, judge, judged, model

_JQ_IMPORT = re.compile(r"\s*\b(?:import|include|module)\b")


def _date_operand(operand: str) -> str | None:
    return None if operand.startswith("+") else "a date that is not a format sets the clock"


def _tail_operand(operand: str) -> str | None:
    return "a count of lines that ends in f never ends" if re.fullmatch(r"\+.*f", operand) else None


def _strings_operand(operand: str) -> str | None:
    return "a file of arguments may hold any" if operand.startswith("@") else None


def _jq_operand(operand: str) -> str | None:
    # Imports stand first. A comment may hide the beginning, and where it ends depends on the version.
    if _JQ_IMPORT.match(operand) or ("#" in operand and _JQ_IMPORT.search(operand)):
        return "a program that imports reads other files"
    return None


def _tree(known: ArgumentModel) -> Judge:
    """With -L2 for -L 2."""

    def apply(arguments: Sequence[str]) -> str | None:
        return judge(known, [word for word in arguments if not re.fullmatch(r"-L\d{1,4}", word)])

    return apply


def _any(_arguments: Sequence[str]) -> str | None:
    return None


def _test(arguments: Sequence[str]) -> str | None:
    # The shells' own test evaluates the subscript of a name given to -v: a[$(id)].
    return "-v and -R evaluate their operand" if {"-v", "-R"} & set(arguments) else None


_HASH = model(
    "-bctzw --binary --check --text --tag --zero --quiet --status --strict --warn --ignore-missing",
    values="-l --length",
)

PROGRAMS: Mapping[str, Judge] = {
    "ls": judged(
        model(
            "-aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1D --all --almost-all --author --escape --ignore-backups --directory "
            "--dired --group-directories-first --no-group --human-readable --si --dereference-command-line "
            "--dereference-command-line-symlink-to-dir --inode --kibibytes --dereference --numeric-uid-gid --literal "
            "--hide-control-chars --show-control-chars --quote-name --reverse --recursive --size --context "
            "--zero --full-time "
            "--file-type",
            values="-wIT --block-size --format --hide --indicator-style --ignore --quoting-style --sort --time "
            "--time-style "
            "--tabsize --width",
            optional="--color --hyperlink --classify",
        )
    ),
    "cat": judged(
        model(
            "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs "
            "--show-nonprinting"
        )
    ),
    "tac": judged(model("-br --before --regex", values="-s --separator")),
    "echo": _any,
    "true": _any,
    "false": _any,
    "test": _test,
    "head": judged(
        model("-qvz --quiet --silent --verbose --zero-terminated", values="-nc --lines --bytes", digits=True)
    ),
    # No -f, -F, --retry: they never end.
    "tail": judged(
        model(
            "-qvz --quiet --silent --verbose --zero-terminated",
            values="-nc --lines --bytes",
            digits=True,
            check_operand=_tail_operand,
        )
    ),
    "wc": judged(model("-cmlLw --bytes --chars --lines --max-line-length --words", values="--total")),
    "nl": judged(
        model("-p --no-renumber", values="-bdfhilnsvw --body-numbering --starting-line-number --number-width")
    ),
    "cut": judged(
        model(
            "-nsz --only-delimited --zero-terminated --complement",
            values="-bcdf --bytes --characters --delimiter --fields --output-delimiter",
        )
    ),
    # The second operand of uniq is a file it writes, and POSIXLY_CORRECT makes an option behind the first one that.
    "uniq": judged(
        model(
            "-cdDiuz --count --repeated --ignore-case --unique --zero-terminated",
            values="-fsw --skip-fields --skip-chars --check-chars",
            optional="--all-repeated --group",
            operands=1,
            ordered=True,
        )
    ),
    "tr": judged(model("-cCdst --complement --delete --squeeze-repeats --truncate-set1", operands=2)),
    "rev": judged(model("-z --zero")),
    "fold": judged(model("-bs --bytes --spaces", values="-w --width", digits=True)),
    "paste": judged(model("-sz --serial --zero-terminated", values="-d --delimiters")),
    "join": judged(
        model("-iz --ignore-case --check-order --nocheck-order --header --zero-terminated", values="-aejotv12")
    ),
    "comm": judged(
        model("-123iz --check-order --nocheck-order --total --zero-terminated", values="--output-delimiter")
    ),
    "column": judged(
        model(
            "-txenLJ --table --json --fillrows",
            values="-scoNR --separator --columns --output-separator --table-columns",
        )
    ),
    "sort": judged(
        model(
            "-bcCdfghiMmnRrsuVz --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort "
            "--ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort --reverse "
            "--version-sort "
            "--merge --stable --unique --zero-terminated --debug",
            # No --batch-size, -S, -T: they make it write temporary files.
            values="-kt --key --field-separator --sort --parallel",
            optional="--check",
        )
    ),
    "grep": judged(
        model(
            "-EFGPiyvwxcLlqsbHhnTzaIrRUoZ --extended-regexp --fixed-strings --basic-regexp --perl-regexp --ignore-case "
            "--no-ignore-case --invert-match --word-regexp --line-regexp --count --files-without-match "
            "--files-with-matches "
            "--only-matching --quiet --silent --no-messages --byte-offset --with-filename --no-filename --line-number "
            "--initial-tab --null --null-data --text --recursive --dereference-recursive --line-buffered --binary",
            values="-efmABCdD --regexp --file --max-count --after-context --before-context --context --label "
            "--binary-files "
            "--devices --directories --exclude --exclude-from --exclude-dir --include --group-separator",
            optional="--color --colour",
            digits=True,
        )
    ),
    "pwd": judged(model("-LP --logical --physical", operands=0)),
    "whoami": judged(model(operands=0)),
    "id": judged(model("-agGnruzZ --context --group --groups --name --real --user --zero")),
    "groups": judged(model()),
    "hostname": judged(
        model("-sfdiIaA --short --fqdn --domain --ip-address --all-ip-addresses --all-fqdns", operands=0)
    ),
    "uname": judged(
        model(
            "-asnrvmpio --all --kernel-name --nodename --kernel-release --kernel-version --machine --processor",
            operands=0,
        )
    ),
    "arch": judged(model(operands=0)),
    "nproc": judged(model("--all", values="--ignore", operands=0)),
    "uptime": judged(model("-ps --pretty --since", operands=0)),
    "tty": judged(model("-s --silent --quiet", operands=0)),
    "logname": judged(model(operands=0)),
    "date": judged(
        model(
            "-uR --utc --universal --rfc-email --debug --resolution",
            values="-dr --date --reference --rfc-3339",
            optional="-I --iso-8601",
            check_operand=_date_operand,
        )
    ),
    "cal": judged(model("-1 -3 -m -s -y -j")),
    "seq": judged(model("-w --equal-width", values="-fs --format --separator", digits=True, operands=3)),
    "basename": judged(model("-az --multiple --zero", values="-s --suffix")),
    "dirname": judged(model("-z --zero")),
    "realpath": judged(
        model(
            "-eLmPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --strip "
            "--no-symlinks --zero",
            values="--relative-to --relative-base",
        )
    ),
    "readlink": judged(
        model(
            "-efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet "
            "--silent --verbose --zero"
        )
    ),
    "stat": judged(model("-Lft --dereference --file-system --terse", values="-c --format --printf --cached")),
    # No -C (compiles), -m (foreign magic), -z (decompressors), -f (list of files).
    "file": judged(
        model(
            "-bhiIkLNnr0 --brief --mime --mime-type --mime-encoding --keep-going --dereference --no-dereference "
            "--raw --print0",
            values="-F --separator",
        )
    ),
    "du": judged(
        model(
            "-0abcDhHkLlmPsSx --null --all --apparent-size --bytes --total --dereference-args --human-readable "
            "--inodes "
            "--count-links --dereference --no-dereference --separate-dirs --si --summarize --one-file-system",
            values="-Bdt --block-size --max-depth --threshold --exclude --time-style",
            optional="--time",
        )
    ),
    "df": judged(
        model(
            "-ahHiklPT --all --human-readable --si --inodes --local --portability --print-type --total --no-sync",
            values="-Btx --block-size --type --exclude-type",
            optional="--output",
        )
    ),
    "free": judged(model("-bkmghltvw --bytes --kibi --mebi --gibi --human --lohi --total --wide --si", operands=0)),
    "pgrep": judged(
        model(
            "-acfilnovwx --list-name --list-full --full --newest --oldest --count --exact --ignore-case",
            values="-dGgPstUu --delimiter --group --parent --session --terminal --euid --uid",
        )
    ),
    "which": judged(model("-a --all")),
    "diff": judged(
        model(
            # No -l: it runs pr.
            "-abBcdeEiNnpqrsTtuwyZ0123456789 --text --ignore-space-change --ignore-blank-lines --minimal --ed "
            "--ignore-tab-expansion "
            "--ignore-case --new-file --unidirectional-new-file --rcs --show-c-function --brief --recursive "
            "--report-identical-files --initial-tab --expand-tabs --ignore-all-space --side-by-side "
            "--suppress-common-lines "
            "--ignore-trailing-space --no-dereference --strip-trailing-cr --left-column",
            values="-CUFILWxX --context --unified --show-function-line --ignore-matching-lines --label --width "
            "--exclude "
            "--exclude-from --starting-file --horizon-lines --tabsize",
            optional="--color --palette",
        )
    ),
    "cmp": judged(model("-bls --print-bytes --verbose --quiet --silent", values="-in --ignore-initial --bytes")),
    # No -o and -R: they write files.
    "tree": _tree(
        model(
            "-adflxnNqQpugshDFirtcUvACSJX --noreport --dirsfirst --filesfirst --du --prune --matchdirs "
            "--ignore-case --gitignore "
            "--si --inodes --device --info --fromfile --metafirst",
            values="-LPIT --filelimit --timefmt --charset --sort",
            # To tree, -Lo is a level and an output file, whose values follow.
            clusters=False,
        )
    ),
    "od": judged(
        model(
            "-abcdfhilosxv --output-duplicates",
            values="-AjNtS --address-radix --skip-bytes --read-bytes --format --strings",
            optional="-w --width",
        )
    ),
    "hexdump": judged(model("-bcCdovx --canonical --no-squeezing", values="-ns --length --skip")),
    "strings": judged(
        model(
            "-adfow --all --data --print-file-name --include-all-whitespace",
            values="-ents --bytes --radix --encoding --output-separator",
            check_operand=_strings_operand,
        )
    ),
    "base64": judged(model("-di --decode --ignore-garbage", values="-w --wrap", operands=1)),
    "md5sum": judged(_HASH),
    "sha1sum": judged(_HASH),
    "sha224sum": judged(_HASH),
    "sha256sum": judged(_HASH),
    "sha384sum": judged(_HASH),
    "sha512sum": judged(_HASH),
    "b2sum": judged(_HASH),
    "cksum": judged(_HASH),
    "expand": judged(model("-i --initial", values="-t --tabs")),
    "unexpand": judged(model("-a --all --first-only", values="-t --tabs")),
    "lsblk": judged(
        model(
            "-abdfilmnOpPrStzJ --all --bytes --nodeps --fs --ascii --list --json --paths --topology",
            values="-eIox --exclude --include --output --sort",
        )
    ),
    "lscpu": judged(model("-abcJpsxy --all --json --physical", operands=0)),
    # No -m: it starts gzip to look into the charmaps.
    "locale": judged(model("-ackv --all-locales --category-name --keyword-name --verbose")),
    "getconf": judged(model("-a")),
    # No -f: a program in a file may import others.
    "jq": judged(
        model(
            "-nrRsScCMaej --null-input --raw-output --raw-input --slurp --sort-keys --compact-output --color-output "
            "--monochrome-output --ascii-output --exit-status --join-output --tab --seq --stream "
            "--args --jsonargs",
            values="--indent",
            pairs="--arg --argjson --slurpfile --rawfile",
            check_operand=_jq_operand,
        )
    ),
}
