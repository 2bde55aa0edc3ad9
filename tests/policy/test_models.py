"""Argument models: what writes, runs or connects is not allowed, however it is spelled; what only reads is."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsh.policy import Mode, Policy, PolicyRequest, decide
from wsh.policy.policy import allow_rules
from wsh.policy.rule.default import HEADLESS_ALLOW

POLICY = Policy(rules=allow_rules(HEADLESS_ALLOW, Mode.HEADLESS))

REFUSED = """\
xxd -ps in out
xxd -p in out
xxd in out
xxd in -p
xxd -a in -b
xxd -- in out
xxd -c 16 in out
xxd -c16 in out
xxd -r -p in
xxd -pr in
xxd -revert in
xxd -ar in
xxd --r in
xxd -s -r in
xxd -ps -r in out
tree -Lo 2 out
tree -LaRo 2 out
tree -o out
tree -Ro out
tree -PoL x out 2
tree --output=x
tree -T t -o x
uniq in out
uniq in -c
uniq -c in out
uniq -f 1 in out
uniq -- in out
uniq -- -c out
sort -o out in
sort in -oout
sort -ro out in
sort --out=out in
sort --output out in
sort --compress-program=sh in
sort --compress-prog=sh in
sort -T /x in
sort --files0-from=x
date 010100002030
date -s now
date --set=now
date --se now
date -us now
date -I 010100002030
hostname evil
hostname -F f
hostname -b x
tail +1f x
tail -f x
tail -5f x
tail --follow x
tail --retry x
tail -F x
strings @args
git branch -- newb --list
git branch newb
git branch -v newb
git branch -q newb
git branch --sort=refname newb
git branch --format=x newb
git branch -- newb
git branch -a -- newb --merged
git branch -D main
git branch -m x
git branch -f x
git branch -u x
git branch --edit-description
git branch --unset-upstream
git branch --set-upstream-to=x
git branch --no-list --list x
git branch --lis x
git tag newt
git tag -- newt --list
git tag -i newt
git tag -a x
git tag -d x
git tag -s x
git tag -v x
git tag --sort=x newt
git status --ignore-submodules=none
git status --ignore-submodules=untracked
git diff --ignore-submodules=none
git diff --submodule=diff
git log -p --submodule=diff
git log --format=%G?
git log --pretty=format:%GK
git rev-list --format=%G? HEAD
git shortlog --group=format:%G?
git for-each-ref --format=%(signature)
git for-each-ref --sort=signature
git branch --format=%(signature:grade)
git tag --format=%(signature)
git log --show-signature
git log --output=x
git diff --output x
git diff --outpu=x
git log --ext-diff -p
git log --textconv -p
git show --ext-diff
git grep -O x
git grep -nO x
git grep --open-files-in-pager x
git grep --recurse-submodules x
git grep --textconv x
git ls-files --recurse-submodules
git log --remerge-diff
git log --diff-merges=remerge
git rev-list --alternate-refs
git stash
git stash push
git stash list --output=x
git stash show --ext-diff
git stash drop
git reflog expire
git reflog delete x
git remote update
git remote show origin
git remote add x y
git remote prune origin
git worktree add x
git worktree prune
git cat-file --textconv HEAD:a
git cat-file --filters HEAD:a
git cat-file --batch
git describe --help
git log --help
sed -i s/a/b/ f
sed -n -i p f
sed -ni p f
sed --in-place p f
sed s/a/b/w f
sed s/a/b/e f
sed s/a/b/gw f
sed w f
sed 1w f
sed e f
sed 1e f
sed -n 1p;w f
sed r f
sed -f script f
sed --file=script f
sed s/[/]X/g;/w f/p f
sed s/a/b/;w f
sed f -e p
sed y/a/b/w f
sed $!w f
sed 1,3{w f
sed a\\x f
sed -s -n --expression w f
ps auxe
ps e
ps axe
ps eww
ps -auxe
ps a e
ps -o pid e
rg --pre cat x
rg --pre=cat x
rg -z x
rg -nz x
rg --search-zip x
rg --hostname-bin x x
find . -exec id ;
find . -delete
find . -fprintf x %p
file -C -m x
file -z x
file -p x
file -m x y
diff -l a b
diff --paginate a b
du --files0-from=x
wc --files0-from=x
jq --run-tests x
jq -n 'import "config" as $c {search: "/etc/docker"}; $c'
jq ' include "x"; .'
jq -n 'module {}; import "x" as $x; $x'
jq -n '# import "x" as $x; $x'
jq -f prog.jq f
jq -nf prog.jq
jq --from-file prog.jq f
locale -m
locale -am
locale --charmaps
pgrep --signal 9 x
"""

FINE = """\
tree -L2
tree -L2 -a
diff -u3 a b
find . -mtime +0.5
git rev-parse --git-path hooks
git version
node -v
python3 -V
date -Iseconds
date -Is
date -I
date -uIseconds
date --iso-8601=seconds
date -u +%FT%TZ
date -d yesterday +%F
date --rfc-3339=seconds
date -R
xxd f
xxd -ps f
xxd -p f
xxd -p -c 32 f
xxd -c16 -l 64 f
xxd -s 0x10 -l 16 f
xxd -b -c 4 f
xxd -plain f
tree
tree -L 2
tree -a -L 2 src
tree -L 2 -I node_modules
tree -d
tree -if
tree --dirsfirst -P x
uniq -c in
uniq
uniq -d -f 1 in
ps
ps aux
ps -ef
ps auxf
ps -eo pid,ppid,cmd
ps -eo pid,ppid,cmd --sort=-%cpu
ps -o pid,comm -p 1
ps axo pid,cmd
ps -p 1
ps -p 1 -o comm=
ps -u root
ps -C bash
ps 1
ps -eLf
ps --forest -ef
ps -e --no-headers
ps -ww -ef
ps aux --sort=-rss
sed -n 10,20p f
sed -n '10,20p' f
sed -ne 1,5p f
sed -n /foo/p f
sed /foo/d f
sed s/a/b/ f
sed s/a/b/g f
sed 's|a/b|c|g' f
sed -E 's/(a|b)+/\\1/' f
sed -n '/start/,/end/p' f
sed -n '5p;10q' f
sed '1d;$d' f
sed -n '$=' f
sed -e 1d -e 's/x/y/' f
sed 's/[[:space:]]*$//' f
sed -n '$!p' f
sed '/^$/d' f
sed = f
git branch
git branch -a
git branch -vv
git branch --list
git branch --list x*
git branch -r --sort=-committerdate
git branch --merged
git branch --merged main
git branch -a --no-merged
git branch --contains HEAD
git branch --show-current
git branch --format=%(refname:short)
git branch --points-at HEAD
git tag
git tag -l v*
git tag -n
git tag -n3 -l v*
git tag --sort=-v:refname
git tag --points-at HEAD
git tag --contains
git status -uno
git status -u
git status -sb
git status --porcelain
git status --ignore-submodules
git diff -M90% HEAD
git diff -C
git diff -B
git log -M --stat
git log --oneline -10
git log -n 5 --format=%h
git log --since=yesterday
git log main --not origin/main
git diff main...feature
git describe --tags --always --dirty
git rev-list --left-right --count a...b
git for-each-ref --sort=-committerdate --count=5 refs/heads
git shortlog -sne
git stash show -p stash@{0}
git reflog -5
tail -n +5 f
tail -5 f
od -w16 f
od -A x -t x1z -v f
jq .
jq -r .a f
jq -n --arg a b $a
jq --argjson a 1 .a f
jq --indent 2 . f
jq '.import, .module' f
jq 'select(.kind == "include")' f
find . -mmin -5
find . -size +1M -mtime -1
strings -n 8 f
pgrep -f x
pgrep -d , x
pgrep -l x
hostname
hostname -I
sort -k2,2n -t: f
sort -u f
cut -d: -f1 f
head -20 f
grep -rn x .
grep -A3 -B2 x f
diff -u a b
diff -U5 a b
du -sh .
df -h
stat -c %s f
"""


def _lines(text: str) -> list[str]:
    return [line.replace("\\\\", "\\") for line in text.splitlines()]


def _argv(line: str) -> tuple[str, ...]:
    """Blanks part the words, except between apostrophes. No shell: a `$` or `;` is itself."""
    words: list[str] = []
    for number, part in enumerate(line.split("'")):
        words += [part] if number % 2 else part.split()
    return tuple(words)


@pytest.mark.parametrize("line", _lines(REFUSED))
def test_what_could_write_or_run_is_refused(line: str) -> None:
    verdict = decide(PolicyRequest(argv=_argv(line)), POLICY)
    assert not verdict.allowed, verdict.message


@pytest.mark.parametrize("line", _lines(FINE))
def test_what_only_reads_is_allowed(line: str) -> None:
    verdict = decide(PolicyRequest(argv=_argv(line)), POLICY)
    assert verdict.allowed, verdict.message


@pytest.mark.parametrize("reference", ["stash@{0}", "@{u}..", "main@{upstream}", "@{-1}", "HEAD@{2}:f"])
def test_a_reference_of_git_with_braces_is_a_literal_word(reference: str) -> None:
    verdict = decide(PolicyRequest(command=f"git show {reference}"), POLICY)
    assert verdict.allowed and verdict.argv == (("git", "show", reference),)


def test_no_attempt_of_the_list_is_run() -> None:
    """`attempts.txt`: ways to write, run or fetch with the programs of the shipped list and their neighbours."""
    attempts = (Path(__file__).parent / "attempts.txt").read_text().splitlines()
    assert [line for line in attempts if decide(PolicyRequest(command=line), POLICY).allowed] == []
