"""tilewave.torch against torch: values, gradients, compile, autocast, strides, mistakes; on a GPU streams and graphs too."""

import copy
import io
import unittest

import torch
import torch.nn.functional as F

import tilewave
import tilewave.torch as tt

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() and tilewave.has_cuda() else [])
PLAIN = {None: lambda z: z, "relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda z: F.gelu(z, approximate="tanh"), "silu": F.silu,
         "swiglu": lambda z: F.silu(z.chunk(2, -1)[0]) * z.chunk(2, -1)[1]}


def reference(x, w, b=None, activation=None, residual=None):
    y = PLAIN[activation](F.linear(x, w, b))
    return y if residual is None else y + residual


def operands(tokens, width, out, activation=None, dtype=torch.float32, device="cpu", residual=True):
    rows = 2 * out if activation == "swiglu" else out
    made = [torch.randn(*tokens, width), torch.randn(rows, width) / width**0.5, torch.randn(rows)]
    made += [torch.randn(*tokens, out)] if residual else []
    return [t.to(device, dtype).requires_grad_() for t in made] + ([] if residual else [None])


def gradients(function, inputs, dy):
    leaves = [t for t in inputs if t is not None]
    y = function(*inputs)
    return [y.detach(), *torch.autograd.grad(y, leaves, dy)]


def error(a, b):
    return ((a.double() - b).norm() / b.norm().clamp_min(1e-30)).item()


def doubled(inputs):
    return [None if t is None else t.detach().double().requires_grad_() for t in inputs]


