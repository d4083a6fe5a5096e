"""A layer of numpy arrays on a CPU, beside numpy: bias, GELU and residual in one product. python3 python/examples/numpy_layer.py"""
import time

import numpy

import tilewave.numpy

random = numpy.random.default_rng(1)
x, weight = random.standard_normal((512, 384), dtype=numpy.float32), random.standard_normal((1000, 384), dtype=numpy.float32) / 20
bias, residual = random.standard_normal(1000, dtype=numpy.float32), random.standard_normal((512, 1000), dtype=numpy.float32)


def by_numpy():
    z = x @ weight.T + bias
    return 0.5 * z * (1 + numpy.tanh(0.7978845608 * (z + 0.044715 * z**3))) + residual


def by_tilewave():
    return tilewave.numpy.linear(x, weight, bias, activation="gelu_tanh", residual=residual)


print(f"they differ by {numpy.abs(by_numpy() - by_tilewave()).max():.1e} at most")
for name, function in (("numpy", by_numpy), ("tilewave", by_tilewave)):
    begin = time.perf_counter()
    for _ in range(5):
        function()
    print(f"{name}: {(time.perf_counter() - begin) / 5 * 1e3:.2f} ms")
