"""Calling the command in this process, and small files for it."""

import json

import pytest

from edbatch.cli import main


@pytest.fixture
def edbatch(capsys):
    """Run the command: (status, stdout, stderr)."""

    def run(*argv):
        try:
            status = main([str(argument) for argument in argv])
        except SystemExit as error:  # argparse
            status = error.code
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def edbatch_json(edbatch):
    """Run the command with --json: the decoded object."""

    def run(*argv):
        status, out, err = edbatch(*argv, "--json")
        assert (status, err) == (0, "")
        return json.loads(out)

    return run


@pytest.fixture
def fails(edbatch):
    """Run the command, which must fail with one line; the line without its beginning."""

    def run(*argv):
        status, out, err = edbatch(*argv)
        assert (status, out) == (2, "")
        assert err.startswith("edbatch: error: ")
        assert err.count("\n") == 1
        return err.removeprefix("edbatch: error: ").rstrip()

    return run


@pytest.fixture
def chain(tmp_path):
    """A recorded graph whose best schedule has 3 batches, and 4 by depth."""
    path = tmp_path / "chain.txt"
    path.write_text("4\n0 0\n1 1 0\n0 1 0\n1 1 2\n# type 0 I\n# type 1 O\n")
    return path