class Values(unittest.TestCase):
    def test_errors_are_no_larger_than_torchs(self):
        cases = [(torch.float32, "cpu"), (torch.float64, "cpu"), (torch.bfloat16, "cpu")]
        if "cuda" in DEVICES:
            cases += [(dtype, "cuda") for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16)]
        for dtype, device in cases:
            for activation in tt.ACTIVATIONS:
                for tokens, width, out, residual in (((3, 37), 65, 50, True), ((1,), 8, 16, False), ((64,), 129, 257, True),
                                                        ((1100,), 700, 600, True)):
                    if (dtype, tokens) == (torch.bfloat16, (1100,)) and device == "cpu":
                        continue  # torch takes its time
                    inputs = operands(tokens, width, out, activation, dtype, device, residual)
                    dy = torch.randn(*tokens, out).to(device, dtype)

                    def ours(x, w, b, r):
                        return tt.linear(x, w, b, activation=activation, residual=r)

                    def theirs(x, w, b, r):
                        return reference(x, w, b, activation, r)

                    exact = gradients(theirs, doubled(inputs), dy.double())
                    a, b = gradients(ours, inputs, dy), gradients(theirs, inputs, dy)
                    least = {torch.float64: 1e-14, torch.float32: 3e-7, torch.float16: 3e-4, torch.bfloat16: 2e-3}[dtype]
                    for name, one, other, true in zip(("y", "dx", "dw", "db", "dr"), a, b, exact):
                        self.assertEqual(one.shape, true.shape)
                        self.assertEqual(one.dtype, dtype)
                        self.assertLessEqual(error(one, true), max(1.5 * error(other, true), least),
                                             (dtype, device, activation, tokens, width, out, name))

    def test_feed_forward_is_two_linears(self):
        for device in DEVICES:
            for dtype in (torch.float32, torch.float64, torch.bfloat16):
                for activation in tt.ACTIVATIONS:
                    x, up, up_bias, residual = operands((5, 7), 24, 24, None, dtype, device)
                    wide = 2 * 33 if activation == "swiglu" else 33
                    up = torch.randn(wide, 24, device=device).mul(0.2).to(dtype).requires_grad_()
                    up_bias = torch.randn(wide, device=device).to(dtype).requires_grad_()
                    down = torch.randn(24, 33, device=device).mul(0.2).to(dtype).requires_grad_()
                    down_bias = torch.randn(24, device=device).to(dtype).requires_grad_()
                    inputs, dy = [x, up, up_bias, down, down_bias, residual], torch.randn(5, 7, 24, device=device).to(dtype)

                    def ours(x, up, up_bias, down, down_bias, residual):
                        return tt.feed_forward(x, up, up_bias, down, down_bias, activation=activation, residual=residual)

                    def theirs(x, up, up_bias, down, down_bias, residual):
                        return F.linear(PLAIN[activation](F.linear(x, up, up_bias)), down, down_bias) + residual

                    exact = gradients(theirs, doubled(inputs), dy.double())
                    a, b = gradients(ours, inputs, dy), gradients(theirs, inputs, dy)
                    least = {torch.float64: 1e-14, torch.float32: 4e-7, torch.bfloat16: 4e-3}[dtype]
                    for index, (one, other, true) in enumerate(zip(a, b, exact)):
                        self.assertLessEqual(error(one, true), max(1.5 * error(other, true), least), (device, dtype, activation, index))

    def test_gradients_by_central_differences(self):
        for activation in tt.ACTIVATIONS:
            if activation == "relu":
                continue  # a kink
            inputs = operands((2, 3), 5, 4, activation, torch.float64)
            self.assertTrue(torch.autograd.gradcheck(lambda x, w, b, r: tt.linear(x, w, b, activation=activation, residual=r), inputs))

    def test_only_what_is_needed_is_computed(self):
        for needed in ((True, False, False), (False, True, False), (False, False, True), (False, True, True)):
            inputs = [t.detach().requires_grad_(needs) for t, needs in zip(operands((6,), 9, 10, residual=False), needed)]
            y = tt.linear(*inputs, activation="gelu")
            y.backward(torch.ones_like(y))
            same = [t.detach().clone().requires_grad_(needs) for t, needs in zip(inputs, needed)]
            F.gelu(F.linear(*same)).sum().backward()
            for one, other in zip(inputs, same):
                self.assertEqual(one.grad is None, other.grad is None)
                if one.grad is not None:
                    torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)
        with torch.no_grad():
            self.assertFalse(tt.linear(*operands((6,), 9, 10, residual=False)[:3]).requires_grad)

    def test_no_tokens_and_no_leading_dimensions(self):
        for shape in ((0,), (3, 0), ()):
            x, w, b, _ = operands(shape, 5, 4, residual=False)
            y = tt.linear(x, w, b, activation="gelu")
            self.assertEqual(y.shape, (*shape, 4))
            y.sum().backward()
            torch.testing.assert_close(w.grad, torch.autograd.grad(F.gelu(F.linear(x, w, b)).sum(), w)[0], rtol=1e-4, atol=1e-6)

    def test_rows_lie_where_they_lie(self):
        for device in DEVICES:
            memory, weights = torch.randn(8, 50, device=device), torch.randn(40, 41, device=device)
            x, w = memory[::2, 3:20], weights[1::3, 5:22]  # no alignment, rows far apart
            torch.testing.assert_close(tt.linear(x, w), F.linear(x, w), rtol=1e-4, atol=1e-4)
            x = torch.randn(4, 6, 32, device=device)[:, :, :17]
            torch.testing.assert_close(tt.linear(x, w), F.linear(x, w), rtol=1e-4, atol=1e-4)
            last = x.clone().requires_grad_()
            tt.linear(last, w).sum().backward()  # an expanded gradient
            torch.testing.assert_close(last.grad, w.sum(0).expand_as(x), rtol=1e-4, atol=1e-4)

    def test_there_is_no_second_derivative(self):
        x, w, b, _ = operands((6,), 9, 10, residual=False)
        dx, = torch.autograd.grad(tt.linear(x, w, b, activation="gelu").sum(), x, create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, "first derivatives alone"):
            dx.sum().backward()


