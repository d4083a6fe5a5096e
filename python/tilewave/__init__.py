"""tilewave from Python: plans of a training step, training, runs as arrays, and a layer's matrix products.

    import tilewave
    plan = tilewave.plan("recipes/transformer_big.toml", device="h200")
    run = tilewave.train("recipes/tiny.toml", on_step=lambda step: print(step.step, step.loss))
    run.metrics["loss"]

tilewave.torch has the layers for PyTorch, tilewave.numpy the products for arrays. Importing this needs neither, nor a GPU; libtilewave is
looked for when something is asked of it.
"""

from ._library import Device, Error, InputError, devices, has_cuda, library_path, version
from ._plan import Adjustment, Advice, Layer, Operation, Plan, TriedSize, plan
from ._runs import Metrics, Run
from ._train import Step, train

__all__ = ["Adjustment", "Advice", "Device", "Error", "InputError", "Layer", "Metrics", "Operation", "Plan", "Run", "Step", "TriedSize",
           "devices", "has_cuda", "library_path", "plan", "train", "version"]
