#!/usr/bin/env python3
"""The step of a tilewave recipe in PyTorch, over the GPUs that torchrun started a process for: the peer of `tilewave bench step --gpus N`.

    torchrun --standalone --nproc-per-node N python/bench_torch_ranks.py MODEL [--tokens T] [--passes P] [--steps S] [--shards]

MODEL is gpt2_124m or llama_1b (recipes/ has them); T target tokens a GPU in each of P passes, random ones. bf16 autocast, fp32 weights,
fused AdamW, gradients clipped to norm 1, torch.compile; gradients summed by DistributedDataParallel, or with --shards by FSDP2, which
keeps shares of weights, gradients and moments and has the weights at hand from forward to backward. Prints the median step of the slowest
rank, as `tilewave bench step` does.
"""
import argparse
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

MODELS = {
    "gpt2_124m": dict(vocabulary=50304, d_model=768, d_ff=3072, heads=12, kv_heads=12, layers=12, sequence=1024, llama=False),
    "llama_1b": dict(vocabulary=128256, d_model=2048, d_ff=8192, heads=32, kv_heads=8, layers=16, sequence=4096, llama=True),
}


def rotated(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class Layer(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m, d, bias = m, m["d_model"], not m["llama"]
        norm = nn.RMSNorm if m["llama"] else nn.LayerNorm
        self.head = d // m["heads"]
        self.norm1, self.norm2 = norm(d), norm(d)
        self.qkv = nn.Linear(d, (m["heads"] + 2 * m["kv_heads"]) * self.head, bias=bias)
        self.output = nn.Linear(d, d, bias=bias)
        self.up = nn.Linear(d, m["d_ff"] * (2 if m["llama"] else 1), bias=bias)
        self.down = nn.Linear(m["d_ff"], d, bias=bias)

    def forward(self, x, cos, sin):
        m, (batch, length, d) = self.m, x.shape
        q, k, v = self.qkv(self.norm1(x)).split([d, m["kv_heads"] * self.head, m["kv_heads"] * self.head], dim=-1)
        q, k, v = (t.view(batch, length, -1, self.head).transpose(1, 2) for t in (q, k, v))
        if m["llama"]:
            q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=m["llama"])
        x = x + self.output(y.transpose(1, 2).reshape(batch, length, d))
        hidden = self.up(self.norm2(x))
        if m["llama"]:
            gate, value = hidden.chunk(2, dim=-1)
            return x + self.down(F.silu(gate) * value)
        return x + self.down(F.gelu(hidden, approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m = m
        self.embedding = nn.Embedding(m["vocabulary"], m["d_model"])
        nn.init.normal_(self.embedding.weight, std=0.02)
        if not m["llama"]:
            self.position = nn.Parameter(torch.zeros(m["sequence"], m["d_model"]))
        self.layers = nn.ModuleList(Layer(m) for _ in range(m["layers"]))
        self.norm = (nn.RMSNorm if m["llama"] else nn.LayerNorm)(m["d_model"])
        half = m["d_model"] // m["heads"] // 2
        angle = torch.arange(m["sequence"])[:, None] * 500000.0 ** (-torch.arange(half) / half)[None, :]
        self.register_buffer("cos", angle.cos().to(torch.bfloat16), persistent=False)
        self.register_buffer("sin", angle.sin().to(torch.bfloat16), persistent=False)

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        if not self.m["llama"]:
            x = x + self.position
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        logits = F.linear(self.norm(x), self.embedding.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def sharded(net):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    types = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in net.layers:
        layer.compile()
        fully_shard(layer, mp_policy=types, reshard_after_forward=False)
    fully_shard(net, mp_policy=types, reshard_after_forward=False)
    return net


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--shards", action="store_true")
    args = parser.parse_args()
    rank, count = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    if count > 1 or args.shards:
        dist.init_process_group("nccl", device_id=device)
    m = MODELS[args.model]
    net = Decoder(m).to(device)
    if args.shards:
        run = net = sharded(net)
    else:
        run = torch.compile(nn.parallel.DistributedDataParallel(net, device_ids=[rank], gradient_as_bucket_view=True) if count > 1 else net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    shape = (args.tokens // m["sequence"], m["sequence"])
    data = [[torch.randint(0, m["vocabulary"], shape, device=device) for _ in range(2)] for _ in range(4)]

    def step(index):
        for one in range(args.passes):
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=not args.shards):
                loss = run(*data[(index + one) % 4])
            (loss / args.passes).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for index in range(8):
        step(index)
    times = []
    for index in range(args.steps):
        if count > 1:
            dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        step(index)
        torch.cuda.synchronize()
        taken = torch.tensor(time.perf_counter() - start, device=device)
        if count > 1:
            dist.all_reduce(taken, dist.ReduceOp.MAX)
        times.append(taken.item())
    if rank == 0:
        median, tokens = statistics.median(times), args.tokens * args.passes * count
        kind = "FSDP2" if args.shards else "DDP" if count > 1 else "one process"
        print(f"PyTorch {torch.__version__}, {args.model}, {count} x {torch.cuda.get_device_name()}, {kind}: {1e3 * median:.2f} ms per step, "
              f"{tokens / median:,.0f} target tokens/s, {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
