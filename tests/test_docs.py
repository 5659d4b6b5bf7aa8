"""The guide: its code runs and prints what it shows, it has all public names, and it is built without a warning."""

import inspect
import re
import runpy
import subprocess
import sys

import pytest

import edbatch as eb
from tests.pages import README, ROOT, blocks_of, run

DOCS = ROOT / "docs"
PAGES = {str(page.relative_to(DOCS)): page for page in sorted(DOCS.rglob("*.md"))}
ELSEWHERE = {"extending.md"}  # what it declares is in the table of ops only while tests/test_extending.py looks at it
PROGRAMS = [name for name, page in PAGES.items() if name not in ELSEWHERE and blocks_of(page)]
pytestmark = pytest.mark.cpu  # reports show the device


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_code_of_a_page_prints_what_it_shows(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run(PAGES[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_code_is_as_wide_as_a_page(name):
    lines = [line for block in blocks_of(PAGES[name]) for line in block.code.splitlines()]
    assert max(map(len, lines)) <= 88


def test_the_reference_has_all_public_names():
    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    listed = set(re.findall(r"^\.\. auto(?:class|function|exception):: (?:edbatch\.)?(\w+)$", text, re.MULTILINE))
    listed |= {name for names in re.findall(r":members: (.+)", text) for name in names.split(", ")}
    public = {name for name in eb.__all__ if not inspect.ismodule(getattr(eb, name))}
    assert public <= listed


def test_the_readme_leads_to_files_that_are_there():
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", README.read_text(encoding="utf-8"))
    assert len(links) > 5
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists(), link


def test_the_pictures_are_what_the_script_draws(tmp_path):
    pytest.importorskip("igraph", reason="needs the extra `plot`")
    runpy.run_path(str(DOCS / "pictures.py"))["main"](tmp_path)
    drawn, shown = (
        {path.name: re.findall(r"<!-- (.*?(?:batch|run ).*?) -->", path.read_text()) for path in folder.iterdir()}
        for folder in (tmp_path, DOCS / "pictures")
    )
    assert len(shown) == 5
    assert all(shown.values())
    assert drawn == shown  # what their texts say of batches, and what a machine runs


def test_the_guide_is_built_without_a_warning(tmp_path):
    pytest.importorskip("sphinx", reason="needs the extra `docs`")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", DOCS, tmp_path / "html"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html" / "index.html").is_file()
