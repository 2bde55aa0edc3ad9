"""Docs stay true: every setting, command and error code is documented, every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

from bench.figures import README, fill_readme
from scripts.check_prose import check_docstring, check_links, check_words, list_pages

from wsh.cli.main import NAMES
from wsh.wire.error import list_error_classes
from wsh.wire.setting import SETTINGS

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))


def _all_text() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in [*DOCS, ROOT / "README.md"])


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    missing = [setting.key for setting in SETTINGS if f"`{setting.key}`" not in text or setting.env not in text]
    assert missing == []


def test_every_command_is_documented() -> None:
    text = _all_text()
    assert [name for name in NAMES if f"wsh {name}" not in text] == []


def test_every_error_code_is_documented() -> None:
    text = _all_text()
    assert sorted({cls.code for cls in list_error_classes() if cls.code not in text}) == []


def test_every_link_between_the_docs_leads_somewhere() -> None:
    assert [f"{page.name}: {fault}" for page in list_pages() for fault in check_links(page)] == []


def test_a_link_to_a_file_or_a_heading_that_is_not_there_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A heading, with `code`\n")
    page = tmp_path / "page.md"
    page.write_text("[1](there.md#a-heading-with-code) [2](gone.md) [3](there.md#other) [4](https://example.invalid)\n")
    assert list(check_links(page)) == ["there is no gone.md", "there is no heading #other in there.md"]


def test_docstrings_that_open_with_a_pronoun_and_words_to_avoid_are_found() -> None:
    assert list(check_docstring("It is gone.")) and list(check_docstring("lower case."))
    assert list(check_docstring("A sentence without its end"))
    assert not list(check_docstring("Ends the session."))
    assert list(check_words("This is obviously so.")) and not list(check_words("`obviously` is code."))


def test_every_figure_in_the_readme_comes_from_the_recorded_benchmarks() -> None:
    readme = README.read_text(encoding="utf-8")
    assert fill_readme(readme, (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")) == readme


def test_the_navigation_of_the_site_names_pages_that_are_there() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]))
    pages = {str(page.relative_to(ROOT / "docs")) for page in DOCS}
    assert listed and listed <= pages


def test_the_glossary_has_at_most_thirty_words() -> None:
    glossary = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Glossary")[2]
    words = re.findall(r"^\| (?!word )([^|]+) \|", glossary, flags=re.MULTILINE)
    assert 20 < len(words) <= 30
