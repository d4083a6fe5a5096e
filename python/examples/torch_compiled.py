"""A feed-forward block as one operator, compiled as a whole graph under autocast: python3 python/examples/torch_compiled.py"""
import torch

import tilewave.torch


class FeedForward(torch.nn.Module):
    """Norm, SwiGLU, and the residual in the last product's epilogue."""

    def __init__(self, width, hidden):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = tilewave.torch.Linear(width, hidden, bias=False, activation="swiglu")
        self.down = tilewave.torch.Linear(hidden, width, bias=False)

    def forward(self, x):
        return tilewave.torch.feed_forward(self.norm(x), self.up.weight, None, self.down.weight, activation="swiglu", residual=x)


torch.manual_seed(1)
device = "cuda" if torch.cuda.is_available() and tilewave.has_cuda() else "cpu"
block = FeedForward(128, 300).to(device)
compiled = torch.compile(block, backend="inductor" if device == "cuda" else "aot_eager", fullgraph=True)
x = torch.randn(4, 33, 128, device=device).bfloat16().requires_grad_()
with torch.autocast(device, torch.bfloat16):
    y = compiled(x)
y.float().square().mean().backward()
print(f"{tuple(y.shape)} of {y.dtype}; gradients of {block.up.weight.grad.dtype}, norm {block.up.weight.grad.norm().item():.4f}")