class Mistakes(unittest.TestCase):
    def test_are_sentences(self):
        x, w, b = torch.randn(3, 4), torch.randn(6, 4), torch.randn(6)
        for part, call in (("weight is torch.float64 and x is torch.float32", lambda: tt.linear(x, w.double())),
                           ("x is torch.int64", lambda: tt.linear(x.long(), w.long())),
                           ("x is on meta", lambda: tt.linear(x.to("meta"), w)),
                           ("weight is on meta and x on cpu", lambda: tt.linear(x, w.to("meta"))),
                           ("4 features", lambda: tt.linear(x, w[:, :3])),
                           ("follow one another", lambda: tt.linear(torch.randn(4, 3).T, w)),
                           ("follow one another", lambda: tt.linear(torch.randn(5, 3, 4).transpose(0, 1), w)),
                           ("weight has the shape.*follow one another", lambda: tt.linear(x, torch.randn(4, 6).T)),
                           ("x has the shape.*rows lie at one distance", lambda: tt.linear(x[:1].expand(3, 4), w)),
                           ("bias has the shape", lambda: tt.linear(x, w, b[:5])),
                           ("residual has the shape", lambda: tt.linear(x, w, residual=x)),
                           ("even number", lambda: tt.linear(x, w[:5], activation="swiglu")),
                           ("activation 'gelo' is none of", lambda: tt.linear(x, w, activation="gelo")),
                           ("activation 'gelo' is none of", lambda: tt.Linear(3, 4, activation="gelo")),
                           ("x is a number", lambda: tt.linear(torch.tensor(1.0), w)),
                           ("weight is torch.sparse_coo", lambda: tt.linear(x, w.to_sparse())),
                           ("down_weight has the shape", lambda: tt.feed_forward(x, w, b, w, None))):
            with self.assertRaisesRegex(tilewave.InputError, part):
                call()


class Modules(unittest.TestCase):
    def test_linears_are_replaced_where_they_stand(self):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.ModuleDict({"a": torch.nn.Linear(16, 4)})["a"],
                                    torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0))
        calls = []
        model[0].register_forward_hook(lambda *_: calls.append(1))
        weight, x = model[0].weight, torch.randn(2, 5, 8)
        before = model(x)
        self.assertIs(tt.replace_linears(model), model)
        self.assertIsInstance(model[0], tt.Linear)
        self.assertIsInstance(model[3].linear1, tt.Linear)
        self.assertNotIsInstance(model[3].self_attn.out_proj, tt.Linear)
        self.assertIs(model[0].weight, weight)
        torch.testing.assert_close(model(x), before, rtol=1e-4, atol=1e-5)
        self.assertEqual(len(calls), 2)
        alone = tt.replace_linears(torch.nn.Linear(3, 2))
        self.assertIsInstance(alone, tt.Linear)
        self.assertEqual(copy.deepcopy(model)(x).shape, before.shape)

    def test_a_module_trains_as_torchs(self):
        torch.manual_seed(2)
        ours = torch.nn.Sequential(tt.Linear(6, 24, activation="gelu"), tt.Linear(24, 3))
        theirs = torch.nn.Sequential(torch.nn.Linear(6, 24), torch.nn.GELU(), torch.nn.Linear(24, 3))
        theirs.load_state_dict({name.replace("1.", "2."): tensor for name, tensor in ours.state_dict().items()})
        x, labels = torch.randn(40, 6), torch.randint(0, 3, (40,))
        losses = []
        for model in (ours, theirs):
            optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
            for _ in range(20):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), labels)
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
        self.assertAlmostEqual(*losses, places=4)
        self.assertIn("activation='gelu'", repr(ours))
        self.assertEqual(tt.Linear(6, 5, activation="swiglu").weight.shape, (10, 6))
        memory = io.BytesIO()
        torch.save(ours.state_dict(), memory)

    def test_autocast_is_respected(self):
        for device in DEVICES:
            x, w, b, _ = operands((5,), 16, 24, None, torch.float32, device, False)
            with torch.autocast(device, torch.bfloat16):
                ours, theirs = tt.linear(x, w, b, activation="gelu_tanh"), F.gelu(F.linear(x, w, b), approximate="tanh")
            self.assertEqual(ours.dtype, torch.bfloat16)
            torch.testing.assert_close(ours.float(), theirs.float(), rtol=3e-2, atol=3e-2)
            ours.sum().backward()
            self.assertEqual(w.grad.dtype, torch.float32)


