"""Training a recipe, as tilewave train does."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import os
import signal
import threading
import warnings
from typing import Any, Callable, Iterator, Optional

from ._library import (ON_NOTE, ON_STEP, ON_VALIDATION, STOPPED, STOPPED_CALL, PathLike, Settings, TrainRequest, bytes_or_none, library,
                       recipe_struct, text_of)
from ._runs import Run


@dataclasses.dataclass(frozen=True)
class Step:
    """What a step came to; the loss in nats per target token, with label smoothing."""

    step: int
    target_tokens: int
    loss: float
    learning_rate: float
    gradient_norm: float
    target_tokens_per_s: float
    elapsed_s: float


class _Calls:
    """The functions that C calls. What one of them raises, a Ctrl-C too, stops the run at the next step and is raised again then."""

    def __init__(self, on_step: Any, on_validation: Any, on_note: Any):
        self.raised: Optional[BaseException] = None
        self.stop = False

        def told(function: Any, *arguments: Any) -> Any:
            try:
                return function(*arguments) if function is not None and self.raised is None else None
            except BaseException as error:  # an exception may not go through C
                self.raised = error
                return None

        def step(_: Any, struct: Any) -> int:
            answer = told(on_step, Step(*(getattr(struct.contents, field.name) for field in dataclasses.fields(Step))))
            self.stop = self.stop or answer is False
            return int(self.stop or self.raised is not None)

        def stopped(_: Any) -> int:
            return int(self.stop or self.raised is not None)

        self.step = ON_STEP(step)
        self.validation = ON_VALIDATION(lambda _, number, loss: told(on_validation, number, loss))
        self.note = ON_NOTE(lambda _, sentence: told(on_note, sentence.decode(errors="replace")))
        self.stopped = STOPPED_CALL(stopped)

    @contextlib.contextmanager
    def hearing_ctrl_c(self) -> Iterator[None]:
        """Within it a Ctrl-C is noted, and not raised wherever Python happens to be, which may be between C and a function here. A handler of
        the person's own stays."""
        main = threading.current_thread() is threading.main_thread()
        if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def note(*_: Any) -> None:
            self.raised = self.raised or KeyboardInterrupt()

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=5)


def train(recipe: PathLike, *, run: Optional[PathLike] = None, settings: Settings = None, device: str = "auto", threads: int = 0,
          weights: Optional[PathLike] = None, resume: bool = False, force: bool = False,
          on_step: Optional[Callable[[Step], Optional[bool]]] = None, on_validation: Optional[Callable[[int, float], None]] = None,
          on_note: Optional[Callable[[str], None]] = _warn) -> Run:
    """Trains the recipe, a TOML file, in a run folder, and returns it: `run`, else runs/<recipe>, then -2, -3.

    `on_step` hears of each step; where it returns False the step is saved and the run stops, to go on with resume=True. A Ctrl-C, or an
    exception of a function given here, does the same and is raised again. `on_validation` hears of (step, loss), `on_note` of sentences
    that a person should read; by default they are warnings. Other arguments are as tilewave train has them.
    """
    calls = _Calls(on_step, on_validation, on_note)
    request = TrainRequest(recipe_struct(recipe, settings), bytes_or_none(run), device.encode(), bytes_or_none(weights), threads, resume,
                           force, 0, None, calls.step, calls.validation, calls.note, calls.stopped)
    try:
        with calls.hearing_ctrl_c():
            status, text = text_of(library().tw_train, ctypes.byref(request))
    except Exception:
        if calls.raised is not None:
            raise calls.raised from None
        raise
    if calls.raised is not None:
        raise calls.raised
    if status == STOPPED and not text:
        raise KeyboardInterrupt("stopped before the first step; nothing was written")
    return Run(os.path.abspath(json.loads(text)["run"]))
