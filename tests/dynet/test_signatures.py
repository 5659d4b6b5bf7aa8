"""Arguments and methods of DyNet 2.1 that programs rarely use; what DyNet 2.1.2 gave is written here."""

import numpy as np
import pytest

import edbatch.dynet as dy


def test_arguments_that_change_nothing():
    dy.renew_cg(autobatching=True)
    M = dy.inputTensor(np.ones((2, 2)), False, "", True)
    assert dy.sum_dim(M, [0], False, 3).value() == [2.0, 2.0]
    assert dy.inputTensorTranspose(np.arange(4.0), (2, 2), 1, "").npvalue().tolist() == [[0, 2], [1, 3]]


def test_text_files_with_keys(tmp_path):
    file = str(tmp_path / "values.txt")
    model = dy.ParameterCollection()
    W, table = model.add_parameters((2, 2)), model.add_lookup_parameters((3, 2))
    W.write_to_textfile(file, "/W")
    table.write_to_textfile(file, "/table", True)
    other = dy.ParameterCollection()
    V, rows = other.add_parameters((2, 2)), other.add_lookup_parameters((3, 2))
    V.populate_from_textfile(file, "/W")
    rows.populate_from_textfile(file, "/table")
    np.testing.assert_allclose(V.as_array(), W.as_array(), rtol=1e-6)
    np.testing.assert_allclose(rows.as_array(), table.as_array(), rtol=1e-6)
    model.write_to_textfile(file, "/part/")
    V.zero()
    other.populate_from_textfile(file, "/part/")
    np.testing.assert_allclose(V.as_array(), W.as_array(), rtol=1e-6)


class TestGraph:
    def test_inputs(self):
        assert dy.cg().inputMatrixLiteral([1, 2, 3, 4], (2, 2)).npvalue().tolist() == [[1, 3], [2, 4]]
        assert dy.cg().inputMatrixLiteral([1, 2, 3, 4], (2, 1), 2).dim() == ((2, 1), 2)
        assert dy.cg().inputSparseTensor([1, 2], [3.0, 2.0], (2, 2)).npvalue().tolist() == [[0, 2], [3, 0]]
        with pytest.raises(ValueError, match="as many"):
            dy.cg().inputSparseTensor([1, 2], [3.0], (2, 2))

    def test_values(self):
        x = dy.inputVector([1, 2])
        for name in ("forward_vec", "inc_forward_vec"):
            assert getattr(dy.cg(), name)(x * 2) == [2.0, 4.0]
        for name in ("forward_scalar", "inc_forward_scalar"):
            assert getattr(dy.cg(), name)(dy.sum_elems(x)) == 3.0
        dy.cg().forward(x)
        dy.cg().inc_forward()
        dy.cg().backward(dy.sum_elems(x), True)
        assert x.gradient().tolist() == [1.0, 1.0]

    def test_text(self, tmp_path, capsys):
        dy.renew_cg()
        dy.tanh(dy.exp(dy.inputVector([1, 2])))
        text = 'digraph G {\n  N0 [label="exp([2])"];\n  N1 [label="tanh([2])"];\n  N0 -> N1;\n}\n'
        for call in (dy.dump_cg, dy.print_graphviz, dy.print_text_graphviz, dy.cg().dump, dy.cg().print_graphviz):
            call()
            assert capsys.readouterr().out == text
        dy.dump_cg(str(tmp_path / "graph.dot"), True, False, False)
        dy.cg().dump(str(tmp_path / "same.dot").encode())
        assert (tmp_path / "graph.dot").read_text() == (tmp_path / "same.dot").read_text() == text
        with pytest.raises(RuntimeError, match="check_validity"):
            dy.dump_cg(nan_check_only=True)
