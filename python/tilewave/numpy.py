"""A layer's matrix products on a CPU for numpy arrays, of float32 or float64."""

from __future__ import annotations

from typing import Any, Optional

from . import _library as c

try:
    import numpy
except ImportError as error:
    raise ImportError("tilewave.numpy takes numpy: pip install numpy") from error

_DTYPES = {numpy.dtype("float64"): c.F64, numpy.dtype("float32"): c.F32}
ACTIVATIONS = {None: c.NONE, "relu": c.RELU, "gelu": c.GELU_ERF, "gelu_tanh": c.GELU_TANH}


def _matrix(name: str, matrix: Any, shape: tuple[Optional[int], Optional[int]], dtype: Any) -> Any:
    if not isinstance(matrix, numpy.ndarray) or matrix.ndim != 2 or matrix.dtype not in _DTYPES:
        raise c.InputError(f"{name} is no matrix of float32 or float64; numpy.asarray(..., dtype=numpy.float32) makes one.")
    if matrix.dtype != dtype:
        raise c.InputError(f"{name} is {matrix.dtype} and x is {dtype}; both must have one type.")
    if any(wanted not in (None, there) for wanted, there in zip(shape, matrix.shape)):
        raise c.InputError(f"{name} has the shape {matrix.shape}, and {shape} goes with the others.")
    width = matrix.itemsize
    if (matrix.shape[1] > 1 and matrix.strides[1] != width) or matrix.strides[0] % width or (matrix.shape[0] > 1 and matrix.strides[0] < width):
        raise c.InputError(f"{name} has strides of {matrix.strides} bytes, and the elements of a row must follow one another; "
                           "numpy.ascontiguousarray makes such a matrix.")
    return matrix


def _packed(matrix: Any) -> tuple[int, int, int, int, int, int]:
    if matrix is None:
        return c.ABSENT
    rows, columns = matrix.shape
    return matrix.ctypes.data, rows, columns, matrix.strides[0] // matrix.itemsize if rows > 1 else columns, _DTYPES[matrix.dtype], 0


def linear(x: Any, weight: Any, bias: Any = None, *, activation: Optional[str] = None, residual: Any = None, threads: int = 0) -> Any:
    """activation(x weight^T + bias) + residual: x [tokens, in], weight [out, in], bias [out], residual and the result [tokens, out].
    `activation` is None, "relu", "gelu" or "gelu_tanh". Rows may lie any distance apart; nothing is copied."""
    if activation not in ACTIVATIONS:
        raise c.InputError(f"activation {activation!r} is none of None, 'relu', 'gelu', 'gelu_tanh'.")
    x = _matrix("x", x, (None, None), getattr(x, "dtype", None))
    weight = _matrix("weight", weight, (None, x.shape[1]), x.dtype)
    shape = (x.shape[0], weight.shape[0])
    if bias is not None:
        bias = _matrix("bias", bias[None, :], (1, shape[1]), x.dtype)
    if residual is not None:
        residual = _matrix("residual", residual, shape, x.dtype)
    y = numpy.empty(shape, dtype=x.dtype)
    c.check(c.library().tw_multiply(c.GEMM.pack(
        c.CPU, threads, 0, 0, 0, c.FORWARD, 0, *_packed(weight), *_packed(x), *_packed(y), *_packed(bias), *c.ABSENT, *c.ABSENT,
        *_packed(residual), *c.ABSENT, ACTIVATIONS[activation], c.NONE, 0, 0, 0)))
    return y
