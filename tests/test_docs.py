"""Every example of the README and of docs/ runs; every file they point to exists."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[tuple[str, str]]:
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [(page.name, block) for page in PAGES for block in pattern.findall(page.read_text())]


COMMANDS = [
    (page, line) for page, block in blocks("sh") for line in block.splitlines() if line.startswith("onegrad ")
]


def test_there_are_examples():
    assert len(blocks("python")) >= 2
    assert len(COMMANDS) >= 3


@pytest.mark.parametrize(("page", "block"), blocks("python"))
def test_python_blocks_run(page, block):
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", block], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout


@pytest.mark.parametrize(("page", "line"), [*COMMANDS, ("README.md", "onegrad simulate --quick")])
def test_commands_run(page, line):
    arguments = [sys.executable, "-m", "onegrad.cli", *shlex.split(line)[1:]]
    found = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_public_names_exist_and_are_documented():
    import onegrad as og

    for name in og.__all__:
        assert getattr(og, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        _ = og.simulat
