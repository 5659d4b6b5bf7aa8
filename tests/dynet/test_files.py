"""DyNet's text format, both ways, `dy.save` and `dy.load`; real DyNet wrote `collection.txt` and `saved.*`."""

import errno
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import edbatch as eb
import edbatch.dynet as dy

DATA = Path(__file__).parent / "data"


def made(factor=1.0):
    """The collection that real DyNet wrote to `collection.txt`."""
    m = dy.ParameterCollection()
    W = m.add_parameters((2, 3), name="W", init=factor * np.arange(6.0).reshape(2, 3))
    table = m.add_lookup_parameters((4, 2), name="L", init=factor * np.arange(8.0).reshape(4, 2) / 3)
    b = m.add_subcollection("sub").add_parameters(2, init=0.5 * factor)
    t = m.add_parameters((2, 2, 3), init=-factor * np.arange(12.0).reshape(2, 2, 3))
    return m, [W, table, b, t]


class TestCollections:
    def test_are_written_as_dynet_writes_them(self, tmp_path):
        m, (W, table, *_) = made()
        (dy.sum_elems(W) + dy.sum_elems(table[1])).backward()
        m.save(str(tmp_path / "m"))
        assert (tmp_path / "m").read_text() == (DATA / "collection.txt").read_text()

    def test_are_read_from_dynets(self):
        m, parameters = made(0.0)
        m.populate(str(DATA / "collection.txt"))
        for found, expected in zip(parameters, made()[1], strict=True):
            np.testing.assert_allclose(found.as_array(), expected.as_array(), rtol=1e-6)

    def test_parts_by_a_key(self, tmp_path):
        m = dy.ParameterCollection()
        first, second = (m.add_subcollection(name) for name in ("first", "second"))
        a, b = first.add_parameters(2, init=1.0), second.add_parameters(2, init=2.0)
        path = str(tmp_path / "m")
        first.save(path, "/X")
        second.save(path, "/Y", append=True)
        b.set_value([0.0, 0.0])
        second.populate(path, "/Y")
        assert b.value() == [2.0, 2.0]
        second.populate(path, "/X/")
        assert b.value() == a.value() == [1.0, 1.0]

    @pytest.mark.parametrize("key", ["", "/Z"])
    def test_that_do_not_fit(self, tmp_path, key):
        m = dy.ParameterCollection()
        m.add_parameters(2)
        m.save(str(tmp_path / "m"))
        other = dy.ParameterCollection()
        other.add_parameters(2)
        other.add_parameters(3)
        with pytest.raises(RuntimeError, match="did not match"):
            other.populate(str(tmp_path / "m"), key)

    def test_missing_or_other_files(self, tmp_path):
        m = dy.ParameterCollection()
        m.add_parameters(2)
        with pytest.raises(RuntimeError, match="Could not read"):
            m.populate(str(tmp_path / "none"))
        (tmp_path / "other").write_text("nothing of this kind\n")
        with pytest.raises(RuntimeError, match="text format"):
            m.populate(str(tmp_path / "other"))


class TestParameters:
    def test_one_by_one(self, tmp_path):
        _, (W, table, *_) = made()
        path = str(tmp_path / "w")
        W.save(path, "/a")
        table.save(path, "/b", append=True)
        n = dy.ParameterCollection()
        V, other = n.add_parameters((2, 3)), n.add_lookup_parameters((4, 2))
        V.populate(path, "/a")
        other.populate(path, "/b")
        assert np.array_equal(V.as_array(), W.as_array())
        np.testing.assert_allclose(other.as_array(), table.as_array(), rtol=1e-6)
        assert np.array_equal(n.load_param(path, "/a").as_array(), W.as_array())
        assert n.load_lookup_param(path, "/b").shape() == (4, 2)
        for populate in (V.populate, n.load_param):
            with pytest.raises(RuntimeError, match="Could not find key"):
                populate(path, "/c")
        with pytest.raises(RuntimeError, match="do not match"):
            n.add_parameters(2).populate(path, "/a")


