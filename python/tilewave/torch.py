"""Linear layers for PyTorch on tilewave's products: bias, activation, residual and bias gradient ride in the GEMMs, on any shape, distance
of rows and alignment, without a copy.

    y = tilewave.torch.linear(x, weight, bias, activation="gelu")
    y = tilewave.torch.feed_forward(x, up_weight, up_bias, down_weight, down_bias, activation="gelu")
    tilewave.torch.replace_linears(model)

They are custom operators with gradients, for torch.compile(fullgraph=True) and CUDA graphs too, on the current stream. Under autocast
operands are cast as torch.nn.functional.linear's are. float32 is multiplied as TF32 where torch is told to. A CPU multiplies float32 and
float64; of bfloat16 and float16 it takes copies in float32, and rounds the result.
"""

from __future__ import annotations

from typing import Any, Optional

from . import _library as c

_LEAST = (2, 4)
try:
    import torch
except ImportError as error:
    raise ImportError(f"tilewave.torch takes PyTorch {_LEAST[0]}.{_LEAST[1]} or newer, and there is no torch: pip install 'torch>="
                      f"{_LEAST[0]}.{_LEAST[1]}'") from error
if tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) < _LEAST:
    raise ImportError(f"tilewave.torch takes PyTorch {_LEAST[0]}.{_LEAST[1]} or newer, and this is torch {torch.__version__}.")

__all__ = ["ACTIVATIONS", "Linear", "feed_forward", "linear", "replace_linears"]

Tensor = torch.Tensor

ACTIVATIONS = (None, "relu", "gelu", "gelu_tanh", "silu", "swiglu")
_FUSED = {"": c.NONE, "relu": c.RELU, "gelu": c.GELU_ERF, "gelu_tanh": c.GELU_TANH}  # in a GEMM's epilogue; the others are a pass behind it
_DTYPES = {torch.float64: c.F64, torch.float32: c.F32, torch.bfloat16: c.BF16, torch.float16: c.F16}
_HALVES = (torch.bfloat16, torch.float16)


# ---- From tensors to C ----


def _place(tensor: Tensor) -> tuple[int, int, int, int, int]:
    if tensor.device.type == "cpu":
        return c.CPU, torch.get_num_threads(), 0, 0, 0
    return c.CUDA, 0, tensor.device.index, 0, torch.cuda.current_stream(tensor.device).cuda_stream


def _matrix(tensor: Optional[Tensor]) -> tuple[int, int, int, int, int, int]:
    if tensor is None:
        return c.ABSENT
    if tensor.dim() == 1:
        return tensor.data_ptr(), 1, tensor.shape[0], tensor.shape[0], _DTYPES[tensor.dtype], 0
    rows, columns = tensor.shape
    return tensor.data_ptr(), rows, columns, tensor.stride(0) if rows > 1 else columns, _DTYPES[tensor.dtype], 0


def _tf32(tensor: Tensor) -> int:
    if tensor.dtype != torch.float32 or tensor.device.type != "cuda":
        return 0
    said = getattr(torch.backends.cuda.matmul, "fp32_precision", "none")
    return int(said == "tf32" if said in ("tf32", "ieee") else torch.get_float32_matmul_precision() != "highest")


def _multiply(role: int, weight: Tensor, tokens: Tensor, result: Tensor, *, bias: Optional[Tensor] = None, saved: Optional[Tensor] = None,
              derivative_of: Optional[Tensor] = None, residual: Optional[Tensor] = None, bias_gradient: Optional[Tensor] = None,
              activation: int = c.NONE, derivative: int = c.NONE) -> None:
    c.check(c.library().tw_multiply(c.GEMM.pack(
        *_place(result), role, _tf32(result), *_matrix(weight), *_matrix(tokens), *_matrix(result), *_matrix(bias), *_matrix(saved),
        *_matrix(derivative_of), *_matrix(residual), *_matrix(bias_gradient), activation, derivative, 0, 0, 0)))


def _elementwise(function: str, activation: int, x: Tensor, up: Optional[Tensor], *, y: Optional[Tensor] = None, dy: Optional[Tensor] = None,
                 dx: Optional[Tensor] = None, dup: Optional[Tensor] = None) -> None:
    c.check(getattr(c.library(), function)(c.ELEMENTWISE.pack(
        *_place(x), activation, 0, *_matrix(x), *_matrix(up), *_matrix(y), *_matrix(dy), *_matrix(dx), *_matrix(dup))))


