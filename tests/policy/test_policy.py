import pytest

from edbatch.errors import EdBatchError
from edbatch.policy import Heuristic, get_policy


def test_files(tmp_path):
    path = tmp_path / "depth"
    Heuristic("agenda").save(path)
    assert get_policy(path).name == "agenda"
    assert get_policy(str(path)).name == "agenda"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("fast", "'fast' and there is no such file; names are depth, agenda"),
        (".", "and it is no file; names are depth, agenda"),
        (3, "expected a policy, a name or a path, got int"),
    ],
)
def test_neither_a_name_nor_a_file(spec, message):
    with pytest.raises(EdBatchError, match=message):
        get_policy(spec)
