"""libtilewave by ctypes: where it is, include/tilewave.h's structs, and its failures as exceptions. A call releases the GIL."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import json
import os
import pathlib
import struct
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

INTERFACE = 1
OK, FAILED, INPUT, STOPPED = range(4)

PathLike = Union[str, "os.PathLike[str]"]
Settings = Union[Mapping[str, object], Sequence[str], None]


class Error(RuntimeError):
    """Something failed: no memory, no such device, a number that is not finite."""


class InputError(Error, ValueError):
    """An argument, a recipe or a file is at fault."""


class Recipe(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("settings", ctypes.POINTER(ctypes.c_char_p)), ("setting_count", ctypes.c_int64)]


class PlanRequest(ctypes.Structure):
    _fields_ = [("recipe", Recipe), ("profile", ctypes.c_char_p), ("device", ctypes.c_char_p), ("threads", ctypes.c_int32),
                ("reserved", ctypes.c_int32)]


class StepStruct(ctypes.Structure):
    _fields_ = [("step", ctypes.c_int64), ("target_tokens", ctypes.c_int64), ("loss", ctypes.c_double), ("learning_rate", ctypes.c_double),
                ("gradient_norm", ctypes.c_double), ("target_tokens_per_s", ctypes.c_double), ("elapsed_s", ctypes.c_double)]


ON_STEP = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(StepStruct))
ON_VALIDATION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_double)
ON_NOTE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
STOPPED_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class TrainRequest(ctypes.Structure):
    _fields_ = [("recipe", Recipe), ("run", ctypes.c_char_p), ("device", ctypes.c_char_p), ("weights", ctypes.c_char_p),
                ("threads", ctypes.c_int32), ("resume", ctypes.c_int32), ("force", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("caller", ctypes.c_void_p), ("on_step", ON_STEP), ("on_validation", ON_VALIDATION), ("on_note", ON_NOTE),
                ("stopped", STOPPED_CALL)]


# tw_gemm and tw_elementwise are packed at once, since they are made for every product: a place is iiiiQ, a matrix Qqqqii.
MATRIX_FIELDS = 6
ABSENT = (0, 0, 0, 0, 0, 0)
GEMM = struct.Struct("=iiiiQ" "ii" + 8 * "Qqqqii" + "iiii" "Q")
ELEMENTWISE = struct.Struct("=iiiiQ" "ii" + 6 * "Qqqqii")
FORWARD, DGRAD, WGRAD = range(3)
CPU, CUDA = range(2)
F64, F32, BF16, F16 = range(4)
NONE, RELU, GELU_TANH, GELU_ERF, SILU = range(5)


def _candidates() -> Iterable[pathlib.Path]:
    named = os.environ.get("TILEWAVE_LIBRARY")
    if named:
        yield pathlib.Path(named)
        return
    here = pathlib.Path(__file__).resolve().parent
    yield here / "lib" / "libtilewave.so"
    for build in ("build", "build-cuda"):  # of a clone
        yield here.parent.parent / build / "bin" / "lib" / "libtilewave.so"


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """libtilewave, loaded once: TILEWAVE_LIBRARY names it, else it is the package's, else that of the clone the package lies in."""
    tried = list(_candidates())
    path = next((path for path in tried if path.is_file()), None)
    if path is None:
        raise Error("libtilewave.so is not there (" + ", ".join(map(str, tried)) + "); pip install . in a clone builds it, and "
                    "TILEWAVE_LIBRARY names one that lies elsewhere.")
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise Error(f"{path} cannot be loaded: {error}") from None
    loaded.tw_interface.restype = ctypes.c_int32
    if loaded.tw_interface() != INTERFACE:
        raise Error(f"{path} has version {loaded.tw_interface()} of the C interface and this package calls {INTERFACE}; install both of one "
                    "tilewave.")
    for name in ("tw_version", "tw_message"):
        getattr(loaded, name).restype = ctypes.c_char_p
    text = ctypes.POINTER(ctypes.c_void_p)
    loaded.tw_free.argtypes, loaded.tw_free.restype = [ctypes.c_void_p], None
    loaded.tw_plan.argtypes = [ctypes.POINTER(PlanRequest), text]
    loaded.tw_train.argtypes = [ctypes.POINTER(TrainRequest), text]
    loaded.tw_devices.argtypes = [text]
    for name in ("tw_multiply", "tw_activate", "tw_activate_gradient"):
        getattr(loaded, name).argtypes = [ctypes.c_char_p]
    loaded.path = path
    return loaded


def check(status: int) -> int:
    """The status, or the exception that it stands for."""
    if status in (OK, STOPPED):
        return status
    raise (InputError if status == INPUT else Error)(library().tw_message().decode(errors="replace"))


def text_of(call: Any, *arguments: Any) -> tuple[int, str]:
    """What a function hands over as its last argument, and its status."""
    text = ctypes.c_void_p()
    status = check(call(*arguments, ctypes.byref(text)))
    if not text.value:
        return status, ""
    try:
        return status, ctypes.string_at(text.value).decode()
    finally:
        library().tw_free(text)


def bytes_or_none(text: Optional[PathLike]) -> Optional[bytes]:
    return None if text is None else os.fsencode(text)


def recipe_struct(path: PathLike, settings: Settings) -> Recipe:
    """The struct; it keeps what it points at alive."""
    if isinstance(settings, Mapping):
        settings = [f"{key}={_toml(value)}" for key, value in settings.items()]
    words = [str(one).encode() for one in settings or ()]
    array = (ctypes.c_char_p * max(1, len(words)))(*words)
    recipe = Recipe(os.fsencode(path), ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p)), len(words))
    recipe.kept = array
    return recipe


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def version() -> str:
    """The library's, as in "0.2.0"."""
    return library().tw_version().decode()


def library_path() -> pathlib.Path:
    """Where libtilewave was found."""
    library()
    return next(path for path in _candidates() if path.is_file())


def has_cuda() -> bool:
    """Whether the library was built with CUDA kernels; devices() says whether there is a GPU for them."""
    return bool(library().tw_has_cuda())


@dataclasses.dataclass(frozen=True)
class Device:
    """What this machine can run on: `backend` is "cuda" or "cpu"."""

    backend: str
    name: str
    index: int
    sm_count: Optional[int] = None
    threads: Optional[int] = None
    capability: Optional[int] = None
    memory_bytes: Optional[int] = None


def devices() -> list[Device]:
    """The GPUs that can be used, and the CPU."""
    return [from_json(Device, json.loads(line)) for line in text_of(library().tw_devices)[1].splitlines()]


def from_json(kind: Any, fields: Mapping[str, Any]) -> Any:
    """A dataclass of the fields that it has; others are a later library's."""
    known = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in fields.items() if name in known})