def _rows(tensor: Tensor) -> Tensor:
    """[..., n] as [rows, n] in the same memory; a gradient that was expanded is made whole."""
    tensor = tensor.reshape(-1, tensor.shape[-1])
    rows, columns = tensor.shape
    whole = (columns == 1 or tensor.stride(1) == 1) and (rows <= 1 or tensor.stride(0) >= columns)
    return tensor if whole else tensor.contiguous()


def _wide(*tensors: Optional[Tensor]) -> list[Optional[Tensor]]:
    """Of 16-bit tensors on a CPU copies in float32, as its kernels multiply; others as they are."""
    return [t.float() if t is not None and t.device.type == "cpu" and t.dtype in _HALVES else t for t in tensors]


def _halves(matrix: Tensor) -> tuple[Tensor, Tensor]:
    half = matrix.shape[1] // 2
    return matrix[:, :half], matrix[:, half:]


def _gate(activation: str, z: Tensor) -> tuple[Tensor, Optional[Tensor]]:
    return _halves(z) if activation == "swiglu" else (z, None)


# ---- Forward and backward of a layer, on rows: [tokens, features] ----


def _forward(x: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], activation: str,
             keep: bool) -> tuple[Tensor, Optional[Tensor]]:
    """y and, where it is kept, z = x weight^T + bias."""
    tokens, out = x.shape[0], weight.shape[0]
    if activation in _FUSED:
        y = x.new_empty(tokens, out)
        z = x.new_empty(tokens, out) if keep else None
        if tokens > 0:
            _multiply(c.FORWARD, weight, x, y, bias=bias, saved=z, residual=residual, activation=_FUSED[activation])
        return y, z
    z = x.new_empty(tokens, out)
    gate, up = (z, None) if activation == "silu" else _halves(z)
    y = x.new_empty(gate.shape)
    if tokens > 0:
        _multiply(c.FORWARD, weight, x, z, bias=bias)
        _elementwise("tw_activate", c.SILU, gate, up, y=y)
    return y if residual is None else y.add_(residual), z if keep else None


def _derivative(dy: Tensor, saved: Tensor, activation: str) -> Tensor:
    """dz of y = activation(z)."""
    if activation == "" or dy.shape[0] == 0:
        return dy if activation != "swiglu" else dy.new_empty(saved.shape)
    dz = torch.empty_like(saved)
    if activation in _FUSED:
        _elementwise("tw_activate_gradient", _FUSED[activation], saved, None, dy=dy, dx=dz)
        return dz
    gate, up = _gate(activation, saved)
    dgate, dup = _gate(activation, dz)
    _elementwise("tw_activate_gradient", c.SILU, gate, up, dy=dy, dx=dgate, dup=dup)
    return dz


def _weight_gradients(dz: Tensor, x: Tensor, weight: Tensor, need_weight: bool, need_bias: bool) -> tuple[Tensor, Tensor]:
    """dweight and dbias; where one is not needed an empty tensor. The bias's rides on the weight's."""
    none = weight.new_empty(0)
    if dz.shape[0] == 0:
        return (torch.zeros_like(weight) if need_weight else none), (weight.new_zeros(weight.shape[0]) if need_bias else none)
    if not need_weight:
        wide = dz.dtype if dz.dtype == torch.float64 else torch.float32
        return none, dz.sum(0, dtype=wide).to(dz.dtype) if need_bias else none
    dweight = weight.new_empty(weight.shape)
    dbias = weight.new_empty(weight.shape[0]) if need_bias else None
    _multiply(c.WGRAD, x, dz, dweight, bias_gradient=dbias)
    return dweight, none if dbias is None else dbias


def _input_gradient(dz: Tensor, weight: Tensor, *, derivative_of: Optional[Tensor] = None, derivative: int = c.NONE) -> Tensor:
    dx = dz.new_empty(dz.shape[0], weight.shape[1])
    if dz.shape[0] > 0:
        _multiply(c.DGRAD, weight, dz, dx, derivative_of=derivative_of, derivative=derivative)
    return dx


# ---- The operators ----

