# SPDX-License-Identifier: Apache-2.0
"""Small models of the usual kinds in plain `torch.nn`: each gives (module, example arguments)."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """A residual block of ResNet."""

    def __init__(self, channels, out, stride=1):
        super().__init__()
        self.first, self.second = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(out), nn.BatchNorm2d(out)])
        self.side = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if stride != 1 or channels != out else None

    def forward(self, x):
        y = self.norms[1](self.second(F.relu(self.norms[0](self.first(x)))))
        return F.relu(y + (x if self.side is None else self.side(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Block(8, 8), Block(8, 16, 2), Block(16, 32, 2))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1), 1))


class SqueezeExcite(nn.Module):
    """An inverted residual of MobileNetV3, with squeeze and excitation."""

    def __init__(self, channels=8, wide=24):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(channels, wide, 1), nn.BatchNorm2d(wide), nn.Hardswish())
        self.depth = nn.Sequential(nn.Conv2d(wide, wide, 5, padding=2, groups=wide), nn.BatchNorm2d(wide), nn.Hardswish())
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, 8, 1), nn.ReLU(), nn.Conv2d(8, wide, 1), nn.Hardsigmoid())
        self.project = nn.Sequential(nn.Conv2d(wide, channels, 1), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.depth(self.expand(x))
        return x + self.project(y * self.gate(y))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 1)
        self.up, self.out = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(11, 4, 1)
        self.norm = nn.GroupNorm(4, 8)

    def forward(self, x):
        y = F.silu(self.norm(self.middle(F.gelu(self.down(x)))))
        y = F.interpolate(self.up(y), size=x.shape[2:], mode="bilinear", align_corners=False)
        return self.out(torch.cat([x, y], 1)).softmax(1)


class ViT(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, 8)
        self.token, self.place = nn.Parameter(torch.randn(1, 1, width) * 0.02), nn.Parameter(torch.randn(1, 17, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 64, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.norm(self.layers(x))[:, 0])


class Bert(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(100, width), nn.Embedding(64, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        layer = nn.TransformerEncoderLayer(width, heads, 64, 0.1, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.pool = nn.Linear(width, width)

    def forward(self, ids, mask):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.places(places) + self.kinds(torch.zeros_like(ids)))
        x = self.layers(x, src_key_padding_mask=mask == 0)
        return x, torch.tanh(self.pool(x[:, 0]))


class GPT2(nn.Module):
    """A decoder with a causal mask and tied weights."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(100, width), nn.Embedding(64, width)
        self.first, self.second, self.last = (nn.LayerNorm(width) for _ in range(3))
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, ids):
        batch, length = ids.shape
        x = self.words(ids) + self.places(torch.arange(length, device=ids.device))
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.attend(self.first(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, -1)
        x = x + self.project(y)
        x = x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))
        return self.last(x) @ self.words.weight.T


class Llama(nn.Module):
    """A block with RMS norm, rotary places, grouped heads, a gated layer, and keys and values of earlier tokens."""

    def __init__(self, width=32, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q, self.k, self.v = nn.Linear(width, width, False), nn.Linear(width, groups * self.size, False), nn.Linear(width, groups * self.size, False)
        self.o = nn.Linear(width, width, False)
        self.gate, self.up, self.down = nn.Linear(width, 64, False), nn.Linear(width, 64, False), nn.Linear(64, width, False)
        self.norms = nn.ModuleList([nn.RMSNorm(width), nn.RMSNorm(width)])
        self.register_buffer("rates", 1 / 10000 ** (torch.arange(0, self.size, 2) / self.size))

    def turn(self, x, places):
        angle = torch.outer(places.to(x.dtype), self.rates)
        angle = torch.cat([angle, angle], -1)
        a, b = x.chunk(2, -1)
        return x * angle.cos() + torch.cat([-b, a], -1) * angle.sin()

    def forward(self, x, past_k, past_v):
        batch, length, _ = x.shape
        past = past_k.shape[2]
        y = self.norms[0](x)
        places = torch.arange(past, past + length)
        q = self.turn(self.q(y).view(batch, length, self.heads, -1).transpose(1, 2), places)
        k = self.turn(self.k(y).view(batch, length, self.groups, -1).transpose(1, 2), places)
        v = self.v(y).view(batch, length, self.groups, -1).transpose(1, 2)
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        mask = torch.arange(past + length)[None, :] <= places[:, None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, length, -1))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), k, v


class Experts(nn.Module):
    """A layer of experts: each token goes through the two that score highest."""

    def __init__(self, width=16, count=4):
        super().__init__()
        self.score = nn.Linear(width, count)
        self.first, self.second = nn.Parameter(torch.randn(count, width, 32) * 0.1), nn.Parameter(torch.randn(count, 32, width) * 0.1)

    def forward(self, x):
        weights, which = self.score(x).softmax(-1).topk(2, -1)
        y = torch.einsum("td,tkdf->tkf", x, self.first[which])
        y = torch.einsum("tkf,tkfd->tkd", F.relu(y), self.second[which])
        return (y * (weights / weights.sum(-1, keepdim=True))[..., None]).sum(1)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = getattr(nn, kind)(8, 16, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, x):
        out = self.layer(x)
        return out[0]


class Losses(nn.Module):
    def forward(self, scores, labels, x):
        return (
            F.cross_entropy(scores, labels),
            F.mse_loss(x, x * 0.5),
            F.kl_div(x.log_softmax(-1), x.softmax(-1), reduction="batchmean"),
            F.huber_loss(x, x + 2),
        )


class Speech(nn.Module):
    """Frames, a one-dimensional convolution, and a power spectrum by products."""

    def __init__(self):
        super().__init__()
        places = torch.arange(64.0)
        self.register_buffer("waves", torch.cat([torch.cos(2 * math.pi * k * places / 64)[None] for k in range(16)]))
        self.conv = nn.Conv1d(16, 8, 3, padding=1)

    def forward(self, x):
        frames = x.unfold(-1, 64, 32) * torch.hann_window(64)
        power = torch.log1p((frames @ self.waves.T) ** 2)
        return self.conv(power.transpose(1, 2)).amax(-1)


IMAGE = (2, 3, 32, 32)
MODELS = {
    "resnet": lambda: (ResNet(), (torch.randn(IMAGE),)),
    "mobilenet": lambda: (SqueezeExcite(), (torch.randn(2, 8, 16, 16),)),
    "unet": lambda: (UNet(), (torch.randn(IMAGE),)),
    "vit": lambda: (ViT(), (torch.randn(IMAGE),)),
    "bert": lambda: (Bert(), (torch.randint(0, 100, (2, 12)), torch.tensor([[1] * 12, [1] * 7 + [0] * 5]))),
    "gpt2": lambda: (GPT2(), (torch.randint(0, 100, (2, 9)),)),
    "llama": lambda: (Llama(), (torch.randn(2, 3, 32), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8))),
    "experts": lambda: (Experts(), (torch.randn(6, 16),)),
    "lstm": lambda: (Recurrent("LSTM"), (torch.randn(2, 5, 8),)),
    "gru": lambda: (Recurrent("GRU"), (torch.randn(2, 5, 8),)),
    "rnn": lambda: (Recurrent("RNN"), (torch.randn(2, 5, 8),)),
    "losses": lambda: (Losses(), (torch.randn(4, 5), torch.tensor([0, 3, 4, 1]), torch.randn(4, 5))),
    "speech": lambda: (Speech(), (torch.randn(2, 512),)),
}
