"""What a step will cost on a device, here or not: tilewave plan as typed objects."""

from __future__ import annotations

import ctypes
import dataclasses
import json
from typing import Any, Optional

from ._library import PathLike, PlanRequest, Settings, from_json, library, recipe_struct, text_of


@dataclasses.dataclass(frozen=True)
class Layer:
    """The GEMMs of one layer and role that pose one problem, `count` of them. Times are of all of them; None: not known for this device."""

    layer: str
    count: int
    role: str
    m: int
    n: int
    k: int
    dtype: str
    kernel: str
    schedule: str
    tile: str
    split: int
    tiles: int
    useful_fraction: float
    waves: float
    tail_fraction: float
    wave_fraction: float
    a_alignment_bytes: int
    b_alignment_bytes: int
    d_alignment_bytes: int
    flops: int
    bytes: int
    flops_per_byte: float
    limit: str
    least_us: Optional[float]
    predicted_us: Optional[float]
    share_fraction: Optional[float]
    tflops: Optional[float]
    reason: str


@dataclasses.dataclass(frozen=True)
class Operation:
    """What is no GEMM, by layer and operation; the time of all of them, None where it is not known."""

    layer: str
    count: int
    operation: str
    flops: int
    bytes: int
    flops_per_byte: float
    predicted_us: Optional[float]


@dataclasses.dataclass(frozen=True)
class TriedSize:
    """A size that was tried, or the recipe's own, whose gains are 0, and what it costs the GEMMs that have it as a dimension."""

    size: int
    alignment_bytes: int
    alignment_cost_fraction: float
    useful_fraction: float
    wave_fraction: float
    part_us: Optional[float]
    step_gain_fraction: float
    rate_gain_fraction: float


@dataclasses.dataclass(frozen=True)
class Advice:
    """A number of the recipe and the nearest better one; not `advised`: there is none, and the gains are those of the best that was tried.
    `set` is what to give as a setting; `tried`, of d_ff alone, holds all sizes that were planned."""

    quantity: str
    from_: int
    to: int
    advised: bool
    part: str
    part_gain_fraction: float
    step_gain_fraction: float
    cost_rows: int
    cost_bytes: int
    cost_parameters: int
    set: str
    section: str
    remark: str
    tried: list[TriedSize] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Adjustment:
    """What a guideline of the recipe changed."""

    rule: str
    what: str
    from_: int
    to: int
    why: str
    cost_tokens: int
    cost_bytes: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """A step of a recipe on a device."""

    recipe: str
    device: str
    predicted_us: Optional[float]
    gemm_us: Optional[float]
    rows: int
    target_rows: int
    matrix_flops: int
    memory_bytes: int
    device_memory_bytes: int
    layers: list[Layer] = dataclasses.field(default_factory=list)
    operations: list[Operation] = dataclasses.field(default_factory=list)
    advice: list[Advice] = dataclasses.field(default_factory=list)
    adjustments: list[Adjustment] = dataclasses.field(default_factory=list)

    def rows_of(self, what: str = "layers") -> list[dict[str, Any]]:
        """Dictionaries of one form, for pandas.DataFrame(plan.rows_of("layers")): "layers", "operations", "advice" or "adjustments"."""
        if what not in ("layers", "operations", "advice", "adjustments"):
            raise ValueError(f"a plan has layers, operations, advice and adjustments, and no {what!r}.")
        return [dataclasses.asdict(one) for one in getattr(self, what)]


def plan(recipe: PathLike, device: Optional[str] = None, *, settings: Settings = None, threads: int = 0) -> Plan:
    """Plans a step of the recipe, a TOML file, without running it.

    `device` names a GPU that need not be here ("h200", "a100", ...) or one that is ("auto", "cpu", "cuda", "cuda:N"); None is "auto".
    `settings` change the recipe: {"model.vocabulary": 50257}, or ["model.vocabulary=50257"].
    """
    here = device is None or device in ("auto", "cpu") or device.startswith("cuda")
    word = None if device is None else device.encode()
    request = PlanRequest(recipe_struct(recipe, settings), None if here else word, word if here else None, threads, 0)
    _, text = text_of(library().tw_plan, ctypes.byref(request))
    return _plan_of([json.loads(line) for line in text.splitlines()])


def _plan_of(lines: list[dict[str, Any]]) -> Plan:
    def all_of(kind: str, typed: Any) -> list[Any]:
        return [from_json(typed, {("from_" if name == "from" else name): value for name, value in line.items()})
                for line in lines if line["kind"] == kind]

    for line in lines:
        if line["kind"] == "advice":
            line["tried"] = [from_json(TriedSize, one) for one in line.get("tried", [])]
    step = next(line for line in lines if line["kind"] == "step")
    return dataclasses.replace(from_json(Plan, step), layers=all_of("gemm", Layer), operations=all_of("operation", Operation),
                               advice=all_of("advice", Advice), adjustments=all_of("adjustment", Adjustment))