_library = torch.library.Library("tilewave", "DEF")
_library.define("linear(Tensor x, Tensor weight, Tensor? bias, Tensor? residual, str activation, bool keep) -> (Tensor, Tensor)")
_library.define("linear_backward(Tensor dy, Tensor x, Tensor weight, Tensor saved, str activation, bool need_x, bool need_weight, "
                "bool need_bias) -> (Tensor, Tensor, Tensor)")
_library.define("feed_forward(Tensor x, Tensor up_weight, Tensor? up_bias, Tensor down_weight, Tensor? down_bias, Tensor? residual, "
                "str activation, bool keep) -> (Tensor, Tensor, Tensor)")
_library.define("feed_forward_backward(Tensor dy, Tensor x, Tensor up_weight, Tensor down_weight, Tensor saved, Tensor hidden, "
                "str activation, bool need_x, bool[] need_weights, bool[] need_biases) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")


def _narrow(dtype: torch.dtype, *tensors: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
    return tuple(t if t is None or t.dtype == dtype else t.to(dtype) for t in tensors)


def _linear(x: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], activation: str,
            keep: bool) -> tuple[Tensor, Tensor]:
    dtype, leading = x.dtype, x.shape[:-1]
    x, weight, bias, residual = _wide(x, weight, bias, residual)
    y, z = _forward(_rows(x), weight, bias, None if residual is None else _rows(residual), activation, keep)
    y, z = _narrow(dtype, y, z)
    return y.view(*leading, y.shape[1]), x.new_empty(0, dtype=dtype) if z is None else z


def _linear_backward(dy: Tensor, x: Tensor, weight: Tensor, saved: Tensor, activation: str, need_x: bool, need_weight: bool,
                     need_bias: bool) -> tuple[Tensor, Tensor, Tensor]:
    dtype, shape = x.dtype, x.shape
    dy, x, weight, saved = _wide(dy, x, weight, saved)
    dz = _derivative(_rows(dy), saved if activation == "" else _rows(saved), activation)
    dx = _input_gradient(dz, weight).view(shape) if need_x else x.new_empty(0)
    dweight, dbias = _weight_gradients(dz, _rows(x), weight, need_weight, need_bias)
    return _narrow(dtype, dx, dweight, dbias)


