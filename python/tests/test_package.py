"""The package without numpy and torch: plans, training, runs, failures. TILEWAVE_PROGRAM names the command line to compare with."""

import ctypes
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import tilewave
from tilewave import _library as c

RECIPES = pathlib.Path(__file__).resolve().parents[2] / "recipes"
TINY = {"data.tokenizer": "bytes", "model.vocabulary": 260, "run.validate_every": 2, "run.checkpoint_every": 0}


class Place(ctypes.Structure):
    _fields_ = [("words", ctypes.c_int32 * 4), ("stream", ctypes.c_void_p)]


class Matrix(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("sizes", ctypes.c_int64 * 3), ("words", ctypes.c_int32 * 2)]


class Gemm(ctypes.Structure):
    _fields_ = [("place", Place), ("words", ctypes.c_int32 * 2), ("matrices", Matrix * 8), ("more", ctypes.c_int32 * 4),
                ("kernel", ctypes.c_char_p)]


class Elementwise(ctypes.Structure):
    _fields_ = [("place", Place), ("words", ctypes.c_int32 * 2), ("matrices", Matrix * 6)]


class Interface(unittest.TestCase):
    def test_packed_structs_are_cs(self):
        self.assertEqual(c.GEMM.size, ctypes.sizeof(Gemm))
        self.assertEqual(c.ELEMENTWISE.size, ctypes.sizeof(Elementwise))

    def test_the_library_says_what_it_is(self):
        self.assertRegex(tilewave.version(), r"^\d+\.\d+\.\d+$")
        self.assertEqual(tilewave.devices()[-1].backend, "cpu")
        self.assertGreaterEqual(tilewave.devices()[-1].threads, 1)
        self.assertTrue(tilewave.library_path().is_file())

    def test_a_wrong_struct_is_a_sentence(self):
        x = (ctypes.c_float * 6)()
        matrix = (ctypes.addressof(x), 2, 3, 3, c.F32, 0)

        def multiply(weight=matrix, tokens=matrix, role=c.FORWARD, activation=0, backend=c.CPU, threads=1):
            y = (ctypes.c_float * 4)()
            c.check(c.library().tw_multiply(c.GEMM.pack(backend, threads, 0, 0, 0, role, 0, *weight, *tokens, ctypes.addressof(y), 2, 2, 2,
                                                        c.F32, 0, *(5 * c.ABSENT), activation, 0, 0, 0, 0)))
            return list(y)

        self.assertEqual(multiply(), [0.0] * 4)
        for part, arguments in (("weight is absent", {"weight": c.ABSENT}),
                                ("2 elements apart, fewer than its 3 columns", {"tokens": (ctypes.addressof(x), 2, 3, 2, c.F32, 0)}),
                                ("within an element", {"tokens": (ctypes.addressof(x) + 2, 2, 3, 3, c.F32, 0)}),
                                ("role is 3", {"role": 3}), ("activation is 4", {"activation": 4}), ("place.backend is 7", {"backend": 7}),
                                ("tokens.dtype is 9", {"tokens": (ctypes.addressof(x), 2, 3, 3, 9, 0)}),
                                ("-1 threads", {"threads": -1})):
            with self.assertRaisesRegex(tilewave.InputError, part):
                multiply(**arguments)
        with self.assertRaisesRegex(tilewave.InputError, "K = "):
            multiply(tokens=(ctypes.addressof(x), 3, 2, 2, c.F32, 0))
        with self.assertRaises(tilewave.InputError):
            c.check(c.library().tw_multiply(None))
        for width in (3, 300):  # one sum, and one in slices
            memory = (ctypes.c_float * (4 * width))()
            one, same = ((ctypes.addressof(memory), 2, width, width, c.F32, 0) for _ in range(2))
            with self.assertRaisesRegex(tilewave.Error, "overlaps D"):
                c.check(c.library().tw_multiply(c.GEMM.pack(c.CPU, 1, 0, 0, 0, c.FORWARD, 0, *one, *same, ctypes.addressof(memory), 2, 2, 2,
                                                            c.F32, 0, *(5 * c.ABSENT), 0, 0, 0, 0, 0)))


class Plans(unittest.TestCase):
    def test_a_plan_is_the_commands(self):
        plan = tilewave.plan(RECIPES / "transformer_big.toml", "h200", settings={"model.vocabulary": 33708})
        self.assertEqual(plan.recipe, "transformer_big")
        self.assertAlmostEqual(sum(layer.share_fraction for layer in plan.layers), plan.gemm_us / plan.predicted_us, places=6)
        self.assertTrue(any(layer.m == 33708 for layer in plan.layers))
        self.assertEqual({advice.quantity for advice in plan.advice if advice.quantity == "vocabulary"}, {"vocabulary"})
        self.assertEqual(set(plan.rows_of()[0]), {"layer", "count", "role", "m", "n", "k", "dtype", "kernel", "schedule", "tile", "split",
                                                  "tiles", "useful_fraction", "waves", "tail_fraction", "wave_fraction", "a_alignment_bytes",
                                                  "b_alignment_bytes", "d_alignment_bytes", "flops", "bytes", "flops_per_byte", "limit",
                                                  "least_us", "predicted_us", "share_fraction", "tflops", "reason"})
        self.assertEqual(len(plan.rows_of("operations")), len(plan.operations))
        with self.assertRaises(ValueError):
            plan.rows_of("layer")
        program = os.environ.get("TILEWAVE_PROGRAM")
        if not program:
            self.skipTest("TILEWAVE_PROGRAM names no command line to compare with")
        printed = subprocess.run([program, "plan", str(RECIPES / "transformer_big.toml"), "--for", "h200", "--set", "model.vocabulary=33708",
                                  "--json"], capture_output=True, text=True, check=True).stdout
        lines = [json.loads(line) for line in printed.splitlines()]
        self.assertEqual([line["predicted_us"] for line in lines if line["kind"] == "gemm"], [layer.predicted_us for layer in plan.layers])
        self.assertEqual([line["to"] for line in lines if line["kind"] == "advice"], [advice.to for advice in plan.advice])
        self.assertEqual(next(line for line in lines if line["kind"] == "step")["predicted_us"], plan.predicted_us)

    def test_mistakes_are_sentences(self):
        for part, arguments in (("h2000", ("tiny.toml", "h2000")), ("nowhere.toml", ("nowhere.toml",))):
            with self.assertRaisesRegex(tilewave.Error, part):
                tilewave.plan(RECIPES / arguments[0], *arguments[1:])
        with self.assertRaisesRegex(tilewave.InputError, "d_modell"):
            tilewave.plan(RECIPES / "tiny.toml", "h200", settings=["model.d_modell=3"])
        with self.assertRaisesRegex(tilewave.InputError, "there is no such device"):
            tilewave.plan(RECIPES / "tiny.toml", "cuda:x")


