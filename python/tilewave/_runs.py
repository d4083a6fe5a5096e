"""Run folders (docs/use/formats.md): what a run's steps came to, as arrays."""

from __future__ import annotations

import array
import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any, Iterator

from ._library import InputError, PathLike


class Metrics(Mapping[str, Any]):
    """The numbers of metrics.jsonl by name, a value for each step: a numpy array where numpy is, else array.array("d"). A number that a
    step does not have, as most have no validation loss, is NaN. `rows` is for pandas.DataFrame(metrics.rows)."""

    def __init__(self, rows: list[dict[str, Any]]):
        self.rows = rows
        self._names = list(dict.fromkeys(name for row in rows for name in row))

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        values = [math.nan if row.get(name) is None else float(row[name]) for row in self.rows]
        try:
            import numpy
        except ImportError:
            return array.array("d", values)
        return numpy.array(values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Run:
    """A run's folder."""

    def __init__(self, path: PathLike):
        self.path = pathlib.Path(path)
        if not (self.path / "recipe.toml").is_file():
            raise InputError(f"{self.path} is no run: it holds no recipe.toml.")

    def __repr__(self) -> str:
        return f"tilewave.Run({str(self.path)!r})"

    @property
    def ended(self) -> bool:
        """Whether the run has come to its end; one that has not goes on with tilewave.train(..., run=path, resume=True)."""
        return (self.path / "summary.json").is_file()

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json's object. InputError where the run has not ended."""
        if not self.ended:
            raise InputError(f"{self.path} has no summary.json: its run has not ended.")
        return json.loads((self.path / "summary.json").read_text(encoding="utf-8"))

    @property
    def metrics(self) -> Metrics:
        """The numbers of every step so far."""
        file = self.path / "metrics.jsonl"
        lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.is_file() else []  # a line that is being written has no end yet
        return Metrics([json.loads(line) for line in lines])