def _feed_forward(x: Tensor, up_weight: Tensor, up_bias: Optional[Tensor], down_weight: Tensor, down_bias: Optional[Tensor],
                  residual: Optional[Tensor], activation: str, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
    dtype, leading = x.dtype, x.shape[:-1]
    x, up_weight, up_bias, down_weight, down_bias, residual = _wide(x, up_weight, up_bias, down_weight, down_bias, residual)
    hidden, z = _forward(_rows(x), up_weight, up_bias, None, activation, keep and activation not in ("", "relu"))
    y, _ = _forward(hidden, down_weight, down_bias, None if residual is None else _rows(residual), "", False)
    y, z, hidden = _narrow(dtype, y, z, hidden)
    none = x.new_empty(0, dtype=dtype)
    return y.view(*leading, y.shape[1]), none if z is None else z, hidden if keep else none


def _feed_forward_backward(dy: Tensor, x: Tensor, up_weight: Tensor, down_weight: Tensor, saved: Tensor, hidden: Tensor, activation: str,
                           need_x: bool, need_weights: list[bool],
                           need_biases: list[bool]) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    dtype, shape = x.dtype, x.shape
    dy, x, up_weight, down_weight, saved, hidden = _wide(dy, x, up_weight, down_weight, saved, hidden)
    dy, x = _rows(dy), _rows(x)
    ddown, ddown_bias = _weight_gradients(dy, hidden, down_weight, need_weights[1], need_biases[1])
    if activation in _FUSED:  # the derivative rides on the product
        of = None if activation == "" else hidden if activation == "relu" else saved
        dz = _input_gradient(dy, down_weight, derivative_of=of, derivative=_FUSED[activation])
    else:
        dz = _derivative(_input_gradient(dy, down_weight), saved, activation)
    dup, dup_bias = _weight_gradients(dz, x, up_weight, need_weights[0], need_biases[0])
    dx = _input_gradient(dz, up_weight).view(shape) if need_x else x.new_empty(0)
    return _narrow(dtype, dx, dup, dup_bias, ddown, ddown_bias)


for _name, _body in (("linear", _linear), ("linear_backward", _linear_backward), ("feed_forward", _feed_forward),
                     ("feed_forward_backward", _feed_forward_backward)):
    for _key in ("CPU", "CUDA"):
        _library.impl(_name, _body, _key)


def _out_features(weight: Tensor, activation: str) -> Any:
    return weight.shape[0] // 2 if activation == "swiglu" else weight.shape[0]


def _tokens(x: Tensor) -> Any:
    tokens = 1
    for size in x.shape[:-1]:
        tokens = tokens * size
    return tokens


@torch.library.register_fake("tilewave::linear", lib=_library)
def _(x, weight, bias, residual, activation, keep):
    y = x.new_empty(*x.shape[:-1], _out_features(weight, activation))
    return y, x.new_empty(_tokens(x), weight.shape[0]) if keep else x.new_empty(0)


@torch.library.register_fake("tilewave::linear_backward", lib=_library)
def _(dy, x, weight, saved, activation, need_x, need_weight, need_bias):
    return (x.new_empty(x.shape) if need_x else x.new_empty(0), weight.new_empty(weight.shape) if need_weight else x.new_empty(0),
            x.new_empty(weight.shape[0]) if need_bias else x.new_empty(0))


@torch.library.register_fake("tilewave::feed_forward", lib=_library)
def _(x, up_weight, up_bias, down_weight, down_bias, residual, activation, keep):
    kept = keep and activation not in ("", "relu")
    return (x.new_empty(*x.shape[:-1], down_weight.shape[0]), x.new_empty(_tokens(x), up_weight.shape[0]) if kept else x.new_empty(0),
            x.new_empty(_tokens(x), down_weight.shape[1]) if keep else x.new_empty(0))


@torch.library.register_fake("tilewave::feed_forward_backward", lib=_library)
def _(dy, x, up_weight, down_weight, saved, hidden, activation, need_x, need_weights, need_biases):
    def some(needed, *shape):
        return x.new_empty(*shape) if needed else x.new_empty(0)

    return (some(need_x, *x.shape), some(need_weights[0], *up_weight.shape), some(need_biases[0], up_weight.shape[0]),
            some(need_weights[1], *down_weight.shape), some(need_biases[1], down_weight.shape[0]))


def _linear_context(ctx, inputs, output):
    x, weight, bias, residual, activation, _ = inputs
    y, z = output
    ctx.mark_non_differentiable(z)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, weight, y if activation == "relu" and residual is None else z)
    ctx.activation = activation


def _linear_gradients(ctx, dy, _):
    x, weight, saved = ctx.saved_tensors
    need_x, need_weight, need_bias, need_residual = ctx.needs_input_grad[:4]
    if dy is None:
        return None, None, None, None, None, None
    dx, dweight, dbias = torch.ops.tilewave.linear_backward(dy, x, weight, saved, ctx.activation, need_x, need_weight, need_bias)
    return (dx if need_x else None, dweight if need_weight else None, dbias if need_bias else None, dy if need_residual else None, None,
            None)


def _feed_forward_context(ctx, inputs, output):
    x, up_weight, _, down_weight, _, _, activation, _ = inputs
    _, z, hidden = output
    ctx.mark_non_differentiable(z, hidden)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, up_weight, down_weight, z, hidden)
    ctx.activation = activation


def _feed_forward_gradients(ctx, dy, *_):
    if dy is None:
        return (None,) * 8
    x, up_weight, down_weight, saved, hidden = ctx.saved_tensors
    need_x, need_up, need_up_bias, need_down, need_down_bias, need_residual = ctx.needs_input_grad[:6]
    gradients = torch.ops.tilewave.feed_forward_backward(dy, x, up_weight, down_weight, saved, hidden, ctx.activation, need_x,
                                                         [need_up, need_down], [need_up_bias, need_down_bias])
    needed = (need_x, need_up, need_up_bias, need_down, need_down_bias)
    return (*(gradient if needs else None for gradient, needs in zip(gradients, needed)), dy if need_residual else None, None, None)


def _refuse_second(ctx, *_):
    raise NotImplementedError("tilewave.torch has first derivatives alone, and a gradient's own gradient was asked for; where it is needed, "
                              "take torch.nn.functional.linear.")


