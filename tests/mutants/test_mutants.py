"""Every mutant can be made, and the test that catches it is there; `-m slow` has it caught, too."""

import pytest

from tests.mutants.__main__ import ROOT, judge, mutated
from tests.mutants.faults import FAULTS

sound: dict[str, str] = {}


def test_every_fault_can_be_planted():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) == 40
    for fault in FAULTS:
        compile(mutated(fault), fault.path, "exec")  # or exits, where the text is gone
        file, _, name = fault.test.partition("::")
        function = name.split("::")[-1].partition("[")[0]
        assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8"), fault.test


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_caught(fault):
    assert judge(fault, sound)[0] == "caught"
