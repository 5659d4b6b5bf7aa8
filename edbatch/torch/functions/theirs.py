"""Functions that are PyTorch's own: one call for each batch, mapped over its rows, differentiated by PyTorch."""

from __future__ import annotations

from functools import cache
from inspect import signature
from types import EllipsisType, NoneType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

import edbatch as eb
from edbatch.torch.ops import Op
from edbatch.torch.recording import Recording, node, written
from edbatch.torch.registry import HANDLERS, METHODS, name_of, refused, register
from edbatch.torch.unread import Unread

#: Of `torch`, `torch.nn.functional`, `torch.special`, `torch.linalg` and tensors.
_NAMES = """
    absolute acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh ceil copysign
    cosh deg2rad digamma entr erfcx erfinv exp2 expm1 fix floor fmax fmin fmod frac
     gammaln hypot i0 i0e i1 i1e ldexp lgamma log10 log1p log2 log_ndtr logaddexp
    logaddexp2 logit multigammaln mvlgamma nan_to_num ndtr ndtri polygamma psi rad2deg remainder round sgn signbit sinc
    sinh tan trunc xlog1py xlogy isneginf isposinf isclose logical_and logical_not logical_or logical_xor

    addbmm addr block_diag cartesian_prod cdist cholesky cholesky_solve combinations cov corrcoef cross
    det eigh eigvalsh inner inv inverse kron logdet matrix_exp matrix_norm matrix_power multi_dot pinv pinverse
    qr slogdet solve solve_triangular svdvals tensordot trace vecdot

    all aminmax any count_nonzero cummax cummin cumprod cumulative_trapezoid diff dist kthvalue logcumsumexp median
    mode nanmean nanmedian nanquantile nansum prod quantile renorm std_mean trapezoid trapz var_mean

    argsort bucketize diagflat diagonal_scatter dstack fliplr flipud index_add index_copy index_fill
    index_put isin masked_scatter msort roll rot90 scatter scatter_add scatter_reduce searchsorted slice_scatter sort
    sum_to_size take take_along_dim tile topk tril triu

    celu hardshrink hardsigmoid hardswish hardtanh mish prelu relu6 selu softshrink threshold
    alpha_dropout feature_alpha_dropout dropout1d dropout2d dropout3d gumbel_softmax
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_pool1d max_pool2d max_pool3d
    max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool1d_with_indices
    adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices
    affine_grid channel_shuffle conv3d conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity fold
    grid_sample group_norm interpolate local_response_norm pairwise_distance pdist pixel_shuffle pixel_unshuffle

    cosine_embedding_loss hinge_embedding_loss huber_loss margin_ranking_loss multi_margin_loss
    multilabel_margin_loss multilabel_soft_margin_loss poisson_nll_loss smooth_l1_loss
    triplet_margin_loss triplet_margin_with_distance_loss
"""

#: The same, whose results are views.
_VIEWS = """
    adjoint atleast_1d atleast_2d atleast_3d broadcast_tensors diag diag_embed diagonal dsplit hsplit mH meshgrid ravel
    tensor_split unflatten unfold unsafe_chunk unsafe_split vsplit
"""


#: What else they may be given.
_STATIC = (int, float, str, slice, NoneType, EllipsisType, torch.dtype, torch.device, torch.layout, torch.memory_format)


class _Kind(NamedTuple):
    """How a tensor is given to a function: of which dtype, if not the graph's, and whether a gradient flows to it."""

    dtype: torch.dtype | None
    has_gradient: bool


class _Call:
    """A function with its arguments besides tensors; `form`: the leaves of all, or how a tensor is given there."""

    def __init__(self, function: Any, tree: TreeSpec, form: list[Any]) -> None:
        self._function, self._tree, self.form = function, tree, form
        self.dtypes: list[torch.dtype] = []

    def __call__(self, *rows: torch.Tensor) -> Any:
        """The results for a row, as numbers of the graph's dtype; `dtypes` are their own."""
        leaves, of, dtype = [], iter(rows), rows[0].dtype
        for part in self.form:
            if isinstance(part, _Kind):
                row = next(of)
                part = (row if part.has_gradient else row.detach()).to(part.dtype or dtype)
            leaves.append(part)
        with torch._C.DisableTorchFunction():  # that of a module which reads values meanwhile
            args, given = tree_unflatten(leaves, self._tree)
            found, tree = tree_flatten(self._function(*args, **given))
            self.dtypes = [x.dtype for x in found]
            if any(x.is_complex() or (x.is_floating_point() and x.dtype != dtype) for x in found):
                raise refused(f"a result of {self.dtypes}", f"expected {dtype}")
            return tree_unflatten([x.to(dtype) for x in found], tree)