torch.library.register_autograd("tilewave::linear", _linear_gradients, setup_context=_linear_context, lib=_library)
torch.library.register_autograd("tilewave::feed_forward", _feed_forward_gradients, setup_context=_feed_forward_context, lib=_library)
for _name in ("linear_backward", "feed_forward_backward"):
    torch.library.register_autograd(f"tilewave::{_name}", _refuse_second, lib=_library)


# ---- What a person calls ----


def _refuse(operation: str, sentence: str) -> None:
    raise c.InputError(f"tilewave.torch.{operation}: {sentence}")


def _cast(x: Tensor, *others: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
    """As autocast wants the operands, where it is on."""
    kind = x.device.type
    if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind):
        return (x, *others)
    dtype = torch.get_autocast_dtype(kind)
    return tuple(t if t is None or t.dtype == torch.float64 or not t.is_floating_point() else t.to(dtype) for t in (x, *others))


def _check_tensor(operation: str, name: str, tensor: Tensor, like: Tensor) -> None:
    if tensor.dtype not in _DTYPES:
        _refuse(operation, f"{name} is {tensor.dtype}; it takes float64, float32, bfloat16 and float16.")
    if tensor.dtype != like.dtype:
        _refuse(operation, f"{name} is {tensor.dtype} and x is {like.dtype}; convert one of them, or let autocast do it.")
    if tensor.device != like.device:
        _refuse(operation, f"{name} is on {tensor.device} and x on {like.device}; move one of them.")
    if tensor.layout != torch.strided:
        _refuse(operation, f"{name} is {tensor.layout}; it takes dense tensors, as {name}.to_dense() makes them.")


def _check_rows(operation: str, name: str, tensor: Tensor) -> None:
    """That rows follow one another at one distance, their elements one behind the other."""
    strides, shape = tensor.stride(), tensor.shape
    if tensor.numel() == 0:
        return
    row = None
    good = shape[-1] <= 1 or strides[-1] == 1
    for axis in range(tensor.dim() - 2, -1, -1):
        if shape[axis] == 1:
            continue
        good = good and (strides[axis] >= shape[-1] if row is None else strides[axis] == row)
        row = strides[axis] * shape[axis]
    if not good:
        _refuse(operation, f"{name} has the shape {tuple(shape)} and strides {tuple(strides)}; the elements of a row must follow one another, and "
                f"rows lie at one distance: {name}.contiguous() does so, with a copy.")


def _check_layer(operation: str, x: Tensor, weight: Tensor, bias: Optional[Tensor], name: str = "weight", width: Any = None) -> None:
    _check_tensor(operation, name, weight, x)
    if weight.dim() != 2 or weight.shape[0] == 0 or weight.shape[1] == 0:
        _refuse(operation, f"{name} has the shape {tuple(weight.shape)}; it is [out, in], neither of them 0.")
    wanted = x.shape[-1] if width is None else width
    if weight.shape[1] != wanted:
        _refuse(operation, f"{name} has the shape {tuple(weight.shape)}, and what it is multiplied with has {wanted} features; it is [out, in].")
    _check_rows(operation, name, weight)
    if bias is not None:
        _check_tensor(operation, name.replace("weight", "bias"), bias, x)
        if bias.dim() != 1 or bias.shape[0] != weight.shape[0] or (bias.stride(0) != 1 and bias.shape[0] > 1):
            _refuse(operation, f"{name.replace('weight', 'bias')} has the shape {tuple(bias.shape)} and strides {tuple(bias.stride())}; it is "
                    f"[{weight.shape[0]}] in one piece.")


def _check_input(operation: str, x: Tensor, activation: Optional[str]) -> None:
    if activation not in ACTIVATIONS:
        _refuse(operation, f"activation {activation!r} is none of {', '.join(map(repr, ACTIVATIONS))}.")
    if x.device.type not in ("cpu", "cuda"):
        _refuse(operation, f"x is on {x.device}; it runs on cpu and cuda.")
    _check_tensor(operation, "x", x, x)
    if x.dim() == 0:
        _refuse(operation, "x is a number; it is [..., in].")
    _check_rows(operation, "x", x)


