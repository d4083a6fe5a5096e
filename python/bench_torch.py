"""What tilewave's products are worth beside torch's on this GPU, in one process: python3 python/bench_torch.py [--rounds N] [--eager] [--json]

Three tables. A vocabulary whose packed rows start on no multiple of 16 bytes, each phase; a feed-forward block, forward and backward
together; plain aligned layers, each phase. Both sides are timed in turns: each a CUDA graph of some calls on operands that take turns, so
that neither finds them in a cache nor waits for Python (--eager: the calls themselves). A ratio is torch's time over tilewave's, of the
medians; above 1 tilewave is faster. Results are compared before they are timed.
"""

import argparse
import json
import math
import statistics
import sys

import torch
import torch.nn.functional as F

import tilewave
import tilewave.torch as tt

SETS = 4  # of operands
DTYPE = torch.bfloat16


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.float32).mul_(shape[-1] ** -0.5).to(DTYPE)


def graph_of(call):
    """Runs the call for each set of operands; as one graph."""
    def all_sets():
        return [call(i) for i in range(SETS)]

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            all_sets()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    if arguments.eager:
        return all_sets
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = all_sets()
    return lambda: (graph.replay(), kept)[0]


def time_us(run):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / SETS


def check(name, ours, theirs):
    for one, other in zip(ours, theirs):
        error = ((one.float() - other.float()).norm() / other.float().norm()).item()
        if not error < 0.02:
            sys.exit(f"{name}: results differ by {error:.2g} of their norm")


def compare(name, ours, theirs):
    """The line of a table: both calls take the number of a set and return tensors."""
    check(name, ours(0), theirs(0))
    runs = {"tilewave": graph_of(ours), "torch": graph_of(theirs)}
    times = {side: [] for side in runs}
    for round_ in range(arguments.rounds + 2):
        for side, run in runs.items():
            used = time_us(run)
            if round_ >= 2:
                times[side].append(used)
    medians = {side: statistics.median(all_) for side, all_ in times.items()}
    ratios = sorted(b / a for a, b in zip(times["tilewave"], times["torch"]))
    line = {"name": name, "tilewave_us": medians["tilewave"], "torch_us": medians["torch"], "ratio": medians["torch"] / medians["tilewave"],
            "ratio_quartiles": [ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]]}
    if arguments.json:
        print(json.dumps(line), flush=True)
    else:
        print(f"{name:48} {line['tilewave_us']:10.1f} us {line['torch_us']:10.1f} us  {line['ratio']:6.3f}  "
              f"({line['ratio_quartiles'][0]:.3f} to {line['ratio_quartiles'][1]:.3f})", flush=True)
    torch.cuda.empty_cache()
    return line["ratio"]


def phases(name, out, width, tokens):
    x, w, dy = ([random(*shape) for _ in range(SETS)] for shape in ((tokens, width), (out, width), (tokens, out)))
    none = torch.empty(0, device="cuda", dtype=DTYPE)

    def backward(i, need_x, need_w):
        gradients = torch.ops.tilewave.linear_backward(dy[i], x[i], w[i], none, "", need_x, need_w, False)
        return [gradients[0 if need_x else 1]]

    ratios = []
    with torch.no_grad():
        ratios.append(compare(f"{name} forward", lambda i: [tt.linear(x[i], w[i])], lambda i: [F.linear(x[i], w[i])]))
        ratios.append(compare(f"{name} dgrad", lambda i: backward(i, True, False), lambda i: [dy[i] @ w[i]]))
        ratios.append(compare(f"{name} wgrad", lambda i: backward(i, False, True), lambda i: [dy[i].T @ x[i]]))
    return ratios


def feed_forward(tokens, activation, approximate):
    width, hidden = 1024, 4096
    w1, b1, w2, b2 = (t.requires_grad_() for t in (random(hidden, width), random(hidden), random(width, hidden), random(width)))
    x, dy = [random(tokens, width).requires_grad_() for _ in range(SETS)], [random(tokens, width) for _ in range(SETS)]

    def gradients(y, i):
        return [y, *torch.autograd.grad(y, [x[i], w1, b1, w2, b2], dy[i])]

    def theirs(i):
        return gradients(F.linear(F.gelu(F.linear(x[i], w1, b1), approximate=approximate), w2, b2), i)

    name = f"1024-4096-1024 {activation} @ {tokens}, both passes"
    block = compare(f"{name}, feed_forward", lambda i: gradients(tt.feed_forward(x[i], w1, b1, w2, b2, activation=activation), i), theirs)
    compare(f"{name}, two linears", lambda i: gradients(tt.linear(tt.linear(x[i], w1, b1, activation=activation), w2, b2), i), theirs)
    return block


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def say(sentence):
    print(sentence, file=sys.stderr if arguments.json else sys.stdout, flush=True)


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--rounds", type=int, default=15)
parser.add_argument("--eager", action="store_true")
parser.add_argument("--json", action="store_true")
arguments = parser.parse_args()
if not torch.cuda.is_available() or not tilewave.has_cuda():
    sys.exit("this takes a GPU, a torch that sees it, and a libtilewave with CUDA kernels")
torch.manual_seed(1)
say(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, tilewave {tilewave.version()}; bf16; tilewave, torch, ratio (its quartiles)")
for vocabulary in (33708, 50257):
    say(f"packed rows of {vocabulary}: the least of three ratios is {min(phases(f'{vocabulary}<-1024@5120', vocabulary, 1024, 5120)):.3f}")
for tokens in (5120, 16384):
    say(f"feed-forward: {feed_forward(tokens, 'gelu_tanh', 'tanh'):.3f}")
    say(f"feed-forward, erf: {feed_forward(tokens, 'gelu', 'none'):.3f}")
plain = []
for tokens in (4096, 8192, 16384):
    for out, width in ((1024, 1024), (3072, 1024), (4096, 1024), (1024, 4096)):
        plain += phases(f"{out}<-{width}@{tokens}", out, width, tokens)
say(f"plain aligned layers, geometric mean of {len(plain)}: {geometric_mean(plain):.3f}")
