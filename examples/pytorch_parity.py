"""Fifty steps of PyTorch on a run's own batches, beside tilewave's (docs/use/pytorch.md):
python3 examples/pytorch_parity.py weights.safetensors batches.safetensors steps.safetensors
It takes torch and safetensors. The model is recipes/gpt_text.toml with the --set of that page."""
import math, sys
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

HEADS, PEAK, WARMUP, DECAY, BETAS, WEIGHT_DECAY, CLIP = 4, 2e-3, 10, 50, (0.9, 0.99), 0.1, 1.0
weights, batches, ours = map(load_file, sys.argv[1:4])
p = {name: tensor.requires_grad_() for name, tensor in weights.items()}


def linear(name, x):
    return F.linear(x, p[name + ".weight"], p[name + ".bias"])


def norm(name, x):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"])


def logits(ids):  # [sequences, longest] -> [sequences, longest, vocabulary]
    x = p["embedding.token.weight"][ids] + p["embedding.position.weight"][: ids.shape[1]]
    for layer in sorted({name.split(".")[1] for name in p if name.startswith("decoder.") and name.split(".")[1].isdigit()}, key=int):
        attention, ffn = f"decoder.{layer}.self_attention.", f"decoder.{layer}.ffn."
        qkv = linear(attention + "qkv", norm(attention + "norm", x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*qkv, is_causal=True).transpose(1, 2).flatten(2)
        x = x + linear(attention + "out", mixed)
        x = x + linear(ffn + "down", F.gelu(linear(ffn + "up", norm(ffn + "norm", x)), approximate="tanh"))
    return norm("decoder.norm", x) @ p["embedding.token.weight"].T


def rate(step):
    if step <= WARMUP:
        return PEAK * step / WARMUP
    return PEAK * (1 + math.cos(math.pi * min(1, (step - WARMUP) / (DECAY - WARMUP)))) / 2


decayed = [t for t in p.values() if t.dim() > 1]  # not biases and norms
others = [t for t in p.values() if t.dim() == 1]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}], betas=BETAS, eps=1e-8)
losses = []
for step in range(1, len(ours["loss"]) + 1):
    batch = {name: batches[f"batch/{step - 1}/{name}"].long() for name in ("target_in", "target_out")}
    loss = F.cross_entropy(logits(batch["target_in"]).flatten(0, 1), batch["target_out"].flatten())  # -100 behind a sequence's end
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(p.values(), CLIP)
    for group in optimizer.param_groups:
        group["lr"] = rate(step)
    optimizer.step()
    losses.append(loss.item())

theirs = torch.tensor(losses, dtype=torch.float64)
worst = (ours["loss"].double() / theirs - 1).abs().max().item()
apart = max(((ours["weight/" + name] - t).norm() / t.norm()).item() for name, t in p.items() if t.dim() > 1)
print(f"{len(losses)} steps: loss {losses[0]:.4f} to {losses[-1]:.4f}, largest difference {worst:.1e}; weights differ by {apart:.1e}")
sys.exit(0 if worst < 1e-5 and apart < 1e-4 else 1)
