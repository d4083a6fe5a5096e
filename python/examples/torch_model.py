"""A model of PyTorch whose linears multiply with tilewave, without another change: python3 python/examples/torch_model.py"""
import torch

import tilewave.torch

torch.manual_seed(1)
device = "cuda" if torch.cuda.is_available() and tilewave.has_cuda() else "cpu"
layer = torch.nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
model = torch.nn.Sequential(torch.nn.Linear(10, 64), torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.nn.Linear(64, 3))
model.to(device)
x, labels = torch.randn(8, 17, 10, device=device), torch.randint(0, 3, (8, 17), device=device)

before = model(x)
tilewave.torch.replace_linears(model)
print(f"logits differ by {(model(x) - before).abs().max().item():.1e} at most")

optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
for step in range(1, 31):
    loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step in (1, 10, 30):
        print(f"step {step}: loss {loss.item():.4f}")