class TestSaved:
    def test_by_dynet(self):
        m = dy.ParameterCollection()
        lstm, W = dy.load(str(DATA / "saved"), m)
        assert isinstance(lstm, dy.VanillaLSTMBuilder)
        assert W.as_array().tolist() == [[0.25, 0.25], [0.25, 0.25]]
        for p in lstm.param_collection().parameters_list():
            assert np.array_equal(p.as_array(), np.arange(p.spec.size).reshape(p.shape()) / 8.0)

    @pytest.mark.parametrize(
        "make",
        [
            lambda m: dy.VanillaLSTMBuilder(2, 3, 4, m),
            lambda m: dy.VanillaLSTMBuilder(1, 3, 4, m, False, 0.5),
            lambda m: dy.CompactVanillaLSTMBuilder(2, 3, 4, m),
            lambda m: dy.CoupledLSTMBuilder(1, 3, 4, m),
            lambda m: dy.GRUBuilder(2, 3, 4, m),
            lambda m: dy.SimpleRNNBuilder(2, 3, 4, m),
            lambda m: dy.BiRNNBuilder(2, 3, 4, m, dy.LSTMBuilder),
        ],
    )
    def test_builders(self, tmp_path, make):
        m, n = dy.ParameterCollection(), dy.ParameterCollection()
        b, builder, table = m.add_parameters(2), make(m), m.add_lookup_parameters((3, 2))
        dy.save(str(tmp_path / "m"), [builder, b, table])
        again, c, other = dy.load(str(tmp_path / "m"), n)
        xs = [dy.inputVector([1, 2, 3]), dy.inputVector([0, 1, 0])]
        outputs = [
            [y.value() for y in (x if isinstance(x, dy.BiRNNBuilder) else x.initial_state()).transduce(xs)]
            for x in (builder, again)
        ]
        np.testing.assert_allclose(*outputs, rtol=1e-5)
        np.testing.assert_allclose(b.as_array(), c.as_array(), rtol=1e-6)
        np.testing.assert_allclose(table.as_array(), other.as_array(), rtol=1e-6)

    def test_builders_of_ones_own(self, tmp_path):
        dy.save(str(tmp_path / "m"), iter([Dense(dy.ParameterCollection(), 2)]))
        (found,) = dy.load_generator(str(tmp_path / "m"), dy.ParameterCollection())
        assert found.spec == (2,)

    def test_other_things_are_refused(self, tmp_path):
        with pytest.raises(RuntimeError, match="Cannot save"):
            dy.save(str(tmp_path / "m"), [3])

    @pytest.mark.parametrize("named", ["print", "getattr", "type", "edbatch.dynet.save", "edbatch.dynet.files.io"])
    def test_other_code_in_a_file_is_refused(self, tmp_path, named, capsys):
        """It is named, and does not run."""
        (tmp_path / "m.data").touch()
        module, _, name = f"builtins.{named}".rpartition(".")
        module = module if module == "builtins" else module.removeprefix("builtins.")
        (tmp_path / "m.meta").write_bytes(f"c{module}\n{name}\n(S'run'\ntR.".encode())
        with pytest.raises(
            eb.EdBatchError, match=rf"m.meta: holds {module}.{name}; expected numbers, texts and classes"
        ):
            dy.load(str(tmp_path / "m"), dy.ParameterCollection())
        assert capsys.readouterr().out == ""

    def test_modules_are_not_imported_for_a_file(self, tmp_path):
        (tmp_path / "m.meta").write_bytes(b"cantigravity\nfly\n.")
        with pytest.raises(eb.EdBatchError, match=r"holds antigravity.fly; .* whose modules have been imported"):
            dy.load(str(tmp_path / "m"), dy.ParameterCollection())
        assert "antigravity" not in sys.modules

    def test_a_file_of_something_else(self, tmp_path):
        (tmp_path / "m.meta").write_bytes(b"model\n")
        with pytest.raises(eb.EdBatchError, match=r"m.meta: expected what dy.save writes"):
            dy.load(str(tmp_path / "m"), dy.ParameterCollection())

    def test_what_could_not_be_loaded_is_not_saved(self, tmp_path):
        """And what was saved before stays, whole."""
        path, builder = str(tmp_path / "m"), Dense(dy.ParameterCollection(), 2)
        dy.save(path, [builder])
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        builder.spec = (np.tanh,)
        with pytest.raises(eb.EdBatchError, match=r"Cannot save Dense: its spec: holds numpy.*; expected numbers"):
            dy.save(path, [builder])
        with pytest.raises(eb.EdBatchError, match="Cannot save"):
            dy.save(path, [dy.ParameterCollection().add_parameters(2), 3])
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before

    def test_files_are_replaced_in_one_step(self, tmp_path, monkeypatch):
        """A disk that is full leaves what was there."""
        path, parameter = str(tmp_path / "m"), dy.ParameterCollection().add_parameters(2, init=1.0)
        writers = [
            lambda: dy.save(path, [parameter]), lambda: parameter.save(path), lambda: collection.save(path),
        ]  # fmt: skip
        collection = dy.ParameterCollection()
        collection.add_parameters(3)
        dy.renew_cg()
        for write in writers:
            write()
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

        def full(*given):
            raise OSError(errno.ENOSPC, "No space left on device")

        parameter.set_value([0.0, 0.0])
        monkeypatch.setattr(os, "fsync", full)
        for write in writers:
            with pytest.raises(eb.EdBatchError, match=r"cannot be written \(No space left on device\)"):
                write()
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


class Dense:
    """A layer in DyNet's style."""

    def __init__(self, model, size):
        self.part = model.add_subcollection("dense")
        self.W = self.part.add_parameters((size, size))
        self.spec = (size,)

    def param_collection(self):
        return self.part

    @classmethod
    def from_spec(cls, spec, model):
        return cls(model, *spec)