class Training(unittest.TestCase):
    def setUp(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which what a shell runs in the background does not begin with
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.run_folder = pathlib.Path(self.folder.name) / "a run"

    def train(self, steps=4, **arguments):
        return tilewave.train(RECIPES / "tiny.toml", run=self.run_folder, device="cpu", settings={**TINY, "run.steps": steps}, threads=2,
                              on_note=None, **arguments)

    def test_a_run_is_told_and_kept(self):
        steps, validations = [], []
        run = self.train(on_step=steps.append, on_validation=lambda step, loss: validations.append((step, loss)))
        self.assertEqual([step.step for step in steps], [1, 2, 3, 4])
        self.assertEqual([step for step, _ in validations], [2])
        self.assertEqual(list(run.metrics["loss"]), [step.loss for step in steps])
        self.assertTrue(math.isnan(run.metrics["validation_loss"][0]))
        self.assertEqual(run.metrics["validation_loss"][1], validations[0][1])
        self.assertEqual(len(run.metrics.rows), 4)
        self.assertTrue(run.ended)
        self.assertEqual(run.summary["steps"], 4)
        self.assertIn("gradient_norm", list(run.metrics))
        with self.assertRaises(KeyError):
            run.metrics["lost"]

    def test_a_stopped_run_goes_on(self):
        whole = list(self.train().metrics["loss"])
        self.run_folder = self.run_folder.with_name("in parts")
        self.assertFalse(self.train(on_step=lambda step: step.step < 2).ended)
        run = self.train(resume=True)
        self.assertTrue(run.ended)
        self.assertEqual(list(run.metrics["loss"]), whole)

    def test_what_a_function_raises_stops_the_run_and_comes_back(self):
        def fail(step):
            raise ZeroDivisionError("mine")

        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            self.train(on_step=fail)
        self.assertEqual(len(tilewave.Run(self.run_folder).metrics.rows), 1)

    def test_ctrl_c_saves_the_step(self):
        with self.assertRaises(KeyboardInterrupt):
            self.train(on_step=lambda step: signal.raise_signal(signal.SIGINT) if step.step == 2 else None)
        self.assertEqual(len(tilewave.Run(self.run_folder).metrics.rows), 2)
        self.assertTrue((self.run_folder / "checkpoints" / "step-00000002" / "COMPLETE").is_file())
        self.assertTrue(self.train(resume=True).ended)

    def test_ctrl_c_without_functions_too(self):
        metrics = self.run_folder / "metrics.jsonl"

        def interrupt():  # once a step is done
            while not (metrics.is_file() and metrics.stat().st_size > 0):
                time.sleep(0.01)
            signal.raise_signal(signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        with self.assertRaises(KeyboardInterrupt):
            self.train(steps=10**6)
        self.assertGreater(len(tilewave.Run(self.run_folder).metrics.rows), 0)

    def test_mistakes_are_sentences(self):
        with self.assertRaisesRegex(tilewave.InputError, "holds no run to resume|no run"):
            self.train(resume=True)
        with self.assertRaisesRegex(tilewave.InputError, "is no run"):
            tilewave.Run(self.folder.name)
        self.train(steps=1)
        with self.assertRaisesRegex(tilewave.InputError, "a run"):
            self.train(steps=1)  # it has ended


class Imports(unittest.TestCase):
    def python(self, code, **environment):
        return subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})

    def test_the_package_is_imported_without_its_library(self):
        told = self.python("import tilewave\ntry:\n  tilewave.version()\nexcept tilewave.Error as error:\n  print(error)",
                           TILEWAVE_LIBRARY="/nowhere/libtilewave.so")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("/nowhere/libtilewave.so", told.stdout)
        self.assertIn("TILEWAVE_LIBRARY", told.stdout)

    def test_torch_and_numpy_are_named_where_they_are_not(self):
        told = self.python("import sys\nsys.modules['torch'] = None\nimport tilewave.torch")
        self.assertIn("ImportError: tilewave.torch takes PyTorch 2.4 or newer, and there is no torch", told.stderr)
        told = self.python("import sys, types\nsys.modules['torch'] = types.SimpleNamespace(__version__='2.3.1')\nimport tilewave.torch")
        self.assertIn("ImportError: tilewave.torch takes PyTorch 2.4 or newer, and this is torch 2.3.1", told.stderr)
        told = self.python("import sys\nsys.modules['numpy'] = None\nimport tilewave.numpy")
        self.assertIn("ImportError: tilewave.numpy takes numpy", told.stderr)


if __name__ == "__main__":
    unittest.main()
