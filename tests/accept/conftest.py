"""Every test in this folder has the marker `accept`: `make test` leaves it out, `make accept` runs it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(folder):
            item.add_marker(pytest.mark.accept)


@pytest.fixture(scope="session", autouse=True)
def own_home() -> None:
    """Package managers and foreign clients are used as this user has them."""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as `make dist` makes it, out of its sdist."""
    folder = tmp_path_factory.mktemp("dist")
    # The page and the tools that build are there after this; `make dist` itself writes into the checkout.
    subprocess.run(["make", "-s", ".venv/.dist-stamp", "page"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([ROOT / "scripts" / "make-dist.sh", folder], check=True, stdout=subprocess.DEVNULL)
    (found,) = folder.glob("*.whl")
    return found
