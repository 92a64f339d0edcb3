"""BERT's encoder in plain torch, with the parameter names of its checkpoints.

Small enough to be read, and only as much of the model as sentence embeddings need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Mapping

LAYER_NORM_EPS = 1e-12


class Embeddings(nn.Module):
    def __init__(self, config: Mapping[str, int]) -> None:
        super().__init__()
        hidden = config["hidden_size"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], hidden)
        self.position_embeddings = nn.Embedding(
            config["max_position_embeddings"], hidden
        )
        self.token_type_embeddings = nn.Embedding(config["type_vocab_size"], hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=LAYER_NORM_EPS)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1])
        summed = (
            self.word_embeddings(tokens)
            + self.position_embeddings(positions)
            + self.token_type_embeddings(torch.zeros_like(tokens))
        )
        normed: Tensor = self.LayerNorm(summed)
        return normed


class SelfAttention(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        def split(y: Tensor) -> Tensor:
            return y.reshape(*y.shape[:2], self.heads, -1).transpose(1, 2)

        attended = functional.scaled_dot_product_attention(
            split(self.query(x)),
            split(self.key(x)),
            split(self.value(x)),
            attn_mask=mask[:, None, None, :],
        )
        return attended.transpose(1, 2).flatten(-2)


class Output(nn.Module):
    def __init__(self, inner: int, hidden: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inner, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=LAYER_NORM_EPS)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        normed: Tensor = self.LayerNorm(self.dense(x) + residual)
        return normed


class Attention(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.self = SelfAttention(hidden, heads)
        self.output = Output(hidden, hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        out: Tensor = self.output(self.self(x, mask), x)
        return out


class Intermediate(nn.Module):
    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, inner)

    def forward(self, x: Tensor) -> Tensor:
        return functional.gelu(self.dense(x))


class Layer(nn.Module):
    def __init__(self, config: Mapping[str, int]) -> None:
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.attention = Attention(hidden, config["num_attention_heads"])
        self.intermediate = Intermediate(hidden, inner)
        self.output = Output(inner, hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        attended = self.attention(x, mask)
        out: Tensor = self.output(self.intermediate(attended), attended)
        return out


class Encoder(nn.Module):
    def __init__(self, config: Mapping[str, int]) -> None:
        super().__init__()
        layers = (Layer(config) for _ in range(config["num_hidden_layers"]))
        self.layer = nn.ModuleList(layers)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Bert(nn.Module):
    """Token numbers to one unit vector per sentence, the mean over its tokens."""

    def __init__(self, config: Mapping[str, int]) -> None:
        super().__init__()
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        x = self.encoder(self.embeddings(tokens), mask.bool())
        weights = mask[..., None].to(x.dtype)
        mean = (x * weights).sum(1) / weights.sum(1)
        return functional.normalize(mean, dim=-1)