class _Op(Op):
    def example(self, at: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Matrices that have an inverse, and indices that are in range."""
        kinds = [part for part in self.module.form if isinstance(part, _Kind)]  # type: ignore[attr-defined]
        x = torch.zeros(shape, dtype=dtype)
        return x if len(shape) < 3 or kinds[at].dtype else x + torch.eye(*shape[-2:], dtype=dtype)

    def run(self, xs: list[torch.Tensor], buffers: dict[str, torch.Tensor] | None = None) -> Any:
        """Call it on a batch; the first time on a row, too, of which PyTorch checks the axes."""
        found = super().run(xs)
        if buffers is not None:
            alone, row = (tree_leaves(one) for one in (found, self.module(*[x[0] for x in xs])))
            if any(x.shape[1:] != y.shape for x, y in zip(alone, row, strict=True)):
                raise refused(f"{self.__name__}", "torch.func.vmap gives other shapes")
        return found


_ops: dict[Any, Op] = {}  # by function and form
MOST = 1000  # of these: arguments that are numbers may be others in each sample


def _operand(x: Any) -> tuple[Any, _Kind]:
    """A tensor as an expression, and what it is."""
    if isinstance(x, Unread):
        return x.unread, _Kind(x.dtype, False)
    if isinstance(x, eb.Expression):
        return x, _Kind(None, True)
    with torch._C.DisableTorchFunction():
        if x.is_floating_point():
            return node(x), _Kind(None, x.requires_grad)
        if x.numel() and x.dtype is not torch.bool and int(x.abs().max()) >> 24:
            raise refused("an integer above 2 ** 24", "it would not be one in float32")
        return node(x), _Kind(x.dtype, False)


@cache
def _bind_of(function: Any) -> Any:
    """What binds the arguments of a function that can be done in place; else None."""
    is_python = hasattr(function, "__code__") and "inplace" in signature(function).parameters
    return signature(function).bind if is_python else None


def by_batch(function: Any, args: Any, given: dict[str, Any]) -> Any:
    """Call PyTorch's function of lazy tensors."""
    if (bind := _bind_of(function)) is not None:
        given = bind(*args, **given).arguments
        if given.pop("inplace", False):
            return written(given["input"], by_batch(function, (), given), name_of(function))
        args = ()
    if given.get("out") is not None:
        raise refused(f"{name_of(function)} with out=", "write x = f(y)")
    leaves, tree = tree_flatten((args, given))
    form, operands = [], []
    for x in leaves:
        if isinstance(x, torch.Tensor | eb.Expression | Unread):
            operand, x = _operand(x)
            operands.append(operand)
        elif not isinstance(x, _STATIC) and not callable(x):
            raise refused(
                f"{name_of(function)} with such arguments",
                "expected tensors, numbers and texts, and no integer that is an argument of a cell",
            )
        form.append(x)
    key = function, tree, tuple([(type(x), str(x), x if x.__hash__ else None) for x in form])
    op = _ops.get(key)
    if op is None:
        if len(_ops) >= MOST:
            _ops.clear()
        call = _Call(function if callable(function) else function.__get__, tree, form)
        op = _ops.setdefault(key, _Op(call, True, name_of(function)))
    found, results = tree_flatten(op(*operands))
    dtypes = op.module.dtypes  # type: ignore[attr-defined]
    read = [x if dtype.is_floating_point else Unread(x, dtype) for x, dtype in zip(found, dtypes, strict=True)]
    return tree_unflatten(read, results)


def _fill() -> None:
    def handler_of(function: Any) -> Any:
        return lambda *args, **given: by_batch(function, args, given)

    views = _VIEWS.split()
    for name in (*_NAMES.split(), *views):
        for space in (torch, F, torch.special, torch.linalg):
            if (function := getattr(space, name, None)) is not None and function not in HANDLERS:
                register(function, view=name in views)(handler_of(function))
        if name not in METHODS and hasattr(torch.Tensor, name):
            register(methods=name, view=name in views)(handler_of(getattr(torch.Tensor, name)))


_fill()
Recording.theirs = staticmethod(by_batch)