class Compiled(unittest.TestCase):
    def test_operators_are_what_torch_asks_of_one(self):
        for activation in ("", "gelu", "swiglu"):
            x, w, b, _ = operands((3, 5), 8, 12, "swiglu" if activation == "swiglu" else None, residual=False)
            torch.library.opcheck(torch.ops.tilewave.linear.default, (x, w, b, None, activation, activation != ""),
                                  test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_static"))

    def test_whole_graphs(self):
        for device in DEVICES:
            for activation in tt.ACTIVATIONS:
                torch._dynamo.reset()  # which counts the models of one class together, and refuses the ninth
                model = torch.nn.Sequential(tt.Linear(16, 32, activation=activation), torch.nn.LayerNorm(32), tt.Linear(32, 8)).to(device)
                compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
                for tokens in (5, 7, 9):  # the second shape makes it dynamic
                    x = torch.randn(2, tokens, 16, device=device, requires_grad=True)
                    dx, = torch.autograd.grad(compiled(x).square().sum(), x)
                    torch.testing.assert_close(dx, torch.autograd.grad(model(x).square().sum(), x)[0], rtol=1e-4, atol=1e-4)

    def test_whole_graphs_under_autocast(self):
        for device in DEVICES:
            model = tt.Linear(16, 32, activation="gelu", device=device)

            @torch.compile(backend="aot_eager", fullgraph=True)
            def step(x):
                with torch.autocast(x.device.type, torch.bfloat16):
                    return tt.feed_forward(model(x), model.weight.T.contiguous(), None, model.weight, None)

            self.assertEqual(step(torch.randn(4, 16, device=device)).dtype, torch.bfloat16)


@unittest.skipUnless("cuda" in DEVICES, "no GPU that both torch and tilewave can use: streams and graphs were NOT tried")
class OnAGpu(unittest.TestCase):
    def test_work_is_in_the_current_stream(self):
        w = torch.randn(257, 1024, device="cuda", dtype=torch.bfloat16)
        x = torch.zeros(4096, 1024, device="cuda", dtype=torch.bfloat16)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            x.fill_(1.0)  # seen by the product if, and only if, it is behind it
            y = tt.linear(x, w)
        side.synchronize()
        torch.testing.assert_close(y[7].float(), w.float().sum(1), rtol=2e-2, atol=0.5)

    def test_graphs_replay_beside_other_work(self):
        for width, out in ((1024, 4096), (1000, 33708), (4096, 512)):
            x = torch.randn(2048, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            layer = tt.Linear(width, out, device="cuda", dtype=torch.bfloat16, activation="gelu")
            for _ in range(3):
                layer(x).sum().backward()
            graph = torch.cuda.CUDAGraph()
            x.grad = layer.weight.grad = layer.bias.grad = None
            with torch.cuda.graph(graph):
                y = layer(x)
                y.sum().backward()
            for _ in range(3):
                with torch.no_grad():
                    x.normal_()
                graph.replay()
                expected = [t.detach() for t in (y, x.grad, layer.weight.grad, layer.bias.grad)]
                again = x.detach().clone().requires_grad_()
                eager = layer(again)
                grads = torch.autograd.grad(eager.sum(), [again, layer.weight, layer.bias])
                for one, other in zip(expected, [eager, *grads]):
                    self.assertTrue(torch.equal(one, other))

    def test_compiled_with_graphs(self):
        torch._dynamo.reset()
        layer = torch.nn.Sequential(tt.Linear(512, 2048, activation="gelu"), tt.Linear(2048, 512)).to("cuda", torch.bfloat16)
        compiled = torch.compile(layer, mode="reduce-overhead", fullgraph=True)
        x = torch.randn(1024, 512, device="cuda", dtype=torch.bfloat16)
        for _ in range(4):
            torch.testing.assert_close(compiled(x).float(), layer(x).float(), rtol=2e-2, atol=2e-2)


if __name__ == "__main__":
    unittest.main()
