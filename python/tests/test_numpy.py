"""tilewave.numpy against numpy in float64."""

import math
import threading
import unittest

import numpy

import tilewave
import tilewave.numpy as tn


def activated(z, activation):
    if activation == "relu":
        return numpy.maximum(z, 0)
    if activation == "gelu":
        return 0.5 * z * (1 + numpy.vectorize(math.erf)(z / math.sqrt(2)))
    if activation == "gelu_tanh":
        return 0.5 * z * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
    return z


class Linear(unittest.TestCase):
    def setUp(self):
        self.random = numpy.random.default_rng()

    def normal(self, *shape, dtype=numpy.float32):
        return self.random.standard_normal(shape).astype(dtype)

    def test_is_numpys(self):
        for dtype, tolerance in ((numpy.float32, 1e-5), (numpy.float64, 1e-13)):
            for tokens, out, width in ((1, 1, 1), (5, 7, 33), (64, 65, 17)):
                for activation in tn.ACTIVATIONS:
                    x, w = self.normal(tokens, width + 3, dtype=dtype)[:, 1:width + 1], self.normal(2 * out, width, dtype=dtype)[::2]
                    b, r = self.normal(out, dtype=dtype), self.normal(tokens, out, dtype=dtype)
                    y = tn.linear(x, w, b, activation=activation, residual=r, threads=2)
                    expected = activated(x.astype(float) @ w.astype(float).T + b, activation) + r
                    self.assertEqual(y.dtype, dtype)
                    error = numpy.linalg.norm(y - expected) / numpy.linalg.norm(expected)
                    self.assertLess(error, tolerance, (dtype, tokens, out, width, activation))
                    self.assertTrue(numpy.allclose(tn.linear(x, w, threads=1), x @ w.T, rtol=1e-3, atol=1e-4))

    def test_mistakes_are_sentences(self):
        x, w = self.normal(3, 4), self.normal(5, 4)
        for part, call in (("weight has the shape", lambda: tn.linear(x, self.normal(5, 3))),
                           ("is no matrix", lambda: tn.linear([[1.0]], w)),
                           ("is no matrix", lambda: tn.linear(x.astype(int), w)),
                           ("both must have one type", lambda: tn.linear(x, w.astype(float))),
                           ("follow one another", lambda: tn.linear(self.normal(4, 3).T, w)),
                           ("follow one another", lambda: tn.linear(x[::-1], w)),
                           ("bias has the shape", lambda: tn.linear(x, w, self.normal(4))),
                           ("residual has the shape", lambda: tn.linear(x, w, residual=x)),
                           ("activation 'gelo'", lambda: tn.linear(x, w, activation="gelo"))):
            with self.assertRaisesRegex(tilewave.InputError, part):
                call()

    def test_python_goes_on_while_a_product_is_computed(self):
        ticks, done = [0], threading.Event()

        def tick():
            while not done.is_set():
                ticks[0] += 1

        x = self.normal(1500, 1500)
        thread = threading.Thread(target=tick)
        thread.start()
        try:
            before = ticks[0]
            for _ in range(5):
                tn.linear(x, x, threads=1)
            self.assertGreater(ticks[0], before + 5)
        finally:
            done.set()
            thread.join()


if __name__ == "__main__":
    unittest.main()