def _check_residual(operation: str, x: Tensor, residual: Optional[Tensor], out: Any) -> None:
    if residual is None:
        return
    _check_tensor(operation, "residual", residual, x)
    if tuple(residual.shape) != (*x.shape[:-1], out):
        _refuse(operation, f"residual has the shape {tuple(residual.shape)} and the result {(*tuple(x.shape[:-1]), out)}; both must be one.")
    _check_rows(operation, "residual", residual)


def _differentiates(*tensors: Optional[Tensor]) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None, *, activation: Optional[str] = None,
           residual: Optional[Tensor] = None) -> Tensor:
    """activation(x weight^T + bias) + residual, with gradients.

    x [..., in], weight [out, in] and bias [out] as torch.nn.functional.linear has them; residual and the result [..., out]. `activation` is
    None, "relu", "gelu" (the erf form), "gelu_tanh", "silu", or "swiglu": then weight is [2 out, in], the gate's rows first, and the result
    silu(gate) * up. On a GPU the first three ride in the GEMM, and the bias's gradient on the weight's.
    """
    x, weight, bias, residual = _cast(x, weight, bias, residual)
    _check_input("linear", x, activation)
    _check_layer("linear", x, weight, bias)
    if activation == "swiglu" and weight.shape[0] % 2 != 0:
        _refuse("linear", f"weight has {weight.shape[0]} rows; 'swiglu' takes an even number, the gate's before the others.")
    _check_residual("linear", x, residual, weight.shape[0] // 2 if activation == "swiglu" else weight.shape[0])
    keep = activation is not None and not (activation == "relu" and residual is None) and _differentiates(x, weight, bias)
    return torch.ops.tilewave.linear(x, weight, bias, residual, activation or "", keep)[0]


def feed_forward(x: Tensor, up_weight: Tensor, up_bias: Optional[Tensor], down_weight: Tensor, down_bias: Optional[Tensor] = None, *,
                 activation: Optional[str] = "gelu", residual: Optional[Tensor] = None) -> Tensor:
    """linear(linear(x, up, activation=activation), down, residual=residual) as one operator, whose backward pass has the activation's
    derivative in a GEMM. up_weight is [d_ff, in] (with "swiglu" [2 d_ff, in]), down_weight [out, d_ff]."""
    x, up_weight, up_bias, down_weight, down_bias, residual = _cast(x, up_weight, up_bias, down_weight, down_bias, residual)
    _check_input("feed_forward", x, activation)
    _check_layer("feed_forward", x, up_weight, up_bias, "up_weight")
    if activation == "swiglu" and up_weight.shape[0] % 2 != 0:
        _refuse("feed_forward", f"up_weight has {up_weight.shape[0]} rows; 'swiglu' takes an even number, the gate's before the others.")
    _check_layer("feed_forward", x, down_weight, down_bias, "down_weight", _out_features(up_weight, activation or ""))
    _check_residual("feed_forward", x, residual, down_weight.shape[0])
    keep = _differentiates(x, up_weight, up_bias, down_weight, down_bias)
    return torch.ops.tilewave.feed_forward(x, up_weight, up_bias, down_weight, down_bias, residual, activation or "", keep)[0]


class Linear(torch.nn.Linear):
    """torch.nn.Linear on tilewave's products, with the activation and the residual of linear(). Its parameters have the same names, so that
    a state_dict goes from one to the other; with "swiglu" the weight has twice out_features rows."""

    activation: Optional[str] = None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None, *,
                 activation: Optional[str] = None):
        if activation not in ACTIVATIONS:
            _refuse("Linear", f"activation {activation!r} is none of {', '.join(map(repr, ACTIVATIONS))}.")
        super().__init__(in_features, 2 * out_features if activation == "swiglu" else out_features, bias, device, dtype)
        self.out_features = out_features
        self.activation = activation

    def forward(self, input: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        return linear(input, self.weight, self.bias, activation=self.activation, residual=residual)

    def extra_repr(self) -> str:
        return super().extra_repr() + (f", activation={self.activation!r}" if self.activation else "")


def replace_linears(module: torch.nn.Module) -> torch.nn.Module:
    """Lets every torch.nn.Linear in the module, and the module itself, multiply with tilewave: in place, parameters, hooks and names as they
    were. Subclasses, which do something else, stay what they are. Returns the module."""
    for one in module.modules():
        if type(one) is torch.nn.Linear:
            one.__class__ = Linear
    return module
